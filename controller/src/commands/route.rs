//! `weir route TOPOLOGY TRAININGS`

use std::path::Path;
use std::process::ExitCode;

use controller::route;
use planner::Network;
use scenario::TrainingInNetwork;

use super::{ERROR, fail, print, print_json, protocols, read, show};
use crate::cli::route::Route;

/// Says where trainings are summed.
pub fn main(args: &Route) -> ExitCode {
    match run(args) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(ERROR),
        Err(code) => code,
    }
}

/// Whether all trainings are planned.
fn run(args: &Route) -> Result<bool, ExitCode> {
    let mut network = network(&args.topology)?;
    let trainings = trainings(&args.trainings, &network)?;
    let routes = route::plan(&mut network, &trainings, args.by, args.robust);
    if let Some(path) = &args.svg {
        let svg = route::svg(
            &network,
            &format!("{}, by {}", args.topology.display(), args.by.name()),
        );
        std::fs::write(path, svg)
            .map_err(|error| fail(format_args!("cannot write {}: {error}", path.display())))?;
    }
    match args.json {
        true => print_json(&routes)?,
        false => print(&routes)?,
    }
    Ok(routes.is_whole())
}

fn network(path: &Path) -> Result<Network, ExitCode> {
    let text = read(path)?;
    let file = path.display().to_string();
    let given = protocols::given(path, &text, &[])?;
    let (topology, warnings) = scenario::load_topology(&file, &text, &given)
        .map_err(|diagnostics| show(&diagnostics, &file, &text))?;
    show(&warnings, &file, &text);
    scenario::topology_network(&topology).map_err(fail)
}

fn trainings(path: &Path, network: &Network) -> Result<Vec<TrainingInNetwork>, ExitCode> {
    let text = read(path)?;
    let file = path.display().to_string();
    let trainings = scenario::load_trainings(&file, &text, network)
        .map_err(|diagnostics| show(&diagnostics, &file, &text))?;
    Ok(trainings.into_iter().map(|read| read.value).collect())
}

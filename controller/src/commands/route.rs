//! `weir route TOPOLOGY TRAININGS`: plans where trainings are summed in a network.

use std::process::ExitCode;

use controller::route::{self, By, Outcome};
use planner::Method;
use scenario::diagnostic::Source;

use super::file_kind::FileKind;
use super::{ERROR, fail, network, print, print_json, read, refuse};
use crate::cli::route::Route;

/// Performs `weir route`.
pub fn main(args: &Route) -> ExitCode {
    match run(args) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(ERROR),
        Err(code) => code,
    }
}

/// Plans the trainings, prints the plans, and returns whether every training has a plan.
fn run(args: &Route) -> Result<bool, ExitCode> {
    let by = match (args.exact, args.by) {
        (false, by) => by,
        (true, By::Method(Method::InArt)) => By::InArtExact,
        (true, by) => {
            return Err(fail(format_args!(
                "--exact: `--by {}` solves no integer program: use `--by inart`, or leave `--exact` out",
                by.name()
            )));
        }
    };
    let robust = match (args.robust, by) {
        (false, _) => None,
        (true, By::Method(method)) => Some(method),
        (true, By::InArtExact | By::Goat) => {
            return Err(fail(
                "--robust: `--by goat` does not optimize a rate, and `--robust` chooses among plans of equal rate: leave one of them out",
            ));
        }
    };
    let mut network = network(&args.topology)?;
    let text = read(&args.trainings)?;
    let file = args.trainings.display().to_string();
    let source = Source {
        file: &file,
        text: &text,
    };
    let trainings = scenario::load_trainings(&file, &text, &network, by.reads())
        .map_err(|diagnostics| refuse(&diagnostics, &file, &text, FileKind::Trainings))?;
    let routes = route::plan(&mut network, &trainings, source, by, robust);
    if let Some(path) = &args.svg {
        let svg = route::svg(
            &network,
            &format!("{}, by {}", args.topology.display(), by.name()),
        );
        std::fs::write(path, svg)
            .map_err(|error| fail(format_args!("cannot write {}: {error}", path.display())))?;
    }
    for training in &routes.trainings {
        if let Outcome::Refused(why) = &training.outcome {
            cli_io::stderr::tell(format_args!("{}\n", why.render(&source)));
        }
    }
    match args.json {
        true => print_json(&routes)?,
        false => print(&routes)?,
    }
    Ok(routes.is_whole())
}

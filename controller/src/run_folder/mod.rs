//! The folder of a run: everything that says what happened, and that proves it again without a network.
//!
//! `evidence.json` is written last, so a folder without it is one of a run that did not come to its end. It takes the place of
//! the mark that such a folder has.

mod disrupted;
mod evidence;
mod place;
pub mod replay;

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use crate::experiment::{Planned, events};
use crate::scenario_run::{self, ScenarioRun};

pub use crate::experiment::events::Event;
pub use crate::experiment::hit_log::EVENTS;
pub use disrupted::Disrupted;
pub use evidence::{Kept, Stored, StoredError, load};
pub use place::{Begun, PlaceError, begin};

/// What a run writes of itself.
pub const EVIDENCE: &str = "evidence.json";
/// The scenario, as it was read.
pub const SCENARIO: &str = "scenario.yaml";
/// Its workload file, if it names one.
pub const WORKLOAD: &str = "workload.yaml";
/// Its topology file, if it names one; how it ends says what it holds.
pub const TOPOLOGIES: [&str; 2] = ["topology.graphml", "topology.json"];
/// The page.
pub const PAGE: &str = "report.html";
/// [`EVIDENCE`] until it is whole.
const EVIDENCE_WRITTEN: &str = "evidence.json.tmp";
const REPORT: &str = "report.json";
const PLAN: &str = "plan.json";
const PROTOCOLS: &str = "protocols";

/// What a topology file is called in the folder of a run.
#[must_use]
pub fn topology_file(named: &str) -> &'static str {
    let [graphml, json] = TOPOLOGIES;
    if named.ends_with(".json") {
        json
    } else {
        graphml
    }
}

/// A folder of a run could not be written.
#[derive(Debug, thiserror::Error)]
#[error("cannot write {path}: {source}")]
pub struct WriteError {
    path: PathBuf,
    source: io::Error,
}

fn written(path: PathBuf, result: io::Result<()>) -> Result<(), WriteError> {
    result.map_err(|source| WriteError { path, source })
}

/// A file of a run's folder; what is none, as a pipe that nobody writes, would be waited for.
pub(crate) fn read_file(path: &Path) -> io::Result<String> {
    match fs::metadata(path)?.is_file() {
        true => fs::read_to_string(path),
        false => Err(io::Error::new(io::ErrorKind::InvalidInput, "it is no file")),
    }
}

/// Writes a run into its folder. `target`: for what kind of switches it was planned.
pub fn write(
    folder: &Path,
    target: &str,
    planned: &Planned,
    result: &ScenarioRun,
    page: &str,
) -> Result<(), WriteError> {
    let put = |name: &str, text: &[u8]| {
        let path = folder.join(name);
        written(path.clone(), fs::write(path, text))
    };
    let json = |value: serde_json::Result<String>| {
        value.map_or_else(|e| e.to_string(), |text| text + "\n")
    };
    put(SCENARIO, planned.scenario.text.as_bytes())?;
    put(
        PLAN,
        json(serde_json::to_string_pretty(&planned.plan)).as_bytes(),
    )?;
    put(
        REPORT,
        json(serde_json::to_string_pretty(&scenario_run::json(
            planned, result,
        )))
        .as_bytes(),
    )?;
    put(PAGE, page.as_bytes())?;
    if let Some(source) = &planned.scenario.workload_file {
        put(WORKLOAD, source.text.as_bytes())?;
    }
    if let Some(source) = &planned.scenario.topology_file {
        put(topology_file(&source.file), source.text.as_bytes())?;
    }
    let own = planned.scenario.protocols.own();
    if !own.is_empty() {
        let protocols = folder.join(PROTOCOLS);
        written(protocols.clone(), fs::create_dir_all(protocols))?;
    }
    for (number, source) in own.iter().enumerate() {
        put(&evidence::protocol_file(number), source.text.as_bytes())?;
    }
    let run = &result.run;
    // What faults did is there already.
    let disruptions = events::lines(&disrupted::disruptions(planned, &run.evidence.carried));
    let path = folder.join(EVENTS);
    let log = OpenOptions::new().create(true).append(true).open(&path);
    // A line that was cut off ends here.
    let disruptions = match run.evidence.kept.log_ends {
        Some(_) => format!("\n{disruptions}"),
        None => disruptions,
    };
    let appended = log.and_then(|mut log| log.write_all(disruptions.as_bytes()));
    written(path, appended)?;
    let stored = Stored::of(target, planned, run);
    // All of it or nothing: what is renamed is whole.
    let temporary = EVIDENCE_WRITTEN;
    put(
        temporary,
        json(serde_json::to_string_pretty(&stored)).as_bytes(),
    )?;
    let path = folder.join(EVIDENCE);
    written(path.clone(), fs::rename(folder.join(temporary), path))?;
    let mark = folder.join(place::MARK);
    written(mark.clone(), fs::remove_file(mark))
}

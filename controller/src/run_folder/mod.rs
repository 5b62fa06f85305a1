//! The folder of a run contains everything that describes the run, and that proves its faults again without a network.
//!
//! `evidence.json` is written last, so a folder without it belongs to a run that did not finish. It replaces the mark of an
//! unfinished run.

mod claim;
mod disrupted;
mod evidence;
pub mod replay;

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use crate::experiment::Planned;
use crate::experiment::observe::events;
use crate::scenario_run::{self, ScenarioRun};

pub use crate::experiment::observe::events::Event;
pub use crate::experiment::observe::hit_log::EVENTS;
pub use claim::{ClaimError, ClaimedFolder, begin};
pub use disrupted::DisruptionEvent;
pub use evidence::{Stored, StoredError, StoredRun, load};

/// Name of the file with the evidence besides the captures, which is written last.
pub const EVIDENCE: &str = "evidence.json";
/// Name of the copy of the scenario's file.
pub const SCENARIO: &str = "scenario.yaml";
/// Name of the copy of the workload file, if the scenario names one.
pub const WORKLOAD: &str = "workload.yaml";
/// Possible names of the copy of the topology file, if the scenario names one; the extension gives its format.
pub const TOPOLOGIES: [&str; 2] = ["topology.graphml", "topology.json"];
/// Name of the HTML report.
pub const PAGE: &str = "report.html";
/// Temporary name of [`EVIDENCE`] until it is complete.
const EVIDENCE_WRITTEN: &str = "evidence.json.tmp";
const REPORT: &str = "report.json";
const PLAN: &str = "plan.json";
const PROTOCOLS: &str = "protocols";

/// Name of the copy of the topology file `named`.
pub fn topology_file(named: &str) -> &'static str {
    let [graphml, json] = TOPOLOGIES;
    if named.ends_with(".json") {
        json
    } else {
        graphml
    }
}

/// A file in the folder of a run could not be written.
#[derive(Debug, thiserror::Error)]
#[error("cannot write {path}: {source}")]
pub struct WriteError {
    path: PathBuf,
    source: io::Error,
}

fn written(path: PathBuf, result: io::Result<()>) -> Result<(), WriteError> {
    result.map_err(|source| WriteError { path, source })
}

/// Reads a regular file in the folder of a run. Rejects other files: reading a pipe without a writer, for example, would block.
pub(crate) fn read_file(path: &Path) -> io::Result<String> {
    match fs::metadata(path)?.is_file() {
        true => fs::read_to_string(path),
        false => Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "it is not a regular file",
        )),
    }
}

/// Writes the results of a run into its folder. `target`: kind of the switches. `page`: the HTML report.
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
    // The file contains the hits of faults already.
    let disruptions = events::lines(&disrupted::disruptions(planned, &run.evidence.carried));
    let path = folder.join(EVENTS);
    let log = OpenOptions::new().create(true).append(true).open(&path);
    // This ends a line that was truncated.
    let disruptions = match run.evidence.kept.log_ends {
        Some(_) => format!("\n{disruptions}"),
        None => disruptions,
    };
    let appended = log.and_then(|mut log| log.write_all(disruptions.as_bytes()));
    written(path, appended)?;
    let stored = Stored::new(target, planned, run);
    // The rename makes the file appear complete or not at all.
    let temporary = EVIDENCE_WRITTEN;
    put(
        temporary,
        json(serde_json::to_string_pretty(&stored)).as_bytes(),
    )?;
    let path = folder.join(EVIDENCE);
    written(path.clone(), fs::rename(folder.join(temporary), path))?;
    let mark = folder.join(claim::MARK);
    written(mark.clone(), fs::remove_file(mark))
}

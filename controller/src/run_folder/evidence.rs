//! Writes and reads `evidence.json`, which contains everything, besides the captures, that proves a run's faults.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use clap::ValueEnum;
use parser_gen::ProtocolSource;
use scenario::model::Captures;
use scenario::model::topology::TopologySource;
use scenario::model::workload::WorkloadSource;
use scenario::plan::announcement::Announcement;
use scenario::{Given, Scenario};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use testbeds::capture::Frame;

use super::{EVENTS, EVIDENCE, PROTOCOLS, SCENARIO, WORKLOAD};
use crate::experiment::carry_out::disruption::DisruptionExecution;
use crate::experiment::conclude::evidence::Evidence;
use crate::experiment::observe::captures::file::{self as captures_file, ReadError};
use crate::experiment::observe::captures::{self, KeptPort};
use crate::experiment::{Planned, RunResult};
use crate::target::Kind;
use proof::Loss;
use proof::{EpochWrite, TriggerCount};

/// Version of the format of `evidence.json`; incremented when a name or its meaning changes.
const SCHEMA: u32 = 2;

/// Content of `evidence.json`: how the scenario was run, and the evidence besides the captures.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, expecting = "the record of a run, a mapping")]
pub struct Stored {
    schema: u32,
    /// Version of weir that ran the scenario.
    pub version: String,
    /// The scenario's name.
    pub scenario: String,
    /// Path of the file from which the scenario was read.
    pub file: String,
    /// Kind of switches for which the scenario was planned.
    pub target: String,
    /// Seed of all random decisions of the run.
    pub seed: u64,
    /// SHA-256 of the plan in JSON, with which `load` checks that the scenario still has this plan.
    plan_sha256: String,
    /// Number of protocol files that the user gave; the folder has copies.
    protocols: usize,
    /// When each switch confirmed each step of the timeline (epoch), in the order in which the steps were sent.
    writes: Vec<EpochWrite>,
    /// Announcements of RDMA connections that the switches received.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    tellings: Vec<Announcement>,
    /// For each injection of the plan (a fault on a flow at a switch): number of hits that the switch counted.
    fired: Vec<u64>,
    /// For each injection: number of packets whose key (such as a connection) had no register cell, as the switch counted them.
    keyless: Vec<u64>,
    /// Counts of each trigger of the scenario on its switch, in declared order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    triggers: Vec<TriggerCount>,
    /// Frames that the switches and the recorder report as lost.
    losses: Vec<Loss>,
    /// Executions of faults of programs and switches.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    carried: Vec<DisruptionExecution>,
    /// Whether the P4 programs of the switches saw the same time stamps of received frames as the captures.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    shares_stamps: bool,
    /// For each injection: number of frames of its flow that arrived while the fault was armed.
    pub met: Vec<u64>,
    /// Which frames the folder keeps: `all`, `hits` (those around hits) or `none`.
    pub kept: Captures,
    /// Time from which on the folder has no frames, in ns since 1970, and the reason; `None` if it has frames to the end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    stopped: Option<(u64, String)>,
    /// Why the log of hits ends early; `None` if it is complete.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    log_ends: Option<String>,
    /// By switch: counts of its ports, in the order of the interfaces in its capture file.
    captures: BTreeMap<String, Vec<StoredPort>>,
}

/// Number of a port, and counts of its frames.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(
    deny_unknown_fields,
    expecting = "the record of a port's capture, a mapping"
)]
struct StoredPort {
    port: u32,
    /// Number of frames that passed the port and were judged.
    passed: u64,
    /// Number of the port's frames that are in the capture file.
    frames: u64,
}

/// Why the folder of a run cannot be loaded or judged.
#[derive(Debug, thiserror::Error)]
pub enum StoredError {
    /// The folder has no `evidence.json`: the run did not finish, or this is not the folder of a run; contains its path.
    #[error("{} has no {EVIDENCE}: it is not the folder of a run, or the run did not finish", .0.display())]
    Unfinished(PathBuf),
    /// A file of the folder cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// Path of the file.
        path: PathBuf,
        /// Error of the operating system.
        source: io::Error,
    },
    /// A file of the folder has invalid content.
    #[error("{}: {reason}", path.display())]
    Content {
        /// Path of the file.
        path: PathBuf,
        /// Why the content is invalid.
        reason: String,
    },
    /// A capture file cannot be read.
    #[error(transparent)]
    Capture(#[from] ReadError),
    /// The plan of the scenario differs from that of the run.
    #[error("the scenario in {} now gets a different plan than in the run: {why}", .folder.display())]
    OtherPlan {
        /// Path of the run's folder.
        folder: PathBuf,
        /// Known reason: another seed, another version of weir, or a changed file.
        why: String,
    },
}

pub(super) fn protocol_file(number: usize) -> String {
    format!("{PROTOCOLS}/{number}.yaml")
}

impl Stored {
    /// Collects the content of `evidence.json` from the results of a run; `target`: kind of the switches.
    pub fn new(target: &str, planned: &Planned, run: &RunResult) -> Stored {
        let evidence = &run.evidence;
        let mut captures: BTreeMap<String, Vec<StoredPort>> = BTreeMap::new();
        for port in &evidence.kept.ports {
            let ports = captures.entry(port.switch.clone()).or_default();
            ports.push(StoredPort {
                port: port.port,
                passed: port.passed,
                frames: port.kept,
            });
        }
        Stored {
            schema: SCHEMA,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            scenario: planned.scenario.name.clone(),
            file: planned.scenario.file.clone(),
            target: target.to_owned(),
            seed: planned.scenario.seed,
            plan_sha256: digest(planned),
            protocols: planned.scenario.protocols.own().len(),
            writes: evidence.writes.clone(),
            tellings: evidence.announcements.clone(),
            fired: evidence.fired.clone(),
            keyless: evidence.keyless.clone(),
            triggers: evidence.triggers.clone(),
            losses: evidence.losses.clone(),
            carried: evidence.carried.clone(),
            shares_stamps: evidence.shares_stamps,
            met: run.conclusion.met.clone(),
            kept: planned.scenario.captures,
            stopped: evidence.kept.stopped.clone(),
            log_ends: evidence.kept.log_ends.clone(),
            captures,
        }
    }
}

fn digest(planned: &Planned) -> String {
    let plan = serde_json::to_vec(&planned.plan).unwrap_or_default();
    let digest = Sha256::digest(plan);
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A run that was loaded from its folder.
pub struct StoredRun {
    /// Content of `evidence.json`.
    pub stored: Stored,
    /// The scenario of the run, planned again.
    pub planned: Planned,
    /// The evidence, besides the captured frames, that proves the run's faults.
    pub evidence: Evidence,
    /// Content of `events.jsonl`, the log of hits.
    pub events: String,
    folder: PathBuf,
}

/// Index of a port in [`StoredRun::ports`], and a frame of this port from the folder's captures.
pub type KeptFrame = (usize, Frame);

impl StoredRun {
    /// Switch name and number of each recorded port, in the order of `evidence.json`.
    #[must_use]
    pub fn ports(&self) -> Vec<(String, u32)> {
        let ports = self.evidence.kept.ports.iter();
        ports.map(|port| (port.switch.clone(), port.port)).collect()
    }

    /// Reads the frames of all captures in order of time; frames of one port keep their order even if their times decrease. At
    /// the end, compares the number of frames of each port with `evidence.json`.
    ///
    /// # Errors
    ///
    /// Returns an error if a capture cannot be opened. The iterator returns an error if a capture is damaged.
    pub fn frames(
        &self,
    ) -> Result<impl Iterator<Item = Result<KeptFrame, StoredError>> + '_, StoredError> {
        let mut readers = Vec::new();
        let mut counts = Vec::new();
        for (switch, ports) in &self.stored.captures {
            if self.stored.kept == Captures::None {
                break;
            }
            let is_cut = self.stored.stopped.is_some();
            let reader = captures_file::Reader::open(&self.folder, switch, ports.len(), is_cut)?;
            readers.push((counts.len(), reader));
            counts.resize(counts.len() + ports.len(), 0);
        }
        let mut frames = in_order(readers);
        Ok(std::iter::from_fn(move || match frames.next() {
            Some(Ok((port, frame))) => {
                counts[port] += 1;
                Some(Ok((port, frame)))
            }
            Some(Err(error)) => Some(Err(error.into())),
            None => self.miscounted(std::mem::take(&mut counts)).map(Err),
        }))
    }

    /// The error for the first port whose capture does not have as many frames as `evidence.json` says; `None` if all have.
    fn miscounted(&self, counts: Vec<u64>) -> Option<StoredError> {
        let ports = self.evidence.kept.ports.iter().zip(counts);
        let mut wrong = ports.filter(|(port, frames)| port.kept != *frames);
        let (port, frames) = wrong.next().filter(|_| self.stored.stopped.is_none())?;
        Some(StoredError::Content {
            path: self.folder.join(captures_file::file_name(&port.switch)),
            reason: format!(
                "{frames} frames of port {}, but {} were captured",
                port.port, port.kept
            ),
        })
    }
}

/// Merges captures by time. `readers`: for each switch, the index of its first port among all ports, and its capture file.
fn in_order(
    readers: Vec<(usize, captures_file::Reader)>,
) -> impl Iterator<Item = Result<KeptFrame, ReadError>> {
    let open = |(first, mut reader): (usize, captures_file::Reader)| OpenFile {
        first,
        next: reader.next(),
        reader,
        until_ns: 0,
    };
    let mut files: Vec<OpenFile> = readers.into_iter().map(open).collect();
    std::iter::from_fn(move || {
        let open = files.iter_mut().filter(|file| file.next.is_some());
        let file = open.min_by_key(|file| file.next_ns())?;
        file.until_ns = file.next_ns();
        let next = std::mem::replace(&mut file.next, file.reader.next())?;
        Some(next.map(|(port, frame)| (file.first + port, frame)))
    })
}

/// A capture file that is being read.
struct OpenFile {
    /// Index of the switch's first port among all ports.
    first: usize,
    reader: captures_file::Reader,
    /// The next frame, with its port's index in the capture file; `None` at the end of the file.
    next: Option<Result<(usize, Frame), ReadError>>,
    /// Latest time of a frame that was returned, in nanoseconds since 1970.
    until_ns: u64,
}

impl OpenFile {
    /// Time by which the next frame is sorted, in ns since 1970: its own, or that of the frame before if later; 0 for an error.
    fn next_ns(&self) -> u64 {
        match &self.next {
            Some(Ok((_, frame))) => frame.at_ns.max(self.until_ns),
            _ => 0,
        }
    }
}

/// Loads a run from its folder, and plans its scenario again. Returns an error if a file is missing, truncated, or contradicts
/// another one.
pub fn load(folder: &Path) -> Result<StoredRun, StoredError> {
    let text = |name: &str| {
        let path = folder.join(name);
        super::read_file(&path).map_err(|source| StoredError::Read { path, source })
    };
    let wrong = |name: &str, reason: String| StoredError::Content {
        path: folder.join(name),
        reason,
    };
    if !folder.join(EVIDENCE).exists() {
        return Err(StoredError::Unfinished(folder.to_owned()));
    }
    let stored: Stored = serde_json::from_str(&text(EVIDENCE)?)
        .map_err(|error| wrong(EVIDENCE, error.to_string()))?;
    if stored.schema != SCHEMA {
        let reason = format!(
            "this program reads version {SCHEMA}; found {}",
            stored.schema
        );
        return Err(wrong(EVIDENCE, reason));
    }
    let scenario = scenario(folder, &stored)?.with_captures(Some(stored.kept));
    let kind = Kind::from_str(&stored.target, false).map_err(|error| wrong(EVIDENCE, error))?;
    let planned =
        Planned::new(scenario, kind).map_err(|errors| wrong(SCENARIO, errors.to_string()))?;
    if digest(&planned) != stored.plan_sha256 {
        return Err(StoredError::OtherPlan {
            folder: folder.to_owned(),
            why: other_plan(&stored, &planned.scenario),
        });
    }
    let injections = planned.plan.injections.len();
    if stored.fired.len() != injections || stored.keyless.len() != injections {
        let reason = format!(
            "counters of {} injections, of {injections}",
            stored.fired.len()
        );
        return Err(wrong(EVIDENCE, reason));
    }
    let triggers = planned.scenario.triggers.len();
    if stored.triggers.len() != triggers {
        let found = stored.triggers.len();
        let reason = format!("counters of {found} triggers, of {triggers}");
        return Err(wrong(EVIDENCE, reason));
    }
    let ports = stored.captures.iter().flat_map(|(switch, ports)| {
        ports.iter().map(|port| KeptPort {
            switch: switch.clone(),
            port: port.port,
            passed: port.passed,
            kept: port.frames,
        })
    });
    Ok(StoredRun {
        events: text(EVENTS)?,
        evidence: Evidence {
            kept: captures::KeptFrames {
                ports: ports.collect(),
                stopped: stored.stopped.clone(),
                log_ends: stored.log_ends.clone(),
            },
            writes: stored.writes.clone(),
            announcements: stored.tellings.clone(),
            fired: stored.fired.clone(),
            keyless: stored.keyless.clone(),
            triggers: stored.triggers.clone(),
            losses: stored.losses.clone(),
            carried: stored.carried.clone(),
            shares_stamps: stored.shares_stamps,
        },
        planned,
        stored,
        folder: folder.to_owned(),
    })
}

/// Explains why the scenario now has another plan than when it ran: another seed, another version, or a changed file.
fn other_plan(stored: &Stored, scenario: &Scenario) -> String {
    let version = env!("CARGO_PKG_VERSION");
    if stored.seed != scenario.seed {
        let (ran, now) = (stored.seed, scenario.seed);
        return format!("its seed was {ran}, and is {now} now");
    }
    if stored.version != version {
        return format!(
            "it was run by version {}, this is {version}",
            stored.version
        );
    }
    format!("{SCENARIO}, or a file that it names, was changed since")
}

/// Loads the scenario from the folder, with the copies of the files that it names.
fn scenario(folder: &Path, stored: &Stored) -> Result<Scenario, StoredError> {
    let text = |name: &str| {
        let path = folder.join(name);
        super::read_file(&path).map_err(|source| StoredError::Read { path, source })
    };
    let mut sources = Vec::new();
    for number in 0..stored.protocols {
        let name = protocol_file(number);
        sources.push(ProtocolSource {
            file: folder.join(&name).display().to_string(),
            text: text(&name)?,
        });
    }
    let scenario = text(SCENARIO)?;
    let file = folder.join(SCENARIO).display().to_string();
    let named = scenario::named_files(&file, &scenario);
    // Protocol files that the scenario does not name come first: they were given on the command line.
    let given = sources.len().saturating_sub(named.len());
    let named_sources = sources.split_off(given);
    let files = named.into_iter().zip(named_sources.into_iter().map(Ok));
    let workload = match scenario::named_workload(&file, &scenario) {
        Some(_) => Some(Ok(WorkloadSource {
            file: folder.join(WORKLOAD).display().to_string(),
            text: text(WORKLOAD)?,
        })),
        None => None,
    };
    let topology = match scenario::named_topology(&file, &scenario) {
        Some(named) => {
            let name = super::topology_file(&named);
            Some(Ok(TopologySource {
                file: folder.join(name).display().to_string(),
                text: text(name)?,
            }))
        }
        None => None,
    };
    let given = Given {
        protocols: sources,
        files: files.collect(),
        workload,
        topology,
    };
    scenario::load_with(&file, &scenario, &given).map_err(|errors| StoredError::Content {
        path: folder.join(SCENARIO),
        reason: errors.to_string(),
    })
}

#[cfg(test)]
mod tests {
    use proof::Way;

    use super::*;
    use crate::experiment::observe::captures::file::{Head, Reader, Writer, Written};

    /// Writes a capture with two ports; each frame has its port's position and time.
    fn write(folder: &Path, switch: &str, frames: &[(usize, u64)]) {
        let path = folder.join(captures_file::file_name(switch));
        let mut writer = Writer::create(&path, switch, &[1, 2]).unwrap();
        for (port, at_ns) in frames {
            let head = Head {
                at_ns: *at_ns,
                way: Way::In,
                wire_len: 60,
            };
            let bytes = &[0; 60];
            let comments = &[];
            let frame = Written {
                head,
                bytes,
                comments,
            };
            writer.write(*port, &frame).unwrap();
        }
        writer.flush().unwrap();
    }

    #[test]
    fn captures_are_merged_by_time_and_a_port_keeps_its_order() {
        let folder = tempfile::tempdir().unwrap();
        write(folder.path(), "a", &[(0, 10), (1, 40), (1, 20), (0, 50)]);
        write(folder.path(), "b", &[(1, 30), (0, 45)]);
        let open = |switch| Reader::open(folder.path(), switch, 2, false).unwrap();
        let merged = in_order(vec![(0, open("a")), (2, open("b"))]);
        let merged = merged.map(|read| read.map(|(port, frame)| (port, frame.at_ns)).unwrap());
        let merged: Vec<_> = merged.collect();
        // The frame of 20 waits behind that of 40, which its port recorded first.
        let expected = [(0, 10), (3, 30), (1, 40), (1, 20), (2, 45), (0, 50)];
        assert_eq!(merged, expected);
    }

    #[test]
    fn a_damaged_capture_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        write(folder.path(), "a", &[(0, 10), (1, 40)]);
        let path = folder.path().join(captures_file::file_name("a"));
        let whole = std::fs::read(&path).unwrap();
        std::fs::write(&path, &whole[..whole.len() - 8]).unwrap();
        let read = |is_cut| {
            let reader = Reader::open(folder.path(), "a", 2, is_cut).unwrap();
            let frames: Result<Vec<KeptFrame>, ReadError> = in_order(vec![(0, reader)]).collect();
            frames.map(|frames| frames.len())
        };
        assert_eq!(read(true).unwrap(), 1);
        assert!(read(false).is_err());
    }
}

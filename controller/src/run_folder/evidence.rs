//! `evidence.json`: everything, beside the captures, that proves a run's faults.

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

/// Version of the format; incremented when a name or its meaning changes.
const SCHEMA: u32 = 2;

/// The record of a run in its folder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, expecting = "the record of a run, a mapping")]
pub struct Stored {
    schema: u32,
    /// Version of the tool.
    pub version: String,
    /// The scenario's name.
    pub scenario: String,
    /// The file from which the scenario was read.
    pub file: String,
    /// The kind of switches that it was planned for.
    pub target: String,
    /// Seed of the run.
    pub seed: u64,
    /// The SHA-256 of the plan in the folder: the plan determines the decisions.
    plan_sha256: String,
    /// Number of the user's protocol files.
    protocols: usize,
    /// The writes of epochs to the switches, with their times.
    writes: Vec<EpochWrite>,
    /// Announcements of RDMA connections to switches.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    tellings: Vec<Announcement>,
    /// The switches' count of hits for each injection of the plan.
    fired: Vec<u64>,
    /// The switches' count of packets whose key had no cell, for each injection of the plan.
    keyless: Vec<u64>,
    /// The switches' count of each trigger of the scenario.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    triggers: Vec<TriggerCount>,
    /// Frames that the switches report as lost.
    losses: Vec<Loss>,
    /// Executions of faults of programs and switches.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    carried: Vec<DisruptionExecution>,
    /// Whether the switches' programs and the captures have the same time stamps of frames.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    shares_stamps: bool,
    /// Number of frames that each injection of the plan examined.
    pub met: Vec<u64>,
    /// Selection of the frames that the folder has.
    pub kept: Captures,
    /// Time from which on the folder keeps no frames, in nanoseconds since 1970, and the reason.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    stopped: Option<(u64, String)>,
    /// Why the log of hits ends early, if it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    log_ends: Option<String>,
    /// The captures: for each switch, its ports in the order of its file's interfaces.
    captures: BTreeMap<String, Vec<StoredPort>>,
}

/// Facts about a port that its capture file does not contain.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(
    deny_unknown_fields,
    expecting = "the record of a port's capture, a mapping"
)]
struct StoredPort {
    port: u32,
    /// Frames that passed and were judged.
    passed: u64,
    /// The part of `passed` that is in the capture.
    frames: u64,
}

/// Why the folder of a run cannot be judged.
#[derive(Debug, thiserror::Error)]
pub enum StoredError {
    /// The run did not finish, or the folder is not that of a run.
    #[error("{} has no {EVIDENCE}: it is not the folder of a run, or the run did not finish", .0.display())]
    Unfinished(PathBuf),
    /// A file cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// Path of the file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The content of a file is invalid.
    #[error("{}: {reason}", path.display())]
    Content {
        /// Path of the file.
        path: PathBuf,
        /// The defect in the content.
        reason: String,
    },
    /// A capture cannot be read.
    #[error(transparent)]
    Capture(#[from] ReadError),
    /// The scenario is another one, or this version plans it differently.
    #[error("the scenario in {} now gets a different plan than in the run: {why}", .folder.display())]
    OtherPlan {
        /// Path of the folder.
        folder: PathBuf,
        /// The known reason.
        why: String,
    },
}

pub(super) fn protocol_file(number: usize) -> String {
    format!("{PROTOCOLS}/{number}.yaml")
}

impl Stored {
    /// Collects the record of a run that its folder keeps.
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

/// A run as its folder contains it.
pub struct StoredRun {
    /// The record of the run.
    pub stored: Stored,
    /// The scenario, with its new plan.
    pub planned: Planned,
    /// The evidence that proves the run's faults, beside the frames.
    pub evidence: Evidence,
    /// The run's log.
    pub events: String,
    folder: PathBuf,
}

/// A frame in the folder of a run, with its port's position in [`StoredRun::ports`].
pub type KeptFrame = (usize, Frame);

impl StoredRun {
    /// The recorded ports, switch and number.
    #[must_use]
    pub fn ports(&self) -> Vec<(String, u32)> {
        let ports = self.evidence.kept.ports.iter();
        ports.map(|port| (port.switch.clone(), port.port)).collect()
    }

    /// Reads the frames of all ports in the order of time, except that a frame may follow a later one of its port. At the end,
    /// compares their number with the run's count.
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

    /// The error for the first port whose capture does not have as many frames as the run wrote.
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

/// Merges captures by time. Each has the position of its first port, which is added to the positions in the capture.
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

/// A capture that is being read.
struct OpenFile {
    /// Position of the switch's first port.
    first: usize,
    reader: captures_file::Reader,
    /// The next frame, with its port's position in the capture.
    next: Option<Result<(usize, Frame), ReadError>>,
    /// The latest time of a frame so far.
    until_ns: u64,
}

impl OpenFile {
    /// Time of the next frame, or of an earlier frame if that is later, in nanoseconds since 1970. An error comes at once.
    fn next_ns(&self) -> u64 {
        match &self.next {
            Some(Ok((_, frame))) => frame.at_ns.max(self.until_ns),
            _ => 0,
        }
    }
}

/// Reads the folder of a run.
/// Returns an error if a file is missing, truncated, or contradicts another one.
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

/// Explains why a scenario is planned differently than when it ran.
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

/// Loads the scenario with the files that it was run with.
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

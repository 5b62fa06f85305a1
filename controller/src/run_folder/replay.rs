//! Judges a run again from its folder, and compares two runs of the same scenario.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use scenario::model::Captures;
use scenario::plan::port_latencies;
use serde::{Deserialize, Serialize};

use super::disrupted;
use super::evidence::{StoredError, StoredRun};
use crate::experiment::conclude::Conclusion;
use crate::experiment::observe::events;
use proof::Outcome;
use testbeds::capture::Frame;

/// Result of replaying the folder of a run.
pub enum Replayed {
    /// The folder has every frame of the run, so the run was judged again.
    Judged(Box<Replay>),
    /// The folder lacks frames, so its log was only compared with the switches' counts and the frames that it has.
    Checked(Checked),
}

/// Results of judging a run again from its folder.
pub struct Replay {
    /// Results of the faults, triggers and flows by the new judgment.
    pub conclusion: Conclusion,
    /// Number of lines in the new log of hits.
    pub events: usize,
    /// First difference between the new log and `events.jsonl`; `None` if they are equal.
    pub difference: Option<Difference>,
}

/// Comparison of a run's log with the switches' counts and the frames in the folder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Checked {
    /// Number of frames that the run judged.
    pub passed: u64,
    /// Number of frames in the folder's captures.
    pub kept: u64,
    /// Number of lines in the log of hits.
    pub events: usize,
    /// Number of logged frames that the captures contain as the log describes them.
    pub found: usize,
    /// First disagreement of the log with the switches' counts or the captures; `None` if they agree.
    pub difference: Option<String>,
}

/// The first line in which two logs differ.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Difference {
    /// Number of the line, from 1.
    pub line: usize,
    /// The line in `events.jsonl`; `None` if `events.jsonl` ends before the line.
    pub stored: Option<String>,
    /// The line in the new log; `None` if the new log ends before the line.
    pub replayed: Option<String>,
}

/// Judges the run again if the folder has every frame. Otherwise compares the log of hits with the switches' counts and with
/// the frames that the folder has.
///
/// # Errors
///
/// Returns an error if a capture is damaged.
pub fn replay(kept: &StoredRun) -> Result<Replayed, StoredError> {
    let (passed, frames) = kept.evidence.frames();
    // Other captures have truncated frames, which are not in the order of their port.
    if passed == 0 || kept.stored.kept == Captures::All && passed == frames {
        return Ok(Replayed::Judged(Box::new(judged(kept)?)));
    }
    let logged = logged(&kept.events);
    let mut found = 0;
    // The log of a run that lost frames ends at the loss; one that ended early is incomplete.
    let evidence = &kept.evidence;
    let is_whole = evidence.losses.is_empty() && evidence.kept.log_ends.is_none();
    let mut difference = if is_whole {
        counted(kept, &logged)
    } else {
        None
    };
    let captured = captured(kept)?;
    if difference.is_none() && kept.evidence.kept.stopped.is_none() && frames > 0 {
        let missing = logged.iter().enumerate().find(|(_, event)| {
            let is_there = is_kept(kept, &captured, event);
            found += usize::from(is_there);
            !is_there
        });
        difference = missing.map(|(line, event)| {
            format!(
                "line {} of the log has frame {} of port {} of switch {}, but the capture has no such frame",
                line + 1,
                event.frame,
                event.port,
                event.switch
            )
        });
    }
    Ok(Replayed::Checked(Checked {
        passed,
        kept: frames,
        events: kept.events.lines().count(),
        found,
        difference,
    }))
}

fn judged(kept: &StoredRun) -> Result<Replay, StoredError> {
    let StoredRun {
        planned, evidence, ..
    } = kept;
    let mut log = Comparison {
        stored: kept.events.lines(),
        lines: 0,
        difference: None,
    };
    let proof = evidence.prove(
        &planned.scenario,
        &planned.plan,
        &kept.ports(),
        kept.frames()?,
        |hit| log.add(&events::lines(&events::events(planned, &[hit]))),
    )?;
    let carried = disrupted::disruptions(planned, &evidence.carried);
    events::lines(&carried)
        .lines()
        .for_each(|line| log.add(line));
    Ok(Replay {
        conclusion: Conclusion::from_proof(planned, evidence, proof),
        events: log.lines,
        difference: log.end(),
    })
}

/// Compares the lines of a new log, one after the other, with those of `events.jsonl`.
struct Comparison<'k> {
    stored: std::str::Lines<'k>,
    /// Number of lines of the new log that were added so far.
    lines: usize,
    difference: Option<Difference>,
}

impl Comparison<'_> {
    /// Adds the next line of the new log.
    fn add(&mut self, line: &str) {
        self.lines += 1;
        self.compare(Some(line.trim_end()));
    }

    /// Ends the new log, and returns the first difference; `None` if the logs are equal.
    fn end(mut self) -> Option<Difference> {
        self.lines += 1;
        self.compare(None);
        self.difference
    }

    fn compare(&mut self, line: Option<&str>) {
        let stored = self.stored.next();
        if stored != line && self.difference.is_none() {
            self.difference = Some(Difference {
                line: self.lines,
                stored: stored.map(str::to_owned),
                replayed: line.map(str::to_owned),
            });
        }
    }
}

/// A line of `events.jsonl` on a frame that a fault hit or should have hit.
#[derive(Debug, Deserialize)]
struct Logged {
    at_ns: u64,
    fault: String,
    flow: String,
    switch: String,
    port: u32,
    frame: u64,
    ordinal: u64,
    outcome: Outcome,
    bytes: u32,
    #[serde(default)]
    fields: BTreeMap<String, String>,
}

/// Parses the lines on frames; lines on programs and switches have other fields, and are left out.
fn logged(events: &str) -> Vec<Logged> {
    let lines = events.lines();
    lines
        .filter_map(|line| serde_json::from_str(line).ok())
        .collect()
}

/// Compares the number of hits in the log with the switches' counts; describes the first difference.
fn counted(kept: &StoredRun, logged: &[Logged]) -> Option<String> {
    let injections = &kept.planned.plan.injections;
    let place = |fault: &str, flow: &str, switch: &str| {
        (fault.to_owned(), flow.to_owned(), switch.to_owned())
    };
    let mut counts: BTreeMap<_, (u64, u64)> = BTreeMap::new();
    for (injection, fired) in injections.iter().zip(&kept.evidence.fired) {
        let place = place(&injection.fault, &injection.flow, &injection.switch);
        counts.entry(place).or_default().0 += fired;
    }
    let hits = logged.iter();
    for event in hits.filter(|event| event.outcome != Outcome::Missed) {
        let place = place(&event.fault, &event.flow, &event.switch);
        counts.entry(place).or_default().1 += 1;
    }
    let mut counts = counts.into_iter();
    let ((fault, flow, switch), (fired, hits)) = counts.find(|(_, (fired, hits))| fired != hits)?;
    Some(format!(
        "fault {fault}, flow {flow}: switch {switch} counted {fired} hits, but the log has {hits}"
    ))
}

/// Captured frames by switch, port number and time in nanoseconds since 1970.
type Captured = HashMap<(String, u32, u64), Vec<Frame>>;

fn captured(kept: &StoredRun) -> Result<Captured, StoredError> {
    let mut captured = Captured::new();
    let ports = kept.ports();
    for read in kept.frames()? {
        let (port, frame) = read?;
        let (switch, number) = &ports[port];
        let place = (switch.clone(), *number, frame.at_ns);
        captured.entry(place).or_default().push(frame);
    }
    Ok(captured)
}

/// Whether the captures contain the frame of a log line.
fn is_kept(kept: &StoredRun, captured: &Captured, event: &Logged) -> bool {
    let scenario = &kept.planned.scenario;
    let latencies = port_latencies(&scenario.topology, &event.switch);
    let latency = latencies.iter().find(|latency| latency.port == event.port);
    let in_ns = latency.map_or(0, |latency| latency.in_ns);
    let at_ns = event.at_ns.saturating_sub(in_ns);
    let place = (event.switch.clone(), event.port, at_ns);
    let frames = captured.get(&place).into_iter().flatten();
    let mut alike = frames.filter(|frame| frame.wire_len == event.bytes);
    alike.any(|frame| {
        let read = events::fields(&scenario.protocols, &frame.bytes, event.port);
        // The log has only fields from a frame's first bytes.
        let mut fields = event.fields.iter();
        fields.all(|(name, value)| read.get(name.as_str()) == Some(value))
    })
}

/// Comparison of the hits of a fault on one flow in two runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Compared {
    /// Name of the fault.
    pub fault: String,
    /// Name of the fault's flow.
    pub flow: String,
    /// Number of packets of the flow that the fault examined in each run.
    pub met: [u64; 2],
    /// Numbers, from 1 among the examined packets, of packets in both runs that the fault had to hit in only one of them.
    pub differing: Vec<u64>,
    /// Number of packets that the fault had to hit in both runs.
    pub alike: u64,
    /// Why the hits of this fault and flow cannot be compared; `None` if they were compared.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_compared: Option<String>,
}

/// Compares, for each fault and flow, which packets the fault had to hit in both runs, by their numbers (ordinals).
pub fn compare(first: &StoredRun, second: &StoredRun) -> Vec<Compared> {
    let plan = &first.planned.plan;
    let logs = [first, second].map(|run| logged(&run.events));
    let compared = plan
        .injections
        .iter()
        .enumerate()
        .map(|(index, injection)| {
            let met = [first, second].map(|run| run.stored.met.get(index).copied().unwrap_or(0));
            let both = met[0].min(met[1]);
            let had_to = |log: &[Logged]| -> BTreeSet<u64> {
                let own = log.iter().filter(|event| {
                    event.fault == injection.fault
                        && event.flow == injection.flow
                        && event.switch == injection.switch
                        && event.outcome != Outcome::Collateral
                });
                let ordinals = own.map(|event| event.ordinal);
                ordinals
                    .filter(|ordinal| (1..=both).contains(ordinal))
                    .collect()
            };
            let mut faults = first.planned.scenario.faults.iter();
            let keyed = faults.any(|fault| fault.id == injection.fault && fault.keys.is_some());
            let (a, b) = match keyed {
                true => (BTreeSet::new(), BTreeSet::new()),
                false => (had_to(&logs[0]), had_to(&logs[1])),
            };
            Compared {
                fault: injection.fault.clone(),
                flow: injection.flow.clone(),
                met,
                differing: a.symmetric_difference(&b).copied().collect(),
                alike: a.intersection(&b).count() as u64,
                not_compared: keyed.then(|| {
                    "its packets are counted per key, and the keys differ between runs".to_owned()
                }),
            }
        });
    compared.collect()
}

/// Comparison of a fault of a program or a switch in two runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ComparedDisruption {
    /// Name of the fault.
    pub fault: String,
    /// Name of the command or switch that the fault acts on.
    pub on: String,
    /// How often steps with the fault came in each run.
    pub due: [u64; 2],
    /// How often the fault was carried out and observed in each run.
    pub carried: [u64; 2],
    /// Whether the fault was carried out and observed in both runs as often as its steps came.
    pub as_planned: bool,
}

/// Counts, for each run, how often steps with a fault of a program or a switch came, and how often the fault was carried out.
/// Times are not compared: the plan determines when a step comes, but not how long a program takes to end.
pub fn compare_disruptions(first: &StoredRun, second: &StoredRun) -> Vec<ComparedDisruption> {
    let declared = first.planned.scenario.disruptions.iter();
    let compared = declared.map(|disruption| {
        let due = [first, second].map(|run| {
            let came = |epoch: u16| run.evidence.writes.iter().any(|write| write.epoch == epoch);
            let stretches = disruption.epochs.iter().cloned();
            let due = stretches.filter(|stretch| stretch.clone().any(came));
            due.count() as u64
        });
        let carried = [first, second].map(|run| {
            let own = run.evidence.carried.iter();
            let own = own.filter(|carried| carried.fault == disruption.id && carried.is_seen());
            own.count() as u64
        });
        ComparedDisruption {
            fault: disruption.id.clone(),
            on: disruption.does.subject().name().to_owned(),
            due,
            carried,
            as_planned: due == carried,
        }
    });
    compared.collect()
}

//! The testbed of an experiment: a planned scenario's network, with switches that run its programs, and no fault armed.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use scenario::expect::metric::{Metric, Metrics, SwitchMetric};
use scenario::model::Captures;
use scenario::names;
use testbeds::bed::{self, Bed, BedError, Wiring};
use testbeds::capture::{Filter, Limits};

use super::evidence::Evidence;
use super::fleet::Fleet;
use super::hit_log::Marks;
use super::judging::{Counted, Judged, Judging, SoFar};
use super::launch::{self, SwitchProcess};
use super::recorded::{Record, recorded};
use super::{Between, Carried, Conclusion, ExperimentError, Observer, Planned, Switches};
use crate::target::Kind;
use proof::{Digest, Loser, Loss};

/// The conditions under which an experiment is carried out.
#[derive(Debug, Clone, Copy)]
pub struct Conditions<'a> {
    /// How links are implemented.
    pub wiring: Wiring,
    /// Folder with files that replace the built-in P4 text.
    pub p4src: Option<&'a Path>,
    /// The kind of switches to run.
    pub switches: &'a Switches,
    /// How much is recorded.
    pub record: Record,
    /// Folder that also receives the output of each command of a workload.
    pub out: Option<&'a Path>,
    /// The two existing interfaces of a wire scenario; weir creates no links there.
    pub between: Option<Between<'a>>,
    /// Path of the `weir` program that runs agents, clients and switches.
    pub weir: &'a Path,
}

impl Conditions<'_> {
    /// Path of the running program itself.
    pub const ITSELF: &'static str = "/proc/self/exe";
}

/// Wait for frames that are in flight when the workload has ended.
const DRAINING: Duration = Duration::from_millis(250);

/// A network with switches that run the plan's programs.
pub struct Stage<'a> {
    /// The scenario that is carried out, with its plan.
    pub planned: &'a Planned,
    /// Sessions with the switches.
    pub fleet: Fleet,
    /// Processes of the switches. Dropped after the sessions: a switch that exits would wait for its sessions.
    switches: launch::SwitchProcesses,
    /// Whether the switches' programs see the same time stamps of frames as the captures.
    shares_stamps: bool,
    /// The judge of the frames that pass the switches, until the run is concluded.
    judging: Option<Judging>,
    /// Time from the last frame to the verdict.
    pub verdict_after: Duration,
    /// The network. Dropped last: the switches' ports are in it.
    pub bed: Bed,
}

impl<'a> Stage<'a> {
    /// Brings up the network and its switches.
    pub fn set(
        planned: &'a Planned,
        conditions: Conditions<'_>,
        observer: &mut dyn Observer,
    ) -> Result<Stage<'a>, ExperimentError> {
        let is_training = planned.training().is_some();
        let options = bed::Options {
            wiring: conditions.wiring,
            kernel_ip: !is_training,
            filter: Filter::Everything,
            limits: Limits::WHOLE_FRAMES,
        };
        let topology = &planned.scenario.topology;
        let mut bed = match conditions.between {
            Some(between) => Bed::between(topology, between.interfaces, &options),
            None => Bed::up(topology, &options)?,
        };
        tracing::info!(
            hosts = planned.scenario.topology.hosts.len(),
            links = planned.scenario.topology.links.len(),
            "network is up"
        );
        let (fleet, switches) = launch::switches(&bed, planned, conditions, observer)?;
        let ports = recorded(planned, conditions.record).into_iter();
        let ports: Vec<(String, u32)> = ports.map(|of| (of.switch, of.port)).collect();
        let digest = Digest::of_seed(planned.plan.seed);
        let shares_stamps = conditions.switches.kind == Kind::Embedded && bed.shares_stamps();
        let of_judge = proof::Conditions {
            digest,
            shares_stamps,
        };
        let log = Arc::clone(&fleet.log);
        let judging = Judging::begin(planned, &ports, of_judge, log, conditions.out)
            .map_err(BedError::from)?;
        if !ports.is_empty() {
            bed.record_into(&ports, kept_bytes(planned), digest, judging.sink())?;
        }
        Ok(Stage {
            judging: Some(judging),
            verdict_after: Duration::ZERO,
            planned,
            fleet,
            switches: launch::SwitchProcesses(switches),
            shares_stamps,
            bed,
        })
    }

    /// The judge's observations so far.
    pub fn so_far(&self) -> SoFar {
        self.judging
            .as_ref()
            .map_or_else(SoFar::default, Judging::so_far)
    }

    /// Returns an error if a switch's process has ended.
    pub fn check(switches: &mut [SwitchProcess]) -> Result<(), ExperimentError> {
        match switches.iter_mut().find_map(SwitchProcess::ended) {
            Some((switch, reason)) => Err(ExperimentError::SwitchEnded { switch, reason }),
            None => Ok(()),
        }
    }

    /// Switches whose processes have ended by themselves since the last call, with the last line that each wrote to its standard
    /// error. Returns an error if the run cannot do without one of them.
    pub fn lost(
        switches: &mut [SwitchProcess],
        spares: impl Fn(&str) -> bool,
    ) -> Result<Vec<(String, String)>, ExperimentError> {
        let mut lost = Vec::new();
        for process in switches {
            let Some((switch, reason)) = process.ended() else {
                continue;
            };
            if !spares(&switch) {
                return Err(ExperimentError::SwitchEnded { switch, reason });
            }
            process.give_up();
            lost.push((switch, reason));
        }
        Ok(lost)
    }

    /// Borrows the sessions, the processes and the network at once.
    pub fn parts(&mut self) -> (&mut Fleet, &mut [SwitchProcess], &Bed) {
        (&mut self.fleet, &mut self.switches.0, &self.bed)
    }

    /// How long a frame is in flight if it crosses all links.
    fn links(&self) -> Duration {
        let links = &self.planned.scenario.topology.links;
        Duration::from_nanos(links.iter().map(|link| link.latency_ns).sum())
    }

    /// Longest time that a packet may be held: the delays that hit one packet add up.
    fn longest_hold(&self) -> Duration {
        let faults = self.planned.scenario.faults.iter();
        let holds = faults.map(|fault| fault.effect.longest_stay_ns());
        Duration::from_nanos(holds.fold(0, u64::saturating_add))
    }

    /// Frames that the switches report as lost.
    fn losses(&mut self) -> Result<Vec<Loss>, ExperimentError> {
        let mut losses = Vec::new();
        for switch in &self.planned.plan.switches {
            let mut add = |port, frames, by| {
                if frames > 0 {
                    let switch = switch.name.clone();
                    losses.push(Loss {
                        switch,
                        port,
                        frames,
                        by,
                        since_ns: None,
                    });
                }
            };
            for count in self.fleet.port_counts(&switch.name)? {
                add(Some(count.port), count.rx_lost_frames, Loser::ReceiveRing);
                add(Some(count.port), count.tx_lost_frames, Loser::Transmit);
            }
            add(None, self.fleet.queue_losses(&switch.name)?, Loser::Queue);
            add(None, self.fleet.lapsed(&switch.name)?, Loser::Lease);
        }
        Ok(losses)
    }

    /// Disarms all faults, waits for frames in flight, ends the captures, and compares captures and switch counters. The result
    /// includes what the switches had counted by then. `carried`: what the controller did to programs and switches meanwhile.
    pub fn conclude(
        &mut self,
        carried: Vec<Carried>,
        observer: &mut dyn Observer,
    ) -> Result<(Conclusion, Evidence, Metrics, Marks), ExperimentError> {
        self.fleet.disarm()?;
        // A held packet leaves at its deadline, and belongs to the captures.
        std::thread::sleep(self.longest_hold() + self.links() + DRAINING);
        let metrics = self.metrics()?;
        let mut fired = self.fleet.fired(&self.planned.plan)?;
        observer.counted(&mut fired);
        let keyless = self.fleet.keyless(&self.planned.plan)?;
        let triggers = self.fleet.triggers(self.planned)?;
        let losses = self.losses()?;
        // The recorder hands over its remaining frames, and ends.
        self.bed.stop_recording()?;
        let counted = Counted {
            fired: fired.clone(),
            triggers: triggers.clone(),
            losses,
        };
        let judging = self.judging.take();
        let begun = Instant::now();
        let Judged { proof, kept, marks } = judging
            .ok_or_else(|| io::Error::other("this run was judged already"))
            .map_err(BedError::from)?
            .end(counted);
        self.verdict_after = begun.elapsed();
        let evidence = Evidence {
            kept,
            writes: self.fleet.epoch_writes().to_vec(),
            tellings: self.fleet.tellings().to_vec(),
            fired,
            keyless,
            triggers,
            // Includes the recorder's losses: a later judgment of the folder lacks the same frames.
            losses: proof.losses.clone(),
            carried,
            shares_stamps: self.shares_stamps,
        };
        let conclusion = Conclusion::from(self.planned, &evidence, proof);
        Ok((conclusion, evidence, metrics, marks))
    }

    /// Packet counts of the switches, as metrics.
    fn metrics(&mut self) -> Result<Metrics, ExperimentError> {
        let mut metrics = Metrics::new();
        for switch in &self.planned.plan.switches {
            let counts = self.fleet.port_counts(&switch.name)?;
            let received: u64 = counts.iter().map(|port| port.rx_frames).sum();
            let sent: u64 = counts.iter().map(|port| port.tx_frames).sum();
            let marked: u64 = counts.iter().map(|port| port.tx_marked_frames).sum();
            let program = self.fleet.program(&switch.name);
            let notes = program.map_or(Vec::new(), |program| program.notes.clone());
            let cells = self.fleet.counter(&switch.name, names::classify::NOTES)?;
            let noted = notes
                .iter()
                .filter_map(|note| cells.get(usize::from(note.code)));
            let values = BTreeMap::from([
                (SwitchMetric::Received, received),
                (SwitchMetric::Sent, sent),
                (SwitchMetric::Marked, marked),
                (SwitchMetric::Unparsed, noted.map(|cell| cell.packets).sum()),
            ]);
            metrics.extend(
                values
                    .into_iter()
                    .map(|(what, count)| (Metric::switch(&switch.name, what), count as f64)),
            );
        }
        Ok(metrics)
    }
}

/// Number of bytes that are kept of each waiting frame: as many as the parsers and filters can examine. A capture of all frames
/// has all their bytes, and the judge uses all bytes of a frame that a fault changes.
fn kept_bytes(planned: &Planned) -> u32 {
    /// This many bytes identify a frame to a reader of a capture.
    const LEAST: usize = 128;
    let scenario = &planned.scenario;
    let mut faults = scenario.faults.iter();
    let is_whole = scenario.captures == Captures::All || faults.any(|fault| fault.effect.changes());
    let depth = scenario.protocols.depth().filter(|_| !is_whole);
    depth.map_or(Limits::WHOLE_FRAMES.frame_bytes, |depth| {
        depth.max(LEAST) as u32
    })
}

//! The stage of an experiment: a planned scenario's network, with switches that run its programs, no fault armed.

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

/// How an experiment is carried out.
#[derive(Debug, Clone, Copy)]
pub struct Conditions<'a> {
    /// What links are made of.
    pub wiring: Wiring,
    /// Files that stand in for the built-in P4 text.
    pub p4src: Option<&'a Path>,
    /// Which switches run.
    pub switches: &'a Switches,
    /// How much is recorded.
    pub record: Record,
    /// What each command of a workload writes goes into this folder, too.
    pub out: Option<&'a Path>,
    /// Of a wire: what it is between. Its links are nobody's to make.
    pub between: Option<Between<'a>>,
    /// The program that agents, clients and switches are run with: `weir`.
    pub weir: &'a Path,
}

impl Conditions<'_> {
    /// This program itself.
    pub const ITSELF: &'static str = "/proc/self/exe";
}

/// For frames that are under way when the workload has ended.
const DRAINING: Duration = Duration::from_millis(250);

/// A network with switches that run the plan's programs.
pub struct Stage<'a> {
    /// What is carried out.
    pub planned: &'a Planned,
    /// Sessions with the switches.
    pub fleet: Fleet,
    /// Their processes. Dropped after the sessions, which a switch that exits would wait for.
    switches: launch::SwitchProcesses,
    /// Whether their programs have the stamps of frames that captures have.
    shares_stamps: bool,
    /// Who judges what passes them, until the end.
    judging: Option<Judging>,
    /// How long after the last frame there was a verdict.
    pub verdict_after: Duration,
    /// The network. Dropped last: the switches' ports are in it.
    pub bed: Bed,
}

impl<'a> Stage<'a> {
    /// Brings everything up.
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

    /// What the judge has seen so far.
    pub fn so_far(&self) -> SoFar {
        self.judging
            .as_ref()
            .map_or_else(SoFar::default, Judging::so_far)
    }

    /// An error if a switch's process has ended.
    pub fn check(switches: &mut [SwitchProcess]) -> Result<(), ExperimentError> {
        match switches.iter_mut().find_map(SwitchProcess::ended) {
            Some((switch, reason)) => Err(ExperimentError::SwitchEnded { switch, reason }),
            None => Ok(()),
        }
    }

    /// Switches whose processes have ended by themselves since the last call, and their last words; an error if one of them is not
    /// to be spared.
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

    /// Its parts, borrowed at once.
    pub fn parts(&mut self) -> (&mut Fleet, &mut [SwitchProcess], &Bed) {
        (&mut self.fleet, &mut self.switches.0, &self.bed)
    }

    /// How long a frame is under way on all links, if it crosses them all.
    fn links(&self) -> Duration {
        let links = &self.planned.scenario.topology.links;
        Duration::from_nanos(links.iter().map(|link| link.latency_ns).sum())
    }

    /// How long a packet may be held that every delay hits: they add up.
    fn longest_hold(&self) -> Duration {
        let faults = self.planned.scenario.faults.iter();
        let holds = faults.map(|fault| fault.effect.longest_stay_ns());
        Duration::from_nanos(holds.fold(0, u64::saturating_add))
    }

    /// Frames that the switches say they have lost.
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

    /// Disarms all faults, lets what is under way arrive, ends the captures, and compares what both sides say; with what
    /// the switches have counted by then. `carried`: what the controller did to programs and switches meanwhile.
    pub fn conclude(
        &mut self,
        carried: Vec<Carried>,
        observer: &mut dyn Observer,
    ) -> Result<(Conclusion, Evidence, Metrics, Marks), ExperimentError> {
        self.fleet.disarm()?;
        // What is held leaves at its deadline, and belongs to the captures.
        std::thread::sleep(self.longest_hold() + self.links() + DRAINING);
        let metrics = self.metrics()?;
        let mut fired = self.fleet.fired(&self.planned.plan)?;
        observer.counted(&mut fired);
        let keyless = self.fleet.keyless(&self.planned.plan)?;
        let triggers = self.fleet.triggers(self.planned)?;
        let losses = self.losses()?;
        // The recorder hands over what is left, and ends.
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
            recordings: Vec::new(),
            kept,
            writes: self.fleet.epoch_writes().to_vec(),
            tellings: self.fleet.tellings().to_vec(),
            fired,
            keyless,
            triggers,
            // With those of the recorder: whoever judges the folder again lacks the same frames.
            losses: proof.losses.clone(),
            carried,
            shares_stamps: self.shares_stamps,
        };
        let conclusion = Conclusion::from(self.planned, &evidence, proof);
        Ok((conclusion, evidence, metrics, marks))
    }

    /// What the switches counted of packets.
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

/// Number of bytes that are kept of each frame while it waits: what the parsers and filters can look at. A capture of all frames has
/// all their bytes, and a frame that a fault changes is judged by all of them.
fn kept_bytes(planned: &Planned) -> u32 {
    /// So much of a frame says what it is, to those who read a capture.
    const LEAST: usize = 128;
    let scenario = &planned.scenario;
    let mut faults = scenario.faults.iter();
    let is_whole = scenario.captures == Captures::All || faults.any(|fault| fault.effect.changes());
    let depth = scenario.protocols.depth().filter(|_| !is_whole);
    depth.map_or(Limits::WHOLE_FRAMES.frame_bytes, |depth| {
        depth.max(LEAST) as u32
    })
}

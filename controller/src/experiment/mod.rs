//! A scenario, carried out: network up, programs loaded, faults armed by the timeline, workload run, effects proved.

pub mod fleet;
pub mod program;
pub mod proof;
pub mod redis;
pub mod timeline;
pub mod training;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use scenario::model::{Effect, Scenario};
use scenario::workload::{Training, Workload};
use scenario::{Diagnostics, Plan};
use serde::Serialize;
use testbeds::bed::{self, Bed, BedError, PortRecording, Wiring};
use testbeds::capture::{Filter, Limits};
use testbeds::net::Counters;

use bmv2::tools::Tools;
use controller::target::{Kind, PortCount};
use fleet::{Fleet, FleetError};
use proof::{FlowCount, ProofError, Trace};
use timeline::Timeline;

/// Why an experiment could not be carried out.
#[derive(Debug, thiserror::Error)]
pub enum ExperimentError {
    /// The scenario.
    #[error("{0}")]
    Scenario(String),
    /// The network.
    #[error(transparent)]
    Bed(#[from] BedError),
    /// The switches.
    #[error(transparent)]
    Fleet(#[from] FleetError),
    /// The training.
    #[error(transparent)]
    Training(#[from] training::TrainingError),
    /// The Redis workload.
    #[error(transparent)]
    Redis(#[from] redis::RedisError),
    /// The captures.
    #[error(transparent)]
    Proof(#[from] ProofError),
    /// A switch ended in mid-run.
    #[error("switch {switch} ended: {reason}")]
    SwitchEnded {
        /// Which.
        switch: String,
        /// Its last words.
        reason: String,
    },
    /// The two counts of the server's link differ.
    #[error(
        "the server's link: switch {switch} counted {counted_by_switch} bytes, the server's interface {counted_by_host}"
    )]
    LinkCounters {
        /// Which.
        switch: String,
        /// Both directions.
        counted_by_switch: u64,
        /// Both directions.
        counted_by_host: u64,
    },
}

/// What a fault did: what the switches counted, and what captures saw.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FaultResult {
    /// Its name.
    pub id: String,
    /// `drop`, `delay`, `duplicate`.
    pub kind: &'static str,
    /// Counted by the switches.
    pub fired: u64,
    /// Seen by captures on both sides of them.
    pub observed: u64,
    /// Frames of its flows that reached the switches.
    pub met: u64,
    /// For a delay: how much later than asked the latest frame left.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub latest_ns: Option<u64>,
    /// For a delay: the plan's bound of that.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lateness_bound_ns: Option<u64>,
}

impl FaultResult {
    /// Whether both counts agree.
    pub fn is_proved(&self) -> bool {
        self.fired == self.observed
    }

    /// For a delay with a bound: whether every frame left within it.
    pub fn is_in_time(&self) -> Option<bool> {
        Some(self.latest_ns? <= self.lateness_bound_ns?)
    }
}

/// A scenario with its plan.
pub struct Planned {
    /// The scenario.
    pub scenario: Scenario,
    /// Its plan.
    pub plan: Plan,
}

impl Planned {
    /// Plans a scenario.
    pub fn of(scenario: Scenario, kind: Kind) -> Result<Planned, Diagnostics> {
        let plan = scenario::plan_to_prove(&scenario, &kind.model())?;
        Ok(Planned { scenario, plan })
    }

    /// The switch that sums, if one does.
    pub fn aggregator(&self) -> Option<&str> {
        match &self.scenario.workload {
            Some(Workload::Training(training)) => training.aggregate_on.as_deref(),
            _ => None,
        }
    }

    /// The training that it runs.
    pub fn training(&self) -> Option<&Training> {
        match &self.scenario.workload {
            Some(Workload::Training(training)) => Some(training),
            _ => None,
        }
    }
}

/// Which switches run.
#[derive(Debug, Clone, Default)]
pub struct Switches {
    /// Their kind.
    pub kind: Kind,
    /// Where BMv2 and p4c are.
    pub tools: Tools,
    /// BMv2's logs go into this folder.
    pub logs: Option<PathBuf>,
}

/// How an experiment is carried out.
#[derive(Debug, Clone, Copy)]
pub struct Conditions<'a> {
    /// What links are made of.
    pub wiring: Wiring,
    /// Files that stand in for the built-in P4 text.
    pub p4src: Option<&'a Path>,
    /// Which switches run.
    pub switches: &'a Switches,
    /// For tests: stop the switches' processes before they are spoken to.
    pub stall_switch: bool,
}

/// For frames that are under way when the workload has ended.
const DRAINING: Duration = Duration::from_millis(100);

/// A network with switches that run the plan's programs, no fault armed.
pub struct Stage<'a> {
    /// What is carried out.
    pub planned: &'a Planned,
    /// The switches.
    pub fleet: Fleet,
    /// The network. Dropped last: the switches' ports are in it.
    pub bed: Bed,
}

impl<'a> Stage<'a> {
    /// Brings everything up. `record` names the switches whose links are captured.
    pub fn set(
        planned: &'a Planned,
        conditions: Conditions<'_>,
        record: Vec<String>,
    ) -> Result<Stage<'a>, ExperimentError> {
        let is_training = planned.training().is_some();
        let limits = if is_training {
            Limits::AGGREGATION_HEADERS
        } else {
            Limits::WHOLE_FRAMES
        };
        let options = bed::Options {
            wiring: conditions.wiring,
            kernel_ip: !is_training,
            record,
            filter: Filter::Everything,
            limits,
        };
        let bed = Bed::up(&planned.scenario.topology, &options)?;
        let mut fleet = Fleet::start(&bed, &planned.plan, conditions)?;
        if let (Some(training), Some(switch)) = (planned.training(), planned.aggregator()) {
            fleet.insert(
                switch,
                training::aggregation_entries(&planned.scenario, training, switch),
            )?;
        }
        Ok(Stage {
            planned,
            fleet,
            bed,
        })
    }

    fn longest_delay(&self) -> Duration {
        let delays = self
            .planned
            .scenario
            .faults
            .iter()
            .map(|fault| match fault.effect {
                Effect::Delay { ns } => ns,
                Effect::Drop | Effect::Duplicate => 0,
            });
        Duration::from_nanos(delays.max().unwrap_or(0))
    }

    /// A timeline that has not started.
    pub fn timeline(&self) -> Timeline {
        Timeline::new(&self.planned.plan.timeline)
    }

    /// Disarms all faults, ends the captures, and compares what both sides say.
    pub fn conclude(&mut self) -> Result<Conclusion, ExperimentError> {
        self.fleet.set_epoch(0)?;
        // What is held leaves at its deadline, and belongs to the captures.
        std::thread::sleep(self.longest_delay() + DRAINING);
        let mut fired = Vec::new();
        for injection in &self.planned.plan.injections {
            let cells = self.fleet.counter(&injection.switch, &injection.counter)?;
            fired.push(cells.get(injection.cell).map_or(0, |cell| cell.packets));
        }
        let mut notes = BTreeMap::new();
        for switch in &self.planned.plan.switches {
            let cells = self
                .fleet
                .counter(&switch.name, "SwitchIngress.classify.notes.cells")?;
            let names = self
                .fleet
                .program(&switch.name)
                .map(|program| program.notes.clone())
                .unwrap_or_default();
            for note in names {
                let packets = cells
                    .get(usize::from(note.code))
                    .map_or(0, |cell| cell.packets);
                notes.insert((switch.name.clone(), note.name), packets);
            }
        }
        let recordings = self.bed.recordings()?;
        Ok(Conclusion::of(self.planned, &fired, &recordings, notes)?)
    }
}

/// What a run's captures and counters say.
pub struct Conclusion {
    /// In declared order.
    pub faults: Vec<FaultResult>,
    /// By name of the flow.
    pub flows: BTreeMap<String, FlowCount>,
    /// Frames that could not be parsed as deep as the filters ask, by switch and reason.
    pub notes: BTreeMap<(String, String), u64>,
}

impl Conclusion {
    /// From what the switches counted for each injection, and what was captured.
    pub fn of(
        planned: &Planned,
        fired: &[u64],
        recordings: &[PortRecording],
        notes: BTreeMap<(String, String), u64>,
    ) -> Result<Conclusion, ProofError> {
        let trace = Trace::new(&planned.plan, recordings)?;
        let aggregator = planned.aggregator();
        let observations = trace.observe(&planned.scenario, &planned.plan, aggregator)?;
        Ok(Conclusion {
            faults: fault_results(planned, fired, &observations),
            flows: trace.flows(&planned.scenario, aggregator),
            notes,
        })
    }
}

fn fault_results(
    planned: &Planned,
    fired: &[u64],
    observations: &[proof::Observation],
) -> Vec<FaultResult> {
    let result = |fault: &scenario::model::Fault| {
        let mut result = FaultResult {
            id: fault.id.clone(),
            kind: match fault.effect {
                Effect::Drop => "drop",
                Effect::Delay { .. } => "delay",
                Effect::Duplicate => "duplicate",
            },
            fired: 0,
            observed: 0,
            met: 0,
            latest_ns: matches!(fault.effect, Effect::Delay { .. }).then_some(0),
            lateness_bound_ns: None,
        };
        for (index, injection) in planned.plan.injections.iter().enumerate() {
            if injection.fault == fault.id {
                result.fired += fired[index];
                if result.latest_ns.is_some() {
                    let bound = injection.lateness_bound_ns;
                    result.lateness_bound_ns = result.lateness_bound_ns.max(bound);
                }
                for seen in observations.iter().filter(|seen| seen.injection == index) {
                    result.observed += seen.observed;
                    result.met += seen.met;
                    result.latest_ns = result.latest_ns.map(|latest| latest.max(seen.latest_ns));
                }
            }
        }
        result
    };
    planned.scenario.faults.iter().map(result).collect()
}

/// Both sides' counts of a host's link.
#[derive(Debug, Clone, Copy, Default)]
pub struct LinkCount {
    switch: PortCount,
    host: Counters,
}

/// Frames that the workload has sent may be under way for so long after it has ended.
const SETTLING: Duration = Duration::from_secs(2);

impl LinkCount {
    /// What they say now.
    pub fn take(stage: &mut Stage<'_>, host: &str) -> Result<LinkCount, ExperimentError> {
        let topology = &stage.planned.scenario.topology;
        let switch = switch_of(stage.planned, host)?;
        let port = topology.next_hop(switch, host).map(|port| port.number);
        let counts = stage.fleet.port_counts(switch)?;
        let count = counts
            .into_iter()
            .find(|count| Some(count.port) == port)
            .unwrap_or_default();
        Ok(LinkCount {
            switch: count,
            host: stage.bed.host_counters(host)?,
        })
    }

    /// Bytes in both directions since `before`, once both sides say the same; an error if they do not.
    pub fn settled_bytes(
        stage: &mut Stage<'_>,
        host: &str,
        before: LinkCount,
    ) -> Result<u64, ExperimentError> {
        let start = Instant::now();
        loop {
            let now = LinkCount::take(stage, host)?;
            let by_switch = [
                now.switch.rx_bytes - before.switch.rx_bytes,
                now.switch.tx_bytes - before.switch.tx_bytes,
            ];
            let by_host = [
                now.host.tx_bytes - before.host.tx_bytes,
                now.host.rx_bytes - before.host.rx_bytes,
            ];
            if by_switch == by_host {
                return Ok(by_switch[0] + by_switch[1]);
            }
            if start.elapsed() > SETTLING {
                return Err(ExperimentError::LinkCounters {
                    switch: switch_of(stage.planned, host)?.to_owned(),
                    counted_by_switch: by_switch[0] + by_switch[1],
                    counted_by_host: by_host[0] + by_host[1],
                });
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

fn switch_of<'a>(planned: &'a Planned, host: &str) -> Result<&'a str, ExperimentError> {
    let peer = planned
        .scenario
        .topology
        .links
        .iter()
        .find_map(|link| link.peer(host));
    Ok(peer.ok_or_else(|| BedError::Unknown(format!("link of {host}")))?)
}

//! The stage of an experiment: a planned scenario's network, with switches that run its programs.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use bmv2::tools::Tools;
use controller::target::Kind;
use scenario::model::{Effect, Scenario};
use scenario::workload::{Training, Workload};
use scenario::{Diagnostics, Plan};
use testbeds::bed::{self, Bed, Wiring};
use testbeds::capture::{Filter, Limits};

use super::fleet::Fleet;
use super::timeline::Timeline;
use super::{Conclusion, ExperimentError, training};

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

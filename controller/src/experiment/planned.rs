//! A scenario with its plan, and the switches that it is meant for.

use std::path::PathBuf;

use bmv2::tools::Tools;
use scenario::model::Scenario;
use scenario::model::workload::{Training, Workload};
use scenario::{Diagnostics, Plan};

use crate::target::Kind;

/// A scenario with its plan.
#[derive(Clone)]
pub struct Planned {
    /// The scenario.
    pub scenario: Scenario,
    /// Its plan.
    pub plan: Plan,
}

impl Planned {
    /// Plans a scenario.
    pub fn new(scenario: Scenario, kind: Kind) -> Result<Planned, Diagnostics> {
        let plan = scenario::plan_to_prove(&scenario, &kind.model())?;
        Ok(Planned { scenario, plan })
    }

    /// Plans a scenario for switches that weir has not started. Weir does not control how long their ports hold frames or which
    /// frames they mark, and ends neither these switches nor any program.
    pub fn elsewhere(scenario: Scenario, kind: Kind) -> Result<Planned, Diagnostics> {
        let model = scenario::TargetModel {
            delays_links: false,
            marks_queues: false,
            runs_hosts: false,
            ..kind.model()
        };
        let plan = scenario::plan_to_prove(&scenario, &model)?;
        Ok(Planned { scenario, plan })
    }

    /// The training that the scenario runs, if its workload is one.
    pub fn training(&self) -> Option<&Training> {
        match &self.scenario.workload {
            Some(Workload::Training(training)) => Some(training),
            _ => None,
        }
    }
}

/// The switches that run.
#[derive(Debug, Clone, Default)]
pub struct Switches {
    /// Kind of the switches.
    pub kind: Kind,
    /// Paths of BMv2 and p4c.
    pub tools: Tools,
    /// Folder for BMv2's logs.
    pub logs: Option<PathBuf>,
}

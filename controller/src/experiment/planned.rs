//! A scenario with its plan, and the switches that it is meant for.

use std::path::PathBuf;

use bmv2::tools::Tools;
use scenario::model::Scenario;
use scenario::workload::{Training, Workload};
use scenario::{Diagnostics, Plan};

use crate::target::Kind;

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

    /// Plans a scenario for switches that somebody else has started: how long their ports hold frames, and
    /// which they mark, is not ours to say, and neither they nor any program is ours to end.
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

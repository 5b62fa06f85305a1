//! A scenario with its plan for a kind of switch, and the switches that are to run the plan.

use std::path::PathBuf;

use bmv2::tools::Tools;
use scenario::model::Scenario;
use scenario::model::workload::{Training, Workload};
use scenario::{Diagnostics, Plan};

use crate::target::Kind;

/// A scenario with its plan for a kind of switch.
#[derive(Clone)]
pub struct Planned {
    /// The scenario as loaded from its file.
    pub scenario: Scenario,
    /// The plan: programs, table entries and timeline of each switch.
    pub plan: Plan,
}

impl Planned {
    /// Plans a scenario for switches that weir starts; an error if no plan exists whose faults can be proved.
    pub fn new(scenario: Scenario, kind: Kind) -> Result<Planned, Diagnostics> {
        let plan = scenario::plan_to_prove(&scenario, &kind.model())?;
        Ok(Planned { scenario, plan })
    }

    /// Plans a scenario for running switches that weir has not started. There, weir cannot delay the frames of links or mark
    /// those of queues, and cannot end switches or programs.
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

    /// The training that is the scenario's workload; `None` for another workload.
    pub fn training(&self) -> Option<&Training> {
        match &self.scenario.workload {
            Some(Workload::Training(training)) => Some(training),
            _ => None,
        }
    }
}

/// The kind of switches that are to run, and the tools that they need.
#[derive(Debug, Clone, Default)]
pub struct Switches {
    /// Kind of the switches.
    pub kind: Kind,
    /// Where to find BMv2 and p4c.
    pub tools: Tools,
    /// Folder for the logs of BMv2's switches; `None` to write no logs.
    pub logs: Option<PathBuf>,
}

//! Replans where a training's gradients are summed, when a switch goes down or returns.
//!
//! A switch is down when its session has ended or a fault has killed it. The new plan goes first to the running switches, which
//! forget their former parts; then to the server, which announces the first chunk that it sums by the new plan; then to the
//! workers. So no sum mixes values of two plans (docs/protocol.md, "Another plan").

use std::collections::BTreeSet;

use scenario::model::Scenario;
use scenario::model::expect::metric::{Metric, Metrics, TrainingMetric};
use scenario::model::workload::Workload;
use scenario::plan::TargetModel;
use serde::Serialize;

use super::error::ExperimentError;
use super::workload::Load;
use crate::experiment::Planned;
use crate::experiment::fleet::{Fleet, now_ns};

/// A new plan of a training's gradients, because switches went down or returned. Times are in nanoseconds since 1970.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Repair {
    /// Names of the switches that were down then; empty if all had returned.
    pub gone: Vec<String>,
    /// When the controller noticed that switches had gone down or returned.
    pub seen_ns: u64,
    /// When all running switches had received the new plan; `None` if planning failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub installed_ns: Option<u64>,
    /// When the server received the first sum by the new plan; `None` if it received none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resumed_ns: Option<u64>,
    /// Names of the switches that sum by the new plan; empty if only the server sums.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub sums: Vec<String>,
    /// Why there is no new plan; `None` if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failed: Option<String>,
}

impl Repair {
    /// Time from `seen_ns` to `resumed_ns`, in nanoseconds; `None` if the server received no sum by the new plan.
    pub fn took_ns(&self) -> Option<u64> {
        Some(self.resumed_ns?.saturating_sub(self.seen_ns))
    }
}

/// Remark of the report on a run with faults whose gradients were replanned.
pub const REMARK: &str = "gradients were replanned: after that, their frames had other routes and job numbers, so faults that name the old ones may have hit none";

/// Adds the number of new plans, and the longest time until one was in use, under the names that `expect` uses.
pub fn add_metrics(metrics: &mut Metrics, repairs: &[Repair]) {
    let took = || repairs.iter().filter_map(Repair::took_ns);
    let longest = took().max().map(|ns| ns as f64);
    let known = [
        (TrainingMetric::Repairs, Some(took().count() as f64)),
        (TrainingMetric::Repair, longest),
    ];
    let known = known.into_iter();
    metrics.extend(known.filter_map(|(what, value)| Some((Metric::Training(what), value?))));
}

/// Replans a training's gradients whenever switches go down or return, while the training runs.
pub struct Repairer {
    scenario: Scenario,
    target: TargetModel,
    /// Names of the switches whose P4 programs can sum.
    summing: BTreeSet<String>,
    gone: BTreeSet<String>,
    next_number: u16,
    repairs: Vec<Repair>,
    /// Index in `repairs` of each new plan that was installed, in order.
    carried_out: Vec<usize>,
}

impl Repairer {
    /// Creates the repairer of a training; `None` if the scenario has no plan of gradients.
    pub fn new(planned: &Planned, target: TargetModel) -> Option<Repairer> {
        let gradients = planned.scenario.gradients.as_ref()?;
        let switches = planned.plan.switches.iter();
        let summing = switches.filter(|switch| switch.aggregates.is_some());
        Some(Repairer {
            scenario: planned.scenario.clone(),
            target,
            summing: summing.map(|switch| switch.name.clone()).collect(),
            gone: BTreeSet::new(),
            next_number: gradients.next_number(),
            repairs: Vec::new(),
            carried_out: Vec::new(),
        })
    }

    /// Whether the training can continue without this switch: its server must not be attached to the switch.
    pub fn can_miss(&self, switch: &str) -> bool {
        let Some(Workload::Training(training)) = &self.scenario.workload else {
            return false;
        };
        let mut links = self.scenario.topology.links.iter();
        !links.any(|link| link.peer(&training.server) == Some(switch))
    }

    /// Installs a new plan if switches have gone down or returned since the last call.
    pub fn poll(&mut self, fleet: &mut Fleet, load: &mut dyn Load) -> Result<(), ExperimentError> {
        self.update_resumed(load);
        let gone = fleet.gone();
        if gone == self.gone {
            return Ok(());
        }
        let mut repair = Repair {
            gone: gone.iter().cloned().collect(),
            seen_ns: now_ns(),
            ..Repair::default()
        };
        // Planned from the network of the scenario file: a switch that was down may have returned.
        let replanned = (self.scenario).replanned(&gone, &self.summing, self.next_number);
        match replanned {
            Ok(scenario) => {
                fleet.install(&scenario, &self.target)?;
                repair.installed_ns = Some(now_ns());
                load.replan(&scenario)?;
                if let Some(gradients) = &scenario.gradients {
                    repair.sums = gradients.summing().collect();
                    self.next_number = gradients.next_number();
                }
                self.carried_out.push(self.repairs.len());
                tracing::info!(gone = repair.gone.join(", "), "gradients are replanned");
            }
            Err(why) => repair.failed = Some(why.to_string()),
        }
        self.gone = gone;
        self.repairs.push(repair);
        Ok(())
    }

    /// Updates, for each installed plan, when the server received the first sum by it.
    fn update_resumed(&mut self, load: &dyn Load) {
        for (replan, repair) in self.carried_out.iter().enumerate() {
            self.repairs[*repair].resumed_ns = load.resumed_ns(replan);
        }
    }

    /// Returns all replannings in order, once the training has finished.
    pub fn finish(mut self, load: &dyn Load) -> Vec<Repair> {
        self.update_resumed(load);
        self.repairs
    }
}

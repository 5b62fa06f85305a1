//! Replans a training's gradients when a switch dies or returns.
//!
//! A switch is gone when its session has ended, or when a fault has ended it. Then the gradients are replanned on the remaining
//! switches. First they receive the new plan and forget their former parts; then the server, which announces the first chunk that
//! it sums by the new plan; then the workers. In this order no sum has values of two plans (docs/protocol.md, "Another plan").

use std::collections::BTreeSet;

use scenario::expect::metric::{Metric, Metrics, TrainingMetric};
use scenario::model::Scenario;
use scenario::names::{aggregate, forward, guard};
use scenario::plan::{self, TargetModel};
use scenario::workload::Workload;
use serde::Serialize;

use super::aggregation::aggregation_entries;
use super::change::{Change, Version};
use super::fleet::{Device, Fleet, FleetError, now_ns};
use super::workload::Load;
use super::{ExperimentError, Planned};

/// One replanning of the gradients. Times are in nanoseconds since 1970, as those of captures.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Repair {
    /// Switches that were gone.
    pub gone: Vec<String>,
    /// When the controller noticed that the switches were gone.
    pub seen_ns: u64,
    /// When the other switches had received the new plan.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub installed_ns: Option<u64>,
    /// When the server had the first sum of the new plan.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resumed_ns: Option<u64>,
    /// The positions where gradients are summed from then on.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub sums: Vec<String>,
    /// Why there is no new plan, if planning failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failed: Option<String>,
}

impl Repair {
    /// How long the training waited for the new plan, in nanoseconds; `None` if the training never continued by it.
    #[must_use]
    pub fn took_ns(&self) -> Option<u64> {
        Some(self.resumed_ns?.saturating_sub(self.seen_ns))
    }
}

/// Remark on a run with faults whose gradients were replanned.
pub const REMARK: &str = "gradients were planned again: from then on they went other ways, under other numbers, and faults that \
     name either may have met none";

/// Adds the replannings under the metric names that expectations use.
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

/// Maintains the plan of a training while the training runs.
pub struct Repairer {
    scenario: Scenario,
    target: TargetModel,
    /// Switches whose programs can sum.
    summing: BTreeSet<String>,
    gone: BTreeSet<String>,
    next_number: u16,
    repairs: Vec<Repair>,
    /// For each plan that was carried out, the index of its repair.
    carried_out: Vec<usize>,
}

impl Repairer {
    /// Creates the repairer of a training that has a plan.
    #[must_use]
    pub fn of(planned: &Planned, target: TargetModel) -> Option<Repairer> {
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

    /// Whether the training can continue without a switch, which holds if its server is not attached to the switch.
    #[must_use]
    pub fn can_miss(&self, switch: &str) -> bool {
        let Some(Workload::Training(training)) = &self.scenario.workload else {
            return false;
        };
        let mut links = self.scenario.topology.links.iter();
        !links.any(|link| link.peer(&training.server) == Some(switch))
    }

    /// Replans and installs the new plan if switches have died or returned since the last call.
    pub fn turn(&mut self, fleet: &mut Fleet, load: &mut dyn Load) -> Result<(), ExperimentError> {
        self.look(load);
        let gone = fleet.gone();
        if gone == self.gone {
            return Ok(());
        }
        let mut repair = Repair {
            gone: gone.iter().cloned().collect(),
            seen_ns: now_ns(),
            installed_ns: None,
            resumed_ns: None,
            sums: Vec::new(),
            failed: None,
        };
        // Planned from the network of the scenario file: a switch that was gone may have returned.
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
                tracing::info!(gone = repair.gone.join(", "), "gradients are planned again");
            }
            Err(why) => repair.failed = Some(why.to_string()),
        }
        self.gone = gone;
        self.repairs.push(repair);
        Ok(())
    }

    /// Updates when the training resumed by each plan.
    fn look(&mut self, load: &dyn Load) {
        for (replan, repair) in self.carried_out.iter().enumerate() {
            self.repairs[*repair].resumed_ns = load.resumed_ns(replan);
        }
    }

    /// Returns all repairs, once the training has finished.
    pub fn finish(mut self, load: &dyn Load) -> Vec<Repair> {
        self.look(load);
        self.repairs
    }
}

/// Whether all entries of a table belong to a plan for gradients, or to forwarding.
fn is_replaced(table: &str) -> bool {
    let of_jobs = [
        aggregate::JOBS,
        aggregate::MEMBERS,
        guard::LEASES,
        guard::SENDERS,
    ];
    forward::TABLES.contains(&table) || of_jobs.contains(&table)
}

impl Fleet {
    /// Switches that a fault has ended, or whose session has ended.
    fn gone(&self) -> BTreeSet<String> {
        let devices = self.devices.iter().filter(|device| !device.is_there());
        devices
            .map(|device| device.target.name().to_owned())
            .collect()
    }

    /// Installs on all reachable switches where gradients go and are summed from now on, and all other routes. A switch that dies
    /// meanwhile is no error: [`Fleet::gone`] lists it the next time.
    fn install(&mut self, scenario: &Scenario, target: &TargetModel) -> Result<(), FleetError> {
        let told = self.each(|device| match device.install(scenario, target) {
            Err(_) if !device.is_there() => Ok(()),
            told => told,
        });
        told.into_iter().collect()
    }
}

impl Device {
    fn is_there(&self) -> bool {
        !self.is_down && self.target.is_connected()
    }
}

impl Device {
    fn install(&mut self, scenario: &Scenario, target: &TargetModel) -> Result<(), FleetError> {
        let name = self.planned.name.clone();
        let mut planned = self.planned.clone();
        planned.groups = plan::groups(scenario, &name, target);
        let kept = self.entries.iter();
        let kept = kept.filter(|entry| !is_replaced(&entry.table));
        let mut entries: Vec<_> = kept.cloned().collect();
        entries.extend(plan::forwarding(scenario, &name));
        for job in &scenario.jobs {
            if let Some(summing) = job.on(&name) {
                entries.extend(aggregation_entries(scenario, &planned, job, summing));
            }
        }
        let change = Change::of(
            Version {
                planned: &self.planned,
                program: &self.program,
                entries: &self.entries,
            },
            Version {
                planned: &planned,
                program: &self.program,
                entries: &entries,
            },
        );
        self.target.write(change.before())?;
        self.target.write(change.after())?;
        self.planned = planned;
        self.entries = entries;
        Ok(())
    }
}

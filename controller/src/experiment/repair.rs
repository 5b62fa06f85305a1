//! Another plan for a training's gradients when a switch dies, or comes back.
//!
//! A switch is gone when the session with it has ended. Then the gradients are planned again on what is left; the other switches
//! are told, and have forgotten the former parts; then the server, which says from which chunk on it takes sums of the new ones;
//! then the workers. In that order no sum has values of two plans in it (docs/protocol.md, "Another plan").

use std::collections::BTreeSet;

use scenario::expect::metric::{Metric, Metrics, TrainingMetric};
use scenario::gradient::Gradients;
use scenario::model::Scenario;
use scenario::names::{aggregate, forward, guard};
use scenario::plan::{self, TargetModel};
use serde::Serialize;

use super::aggregation::aggregation_entries;
use super::change::{Change, Version};
use super::fleet::{Device, Fleet, FleetError, now_ns};
use super::workload::Load;
use super::{ExperimentError, Planned};

/// One time that gradients were planned again. Times are in nanoseconds since 1970, as those of captures.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Repair {
    /// Switches that were gone.
    pub gone: Vec<String>,
    /// When that was seen.
    pub seen_ns: u64,
    /// When the others had been told of the new plan.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub installed_ns: Option<u64>,
    /// When the server had the first sum of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resumed_ns: Option<u64>,
    /// Where gradients are summed from then on.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub sums: Vec<String>,
    /// Why there is no new plan.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failed: Option<String>,
}

impl Repair {
    /// How long the training waited for it; `None` if it never went on by it.
    #[must_use]
    pub fn took_ns(&self) -> Option<u64> {
        Some(self.resumed_ns?.saturating_sub(self.seen_ns))
    }
}

/// Under the names of expectations.
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

/// Looks after the plan of a training while it runs.
pub struct Repairer {
    scenario: Scenario,
    target: TargetModel,
    /// Switches whose programs can sum.
    summing: BTreeSet<String>,
    gone: BTreeSet<String>,
    next_number: u16,
    repairs: Vec<Repair>,
}

impl Repairer {
    /// Of a training that has a plan.
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
        })
    }

    /// Plans again, and has that carried out, if switches have gone or come back since.
    pub fn turn(
        &mut self,
        fleet: &mut Fleet,
        load: &mut dyn Load,
    ) -> Result<(), ExperimentError> {
        if let Some(last) = self.repairs.last_mut()
            && last.resumed_ns.is_none()
        {
            last.resumed_ns = load.resumed_ns().filter(|at_ns| *at_ns >= last.seen_ns);
        }
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
        // From the file's own network: what was gone may be back.
        match self.scenario.replanned(&gone, &self.summing, self.next_number) {
            Ok(scenario) => {
                fleet.install(&scenario, &self.target)?;
                repair.installed_ns = Some(now_ns());
                load.replan(&scenario)?;
                let gradients = scenario.gradients.iter();
                repair.sums = gradients.flat_map(Gradients::summing).collect();
                self.next_number = scenario
                    .gradients
                    .as_ref()
                    .map_or(self.next_number, Gradients::next_number);
                tracing::info!(gone = repair.gone.join(", "), "gradients are planned again");
            }
            Err(why) => repair.failed = Some(why.to_string()),
        }
        self.gone = gone;
        self.repairs.push(repair);
        Ok(())
    }

    /// All of them, once the training is over.
    pub fn finish(mut self, load: &dyn Load) -> Vec<Repair> {
        if let Some(last) = self.repairs.last_mut()
            && last.resumed_ns.is_none()
        {
            last.resumed_ns = load.resumed_ns().filter(|at_ns| *at_ns >= last.seen_ns);
        }
        self.repairs
    }
}

/// Tables of which all entries are those of a plan for gradients, or of forwarding.
const TABLES: [&str; 5] = [
    forward::TABLE,
    aggregate::JOBS,
    aggregate::MEMBERS,
    guard::LEASES,
    guard::SENDERS,
];

impl Fleet {
    /// Tells all switches that are there where gradients go and are summed from now on, and of all others' ways.
    fn install(&mut self, scenario: &Scenario, target: &TargetModel) -> Result<(), FleetError> {
        let install = |device: &mut Device| device.install(scenario, target);
        self.each(install).into_iter().collect()
    }
}

impl Device {
    fn install(&mut self, scenario: &Scenario, target: &TargetModel) -> Result<(), FleetError> {
        let name = self.planned.name.clone();
        let mut planned = self.planned.clone();
        planned.groups = plan::groups(scenario, &name, target);
        let kept = self.entries.iter();
        let kept = kept.filter(|entry| !TABLES.contains(&entry.table.as_str()));
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

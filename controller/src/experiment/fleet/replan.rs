//! Installs a new plan of a training's gradients, with its routes, on the switches that are reachable.

use std::collections::BTreeSet;

use scenario::model::Scenario;
use scenario::plan::names::{aggregate, forward, guard};
use scenario::plan::{self, TargetModel};

use super::aggregation::aggregation_entries;
use super::change::{Change, Version};
use super::{Device, Fleet, FleetError};

/// Whether a new plan replaces all entries of this table, as in the tables of jobs and of forwarding.
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
    /// Names of the switches whose process a fault has ended or whose session has ended.
    pub(in crate::experiment) fn gone(&self) -> BTreeSet<String> {
        let devices = self.devices.iter().filter(|device| !device.is_there());
        devices
            .map(|device| device.target.name().to_owned())
            .collect()
    }

    /// Installs the sums and routes of `scenario` on all reachable switches. A switch that dies meanwhile causes no error: the
    /// next call of [`Fleet::gone`] lists it.
    pub(in crate::experiment) fn install(
        &mut self,
        scenario: &Scenario,
        target: &TargetModel,
    ) -> Result<(), FleetError> {
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
        let change = Change::between(
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

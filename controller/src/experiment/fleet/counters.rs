//! Reads the counters of the switches: hits of faults, triggers, ports and queues.

#[cfg(feature = "testbed")]
use std::collections::BTreeMap;

use p4rt::translate::CounterValue;
use scenario::plan::Injection;
use scenario::{Plan, plan::names};

use super::{Fleet, FleetError, TriggerCount};
use crate::experiment::Planned;
use crate::target::{Item, Query};

impl Fleet {
    /// Number of packets on which no fault of a switch acted, because the lease of the switch's faults had ended.
    pub fn lapsed(&mut self, switch: &str) -> Result<u64, FleetError> {
        let Some(device) = self.device(switch) else {
            return Ok(0);
        };
        let mut lapsed = 0;
        for direction in device.planned.faulting() {
            let cells = self.counter(switch, &names::lease::lapsed(direction))?;
            lapsed += cells.iter().map(|cell| cell.packets).sum::<u64>();
        }
        Ok(lapsed)
    }

    /// Values of all cells of a switch's counter; empty if the switch is down.
    pub fn counter(&mut self, switch: &str, name: &str) -> Result<Vec<CounterValue>, FleetError> {
        let Some(device) = self.running(switch) else {
            return Ok(Vec::new());
        };
        let items = device.target.read(&[Query::Counter {
            name: name.to_owned(),
            index: None,
        }])?;
        let value = |item: Item| match item {
            Item::Counter { value, .. } => value.unwrap_or_default(),
            _ => CounterValue::default(),
        };
        Ok(items.into_iter().map(value).collect())
    }

    /// For each injection of the plan (a fault on a flow at a switch): number of hits that the switch counted.
    pub fn fired(&mut self, plan: &Plan) -> Result<Vec<u64>, FleetError> {
        self.cells(plan, |injection| Some(&injection.counter))
    }

    /// For each injection: number of packets whose key (such as a connection) had no register cell, as the switch counted them.
    pub fn keyless(&mut self, plan: &Plan) -> Result<Vec<u64>, FleetError> {
        self.cells(plan, |injection| injection.keyless.as_ref())
    }

    /// For each injection of the plan: the value of its cell in the counter that `counter` names; 0 if it has no such counter.
    fn cells(
        &mut self,
        plan: &Plan,
        counter: impl Fn(&Injection) -> Option<&String>,
    ) -> Result<Vec<u64>, FleetError> {
        let count = |injection: &Injection| {
            let Some(counter) = counter(injection) else {
                return Ok(0);
            };
            let cells = self.counter(&injection.switch, counter)?;
            Ok(cells.get(injection.cell).map_or(0, |cell| cell.packets))
        };
        plan.injections.iter().map(count).collect()
    }

    /// Counts of each trigger of the scenario on its switch, in declared order.
    pub fn triggers(&mut self, planned: &Planned) -> Result<Vec<TriggerCount>, FleetError> {
        let mut counts = vec![TriggerCount::default(); planned.scenario.triggers.len()];
        for switch in &planned.plan.switches {
            for trigger in &switch.triggers {
                let mut count = |counter: &Option<String>| -> Result<u64, FleetError> {
                    let Some(counter) = counter else {
                        return Ok(0);
                    };
                    let cells = self.counter(&switch.name, counter)?;
                    Ok(cells.first().map_or(0, |cell| cell.packets))
                };
                counts[trigger.index] = TriggerCount {
                    on: count(&trigger.counter)?,
                    keyless: count(&trigger.keyless)?,
                };
            }
        }
        Ok(counts)
    }

    /// Scheduling priority of each switch that reports it, by the switch's name.
    #[cfg(feature = "testbed")]
    pub fn priorities(&mut self) -> BTreeMap<String, String> {
        let devices = self.devices.iter_mut().filter(|device| !device.is_down);
        devices
            .filter_map(|device| {
                let priority = device.target.priority()?;
                Some((device.target.name().to_owned(), priority))
            })
            .collect()
    }

    /// Frames and bytes that each port of a switch counted; empty if the switch is down.
    #[cfg(feature = "testbed")]
    pub fn port_counts(
        &mut self,
        switch: &str,
    ) -> Result<Vec<crate::target::PortCount>, FleetError> {
        let Some(device) = self.running(switch) else {
            return Ok(Vec::new());
        };
        Ok(device.target.port_counts()?)
    }

    /// Number of frames that a switch lost because a queue within it was full; 0 if the switch is down.
    #[cfg(feature = "testbed")]
    pub fn queue_losses(&mut self, switch: &str) -> Result<u64, FleetError> {
        let Some(device) = self.running(switch) else {
            return Ok(0);
        };
        Ok(device.target.queue_losses()?)
    }
}

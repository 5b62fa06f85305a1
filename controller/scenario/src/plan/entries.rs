//! What is written into a switch, under the names of p4src/common (docs/fault-engine.md).

use p4lang::runtime::{ActionCall, FieldMatch, Match, MulticastGroup, Replica, TableEntry, Value};
use serde::ser::{SerializeMap, SerializeSeq};
use serde::{Serialize, Serializer};

use super::place::Placement;
use super::{PlannedFlow, TargetModel, Unit};
use crate::model::{Direction, Scenario};
use crate::names::fault::{self, param, select};
use crate::names::{JOB, forward, group, timeline};
use crate::selection::Selection;
use crate::topology::Mac;
use crate::workload::Workload;

/// Table and default action that put an epoch in force.
pub(super) fn set_epoch(direction: Direction, epoch: u16) -> (String, ActionCall) {
    let call = ActionCall {
        name: timeline::set_epoch(direction),
        params: vec![(timeline::EPOCH.to_owned(), u128::from(epoch).into())],
    };
    (timeline::table(direction), call)
}

pub(super) fn of_switch(
    scenario: &Scenario,
    placement: &Placement,
    switch: &str,
    units: &[Unit],
    flows: &[PlannedFlow],
) -> Vec<TableEntry> {
    let mut entries: Vec<TableEntry> = units
        .iter()
        .flat_map(|unit| of_unit(scenario, placement, switch, unit, flows))
        .collect();
    entries.extend(forwarding(scenario, switch));
    entries
}

/// One entry per flow and range of epochs. A packet in two flows of a fault belongs to the one declared first.
fn of_unit(
    scenario: &Scenario,
    placement: &Placement,
    switch: &str,
    unit: &Unit,
    flows: &[PlannedFlow],
) -> Vec<TableEntry> {
    let call = |action: Action| ActionCall {
        name: fault::action(unit.direction, unit.unit, action.name),
        params: action.params,
    };
    let guard = flows
        .iter()
        .filter(|flow| flow.protected)
        .fold(0, |mask, flow| mask | 1 << flow.bit);
    let mut entries = Vec::new();
    for point in &placement.points {
        let declared = &scenario.faults[point.fault];
        let here = point.switch == switch
            && point.direction == unit.direction
            && declared.id == unit.fault;
        let flow = &scenario.flows[point.flow];
        let bit = flows
            .iter()
            .find(|planned| planned.name == flow.name)
            .map(|planned| planned.bit);
        let (true, Some(bit), Some(action)) = (
            here,
            bit,
            action(scenario, point.fault, point.flow, point.cell).map(call),
        ) else {
            continue;
        };
        let value = 1_u128 << bit;
        for epochs in &declared.epochs {
            entries.push(TableEntry {
                table: fault::select_table(unit.direction, unit.unit),
                key: vec![
                    FieldMatch {
                        field: fault::KEY_FLOWS.to_owned(),
                        value: Match::ternary(value, value | guard),
                    },
                    FieldMatch {
                        field: fault::KEY_EPOCH.to_owned(),
                        value: Match::range(u128::from(*epochs.start()), u128::from(*epochs.end())),
                    },
                ],
                priority: 0,
                action: action.clone(),
            });
        }
    }
    let count = entries.len() as i32;
    for (entry, priority) in entries.iter_mut().zip((1..=count).rev()) {
        entry.priority = priority;
    }
    entries
}

/// A way to select, by the name of its action, with its parameters.
struct Action {
    name: &'static str,
    params: Vec<(String, Value)>,
}

/// `None` for a fault that never fires.
fn action(scenario: &Scenario, fault: usize, flow: usize, cell: usize) -> Option<Action> {
    let (fault, flow) = (&scenario.faults[fault], &scenario.flows[flow]);
    let (code, _) = fault.effect.code();
    let mut params: Vec<(&str, u128)> = vec![
        (param::CELL, cell as u128),
        (param::EFFECT, code.into()),
        (param::DELAY_NS, fault.effect.hold_ns().into()),
    ];
    let keys = [
        (param::KEY, u128::from(fault.key)),
        (param::FLOW_KEY, u128::from(flow.key)),
    ];
    let name = match fault.selection {
        Selection::Never => return None,
        Selection::Always => select::ALWAYS,
        Selection::Nth(n) => {
            params.push((param::N, n.into()));
            select::NTH
        }
        Selection::Every(n) => {
            params.push((param::N, n.into()));
            select::EVERY
        }
        Selection::Probability { limit } => {
            params.extend(keys);
            params.push((param::LIMIT, limit.into()));
            select::PROBABILITY
        }
        Selection::GilbertElliott(chain) => {
            params.extend(keys);
            params.extend([
                (param::TO_BAD, chain.to_bad.into()),
                (param::TO_GOOD, chain.to_good.into()),
                (param::LOSS_BAD, chain.loss_bad.into()),
                (param::LOSS_GOOD, chain.loss_good.unwrap_or(0).into()),
                (param::LOSS_IN_GOOD, u128::from(chain.loss_good.is_some())),
            ]);
            select::GILBERT_ELLIOTT
        }
    };
    let params = params
        .into_iter()
        .map(|(name, value)| (name.to_owned(), value.into()))
        .collect();
    Some(Action { name, params })
}

/// Every host by its MAC address, broadcasts, and the job's group.
fn forwarding(scenario: &Scenario, switch: &str) -> Vec<TableEntry> {
    let entry = |mac: Mac, action: &str, name: &str, value: u32| TableEntry {
        table: forward::TABLE.to_owned(),
        key: vec![FieldMatch {
            field: forward::KEY.to_owned(),
            value: Match::exact(mac.value()),
        }],
        priority: 0,
        action: ActionCall {
            name: action.to_owned(),
            params: vec![(name.to_owned(), u128::from(value).into())],
        },
    };
    let to_group = |mac, group| entry(mac, forward::MULTICAST, forward::GROUP, group);
    let mut entries = Vec::new();
    for host in &scenario.topology.hosts {
        if let Some(port) = scenario.topology.next_hop(switch, &host.name) {
            entries.push(entry(
                host.mac,
                forward::UNICAST,
                forward::PORT,
                port.number,
            ));
        }
    }
    entries.push(to_group(Mac::BROADCAST, group::FLOOD));
    if !job_ports(scenario, switch).is_empty() {
        entries.push(to_group(Mac::of_job(JOB), group::JOB));
    }
    entries
}

/// The ports of a switch behind which workers get their results from the server.
fn job_ports(scenario: &Scenario, switch: &str) -> Vec<u32> {
    let Some(Workload::Training(training)) = &scenario.workload else {
        return Vec::new();
    };
    let topology = &scenario.topology;
    let mut ports: Vec<u32> = training
        .workers
        .iter()
        .filter(|worker| {
            topology
                .path(&training.server, worker)
                .is_some_and(|path| path.contains(&switch))
        })
        .filter_map(|worker| topology.next_hop(switch, worker))
        .map(|port| port.number)
        .collect();
    ports.sort_unstable();
    ports.dedup();
    ports
}

pub(super) fn groups(
    scenario: &Scenario,
    switch: &str,
    target: &TargetModel,
) -> Vec<MulticastGroup> {
    let numbered = |ports: Vec<u32>| {
        ports
            .into_iter()
            .zip(1..)
            .map(|(port, instance)| Replica { port, instance })
            .collect()
    };
    let mut groups = Vec::new();
    if target.multicast_recirculates {
        groups.push(MulticastGroup {
            id: group::DUPLICATE,
            replicas: numbered(vec![target.recirculation_port; 2]),
        });
    }
    groups.push(MulticastGroup {
        id: group::FLOOD,
        replicas: numbered(scenario.topology.flood_ports(switch)),
    });
    let job = job_ports(scenario, switch);
    if !job.is_empty() {
        groups.push(MulticastGroup {
            id: group::JOB,
            replicas: numbered(job),
        });
    }
    groups
}

/// p4lang's runtime types carry no serde: the JSON's shape is this crate's.
pub(super) fn serialize_entries<S: Serializer>(
    entries: &[TableEntry],
    serializer: S,
) -> Result<S::Ok, S::Error> {
    struct Entry<'a>(&'a TableEntry);
    struct Key<'a>(&'a [FieldMatch]);
    struct Params<'a>(&'a [(String, Value)]);
    struct Number<'a>(&'a Value);
    impl Serialize for Number<'_> {
        fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            match self.0.to_u128() {
                Some(number) => number.serialize(serializer),
                None => serializer.collect_str(self.0),
            }
        }
    }
    impl Serialize for Key<'_> {
        fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            serializer.collect_map(
                self.0
                    .iter()
                    .map(|field| (&field.field, show_match(&field.value))),
            )
        }
    }
    impl Serialize for Params<'_> {
        fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            serializer.collect_map(self.0.iter().map(|(name, value)| (name, Number(value))))
        }
    }
    impl Serialize for Entry<'_> {
        fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            let mut map = serializer.serialize_map(None)?;
            map.serialize_entry("table", &self.0.table)?;
            map.serialize_entry("key", &Key(&self.0.key))?;
            map.serialize_entry("priority", &self.0.priority)?;
            map.serialize_entry("action", &self.0.action.name)?;
            map.serialize_entry("params", &Params(&self.0.action.params))?;
            map.end()
        }
    }
    let mut list = serializer.serialize_seq(Some(entries.len()))?;
    for entry in entries {
        list.serialize_element(&Entry(entry))?;
    }
    list.end()
}

pub(super) fn serialize_groups<S: Serializer>(
    groups: &[MulticastGroup],
    serializer: S,
) -> Result<S::Ok, S::Error> {
    #[derive(Serialize)]
    struct Group {
        id: u32,
        ports: Vec<u32>,
    }
    serializer.collect_seq(groups.iter().map(|group| Group {
        id: group.id,
        ports: group.replicas.iter().map(|replica| replica.port).collect(),
    }))
}

pub(super) fn show_match(value: &Match) -> String {
    match value {
        Match::Exact(value) | Match::Optional(value) => format!("{value:#x}"),
        Match::Lpm { value, prefix_len } => format!("{value:#x}/{prefix_len}"),
        Match::Ternary { value, mask } => format!("{value:#x} &&& {mask:#x}"),
        Match::Range { low, high } => format!("{low}..{high}"),
    }
}

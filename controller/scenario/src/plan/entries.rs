//! The entries of a switch, under the names of its program (docs/fault-engine.md).

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use p4lang::runtime::{ActionCall, FieldMatch, Match, MulticastGroup, Replica, TableEntry, Value};
use parser_gen::engine::{Action, Copies, Hold};
use parser_gen::psn::MODULUS;
use serde::ser::{SerializeMap, SerializeSeq};
use serde::{Serialize, Serializer};

use super::place::{Placement, Point};
use super::{PlannedFlow, TargetModel, Unit, engine, multipath};
use crate::decision::{self, Draws, Words};
use crate::effect::Duplicate;
use crate::gradient;
use crate::job::Job;
use crate::model::{Direction, Scenario};
use crate::names::fault::{self, channel, key, param};
use crate::names::{JOB, forward, group, lease, timeline};
use crate::selection::{Psn, Selection, Share};
use crate::topology::Mac;
use crate::workload::Workload;

/// The table and its default action that put an epoch in force.
pub(super) fn set_epoch(direction: Direction, epoch: u16) -> (String, ActionCall) {
    let call = ActionCall {
        name: timeline::set_epoch(direction),
        params: vec![(timeline::EPOCH.to_owned(), u128::from(epoch).into())],
    };
    (timeline::table(direction), call)
}

/// The default action that sets the end of the lease, on the switch's clock.
pub(super) fn until(direction: Direction, deadline: u64) -> (String, ActionCall) {
    let call = ActionCall {
        name: lease::until(direction),
        params: vec![(lease::DEADLINE.to_owned(), u128::from(deadline).into())],
    };
    (lease::table(direction), call)
}

pub(super) fn of_switch(
    scenario: &Scenario,
    placement: &Placement,
    switch: &str,
    units: &[Unit],
    flows: &[PlannedFlow],
    classes: &[Vec<usize>],
    target: &TargetModel,
) -> Vec<TableEntry> {
    let mut entries: Vec<TableEntry> = Vec::new();
    for unit in units {
        entries.extend(of_unit(
            scenario, placement, switch, unit, flows, classes, target,
        ));
    }
    entries.extend(forwarding(scenario, switch));
    entries
}

/// The entries of a unit: the packets that it examines, then those that it selects, then the words that it draws.
fn of_unit(
    scenario: &Scenario,
    placement: &Placement,
    switch: &str,
    unit: &Unit,
    flows: &[PlannedFlow],
    classes: &[Vec<usize>],
    target: &TargetModel,
) -> Vec<TableEntry> {
    let mut faults = scenario.faults.iter();
    let Some(declared) = faults.find(|fault| fault.id == unit.fault) else {
        return Vec::new();
    };
    // A selection that the target cannot represent has been refused.
    let Ok(selection) = declared.selection.rounded(target.draw_bits) else {
        return Vec::new();
    };
    if selection == Selection::Never {
        return Vec::new();
    }
    let mut entries = select(
        scenario, placement, switch, unit, flows, classes, &selection,
    );
    let part = |name: &str| fault::part(unit.direction, unit.unit, name);
    let writer = UnitWriter {
        part: &part,
        draw_bits: target.draw_bits,
    };
    entries.extend(writer.outcomes(&selection));
    entries.extend(writer.lots(declared.effect.lots()));
    if selection.is_by_chance() || declared.effect.draws() {
        let has_second = matches!(selection, Selection::GilbertElliott(_));
        let drawn = Drawn {
            u: selection.is_by_chance(),
            v: has_second,
            w: declared.effect.draws(),
        };
        entries.extend(writer.words(&Draws::of_seed(scenario.seed), drawn));
    }
    entries
}

/// One entry per class and range of epochs. Of the class's flows, the one that the fault declares first applies. A class
/// with a protected flow gets no entry.
fn select(
    scenario: &Scenario,
    placement: &Placement,
    switch: &str,
    unit: &Unit,
    flows: &[PlannedFlow],
    classes: &[Vec<usize>],
    selection: &Selection,
) -> Vec<TableEntry> {
    let positions: BTreeMap<&str, usize> = flows
        .iter()
        .map(|flow| (flow.name.as_str(), flow.index))
        .collect();
    let points = placement.points.iter().filter(|point| {
        point.switch == switch
            && point.direction == unit.direction
            && scenario.faults[point.fault].id == unit.fault
    });
    let of_flow: BTreeMap<usize, (usize, &Point)> = points
        .enumerate()
        .filter_map(|(order, point)| {
            let name = scenario.flows[point.flow].name.as_str();
            Some((*positions.get(name)?, (order, point)))
        })
        .collect();
    let mut entries = Vec::new();
    for (class, members) in classes.iter().enumerate() {
        let met = members.iter().filter_map(|flow| of_flow.get(flow));
        let is_protected = members.iter().any(|flow| flows[*flow].protected);
        let Some((_, point)) = met.min_by_key(|(order, _)| order).filter(|_| !is_protected) else {
            continue;
        };
        let (declared, flow) = (&scenario.faults[point.fault], &scenario.flows[point.flow]);
        let mut params: Vec<(&str, u128)> = vec![(param::CELL, point.cell as u128)];
        if let Selection::Counted(counted) = selection {
            params.push((param::LAST, counted.last().into()));
        }
        if selection.is_by_chance() || declared.effect.draws() || declared.keys.is_some() {
            params.push((param::KEY, decision::key(declared.key, flow.key).into()));
        }
        if let Action::Delay(Hold { drawn: false, .. }) = declared.effect.action() {
            let hold_ns = declared.effect.longest_hold_ns();
            params.push((param::DELAY_NS, hold_ns.into()));
        }
        for epochs in &declared.epochs {
            let (first, last) = (u128::from(*epochs.start()), u128::from(*epochs.end()));
            entries.push(TableEntry {
                table: fault::select_table(unit.direction, unit.unit),
                key: vec![
                    FieldMatch {
                        field: fault::KEY_CLASS.to_owned(),
                        value: Match::exact(class as u128),
                    },
                    FieldMatch {
                        field: fault::KEY_EPOCH.to_owned(),
                        value: Match::range(first, last),
                    },
                ],
                priority: 0,
                action: call(fault::part(unit.direction, unit.unit, fault::PICK), &params),
            });
        }
    }
    prioritized(entries)
}

pub(crate) fn call(name: String, params: &[(&str, u128)]) -> ActionCall {
    ActionCall {
        name,
        params: params
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).into()))
            .collect(),
    }
}

/// Gives the entries descending priorities, so that the first match applies.
fn prioritized(mut entries: Vec<TableEntry>) -> Vec<TableEntry> {
    let count = entries.len() as i32;
    for (entry, priority) in entries.iter_mut().zip((1..=count).rev()) {
        entry.priority = priority;
    }
    entries
}

/// The words that a unit draws.
#[derive(Clone, Copy)]
struct Drawn {
    u: bool,
    v: bool,
    w: bool,
}

struct UnitWriter<'a> {
    /// Full name of a part of the unit.
    part: &'a dyn Fn(&str) -> String,
    draw_bits: u32,
}

impl UnitWriter<'_> {
    /// Entries of the tables `channel` and `outcome`.
    fn outcomes(&self, selection: &Selection) -> Vec<TableEntry> {
        let fires = |key: Vec<FieldMatch>| self.entry("outcome", key, fault::FIRES, &[]);
        let mut entries = Vec::new();
        match selection {
            Selection::Never | Selection::Always => {}
            Selection::Counted(counted) => {
                entries.extend(counted.keys().into_iter().map(|(value, mask)| {
                    let any = FieldMatch {
                        field: key::INDEX.to_owned(),
                        value: Match::ternary(u128::from(value), u128::from(mask)),
                    };
                    // A field that matches every value is left out (P4Runtime 9.1.1).
                    fires(Some(any).filter(|_| mask != 0).into_iter().collect())
                }));
            }
            Selection::Probability { limit } | Selection::Share(Share { limit, .. }) => {
                entries.push(fires(self.draws(key::U, 0, *limit)));
            }
            Selection::Psn(psn) => entries.extend(places(psn).map(fires)),
            Selection::GilbertElliott(chain) => {
                let mut turns = Vec::new();
                let (both, one) = (
                    chain.to_bad.min(chain.to_good),
                    chain.to_bad.max(chain.to_good),
                );
                turns.push((0, both, channel::TURN_OVER));
                let turn = if chain.to_bad > chain.to_good {
                    channel::TURN_BAD
                } else {
                    channel::TURN_GOOD
                };
                if both < one {
                    turns.push((both + 1, one, turn));
                }
                if one < u32::MAX {
                    turns.push((one + 1, u32::MAX, channel::STAY));
                }
                let turns = turns.into_iter().map(|(low, high, action)| {
                    self.entry("channel", self.draws(key::U, low, high), action, &[])
                });
                entries.extend(prioritized(turns.collect()));
                let losses = [(0, chain.loss_good), (1, Some(chain.loss_bad))];
                let losses = losses.into_iter().filter_map(|(bad, limit)| {
                    let state = FieldMatch {
                        field: key::BAD.to_owned(),
                        value: Match::exact(bad),
                    };
                    let mut key = vec![state];
                    key.extend(self.draws(key::V, 0, limit?));
                    Some(fires(key))
                });
                entries.extend(prioritized(losses.collect()));
                return entries;
            }
        }
        prioritized(entries)
    }

    /// Entries of the table `lots`.
    fn lots(&self, lots: Vec<u128>) -> impl Iterator<Item = TableEntry> {
        let lots = (0_u128..).zip(lots);
        lots.map(|(number, value)| {
            let word = FieldMatch {
                field: key::W.to_owned(),
                value: Match::exact(number),
            };
            let params = [(fault::LOT_VALUE, value)];
            self.entry(fault::LOTS, vec![word], fault::LOT, &params)
        })
    }

    /// Entries of the tables `t0` to `t5`, which the seed determines.
    fn words(&self, draws: &Draws, drawn: Drawn) -> Vec<TableEntry> {
        let mut entries = Vec::new();
        for number in 0..decision::TABLES {
            let (table, action) = fault::words(number);
            for byte in 0..=u8::MAX {
                let row = draws.row(number, byte);
                let mut params: Vec<(&str, u128)> = Vec::new();
                let Words { u, v, w } = row.words;
                for (is_drawn, name, word) in
                    [(drawn.u, "u_", u), (drawn.v, "v_", v), (drawn.w, "w_", w)]
                {
                    if is_drawn {
                        params.push((name, u128::from(word >> (32 - self.draw_bits))));
                    }
                }
                if number < decision::INPUT_TABLES {
                    params.push(("d_", row.derived.into()));
                }
                let byte = FieldMatch {
                    field: key::BYTE.to_owned(),
                    value: Match::exact(u128::from(byte)),
                };
                entries.push(self.entry(&table, vec![byte], &action, &params));
            }
        }
        entries
    }

    fn entry(
        &self,
        table: &str,
        key: Vec<FieldMatch>,
        action: &str,
        params: &[(&str, u128)],
    ) -> TableEntry {
        TableEntry {
            table: (self.part)(table),
            key,
            priority: 0,
            action: call((self.part)(action), params),
        }
    }

    /// A match on a range of draws; empty if the range includes all draws.
    fn draws(&self, field: &str, low: u32, high: u32) -> Vec<FieldMatch> {
        if (low, high) == (0, u32::MAX) {
            return Vec::new();
        }
        let shift = 32 - self.draw_bits;
        vec![FieldMatch {
            field: field.to_owned(),
            value: Match::range(u128::from(low >> shift), u128::from(high >> shift)),
        }]
    }
}

/// Keys for a selection by position in a connection. Fields that match every value are left out.
fn places(psn: &Psn) -> impl Iterator<Item = Vec<FieldMatch>> {
    let field = |field: &str, range: &RangeInclusive<u32>, most: u32| {
        let (low, high) = (*range.start(), most.min(*range.end()));
        let value = Match::range(u128::from(low), u128::from(high));
        let field = field.to_owned();
        Some(FieldMatch { field, value }).filter(|_| (low, high) != (0, most))
    };
    let rounds = psn.rounds.as_slice();
    psn.at.as_slice().iter().flat_map(move |at| {
        let relative = field(key::RELATIVE, at, MODULUS - 1);
        rounds.iter().map(move |round| {
            let round = field(key::ROUND, round, u32::MAX);
            relative.clone().into_iter().chain(round).collect()
        })
    })
}

/// The forwarding entries of a switch: every host by its MAC address, broadcasts, jobs, routes of gradients; in a wire,
/// each port to the other.
#[must_use]
pub fn forwarding(scenario: &Scenario, switch: &str) -> Vec<TableEntry> {
    if scenario.topology.wire {
        return across(scenario, switch);
    }
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
    let to_port_it_came_by = |mac| {
        let mut back = entry(mac, forward::BACK, "", 0);
        back.action.params.clear();
        back
    };
    let mut entries = Vec::new();
    if let Some(ways) = &scenario.ways {
        entries.extend(multipath::entries(scenario, ways, switch));
    } else {
        let towards = scenario.topology.ports_towards(switch);
        for host in &scenario.topology.hosts {
            if let Some(port) = towards.get(host.name.as_str()) {
                entries.push(entry(host.mac, forward::UNICAST, forward::PORT, *port));
            }
        }
    }
    entries.push(to_group(Mac::BROADCAST, group::FLOOD));
    for (number, _) in job_ports(scenario, switch) {
        entries.push(to_group(Mac::of_job(number), group::of_job(number)));
    }
    let gradients = scenario.gradients.iter();
    entries.extend(gradients.flat_map(|gradients| gradient::forwarding(gradients, switch)));
    for job in &scenario.jobs {
        if ports_of(scenario, job, switch).is_none() {
            continue;
        }
        // Frames to be summed, and probes about them, go up until a switch sums them.
        let (sum, question) = (Mac::of_sum(job.number), Mac::of_question(job.number));
        match (
            job.on(switch),
            scenario.topology.next_hop(switch, job.top()),
        ) {
            (Some(_), _) => {
                entries.push(to_group(sum, group::of_job(job.number)));
                entries.push(to_port_it_came_by(question));
            }
            (None, Some(up)) => entries.extend(
                [sum, question].map(|mac| entry(mac, forward::UNICAST, forward::PORT, up.number)),
            ),
            (None, None) => {}
        }
    }
    entries
}

fn across(scenario: &Scenario, switch: &str) -> Vec<TableEntry> {
    let topology = &scenario.topology;
    let ports = topology.ports(switch).filter_map(|port| {
        let other = topology.next_hop(switch, topology.across(port.peer)?)?;
        Some(TableEntry {
            table: forward::WIRE.to_owned(),
            key: vec![FieldMatch {
                field: forward::WIRE_KEY.to_owned(),
                value: Match::exact(u128::from(port.number)),
            }],
            priority: 0,
            action: call(
                forward::UNICAST.to_owned(),
                &[(forward::PORT, u128::from(other.number))],
            ),
        })
    });
    ports.collect()
}

/// For each job, the ports by which the switch sends sums, or the server's results, down.
fn job_ports(scenario: &Scenario, switch: &str) -> Vec<(u16, Vec<u32>)> {
    let topology = &scenario.topology;
    if let Some(Workload::Training(training)) = &scenario.workload {
        let gradients = scenario.gradients.as_ref();
        if let Some(ports) = gradients.and_then(|gradients| gradients.answer_ports(switch)) {
            let ports = sorted(ports.into_iter());
            return (!ports.is_empty())
                .then_some((JOB, ports))
                .into_iter()
                .collect();
        }
        let workers = training.workers.iter().filter(|worker| {
            let path = topology.path(&training.server, worker);
            path.is_some_and(|path| path.contains(&switch))
        });
        let ports = workers.filter_map(|worker| topology.next_hop(switch, worker));
        let ports = sorted(ports.map(|port| port.number));
        return (!ports.is_empty())
            .then_some((JOB, ports))
            .into_iter()
            .collect();
    }
    let jobs = scenario.jobs.iter();
    jobs.filter_map(|job| ports_of(scenario, job, switch))
        .collect()
}

/// The ports of a switch that lead down to ranks of a job; `None` if the switch is not between any rank and the root.
fn ports_of(scenario: &Scenario, job: &Job, switch: &str) -> Option<(u16, Vec<u32>)> {
    if let Some(Workload::Training(_)) = &scenario.workload {
        return None;
    }
    let topology = &scenario.topology;
    let below = job.ranks.iter().filter(|rank| {
        let way = topology.way_up(rank, job.top());
        way.is_some_and(|way| way.contains(&switch))
    });
    let ports = below.filter_map(|rank| topology.next_hop(switch, rank));
    let ports = sorted(ports.map(|port| port.number));
    (!ports.is_empty()).then_some((job.number, ports))
}

fn sorted(ports: impl Iterator<Item = u32>) -> Vec<u32> {
    let mut ports: Vec<u32> = ports.collect();
    ports.sort_unstable();
    ports.dedup();
    ports
}

/// The multicast groups of a switch.
#[must_use]
pub fn groups(scenario: &Scenario, switch: &str, target: &TargetModel) -> Vec<MulticastGroup> {
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
    let duplicates = scenario.faults.iter();
    let duplicates = duplicates.filter_map(|fault| fault.effect.duplicate());
    let mut more: Vec<Copies> = duplicates
        .filter(|duplicate| *duplicate != Duplicate::ONCE && target.multicast_recirculates)
        .map(|duplicate| engine::copies(scenario, duplicate))
        .collect();
    more.sort_unstable_by_key(|copies| copies.group);
    more.dedup();
    groups.extend(more.iter().map(|copies| {
        MulticastGroup {
            id: copies.group.into(),
            replicas: copies
                .later_ns
                .iter()
                .map(|(instance, _)| Replica {
                    port: target.recirculation_port,
                    instance: *instance,
                })
                .collect(),
        }
    }));
    groups.push(MulticastGroup {
        id: group::FLOOD,
        replicas: numbered(scenario.topology.flood_ports(switch)),
    });
    let job_groups = job_ports(scenario, switch).into_iter();
    groups.extend(job_groups.map(|(number, ports)| {
        let mut jobs = scenario.jobs.iter();
        let job = jobs.find(|job| job.number == number && job.is_rdma());
        let each = job.and_then(|job| copies_of_ranks(scenario, job, switch));
        MulticastGroup {
            id: group::of_job(number),
            replicas: each.unwrap_or_else(|| numbered(ports)),
        }
    }));
    let gradients = scenario.gradients.iter();
    groups.extend(gradients.flat_map(|gradients| gradient::groups(gradients, switch)));
    groups
}

/// The replicas for a switch that writes to each rank separately: one per rank, whose instance is the rank's number there
/// plus one.
fn copies_of_ranks(scenario: &Scenario, job: &Job, switch: &str) -> Option<Vec<Replica>> {
    let ranks = job.on(switch)?.children.iter().zip(1..);
    let copies = ranks.map(|(rank, instance)| {
        let port = scenario.topology.next_hop(switch, rank)?.number;
        Some(Replica { port, instance })
    });
    copies.collect()
}

/// p4lang's runtime types do not implement serde, so this crate defines their JSON.
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
        #[serde(skip_serializing_if = "Option::is_none")]
        instances: Option<Vec<u16>>,
    }
    serializer.collect_seq(groups.iter().map(|group| Group {
        id: group.id,
        ports: group.replicas.iter().map(|replica| replica.port).collect(),
        instances: instances(&group.replicas),
    }))
}

/// The instances of copies; `None` if they are 1, 2, … in order.
fn instances(replicas: &[Replica]) -> Option<Vec<u16>> {
    let instances: Vec<u16> = replicas.iter().map(|replica| replica.instance).collect();
    let counted = instances.iter().zip(1..).all(|(one, other)| *one == other);
    (!counted).then_some(instances)
}

pub(super) fn show_match(value: &Match) -> String {
    match value {
        Match::Exact(value) | Match::Optional(value) => format!("{value:#x}"),
        Match::Lpm { value, prefix_len } => format!("{value:#x}/{prefix_len}"),
        Match::Ternary { value, mask } => format!("{value:#x} &&& {mask:#x}"),
        Match::Range { low, high } => format!("{low}..{high}"),
    }
}

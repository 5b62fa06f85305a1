//! Builds the table entries of a job on a switch: how it is summed, the ports that may send for it, its lease, its rate.

use p4lang::runtime::{FieldMatch, Match, MulticastGroup, Replica, TableEntry, Value, call};
use p4rt::translate::MeterConfig;
use scenario::model::job::burst_bytes;
use scenario::model::topology::Mac;
use scenario::plan::names::{aggregate, forward, group, guard};

use crate::target::Item;

/// A switch's share in summing a job: aggregation slots, and ports of the switch's children in the aggregation tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Summed {
    /// Number of the job.
    pub number: u16,
    /// Number of the job's first slot on the switch.
    pub base: u32,
    /// Number of slots that the job has on the switch.
    pub window: u32,
    /// Port of each child (a rank, or a switch below), by the child's worker number on this switch, from 0.
    pub ports: Vec<u32>,
    /// Port to the next switch up the aggregation tree, and this switch's worker number there; `None` at the topmost switch.
    pub up: Option<(u32, u16)>,
    /// Whether a deadline may end the job's chunks as partial sums, before all children have contributed.
    pub closes: bool,
}

impl Summed {
    /// Table entries that make the switch sum: one for the job, and two for each child (its updates and its requests).
    pub fn entries(&self) -> Vec<TableEntry> {
        let job = u128::from(self.number);
        let window = u128::from(self.window);
        let mut params = vec![
            (aggregate::ALL_WORKERS, (1_u128 << self.ports.len()) - 1),
            (aggregate::BASE, self.base.into()),
            (aggregate::WINDOW, window),
            (aggregate::SLOT_MASK, window - 1),
        ];
        let mut action = match self.closes {
            true => aggregate::AGGREGATE_UNTIL,
            false => aggregate::AGGREGATE_JOB,
        };
        if let Some((port, number)) = self.up {
            action = aggregate::AGGREGATE_PART;
            params.push((aggregate::UP_PORT, port.into()));
            params.push((aggregate::UP_WORKER, number.into()));
        }
        let key = [(aggregate::KEY_JOB, job)];
        let mut entries = vec![exact(aggregate::JOBS, &key, action, &params)];
        for (child, port) in (0_u32..).zip(&self.ports) {
            for (probe, bit) in [(0, 1_u128 << child), (1, 0)] {
                let key = [
                    (aggregate::KEY_JOB, job),
                    (aggregate::KEY_WORKER, child.into()),
                    (aggregate::KEY_PROBE, probe),
                    (aggregate::KEY_PORT, (*port).into()),
                ];
                let bit = [(aggregate::WORKER_BIT, bit)];
                entries.push(exact(aggregate::MEMBERS, &key, aggregate::MEMBER, &bit));
            }
        }
        entries
    }

    /// Table entries for the ports that may send frames of the job: those of its children, and that of the switch above.
    pub fn senders(&self) -> Vec<TableEntry> {
        let mut ports = self.ports.clone();
        ports.extend(self.up.map(|(port, _)| port));
        ports.sort_unstable();
        ports.dedup();
        let sender = |port: u32| {
            let key = [
                (guard::KEY_JOB, u128::from(self.number)),
                (guard::KEY_PORT, port.into()),
            ];
            exact(guard::SENDERS, &key, guard::SENDER, &[])
        };
        ports.into_iter().map(sender).collect()
    }

    /// Meter configuration that limits the rate of the job's frames; `None` removes the limit.
    pub fn rate(&self, rate_bps: Option<u64>) -> Item {
        let burst = burst_bytes(self.window, self.ports.len());
        let config = rate_bps.map(|rate| MeterConfig {
            cir: rate / 8,
            // Frames above the rate are marked for a while before frames are dropped, so that ranks send less.
            cburst: burst / 4,
            pir: rate / 8,
            pburst: burst,
        });
        Item::Meter {
            name: guard::METERS.to_owned(),
            index: Some(guard::cell(self.number)),
            config,
        }
    }

    /// Multicast group through which the switch sends the job's sums to all ranks, each behind a port.
    pub fn group(&self) -> MulticastGroup {
        let replicas = self.ports.iter().zip(1..);
        MulticastGroup {
            id: group_of(self.number),
            replicas: replicas
                .map(|(port, instance)| Replica {
                    port: *port,
                    instance,
                })
                .collect(),
        }
    }

    /// Forwarding entries of a switch that sums the job alone: updates go to the multicast group, requests back to their
    /// sender. A sum needs no entry: the switch itself writes the sum's destination address, and no host sends to it.
    pub fn forwarding(&self) -> Vec<TableEntry> {
        let to = [(forward::GROUP, u128::from(group_of(self.number)))];
        let [sum, question] = addresses(self.number);
        vec![
            by_mac(sum, forward::MULTICAST, &to),
            by_mac(question, forward::BACK, &[]),
        ]
    }
}

/// Destination MAC addresses of a job's frames: that of updates, then that of requests.
pub fn addresses(number: u16) -> [Mac; 2] {
    [Mac::of_sum(number), Mac::of_question(number)]
}

/// Number of the multicast group for a job's sums. A switch's jobs have different numbers modulo 256; faults use other groups.
pub fn group_of(number: u16) -> u32 {
    group::of_job(number % admission::NUMBERS)
}

/// Table entry for a job's lease: the job's frames pass until this time, in ticks of the switch's clock; `None`: without end.
pub fn lease(number: u16, until_ticks: Option<u64>) -> TableEntry {
    let key = [(guard::KEY_JOB, u128::from(number))];
    match until_ticks {
        Some(until) => {
            let deadline = [(guard::DEADLINE, u128::from(until))];
            exact(guard::LEASES, &key, guard::UNTIL, &deadline)
        }
        None => exact(guard::LEASES, &key, guard::UNLIMITED, &[]),
    }
}

/// Forwarding entry for a host: frames to its MAC address leave through `port`.
pub fn host(mac: Mac, port: u32) -> TableEntry {
    by_mac(mac, forward::UNICAST, &[(forward::PORT, port.into())])
}

/// Multicast group through which a switch sends broadcast frames to `ports`.
pub fn flood(ports: &[u32]) -> MulticastGroup {
    let replicas = ports.iter().zip(1..);
    MulticastGroup {
        id: group::FLOOD,
        replicas: replicas
            .map(|(port, instance)| Replica {
                port: *port,
                instance,
            })
            .collect(),
    }
}

/// Forwarding entry that sends broadcast frames to the multicast group of [`flood`].
pub fn broadcasts() -> TableEntry {
    let to = [(forward::GROUP, u128::from(group::FLOOD))];
    by_mac(Mac::BROADCAST, forward::MULTICAST, &to)
}

/// Value of a key field of a table entry; `None` unless the field is matched exactly and has at most 128 bits.
pub fn key_of(entry: &TableEntry, field: &str) -> Option<u128> {
    let given = entry.key.iter().find(|given| given.field == field)?;
    match &given.value {
        Match::Exact(value) => value.to_u128(),
        _ => None,
    }
}

/// Value of an action parameter of a table entry; `None` if the action has no such parameter, or if it does not fit `T`.
pub fn param_of<T: TryFrom<u128>>(entry: &TableEntry, name: &str) -> Option<T> {
    let mut params = entry.action.params.iter();
    let (_, value): &(String, Value) = params.find(|(given, _)| given == name)?;
    value.to()
}

fn by_mac(mac: Mac, action: &str, params: &[(&str, u128)]) -> TableEntry {
    exact(
        forward::TABLE,
        &[(forward::KEY, mac.value())],
        action,
        params,
    )
}

pub(super) fn exact(
    table: &str,
    key: &[(&str, u128)],
    action: &str,
    params: &[(&str, u128)],
) -> TableEntry {
    let field = |(field, value): &(&str, u128)| FieldMatch {
        field: (*field).to_owned(),
        value: Match::exact(*value),
    };
    TableEntry {
        table: table.to_owned(),
        key: key.iter().map(field).collect(),
        priority: 0,
        action: call(action, params),
    }
}

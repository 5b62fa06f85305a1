//! What a switch is told of a job: to sum its values, who may speak for it, until when, how much.

use p4lang::runtime::{FieldMatch, Match, MulticastGroup, Replica, TableEntry, Value, call};
use p4rt::translate::MeterConfig;
use scenario::job::burst_bytes;
use scenario::names::{aggregate, forward, group, guard};
use scenario::topology::Mac;

use crate::target::Item;

/// What a switch sums of a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Summed {
    /// The job's number.
    pub number: u16,
    /// Its first slot.
    pub base: u32,
    /// Its slots.
    pub window: u32,
    /// The port of each child, by the number that the switch knows it by.
    pub ports: Vec<u32>,
    /// Where the switch above is, and what that one knows this one by; none at the topmost.
    pub up: Option<(u32, u16)>,
    /// Whether its chunks may be closed before all children have contributed.
    pub closes: bool,
}

impl Summed {
    /// Entries that make the switch sum: the job, and those whose values they are.
    #[must_use]
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

    /// Entries by which frames of the job may come: from its children, and from the switch above.
    #[must_use]
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

    /// What holds the job's frames to a rate, or to none.
    #[must_use]
    pub fn rate(&self, rate_bps: Option<u64>) -> Item {
        let burst = burst_bytes(self.window, self.ports.len());
        let config = rate_bps.map(|rate| MeterConfig {
            cir: rate / 8,
            // What is above the rate is marked for a while before it is dropped, so that ranks send less.
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

    /// Where the sums go: to all ranks, each behind a port.
    #[must_use]
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

    /// Forwarding at the only switch that sums. There is no entry for the address that sums have on their way down: they get
    /// it here, and nobody else sends to it.
    #[must_use]
    pub fn forwarding(&self) -> Vec<TableEntry> {
        let to = [(forward::GROUP, u128::from(group_of(self.number)))];
        let [sum, question] = addresses(self.number);
        vec![
            by_mac(sum, forward::MULTICAST, &to),
            by_mac(question, forward::BACK, &[]),
        ]
    }
}

/// The addresses of a job that a switch forwards by: of updates, and of questions.
pub fn addresses(number: u16) -> [Mac; 2] {
    [Mac::of_sum(number), Mac::of_question(number)]
}

/// The multicast group of a job's sums. Two jobs of a switch are not equal modulo 256, and no job's group is a scenario's fault's.
pub fn group_of(number: u16) -> u32 {
    group::of_job(number % admission::NUMBERS)
}

/// Until when frames of a job pass, in ticks of the switch's clock.
#[must_use]
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

/// The way to a host.
#[must_use]
pub fn host(mac: Mac, port: u32) -> TableEntry {
    by_mac(mac, forward::UNICAST, &[(forward::PORT, port.into())])
}

/// The group of broadcasts, to all these ports.
#[must_use]
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

/// Broadcasts go to that group.
#[must_use]
pub fn broadcasts() -> TableEntry {
    let to = [(forward::GROUP, u128::from(group::FLOOD))];
    by_mac(Mac::BROADCAST, forward::MULTICAST, &to)
}

/// The value of a key field of an entry, if it is exact and that wide.
#[must_use]
pub fn key_of(entry: &TableEntry, field: &str) -> Option<u128> {
    let given = entry.key.iter().find(|given| given.field == field)?;
    match &given.value {
        Match::Exact(value) => value.to_u128(),
        _ => None,
    }
}

/// A parameter of an entry's action.
#[must_use]
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

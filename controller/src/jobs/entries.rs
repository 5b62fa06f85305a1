//! Table entries of a job on a switch: its sums, the ports that may send for it, its lease, its rate.

use p4lang::runtime::{FieldMatch, Match, MulticastGroup, Replica, TableEntry, Value, call};
use p4rt::translate::MeterConfig;
use scenario::model::job::burst_bytes;
use scenario::model::topology::Mac;
use scenario::plan::names::{aggregate, forward, group, guard};

use crate::target::Item;

/// The part of a job that a switch sums.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Summed {
    /// Number of the job.
    pub number: u16,
    /// First slot of the job.
    pub base: u32,
    /// Number of slots of the job.
    pub window: u32,
    /// The port of each child, by the child's number on the switch.
    pub ports: Vec<u32>,
    /// Port to the switch above, and the number of this switch there; `None` at the topmost switch.
    pub up: Option<(u32, u16)>,
    /// Whether the job's chunks may be closed before all children have contributed.
    pub closes: bool,
}

impl Summed {
    /// Entries that make the switch sum: the job, and its members.
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

    /// Entries for the ports that may send frames of the job: those of its children, and that of the switch above.
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

    /// The meter configuration that limits the job's frames to a rate; without a limit for `None`.
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

    /// The multicast group of the sums: all ranks, each behind a port.
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

    /// Forwarding entries of the only switch that sums. There is no entry for the address of sums on their way down: this switch
    /// assigns the address, and no host sends to it.
    pub fn forwarding(&self) -> Vec<TableEntry> {
        let to = [(forward::GROUP, u128::from(group_of(self.number)))];
        let [sum, question] = addresses(self.number);
        vec![
            by_mac(sum, forward::MULTICAST, &to),
            by_mac(question, forward::BACK, &[]),
        ]
    }
}

/// The addresses by which a switch forwards frames of a job: of updates, and of requests.
pub fn addresses(number: u16) -> [Mac; 2] {
    [Mac::of_sum(number), Mac::of_question(number)]
}

/// The multicast group of a job's sums. No two job numbers of a switch are equal modulo 256, and no fault uses these groups.
pub fn group_of(number: u16) -> u32 {
    group::of_job(number % admission::NUMBERS)
}

/// The lease of a job: its frames pass until this time, in ticks of the switch's clock.
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

/// The route to a host.
pub fn host(mac: Mac, port: u32) -> TableEntry {
    by_mac(mac, forward::UNICAST, &[(forward::PORT, port.into())])
}

/// The multicast group of broadcasts, with all these ports.
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

/// The entry that sends broadcasts to their group.
pub fn broadcasts() -> TableEntry {
    let to = [(forward::GROUP, u128::from(group::FLOOD))];
    by_mac(Mac::BROADCAST, forward::MULTICAST, &to)
}

/// The value of a key field of an entry, if the field is exact and has at most 128 bits.
pub fn key_of(entry: &TableEntry, field: &str) -> Option<u128> {
    let given = entry.key.iter().find(|given| given.field == field)?;
    match &given.value {
        Match::Exact(value) => value.to_u128(),
        _ => None,
    }
}

/// The value of a parameter of an entry's action.
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

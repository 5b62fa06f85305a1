//! Admits, renews and releases jobs on a running switch: reads the switch's tables before each decision, then writes them.
//!
//! Each job has an entry in the table of leases: its parameter is the deadline, and its note (P4Runtime metadata) is the job's
//! [`Grant`]. The controller writes this entry first and deletes it last, when no frame of the job can be in flight any more. A
//! job in the table of jobs that has no such entry belongs to another controller, and stays unchanged. The entry of job 0,
//! which is no job's number, stores the tenants.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use admission::{Book, Grant, Request, State, Tenant, Tenants};
use p4lang::runtime::TableEntry;
use p4rt::translate::CounterValue;
use scenario::model::job::SLOTS;
use scenario::model::topology::Mac;
use scenario::plan::names::guard::{self, Guarded};
use scenario::plan::names::{aggregate, forward, group};
use tokio::runtime::Runtime;

use super::entries::{self, Summed, key_of, param_of};
use super::{Host, JobsError, program};
use crate::target::{Item, P4Runtime, Query, Target, UpdateType};

/// How long to wait for another controller to release the switch before the connection fails.
const PATIENCE: Duration = Duration::from_secs(10);
/// Job number of the lease entry that stores the tenants; no job has it.
const NOBODY: u16 = 0;
/// Outcomes that a switch counts for a job's frames: passed, or dropped, with the reason.
pub(super) const OUTCOMES: [Guarded; 4] = [
    Guarded::Passed,
    Guarded::Stranger,
    Guarded::Lapsed,
    Guarded::OverRate,
];

/// A switch whose primary P4Runtime controller is this process.
pub struct Switch {
    pub(super) target: P4Runtime,
    address: String,
}

/// Settings that `weir job setup` writes to a switch before jobs are admitted.
#[derive(Debug, Clone, Default)]
pub struct Setup {
    /// Hosts that the switch has to reach, besides those that it reaches already.
    pub hosts: Vec<Host>,
    /// The new tenants, which replace all former ones; `None` keeps the former ones.
    pub tenants: Option<Vec<Tenant>>,
    /// Whether to replace a P4 program that is not for jobs; otherwise such a program is an error.
    pub replace: bool,
}

/// The jobs and tenants in a switch's tables, and the time when they were read.
pub(super) struct TableState {
    pub(super) book: Book,
    pub(super) now_ns: u64,
}

impl Switch {
    /// Connects to the switch at `address` (`host:port`), and becomes its primary controller.
    pub fn connect(address: &str, device_id: u64) -> Result<Self, JobsError> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .map_err(JobsError::Runtime)?;
        Self::on(Arc::new(runtime), address, device_id)
    }

    fn on(runtime: Arc<Runtime>, address: &str, device_id: u64) -> Result<Self, JobsError> {
        let target = P4Runtime::attach(runtime, address, address, device_id, PATIENCE)?;
        Ok(Self {
            target,
            address: address.to_owned(),
        })
    }

    /// Loads the P4 program for jobs if the switch lacks it, then adds hosts and tenants; returns whether it was loaded.
    pub fn set_up(&mut self, setup: &Setup) -> Result<bool, JobsError> {
        for (index, host) in setup.hosts.iter().enumerate() {
            let before = setup.hosts[..index].iter();
            if let Some(other) = before.into_iter().find(|other| other.mac == host.mac) {
                return Err(JobsError::HostTwice {
                    mac: host.mac,
                    ports: [other.port, host.port],
                });
            }
        }
        let tenants = setup.tenants.clone().map(Tenants::new).transpose()?;
        let ports: Vec<u32> = setup.hosts.iter().map(|host| host.port).collect();
        self.check_ports(&ports)?;
        let is_there = self.target.has_table(guard::LEASES);
        if !is_there {
            if self.target.has_program() && !setup.replace {
                return Err(JobsError::OtherProgram(self.address.clone()));
            }
            let (p4info, text) = program::build(&self.address)?;
            self.target.load(&p4info, &text)?;
            let broadcasts = Item::TableEntry(entries::broadcasts());
            let flood = Item::MulticastGroup(entries::flood(&[]));
            self.target.write(&[
                (UpdateType::Insert, flood),
                (UpdateType::Insert, broadcasts),
            ])?;
        }
        self.add_hosts(&setup.hosts)?;
        if let Some(tenants) = tenants {
            self.divide(&tenants)?;
        }
        Ok(!is_there)
    }

    /// Returns an error if the switch lacks one of the ports `asked`. A switch that does not list its ports is not checked.
    #[cfg(feature = "testbed")]
    fn check_ports(&mut self, asked: &[u32]) -> Result<(), JobsError> {
        let Ok(counts) = self.target.port_counts() else {
            return Ok(());
        };
        let ports: Vec<u32> = counts.iter().map(|count| count.port).collect();
        match asked.iter().find(|port| !ports.contains(port)) {
            Some(&port) => Err(JobsError::NoPort {
                switch: self.address.clone(),
                port,
                ports,
            }),
            None => Ok(()),
        }
    }

    #[cfg(not(feature = "testbed"))]
    fn check_ports(&mut self, _: &[u32]) -> Result<(), JobsError> {
        Ok(())
    }

    fn add_hosts(&mut self, hosts: &[Host]) -> Result<(), JobsError> {
        let known = self.entries(forward::TABLE)?;
        let mut ports: Vec<u32> = known
            .iter()
            .filter_map(|entry| param_of(entry, forward::PORT))
            .chain(hosts.iter().map(|host| host.port))
            .collect();
        ports.sort_unstable();
        ports.dedup();
        let mut updates = vec![(
            UpdateType::Modify,
            Item::MulticastGroup(entries::flood(&ports)),
        )];
        for host in hosts {
            let entry = entries::host(host.mac, host.port);
            let is_known = known.iter().any(|other| other.key == entry.key);
            let update = match is_known {
                true => UpdateType::Modify,
                false => UpdateType::Insert,
            };
            updates.push((update, Item::TableEntry(entry)));
        }
        Ok(self.target.write(&updates)?)
    }

    /// Assigns slots to tenants; returns an error if a running job would not fit into its tenant's new slots.
    fn divide(&mut self, tenants: &Tenants) -> Result<(), JobsError> {
        let seen = self.look()?;
        for grant in seen.book.running(seen.now_ns) {
            let own = tenants.partition(grant.tenant.as_deref());
            let slots = grant.slots();
            let fits = own.is_some_and(|own| own.start <= slots.start && slots.end <= own.end);
            if !fits {
                return Err(JobsError::Divided {
                    job: grant.name.clone(),
                    from: slots.start,
                    to: slots.end.saturating_sub(1),
                });
            }
        }
        let item = Item::NotedEntry {
            entry: entries::lease(NOBODY, None),
            note: serde_json::to_vec(tenants)?,
        };
        let known = self.entries(guard::LEASES)?;
        let has_some = known.iter().any(|entry| number_of(entry) == Some(NOBODY));
        let update = match has_some {
            true => UpdateType::Modify,
            false => UpdateType::Insert,
        };
        Ok(self.target.write(&[(update, item)])?)
    }

    /// Admits a job and writes its table entries, or returns the reason why it is refused.
    pub fn admit(&mut self, request: &Request) -> Result<Grant, JobsError> {
        let mut seen = self.tidied()?;
        self.check_ports(&request.ports)?;
        let grant = seen.book.admit(request, seen.now_ns)?;
        if let Err(error) = self.write(&grant) {
            // The first error is returned. Remaining entries of the job end with its lease, or by `release`.
            let _also = self.end(&Grant {
                until_ns: Some(seen.now_ns),
                ..grant
            });
            return Err(error);
        }
        Ok(grant)
    }

    /// Sets the end of a job's lease to `lease_ns` from now; `None`: the lease has no end.
    pub fn renew(&mut self, name: &str, lease_ns: Option<u64>) -> Result<Grant, JobsError> {
        let mut seen = self.tidied()?;
        let grant = seen.book.renew(name, lease_ns, seen.now_ns)?;
        let item = self.noted(&grant)?;
        self.target.write(&[(UpdateType::Modify, item)])?;
        Ok(grant)
    }

    /// Ends a job, and frees its slots; returns the grant that it had.
    pub fn release(&mut self, name: &str) -> Result<Grant, JobsError> {
        let mut seen = self.tidied()?;
        let grant = seen.book.release(name, seen.now_ns)?;
        self.end(&grant)?;
        Ok(grant)
    }

    /// Returns the running job of this name; an error if there is none.
    pub fn named(&mut self, name: &str) -> Result<Grant, JobsError> {
        let seen = self.look()?;
        let grant = seen.book.named(name, seen.now_ns).cloned();
        Ok(grant.ok_or_else(|| admission::Refusal::Unknown {
            name: name.to_owned(),
        })?)
    }

    /// Reads jobs, tenants and the clock from the switch; changes nothing.
    pub(super) fn look(&mut self) -> Result<TableState, JobsError> {
        if !self.target.has_program() {
            return Err(JobsError::NoProgram(self.address.clone()));
        }
        if !self.target.has_table(guard::LEASES) {
            return Err(JobsError::OtherProgram(self.address.clone()));
        }
        // Read first: the time is past when the entries are judged by it.
        let clock = self.target.clock()?;
        let now_ns = clock.ticks.saturating_mul(clock.tick_ns);
        let mut tenants = Tenants::default();
        let mut grants: BTreeMap<u16, Grant> = BTreeMap::new();
        for (entry, note) in self.target.read_noted(guard::LEASES)? {
            let Some(number) = number_of(&entry) else {
                continue;
            };
            let unread = |reason: String| JobsError::Note { number, reason };
            if number == NOBODY {
                let all = serde_json::from_slice::<Vec<Tenant>>(&note);
                tenants = Tenants::new(all.map_err(|error| unread(error.to_string()))?)?;
                continue;
            }
            let grant = serde_json::from_slice::<Grant>(&note);
            let grant = grant.map_err(|error| unread(error.to_string()))?;
            if grant.number != number {
                return Err(unread(format!("it is that of job {}", grant.number)));
            }
            let until_ns = param_of::<u64>(&entry, guard::DEADLINE)
                .map(|ticks| ticks.saturating_mul(clock.tick_ns));
            grants.insert(number, Grant { until_ns, ..grant });
        }
        let members = self.entries(aggregate::MEMBERS)?;
        for entry in self.entries(aggregate::JOBS)? {
            let Some(number) = number_of(&entry).filter(|n| !grants.contains_key(n)) else {
                continue;
            };
            let of_job = members.iter().filter(|member| {
                number_of(member) == Some(number) && key_of(member, aggregate::KEY_PROBE) == Some(0)
            });
            let ports =
                of_job.filter_map(|member| key_of(member, aggregate::KEY_PORT)?.try_into().ok());
            // No job of weir has such a name.
            let grant = Grant {
                number,
                name: format!("#{number}"),
                tenant: None,
                base: param_of(&entry, aggregate::BASE).unwrap_or(0),
                window: param_of(&entry, aggregate::WINDOW).unwrap_or(SLOTS),
                rate_bps: None,
                ports: ports.collect(),
                until_ns: None,
            };
            grants.insert(number, grant);
        }
        Ok(TableState {
            book: Book::new(tenants, grants.into_values()),
            now_ns,
        })
    }

    /// Deletes the entries of ended jobs from the switch, and returns the remaining jobs and tenants.
    fn tidied(&mut self) -> Result<TableState, JobsError> {
        let mut seen = self.look()?;
        let ended: Vec<u16> = seen
            .book
            .grants()
            .filter(|grant| grant.state(seen.now_ns) != State::Running)
            .map(|grant| grant.number)
            .collect();
        self.take_back(&ended)?;
        let gone = seen.book.sweep(seen.now_ns);
        let deletions: Vec<_> = gone
            .into_iter()
            .map(|number| {
                let entry = entries::lease(number, None);
                (UpdateType::Delete, Item::TableEntry(entry))
            })
            .collect();
        self.target.write(&deletions)?;
        Ok(seen)
    }

    /// Writes a new job's entries to the switch. The entry that makes the switch sum comes last.
    fn write(&mut self, grant: &Grant) -> Result<(), JobsError> {
        let insert = |entry| (UpdateType::Insert, Item::TableEntry(entry));
        let summed = summed(grant);
        let mut updates = vec![(UpdateType::Insert, self.noted(grant)?)];
        updates.push((UpdateType::Modify, summed.rate(grant.rate_bps)));
        for outcome in OUTCOMES {
            let counter = Item::Counter {
                name: guard::OUTCOMES.to_owned(),
                index: Some(guard::outcome_cell(grant.number, outcome)),
                value: Some(CounterValue::default()),
            };
            updates.push((UpdateType::Modify, counter));
        }
        // Clears the state that the slots' former job left: if its chunk numbers are spread so that none lies beyond them all,
        // this job has no number to begin with (docs/protocol.md, "Where a job begins").
        for cell in 2 * grant.base..2 * grant.slots().end {
            for register in [aggregate::OWNERS, aggregate::BITMAPS] {
                let cleared = Item::Register {
                    name: register.to_owned(),
                    index: Some(cell.into()),
                    fields: vec![0_u128.into()],
                };
                updates.push((UpdateType::Modify, cleared));
            }
        }
        let group = Item::MulticastGroup(summed.group());
        updates.push((UpdateType::Insert, group));
        updates.extend(summed.forwarding().into_iter().map(insert));
        updates.extend(summed.senders().into_iter().map(insert));
        // The job is written before its members.
        updates.extend(summed.entries().into_iter().rev().map(insert));
        Ok(self.target.write(&updates)?)
    }

    /// Ends a job: first writes the end of its lease, which blocks its frames, then deletes its entries.
    fn end(&mut self, grant: &Grant) -> Result<(), JobsError> {
        let item = self.noted(grant)?;
        self.target.write(&[(UpdateType::Modify, item)])?;
        self.take_back(&[grant.number])
    }

    /// Deletes all entries and multicast groups of the jobs with the numbers `numbers`, except the jobs' lease entries.
    fn take_back(&mut self, numbers: &[u16]) -> Result<(), JobsError> {
        if numbers.is_empty() {
            return Ok(());
        }
        let is_theirs = |entry: &TableEntry| number_of(entry).is_some_and(|n| numbers.contains(&n));
        let addresses: Vec<u128> = numbers
            .iter()
            .flat_map(|number| entries::addresses(*number))
            .map(Mac::value)
            .collect();
        let mut updates = Vec::new();
        for table in [aggregate::JOBS, aggregate::MEMBERS, guard::SENDERS] {
            updates.extend(self.entries(table)?.into_iter().filter(is_theirs));
        }
        let forwarding = self.entries(forward::TABLE)?.into_iter();
        updates.extend(forwarding.filter(|entry| {
            key_of(entry, forward::KEY).is_some_and(|mac| addresses.contains(&mac))
        }));
        let mut updates: Vec<_> = updates
            .into_iter()
            .map(|entry| (UpdateType::Delete, Item::TableEntry(entry)))
            .collect();
        let groups: Vec<u32> = numbers.iter().map(|n| entries::group_of(*n)).collect();
        for item in self.target.read(&[Query::MulticastGroups { id: None }])? {
            if let Item::MulticastGroup(group) = item
                && groups.contains(&group.id)
                && group.id != group::FLOOD
            {
                updates.push((UpdateType::Delete, Item::MulticastGroup(group)));
            }
        }
        Ok(self.target.write(&updates)?)
    }

    pub(super) fn entries(&mut self, table: &str) -> Result<Vec<TableEntry>, JobsError> {
        let table = Some(table.to_owned());
        let items = self.target.read(&[Query::Entries { table }])?;
        let entries = items.into_iter().filter_map(|item| match item {
            Item::TableEntry(entry) => Some(entry),
            _ => None,
        });
        Ok(entries.collect())
    }

    /// Builds the lease entry of a job, whose note contains the grant.
    fn noted(&mut self, grant: &Grant) -> Result<Item, JobsError> {
        let tick_ns = self.target.clock()?.tick_ns;
        let until = grant.until_ns.map(|until| until / tick_ns);
        // The entry itself contains the deadline.
        let noted = Grant {
            until_ns: None,
            ..grant.clone()
        };
        Ok(Item::NotedEntry {
            entry: entries::lease(grant.number, until),
            note: serde_json::to_vec(&noted)?,
        })
    }
}

/// The slots and ports of a job that a single switch sums.
fn summed(grant: &Grant) -> Summed {
    Summed {
        number: grant.number,
        base: grant.base,
        window: grant.window,
        ports: grant.ports.clone(),
        up: None,
        closes: false,
    }
}

/// Job number in the key of a table entry; `None` if the table has no such key field.
fn number_of(entry: &TableEntry) -> Option<u16> {
    key_of(entry, guard::KEY_JOB)?.try_into().ok()
}

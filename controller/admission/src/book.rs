//! Keeps the grants of one switch (the slots, ports and rates of its jobs), and decides whether a new job is admitted.

use std::collections::BTreeMap;
use std::ops::Range;

use scenario::model::job::{MAX_CHILDREN, MAX_JOBS, SLOTS};

use crate::refusal::{Held, name_fault};
use crate::slots::{largest, place};
use crate::{
    Grant, MAX_LEASE_NS, MIN_LEASE_NS, NUMBERS, QUARANTINE_NS, Refusal, State, Tenant, Tenants,
};

/// A request to admit a training job to a switch: which slots, ports, rate and lease it wants.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// Name of the job.
    pub name: String,
    /// Number that the job wants on the wire; `None` for the lowest free number.
    pub number: Option<u16>,
    /// Tenant in whose partition the job wants its slots; `None` for the slots that belong to no tenant.
    pub tenant: Option<String>,
    /// Switch port of each rank: element 0 is the port that rank 0 is behind.
    pub ports: Vec<u32>,
    /// Number of aggregation slots that the job wants in the switch, a power of two.
    pub window: u32,
    /// Maximum rate of all frames of the job together, in bits per second; `None` for no limit.
    pub rate_bps: Option<u64>,
    /// Duration of the job's lease in nanoseconds; `None` if the job keeps its slots until it is released.
    pub lease_ns: Option<u64>,
}

impl Request {
    /// Checks the parts of the request that are valid or not whatever the other jobs: name, number, window, ports, rate, lease.
    pub fn check(&self) -> Result<(), Refusal> {
        if let Some(fault) = name_fault(&self.name) {
            let name = self.name.clone();
            return Err(Refusal::Name { name, fault });
        }
        let ranks = self.ports.len();
        if ranks == 0 || ranks > MAX_CHILDREN {
            return Err(Refusal::Ranks { ranks });
        }
        for (rank, port) in self.ports.iter().enumerate() {
            if self.ports[..rank].contains(port) {
                return Err(Refusal::PortTwice { port: *port });
            }
        }
        let window = self.window;
        if !window.is_power_of_two() || window > SLOTS {
            return Err(Refusal::Window { window });
        }
        if self.rate_bps.is_some_and(|rate| rate < 1000) {
            return Err(Refusal::Rate);
        }
        if let Some(number) = self.number
            && number.is_multiple_of(NUMBERS)
        {
            return Err(Refusal::Number { number });
        }
        check_lease(self.lease_ns)
    }
}

/// The grants of one switch and its tenants; admits, renews and releases jobs.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Book {
    tenants: Tenants,
    /// Grants by job number: of running jobs, and of ended jobs whose number is still reserved.
    grants: BTreeMap<u16, Grant>,
}

impl Book {
    /// Creates the book from the grants that were read from a switch's tables.
    #[must_use]
    pub fn new(tenants: Tenants, grants: impl IntoIterator<Item = Grant>) -> Self {
        let grants = grants.into_iter().map(|grant| (grant.number, grant));
        Self {
            tenants,
            grants: grants.collect(),
        }
    }

    /// The tenants among which the slots of the switch are divided.
    #[must_use]
    pub fn tenants(&self) -> &Tenants {
        &self.tenants
    }

    /// All grants, ordered by job number: of running jobs, and of ended jobs whose number is still reserved.
    pub fn grants(&self) -> impl Iterator<Item = &Grant> {
        self.grants.values()
    }

    /// Grants of the jobs that hold slots at time `now_ns` of the switch's clock.
    pub fn running(&self, now_ns: u64) -> impl Iterator<Item = &Grant> {
        self.grants().filter(move |grant| grant.runs(now_ns))
    }

    /// Grant of the running job with this name; `None` if no such job runs at `now_ns`.
    #[must_use]
    pub fn named(&self, name: &str, now_ns: u64) -> Option<&Grant> {
        self.running(now_ns).find(|grant| grant.name == name)
    }

    /// Removes ended jobs whose frames can no longer be in flight at `now_ns`; returns the numbers of these jobs.
    pub fn sweep(&mut self, now_ns: u64) -> Vec<u16> {
        let gone = self.grants().filter(|g| g.state(now_ns) == State::Gone);
        let gone: Vec<u16> = gone.map(|grant| grant.number).collect();
        for number in &gone {
            self.grants.remove(number);
        }
        gone
    }

    /// Admits a job, or returns which jobs hold what it requests. A refused request leaves the book as it was.
    pub fn admit(&mut self, request: &Request, now_ns: u64) -> Result<Grant, Refusal> {
        request.check()?;
        if let Some(held) = self.named(&request.name, now_ns) {
            let held = Held::new(held, now_ns);
            return Err(Refusal::NameHeld { held });
        }
        for port in &request.ports {
            if let Some(held) = self.running(now_ns).find(|g| g.ports.contains(port)) {
                let (port, held) = (*port, Held::new(held, now_ns));
                return Err(Refusal::PortHeld { port, held });
            }
        }
        if self.running(now_ns).count() >= MAX_JOBS {
            let wait_ns = self.running(now_ns).filter_map(|g| g.until_ns).min();
            let wait_ns = wait_ns.map(|until| until - now_ns);
            return Err(Refusal::Jobs { wait_ns });
        }
        self.check_quota(request, now_ns)?;
        let base = self.find_room(request, now_ns)?;
        let number = self.find_number(request.number, now_ns)?;
        let grant = Grant {
            number,
            name: request.name.clone(),
            tenant: request.tenant.clone(),
            base,
            window: request.window,
            rate_bps: request.rate_bps,
            ports: request.ports.clone(),
            until_ns: request.lease_ns.map(|lease| now_ns.saturating_add(lease)),
        };
        self.grants.insert(number, grant.clone());
        Ok(grant)
    }

    /// Sets the end of a job's lease to `lease_ns` after `now_ns`; `None`: the job runs until it is released.
    pub fn renew(
        &mut self,
        name: &str,
        lease_ns: Option<u64>,
        now_ns: u64,
    ) -> Result<Grant, Refusal> {
        check_lease(lease_ns)?;
        let until_ns = lease_ns.map(|lease| now_ns.saturating_add(lease));
        self.change(name, until_ns, now_ns)
    }

    /// Ends a job: its slots and ports become free at once, but its number stays reserved for [`QUARANTINE_NS`].
    pub fn release(&mut self, name: &str, now_ns: u64) -> Result<Grant, Refusal> {
        self.change(name, Some(now_ns), now_ns)
    }

    fn change(&mut self, name: &str, until_ns: Option<u64>, now_ns: u64) -> Result<Grant, Refusal> {
        let mut of_name = self.grants.values_mut().filter(|g| g.name == name);
        if let Some(grant) = of_name.find(|grant| grant.runs(now_ns)) {
            grant.until_ns = until_ns;
            return Ok(grant.clone());
        }
        let name = name.to_owned();
        let ended = self.grants().filter(|grant| grant.name == name);
        match ended.filter_map(|grant| grant.until_ns).max() {
            Some(until) => Err(Refusal::Lapsed {
                name,
                since_ns: now_ns.saturating_sub(until),
            }),
            None => Err(Refusal::Unknown { name }),
        }
    }

    /// Checks the request against its tenant's quotas: the rate of all its jobs, and their number.
    fn check_quota(&self, request: &Request, now_ns: u64) -> Result<(), Refusal> {
        let Some(name) = &request.tenant else {
            return Ok(());
        };
        let Some(tenant) = self.tenants.named(name) else {
            let known = self.tenants.as_slice().iter();
            return Err(Refusal::Tenant {
                tenant: name.clone(),
                known: known.map(|tenant| tenant.name.clone()).collect(),
            });
        };
        let Tenant { rate_bps, jobs, .. } = tenant;
        let others = || {
            self.running(now_ns)
                .filter(|g| g.tenant.as_ref() == Some(name))
        };
        let holders = || others().map(|grant| Held::new(grant, now_ns)).collect();
        if let Some(most) = jobs.filter(|most| others().count() >= *most) {
            return Err(Refusal::TenantJobs {
                tenant: name.clone(),
                most,
                holders: holders(),
            });
        }
        let Some(quota) = rate_bps else {
            return Ok(());
        };
        let granted = others().filter_map(|grant| grant.rate_bps);
        let left_bps = granted.fold(*quota, u64::saturating_sub);
        match request.rate_bps {
            None => Err(Refusal::RateMissing {
                tenant: name.clone(),
                left_bps,
            }),
            Some(asked_bps) if asked_bps > left_bps => Err(Refusal::RateLeft {
                tenant: name.clone(),
                left_bps,
                asked_bps,
                holders: holders(),
            }),
            Some(_) => Ok(()),
        }
    }

    /// Finds free slots for the request's window in its tenant's partition; returns the first of these slots.
    fn find_room(&self, request: &Request, now_ns: u64) -> Result<u32, Refusal> {
        let window = request.window;
        // The tenant was checked before.
        let partition = self.tenants.partition(request.tenant.as_deref());
        let partition = partition.unwrap_or(0..0);
        let taken = self.taken(now_ns);
        if let Some(base) = place(&partition, &taken, window) {
            return Ok(base);
        }
        let meets = |grant: &&Grant| {
            let slots = grant.slots();
            slots.start < partition.end && partition.start < slots.end
        };
        let holders: Vec<&Grant> = self.running(now_ns).filter(meets).collect();
        let mut ends: Vec<u64> = holders.iter().filter_map(|grant| grant.until_ns).collect();
        ends.sort_unstable();
        let fits = |at: &u64| place(&partition, &self.taken(*at), window).is_some();
        Err(Refusal::NoRoom {
            window,
            tenant: request.tenant.clone(),
            largest: largest(&partition, &taken),
            holders: holders.iter().map(|g| Held::new(g, now_ns)).collect(),
            wait_ns: ends.into_iter().find(fits).map(|at| at - now_ns),
            partition,
        })
    }

    fn taken(&self, now_ns: u64) -> Vec<Range<u32>> {
        self.running(now_ns).map(Grant::slots).collect()
    }

    /// Returns the requested job number, or the lowest free one. A number is free if it is not equal, modulo 256, to another
    /// job's.
    fn find_number(&self, asked: Option<u16>, now_ns: u64) -> Result<u16, Refusal> {
        let holder = |number: u16| {
            let same = |grant: &&Grant| grant.number % NUMBERS == number % NUMBERS;
            let mut holding = self.grants().filter(|g| g.state(now_ns) != State::Gone);
            holding.find(same)
        };
        let Some(number) = asked else {
            let mut free = (1..NUMBERS).filter(|number| holder(*number).is_none());
            return free.next().ok_or_else(|| {
                let resting = self.grants().filter_map(|grant| grant.until_ns);
                let first = resting.min().unwrap_or(now_ns);
                let wait_ns = first.saturating_add(QUARANTINE_NS).saturating_sub(now_ns);
                Refusal::NoNumber { wait_ns }
            });
        };
        match holder(number) {
            None => Ok(number),
            Some(held) if held.runs(now_ns) => Err(Refusal::NumberHeld {
                number,
                held: Held::new(held, now_ns),
            }),
            Some(rests) => Err(Refusal::NumberResting {
                number,
                name: rests.name.clone(),
                wait_ns: rests
                    .until_ns
                    .map_or(0, |until| until.saturating_add(QUARANTINE_NS))
                    .saturating_sub(now_ns),
            }),
        }
    }
}

/// Checks that a lease's duration is between the minimum and the maximum; `None` (no end) passes.
pub fn check_lease(lease_ns: Option<u64>) -> Result<(), Refusal> {
    match lease_ns {
        Some(lease_ns) if !(MIN_LEASE_NS..=MAX_LEASE_NS).contains(&lease_ns) => {
            Err(Refusal::Lease { lease_ns })
        }
        _ => Ok(()),
    }
}

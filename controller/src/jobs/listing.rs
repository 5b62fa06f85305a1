//! Lists the jobs of a switch with their leases and frame counts, as text for readers and as JSON.

use std::fmt;

use admission::{Grant, State};
use scenario::plan::names::aggregate;
use scenario::plan::names::guard::{self, Guarded};
use scenario::units::{show_duration, show_rate};
use serde::Serialize;

use super::switch::OUTCOMES;
use super::{JobsError, Switch};
use crate::target::{Item, Query, Target};

/// The jobs of a switch, its tenants' slots, and its counts of refused frames, read at one time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Listing {
    /// Running jobs, and ended jobs whose numbers are still reserved, by number.
    pub jobs: Vec<ListedJob>,
    /// Slots of each tenant; the slots that belong to no tenant come last.
    pub parts: Vec<TenantSlots>,
    /// Ports at which frames arrived for a job that has no rank behind the port.
    pub strangers: Vec<Stranger>,
    /// Number of frames that arrived at a port of their job, but named a rank that is behind another port.
    pub foreign: u64,
    /// Number of frames from ports of their job whose slot, slot version or number of values contradicts their chunk number.
    pub malformed: u64,
}

/// A job in the listing of a switch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ListedJob {
    /// The grant of the job: its number, name, slots, ports, rate and lease.
    #[serde(flatten)]
    pub grant: Grant,
    /// Whether the job runs, or has ended and its number is still reserved.
    pub state: State,
    /// Remaining time of the lease in nanoseconds, if the job runs and has a lease.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub left_ns: Option<u64>,
    /// Counts of the job's frames by what the switch did with them.
    pub frames: Counts,
}

/// Counts of a job's frames since the job was admitted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// Number of frames that passed all checks, to be summed.
    pub passed: u64,
    /// Number of frames that arrived at a port of no rank of the job.
    pub strangers: u64,
    /// Number of frames that arrived after the end of the lease.
    pub lapsed: u64,
    /// Number of frames that exceeded the job's maximum rate.
    pub over_rate: u64,
}

/// The slots of one tenant, or the slots that belong to no tenant.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TenantSlots {
    /// Name of the tenant; `None` for the slots that belong to no tenant.
    pub tenant: Option<String>,
    /// Number of the tenant's first slot.
    pub from: u32,
    /// Number of the tenant's slots, from `from` on.
    pub slots: u32,
    /// Number of the tenant's slots that running jobs hold.
    pub held: u32,
    /// Maximum rate of all jobs of the tenant together, in bits per second; `None` if it is unlimited.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate_bps: Option<u64>,
    /// Maximum number of jobs that the tenant may run at once; `None` if it is unlimited.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub jobs: Option<usize>,
}

/// A port at which frames arrived for a job that has no rank behind the port.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Stranger {
    /// Number of the switch's port.
    pub port: u64,
    /// Number of frames that arrived at the port for jobs without a rank behind it, since the program was loaded.
    pub frames: u64,
}

impl Switch {
    /// Reads the jobs, tenants and counts of the switch; changes nothing.
    pub fn list(&mut self) -> Result<Listing, JobsError> {
        let seen = self.look()?;
        let outcomes = self.counter(guard::OUTCOMES)?;
        let strangers = self.counter(guard::STRANGERS)?;
        let aggregated = self.counter(aggregate::OUTCOMES)?;
        let cell = |cells: &[u64], index: u64| {
            let index = usize::try_from(index).ok();
            index
                .and_then(|index| cells.get(index))
                .copied()
                .unwrap_or(0)
        };
        let now_ns = seen.now_ns;
        let jobs = seen.book.grants().map(|grant| {
            let [passed, strangers, lapsed, over_rate] = OUTCOMES.map(|outcome: Guarded| {
                cell(&outcomes, guard::outcome_cell(grant.number, outcome))
            });
            let left_ns = grant.until_ns.and_then(|until| until.checked_sub(now_ns));
            ListedJob {
                grant: grant.clone(),
                state: grant.state(now_ns),
                left_ns: left_ns.filter(|left| *left > 0),
                frames: Counts {
                    passed,
                    strangers,
                    lapsed,
                    over_rate,
                },
            }
        });
        let tenants = seen.book.tenants().as_slice().iter();
        let part = |name: Option<&str>| {
            let slots = seen.book.tenants().partition(name).unwrap_or(0..0);
            let tenant = name.and_then(|name| seen.book.tenants().named(name));
            let inside = seen
                .book
                .running(now_ns)
                .filter(|grant| slots.contains(&grant.base));
            TenantSlots {
                tenant: name.map(str::to_owned),
                from: slots.start,
                slots: slots.end - slots.start,
                held: inside.map(|grant| grant.window).sum(),
                rate_bps: tenant.and_then(|tenant| tenant.rate_bps),
                jobs: tenant.and_then(|tenant| tenant.jobs),
            }
        };
        let mut parts: Vec<TenantSlots> = tenants.map(|tenant| part(Some(&tenant.name))).collect();
        parts.push(part(None));
        Ok(Listing {
            jobs: jobs.collect(),
            parts,
            strangers: (0..)
                .zip(&strangers)
                .filter(|(_, frames)| **frames > 0)
                .map(|(port, frames)| Stranger {
                    port,
                    frames: *frames,
                })
                .collect(),
            foreign: cell(&aggregated, aggregate::OUTCOME_FOREIGN as u64),
            malformed: cell(&aggregated, aggregate::OUTCOME_MALFORMED as u64),
        })
    }

    fn counter(&mut self, name: &str) -> Result<Vec<u64>, JobsError> {
        let cells = self.target.read(&[Query::Counter {
            name: name.to_owned(),
            index: None,
        }])?;
        Ok(cells.iter().map(Item::packets).collect())
    }
}

impl fmt::Display for Listing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for part in &self.parts {
            match &part.tenant {
                Some(tenant) => write!(f, "tenant {tenant}: ")?,
                None => write!(f, "no tenant: ")?,
            }
            write!(f, "{} of {} slots held", part.held, part.slots)?;
            if let Some(rate) = part.rate_bps {
                write!(f, ", {}", show_rate(rate))?;
            }
            if let Some(jobs) = part.jobs {
                write!(f, ", at most {jobs} jobs")?;
            }
            writeln!(f)?;
        }
        for job in &self.jobs {
            writeln!(f, "{job}")?;
        }
        for Stranger { port, frames } in &self.strangers {
            writeln!(
                f,
                "port {port} sent {frames} frames for jobs of other ports: dropped"
            )?;
        }
        if self.foreign > 0 {
            let foreign = self.foreign;
            writeln!(
                f,
                "{foreign} frames named a rank behind another port: dropped"
            )?;
        }
        if self.malformed > 0 {
            let malformed = self.malformed;
            writeln!(
                f,
                "{malformed} frames named a slot that does not belong to their chunk: dropped"
            )?;
        }
        Ok(())
    }
}

impl fmt::Display for ListedJob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            grant,
            state,
            left_ns,
            frames,
        } = self;
        write!(f, "job {}, number {}", grant.name, grant.number)?;
        if let Some(tenant) = &grant.tenant {
            write!(f, ", of {tenant}")?;
        }
        match (state, left_ns) {
            (State::Running, left) => {
                let ports: Vec<String> = grant.ports.iter().map(u32::to_string).collect();
                let slots = grant.slots();
                let last = slots.end.saturating_sub(1);
                write!(
                    f,
                    ": slots {} to {last}, ports {}",
                    slots.start,
                    ports.join(" ")
                )?;
                if let Some(rate) = grant.rate_bps {
                    write!(f, ", {}", show_rate(rate))?;
                }
                match left {
                    // Users do not need nanoseconds.
                    Some(left) => {
                        let left = left.div_ceil(1_000_000).saturating_mul(1_000_000);
                        write!(f, ", for {} more", show_duration(left))?;
                    }
                    None => write!(f, ", until it is released")?,
                }
            }
            _ => write!(f, ": has ended, its number is still reserved")?,
        }
        write!(f, "; {} frames passed", frames.passed)?;
        for (count, what) in [
            (frames.strangers, "arrived from other ports"),
            (frames.lapsed, "arrived after its lease"),
            (frames.over_rate, "exceeded its rate"),
        ] {
            if count > 0 {
                write!(f, ", {count} {what}")?;
            }
        }
        Ok(())
    }
}

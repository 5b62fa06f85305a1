//! The listing of a switch's jobs, for readers and as JSON.

use std::fmt;

use admission::{Grant, State};
use scenario::plan::names::aggregate;
use scenario::plan::names::guard::{self, Guarded};
use scenario::units::{show_duration, show_rate};
use serde::Serialize;

use super::switch::OUTCOMES;
use super::{JobsError, Switch};
use crate::target::{Item, Query, Target};

/// The jobs of a switch at one time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Listing {
    /// Running jobs, and jobs whose numbers are not free yet, by number.
    pub jobs: Vec<ListedJob>,
    /// The tenants' slots; slots without a tenant come last, without a name.
    pub parts: Vec<TenantSlots>,
    /// Ports by which frames arrived for a job of other ports.
    pub strangers: Vec<Stranger>,
    /// Number of frames that arrived by a job's own ports but that no slot took: the job has no such rank at the port.
    pub foreign: u64,
    /// Number of frames from a job's own ports whose slot, version or count does not match their chunk.
    pub malformed: u64,
}

/// A job in the listing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ListedJob {
    /// The grant of the job, without its time.
    #[serde(flatten)]
    pub grant: Grant,
    /// State of the grant.
    pub state: State,
    /// Remaining time of the lease in nanoseconds, if the job runs and has a lease.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub left_ns: Option<u64>,
    /// Counts of the job's frames.
    pub frames: Counts,
}

/// Counts of frames for a job.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// Number of frames that passed, to be summed.
    pub passed: u64,
    /// Number of frames that arrived by ports of other jobs.
    pub strangers: u64,
    /// Number of frames that arrived after the lease.
    pub lapsed: u64,
    /// Number of frames that exceeded the rate.
    pub over_rate: u64,
}

/// Slots of one tenant, or of none.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TenantSlots {
    /// Name of the tenant.
    pub tenant: Option<String>,
    /// The first slot.
    pub from: u32,
    /// Number of slots.
    pub slots: u32,
    /// Number of these slots that jobs hold.
    pub held: u32,
    /// Maximum rate of all the tenant's jobs together, in bits per second.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate_bps: Option<u64>,
    /// Maximum number of the tenant's jobs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub jobs: Option<usize>,
}

/// A port by which frames arrived for a job of other ports.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Stranger {
    /// Number of the port.
    pub port: u64,
    /// Number of frames.
    pub frames: u64,
}

impl Switch {
    /// Lists the jobs of the switch; changes nothing.
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

//! Reasons why a job is not admitted, renewed or released, with the holders of the resources and the ends of their leases.

use std::fmt;
use std::ops::Range;

use scenario::model::job::{MAX_CHILDREN, MAX_JOBS, SLOTS};
use scenario::units::{show_duration, show_rate};

use crate::{Grant, MAX_LEASE_NS, MAX_NAME, MIN_LEASE_NS, NUMBERS};

/// Why a request is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The name is not valid.
    #[error("a job's name {fault}: `{name}`")]
    Name {
        /// The requested name.
        name: String,
        /// The defect in the name.
        fault: &'static str,
    },
    /// Another running job has the name.
    #[error("job {held} runs already: release it, or take another name")]
    NameHeld {
        /// The job that has the name.
        held: Held,
    },
    /// Another job has the number, or one with the same addresses.
    #[error(
        "number {number} is not free: job {held} has {}", same_or_equal(*number, held.number)
    )]
    NumberHeld {
        /// The requested number.
        number: u16,
        /// The job that has the number.
        held: Held,
    },
    /// Frames of the number's former job may still be in flight.
    #[error(
        "number {number} was that of job `{name}`, which has ended; its frames may be in flight for {} more",
        show_duration(*wait_ns)
    )]
    NumberResting {
        /// The requested number.
        number: u16,
        /// Name of the former job.
        name: String,
        /// Time until the number is free, in nanoseconds.
        wait_ns: u64,
    },
    /// The number is not valid for a job.
    #[error("{number} is not a job's number: use 1 to 65535, except multiples of {NUMBERS}")]
    Number {
        /// The requested number.
        number: u16,
    },
    /// All numbers are held or reserved.
    #[error("all numbers are held or reserved; the next is free in {}", show_duration(*wait_ns))]
    NoNumber {
        /// Time until a number is free, in nanoseconds.
        wait_ns: u64,
    },
    /// The window is not valid.
    #[error("a window is a power of two from 1 to {SLOTS}; found {window}: {} is the nearest", nearest(*window))]
    Window {
        /// The requested window.
        window: u32,
    },
    /// The switch cannot sum this number of ranks.
    #[error("a switch sums 1 to {MAX_CHILDREN} ranks; found {ranks}")]
    Ranks {
        /// The requested number of ranks.
        ranks: usize,
    },
    /// Two ranks have the same port.
    #[error("port {port} is given for two ranks: each rank needs a port of its own")]
    PortTwice {
        /// The port.
        port: u32,
    },
    /// Another job has the port.
    #[error(
        "port {port} belongs to job {held}: two jobs behind one port could forge each other's frames"
    )]
    PortHeld {
        /// The port.
        port: u32,
        /// The job that has the port.
        held: Held,
    },
    /// The duration of the lease is not valid.
    #[error(
        "a lease lasts {} to {}; found {}",
        show_duration(MIN_LEASE_NS), show_duration(MAX_LEASE_NS), show_duration(*lease_ns)
    )]
    Lease {
        /// The requested duration in nanoseconds.
        lease_ns: u64,
    },
    /// The rate is too low.
    #[error("a rate is at least 1 kbit/s: a job with less than that could not send a frame")]
    Rate,
    /// The tenant does not exist.
    #[error("there is no tenant `{tenant}`; there {}", those(known))]
    Tenant {
        /// The requested tenant.
        tenant: String,
        /// The existing tenants.
        known: Vec<String>,
    },
    /// The tenant has a rate quota, so each of its jobs must request a rate.
    #[error("tenant `{tenant}` has a rate, so each of its jobs needs one; {} are left", show_rate(*left_bps))]
    RateMissing {
        /// Name of the tenant.
        tenant: String,
        /// Remaining rate of the tenant, in bits per second.
        left_bps: u64,
    },
    /// The requested rate exceeds the tenant's quota.
    #[error(
        "tenant `{tenant}` has {} left; {} were requested. Held by {}",
        show_rate(*left_bps), show_rate(*asked_bps), list(holders)
    )]
    RateLeft {
        /// Name of the tenant.
        tenant: String,
        /// Remaining rate of the tenant, in bits per second.
        left_bps: u64,
        /// Requested rate in bits per second.
        asked_bps: u64,
        /// The tenant's jobs that have the rest.
        holders: Vec<Held>,
    },
    /// The tenant has its maximum number of jobs.
    #[error(
        "tenant `{tenant}` may have {most} jobs at once, and has {}",
        list(holders)
    )]
    TenantJobs {
        /// Name of the tenant.
        tenant: String,
        /// Maximum number of the tenant's jobs.
        most: usize,
        /// The tenant's jobs.
        holders: Vec<Held>,
    },
    /// The switch has its maximum number of jobs.
    #[error("the switch sums for {MAX_JOBS} jobs already{}", when(*wait_ns))]
    Jobs {
        /// Time until a job ends, in nanoseconds, if none is renewed.
        wait_ns: Option<u64>,
    },
    /// The partition has too few contiguous free slots.
    #[error("{}", no_room(self))]
    NoRoom {
        /// The requested window.
        window: u32,
        /// Tenant of the partition; `None` for the slots without a tenant.
        tenant: Option<String>,
        /// The slots of the partition.
        partition: Range<u32>,
        /// The largest window that fits; 0 if none does.
        largest: u32,
        /// The jobs that hold slots of the partition.
        holders: Vec<Held>,
        /// Time until the window fits, in nanoseconds, if no lease is renewed; `None` if a job there has no lease.
        wait_ns: Option<u64>,
    },
    /// No job of this name runs.
    #[error("no job `{name}` runs here")]
    Unknown {
        /// The requested name.
        name: String,
    },
    /// The job has ended.
    #[error(
        "the lease of job `{name}` ran out {} ago, and its slots may belong to another job: admit it again",
        show_duration(*since_ns)
    )]
    Lapsed {
        /// Name of the job.
        name: String,
        /// Time since the end of the lease, in nanoseconds.
        since_ns: u64,
    },
}

/// A job that holds a requested resource.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Held {
    /// Name of the job.
    pub name: String,
    /// Number of the job.
    pub number: u16,
    /// Slots of the job.
    pub slots: Range<u32>,
    /// Rate of the job in bits per second.
    pub rate_bps: Option<u64>,
    /// Remaining time of the lease in nanoseconds; `None` if the job runs until it is released.
    pub left_ns: Option<u64>,
}

impl Held {
    pub(crate) fn new(grant: &Grant, now_ns: u64) -> Self {
        Self {
            name: grant.name.clone(),
            number: grant.number,
            slots: grant.slots(),
            rate_bps: grant.rate_bps,
            left_ns: grant.until_ns.map(|until| until.saturating_sub(now_ns)),
        }
    }
}

impl fmt::Display for Held {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            name,
            number,
            slots,
            rate_bps,
            left_ns,
        } = self;
        let last = slots.end.saturating_sub(1);
        write!(
            f,
            "`{name}` (number {number}, slots {} to {last}",
            slots.start
        )?;
        if let Some(rate) = rate_bps {
            write!(f, ", {}", show_rate(*rate))?;
        }
        match left_ns {
            Some(left) => write!(f, ", for {} more)", show_duration(whole_ms(*left))),
            None => write!(f, ", until it is released)"),
        }
    }
}

/// The defect in a name, if any; names become part of lines, tables and shell commands.
pub(crate) fn name_fault(name: &str) -> Option<&'static str> {
    let is_legal = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    if name.is_empty() {
        return Some("is not empty");
    }
    if name.len() > MAX_NAME {
        return Some("has at most 64 characters");
    }
    let begins = name.starts_with(|c: char| c.is_ascii_alphanumeric());
    (!begins || !name.chars().all(is_legal)).then_some(
        "is made of letters, digits, `-`, `_` and `.`, and begins with a letter or digit",
    )
}

/// The valid window that is nearest to `window`: the larger of two equally near ones.
fn nearest(window: u32) -> u32 {
    let above = window.clamp(1, SLOTS).next_power_of_two();
    let below = above / 2;
    match window.saturating_sub(below) < above.saturating_sub(window) {
        true => below.max(1),
        false => above,
    }
}

/// Rounds up to whole milliseconds: users do not need nanoseconds.
fn whole_ms(ns: u64) -> u64 {
    ns.div_ceil(1_000_000).saturating_mul(1_000_000)
}

fn list(holders: &[Held]) -> String {
    let holders: Vec<String> = holders.iter().map(Held::to_string).collect();
    match holders.is_empty() {
        true => "no job".to_owned(),
        false => holders.join(", "),
    }
}

fn those(known: &[String]) -> String {
    match known {
        [] => "is none".to_owned(),
        known => format!("are {}", known.join(", ")),
    }
}

fn when(wait_ns: Option<u64>) -> String {
    match wait_ns {
        Some(wait) => format!(
            "; free in {}, if no lease is renewed",
            show_duration(whole_ms(wait))
        ),
        None => String::new(),
    }
}

fn same_or_equal(number: u16, held: u16) -> String {
    match number == held {
        true => "it".to_owned(),
        false => format!("{held}, which is the same modulo {NUMBERS} and shares its addresses"),
    }
}

fn no_room(refusal: &Refusal) -> String {
    let Refusal::NoRoom {
        window,
        tenant,
        partition,
        largest,
        holders,
        wait_ns,
    } = refusal
    else {
        return String::new();
    };
    let whose = match tenant {
        Some(tenant) => format!("the slots of tenant `{tenant}`"),
        None => "the slots without a tenant".to_owned(),
    };
    let which = match partition.is_empty() {
        true => "there are none".to_owned(),
        false => format!("{} to {}", partition.start, partition.end - 1),
    };
    let fits = match largest {
        0 => "none is free".to_owned(),
        largest => format!("a window of {largest} fits"),
    };
    format!(
        "no window of {window} slots fits in {whose} ({which}): {fits}{}. Held by {}",
        when(*wait_ns),
        list(holders)
    )
}

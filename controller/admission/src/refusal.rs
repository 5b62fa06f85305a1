//! Reasons why a job is not admitted, renewed or released, with the holders of the resources and the ends of their leases.

use std::fmt;
use std::ops::Range;

use scenario::model::job::{MAX_CHILDREN, MAX_JOBS, SLOTS};
use scenario::units::{show_duration, show_rate};

use crate::{Grant, MAX_LEASE_NS, MAX_NAME, MIN_LEASE_NS, NUMBERS};

/// Why a switch's admission refuses to admit, renew or release a job.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The requested job name is not valid.
    #[error("a job's name {fault}: `{name}`")]
    Name {
        /// The requested job name.
        name: String,
        /// Rule that the name breaks, such as "has at most 64 characters".
        fault: &'static str,
    },
    /// Another running job has the requested name.
    #[error("job {held} runs already: release it, or take another name")]
    NameHeld {
        /// The running job that has the name.
        held: Held,
    },
    /// Another running job has the requested number, or a number that is equal modulo 256.
    #[error(
        "number {number} is not free: job {held} has {}", same_or_equal(*number, held.number)
    )]
    NumberHeld {
        /// The requested job number.
        number: u16,
        /// The running job whose number is equal, or equal modulo 256.
        held: Held,
    },
    /// The requested number belonged to a job that has ended, and frames of that job may still be in flight.
    #[error(
        "number {number} was that of job `{name}`, which has ended; its frames may be in flight for {} more",
        show_duration(*wait_ns)
    )]
    NumberResting {
        /// The requested job number.
        number: u16,
        /// Name of the ended job.
        name: String,
        /// Time until the number is free, in nanoseconds.
        wait_ns: u64,
    },
    /// The requested job number is a multiple of 256, which no job may have.
    #[error("{number} is not a job's number: use 1 to 65535, except multiples of {NUMBERS}")]
    Number {
        /// The requested job number.
        number: u16,
    },
    /// All job numbers are held by running jobs, or reserved for frames of ended jobs.
    #[error("all numbers are held or reserved; the next is free in {}", show_duration(*wait_ns))]
    NoNumber {
        /// Time until a number is free, in nanoseconds.
        wait_ns: u64,
    },
    /// The requested number of aggregation slots is not valid.
    #[error("a window is a power of two from 1 to {SLOTS}; found {window}: {} is the nearest", nearest(*window))]
    Window {
        /// The requested number of aggregation slots.
        window: u32,
    },
    /// The switch cannot sum the gradients of this number of ranks.
    #[error("a switch sums 1 to {MAX_CHILDREN} ranks; found {ranks}")]
    Ranks {
        /// The requested number of ranks.
        ranks: usize,
    },
    /// The request names the same switch port for two ranks.
    #[error("port {port} is given for two ranks: each rank needs a port of its own")]
    PortTwice {
        /// The switch port that is named twice.
        port: u32,
    },
    /// Another job has a rank behind a requested switch port.
    #[error(
        "port {port} belongs to job {held}: two jobs behind one port could forge each other's frames"
    )]
    PortHeld {
        /// The requested switch port.
        port: u32,
        /// The running job that has a rank behind the port.
        held: Held,
    },
    /// The requested duration of the lease is below the minimum or above the maximum.
    #[error(
        "a lease lasts {} to {}; found {}",
        show_duration(MIN_LEASE_NS), show_duration(MAX_LEASE_NS), show_duration(*lease_ns)
    )]
    Lease {
        /// The requested duration of the lease in nanoseconds.
        lease_ns: u64,
    },
    /// The requested rate is below 1,000 bits per second.
    #[error("a rate is at least 1 kbit/s: a job with less than that could not send a frame")]
    Rate,
    /// No tenant has the requested name.
    #[error("there is no tenant `{tenant}`; there {}", those(known))]
    Tenant {
        /// The requested tenant's name.
        tenant: String,
        /// Names of the tenants of the switch.
        known: Vec<String>,
    },
    /// The tenant has a rate quota, so each of its jobs must request a rate.
    #[error("tenant `{tenant}` has a rate, so each of its jobs needs one; {} are left", show_rate(*left_bps))]
    RateMissing {
        /// Name of the tenant.
        tenant: String,
        /// Part of the tenant's rate quota that none of its jobs holds, in bits per second.
        left_bps: u64,
    },
    /// The requested rate exceeds the rest of the tenant's quota.
    #[error(
        "tenant `{tenant}` has {} left; {} were requested. Held by {}",
        show_rate(*left_bps), show_rate(*asked_bps), list(holders)
    )]
    RateLeft {
        /// Name of the tenant.
        tenant: String,
        /// Part of the tenant's rate quota that none of its jobs holds, in bits per second.
        left_bps: u64,
        /// Requested rate in bits per second.
        asked_bps: u64,
        /// Jobs that hold the other part of the quota.
        holders: Vec<Held>,
    },
    /// The tenant already has its maximum number of running jobs.
    #[error(
        "tenant `{tenant}` may have {most} jobs at once, and has {}",
        list(holders)
    )]
    TenantJobs {
        /// Name of the tenant.
        tenant: String,
        /// Maximum number of jobs that the tenant may run at once.
        most: usize,
        /// The tenant's running jobs.
        holders: Vec<Held>,
    },
    /// The switch already has its maximum number of running jobs.
    #[error("the switch sums for {MAX_JOBS} jobs already{}", when(*wait_ns))]
    Jobs {
        /// Time until the first lease ends, in nanoseconds, if none is renewed; `None` if no job has a lease.
        wait_ns: Option<u64>,
    },
    /// The tenant's partition has too few contiguous free aggregation slots.
    #[error("{}", no_room(self))]
    NoRoom {
        /// The requested number of aggregation slots.
        window: u32,
        /// Tenant to which the partition belongs; `None` for the slots without a tenant.
        tenant: Option<String>,
        /// Indices of the slots of the partition.
        partition: Range<u32>,
        /// Size of the largest window that still fits in the partition; 0 if no slot is free.
        largest: u32,
        /// The jobs that hold slots of the partition.
        holders: Vec<Held>,
        /// Time until the window fits, in nanoseconds, if no lease is renewed; `None` if jobs without a lease prevent it.
        wait_ns: Option<u64>,
    },
    /// No running job has the requested name.
    #[error("no job `{name}` runs here")]
    Unknown {
        /// The requested job name.
        name: String,
    },
    /// The job of the requested name has ended.
    #[error(
        "the lease of job `{name}` ran out {} ago, and its slots may belong to another job: admit it again",
        show_duration(*since_ns)
    )]
    Lapsed {
        /// Name of the job that has ended.
        name: String,
        /// Time since the job's lease ended, in nanoseconds.
        since_ns: u64,
    },
}

/// A running job that holds a requested resource, for the text of a refusal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Held {
    /// Name of the job that holds the resource.
    pub name: String,
    /// Number of the job in its packets' headers.
    pub number: u16,
    /// Indices of the aggregation slots that the job holds.
    pub slots: Range<u32>,
    /// Maximum rate of the job in bits per second; `None` for no limit.
    pub rate_bps: Option<u64>,
    /// Remaining time of the job's lease in nanoseconds; `None` if the job runs until it is released.
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

/// Rule that a job's or tenant's name breaks; `None` for a valid name. Names become part of tables and shell commands.
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

/// Valid window (a power of two) that is nearest to `window`; of two equally near windows, the larger.
fn nearest(window: u32) -> u32 {
    let above = window.clamp(1, SLOTS).next_power_of_two();
    let below = above / 2;
    match window.saturating_sub(below) < above.saturating_sub(window) {
        true => below.max(1),
        false => above,
    }
}

/// Rounds a duration in nanoseconds up to whole milliseconds, for messages.
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

//! Why a job is not admitted, renewed or released: with who holds what, and until when.

use std::fmt;
use std::ops::Range;

use scenario::job::{MAX_CHILDREN, MAX_JOBS, SLOTS};
use scenario::units::{show_duration, show_rate};

use crate::{Grant, MAX_LEASE_NS, MAX_NAME, MIN_LEASE_NS, NUMBERS};

/// Why not.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// A name that is none.
    #[error("a job's name {fault}: `{name}`")]
    Name {
        /// As given.
        name: String,
        /// What is wrong.
        fault: &'static str,
    },
    /// The name is held.
    #[error("job {held} runs already: release it, or take another name")]
    NameHeld {
        /// Who it is.
        held: Held,
    },
    /// The number, or one that shares its addresses, is held.
    #[error(
        "number {number} is not free: job {held} has {}", same_or_equal(*number, held.number)
    )]
    NumberHeld {
        /// What was asked for.
        number: u16,
        /// Who has it.
        held: Held,
    },
    /// Frames of the job that had it can be under way.
    #[error(
        "number {number} was that of job `{name}`, which has ended; frames of it may be under way for {} more",
        show_duration(*wait_ns)
    )]
    NumberResting {
        /// What was asked for.
        number: u16,
        /// Whose it was.
        name: String,
        /// For how long yet.
        wait_ns: u64,
    },
    /// A number that no job has.
    #[error("{number} is no job's number: they are 1 to 65535, but no multiple of {NUMBERS}")]
    Number {
        /// As given.
        number: u16,
    },
    /// All numbers are held or rest.
    #[error("all numbers are held, or rest; the next is free in {}", show_duration(*wait_ns))]
    NoNumber {
        /// In how long one is free.
        wait_ns: u64,
    },
    /// A window that is none.
    #[error("a window is a power of two from 1 to {SLOTS}; found {window}: {} is the nearest", nearest(*window))]
    Window {
        /// As given.
        window: u32,
    },
    /// A number of ranks that a switch does not sum.
    #[error("a switch sums 1 to {MAX_CHILDREN} ranks; found {ranks}")]
    Ranks {
        /// As given.
        ranks: usize,
    },
    /// A port of two ranks.
    #[error("port {port} is given for two ranks: each is behind a port of its own")]
    PortTwice {
        /// Which.
        port: u32,
    },
    /// A port of two jobs.
    #[error(
        "port {port} is of job {held}: a port speaks for one job, or each could forge the other's frames"
    )]
    PortHeld {
        /// Which.
        port: u32,
        /// Whose it is.
        held: Held,
    },
    /// A lease that is none.
    #[error(
        "a lease lasts {} to {}; found {}",
        show_duration(MIN_LEASE_NS), show_duration(MAX_LEASE_NS), show_duration(*lease_ns)
    )]
    Lease {
        /// As given.
        lease_ns: u64,
    },
    /// A rate of nothing.
    #[error("a rate is at least 1 kbit/s: a job with less than that could not send a frame")]
    Rate,
    /// Nobody of that name.
    #[error("there is no tenant `{tenant}`; there {}", those(known))]
    Tenant {
        /// As given.
        tenant: String,
        /// Who there is.
        known: Vec<String>,
    },
    /// The tenant has a quota, so its jobs say what they take of it.
    #[error("tenant `{tenant}` has a rate, so each of its jobs has one; {} are left", show_rate(*left_bps))]
    RateMissing {
        /// Whose.
        tenant: String,
        /// What is left.
        left_bps: u64,
    },
    /// Beyond the tenant's quota.
    #[error(
        "tenant `{tenant}` has {} left; {} were asked for. Held by {}",
        show_rate(*left_bps), show_rate(*asked_bps), list(holders)
    )]
    RateLeft {
        /// Whose.
        tenant: String,
        /// What is left.
        left_bps: u64,
        /// What was asked for.
        asked_bps: u64,
        /// Who has the rest.
        holders: Vec<Held>,
    },
    /// The tenant has as many jobs as it may have.
    #[error(
        "tenant `{tenant}` may have {most} jobs at once, and has {}",
        list(holders)
    )]
    TenantJobs {
        /// Whose.
        tenant: String,
        /// How many.
        most: usize,
        /// Which they are.
        holders: Vec<Held>,
    },
    /// The switch has as many jobs as its table holds.
    #[error("the switch sums for {MAX_JOBS} jobs already{}", when(*wait_ns))]
    Jobs {
        /// In how long one ends, if none is renewed.
        wait_ns: Option<u64>,
    },
    /// No slots in a row.
    #[error("{}", no_room(self))]
    NoRoom {
        /// What was asked for.
        window: u32,
        /// Whose slots they would be.
        tenant: Option<String>,
        /// Which those are.
        partition: Range<u32>,
        /// The largest window that has room; 0 if none has.
        largest: u32,
        /// Who has the others.
        holders: Vec<Held>,
        /// In how long there is room, if nobody renews a lease; `None` if somebody there has none.
        wait_ns: Option<u64>,
    },
    /// Nobody of that name runs.
    #[error("no job `{name}` runs here")]
    Unknown {
        /// As given.
        name: String,
    },
    /// It has ended.
    #[error(
        "the lease of job `{name}` ran out {} ago, and its slots may be another's: admit it anew",
        show_duration(*since_ns)
    )]
    Lapsed {
        /// Whose.
        name: String,
        /// How long ago.
        since_ns: u64,
    },
}

/// A job that has what another one asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Held {
    /// Its name.
    pub name: String,
    /// Its number.
    pub number: u16,
    /// Its slots.
    pub slots: Range<u32>,
    /// Its rate.
    pub rate_bps: Option<u64>,
    /// For how long yet; without a lease until it is released.
    pub left_ns: Option<u64>,
}

impl Held {
    pub(crate) fn of(grant: &Grant, now_ns: u64) -> Self {
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

/// What is wrong with a name; it is part of lines, tables and shell commands.
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

/// A window that is one: of two that are as near, the larger.
fn nearest(window: u32) -> u32 {
    let above = window.clamp(1, SLOTS).next_power_of_two();
    let below = above / 2;
    match window.saturating_sub(below) < above.saturating_sub(window) {
        true => below.max(1),
        false => above,
    }
}

/// Nobody waits for nanoseconds.
fn whole_ms(ns: u64) -> u64 {
    ns.div_ceil(1_000_000).saturating_mul(1_000_000)
}

fn list(holders: &[Held]) -> String {
    let holders: Vec<String> = holders.iter().map(Held::to_string).collect();
    match holders.is_empty() {
        true => "nobody".to_owned(),
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
            "; room in {}, if nobody renews",
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
        Some(tenant) => format!("tenant `{tenant}`'s"),
        None => "those of no tenant".to_owned(),
    };
    let which = match partition.is_empty() {
        true => "there are none".to_owned(),
        false => format!("{} to {}", partition.start, partition.end - 1),
    };
    let fits = match largest {
        0 => "none is free".to_owned(),
        largest => format!("a window of {largest} has room"),
    };
    format!(
        "no window of {window} slots has room among {whose} ({which}): {fits}{}. Held by {}",
        when(*wait_ns),
        list(holders)
    )
}

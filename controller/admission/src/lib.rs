//! Decides which training jobs a running switch admits: who holds its aggregation slots, until when, and at what rate.
//!
//! [`Book`] contains the grants of one switch. It is rebuilt from the switch's own tables, so two controllers, or a restarted
//! one, make the same decisions. Time is the switch's clock, in nanoseconds, and always an argument.
//!
//! - `grant.rs`: the resources of a job, and the environment of its ranks.
//! - `tenant.rs`: partitions of the slots, with quotas.
//! - `slots.rs`: finds free slots for a window.
//! - `book.rs`: admits, renews, releases.
//! - `refusal.rs`: reasons of refusals, with the holders of the resources.

mod book;
mod grant;
mod refusal;
mod slots;
mod tenant;

pub use book::{Book, Request, check_lease};
pub use grant::{Grant, State};
pub use refusal::Refusal;
pub use tenant::{BadTenants, Tenant, Tenants};

/// How long a job number stays reserved after its job has ended, in nanoseconds: frames of the job may be in flight for that
/// long. A rank gives up after some 20 s (docs/protocol.md, "Time"), and no network keeps a frame for long.
pub const QUARANTINE_NS: u64 = 30_000_000_000;
/// Minimum duration of a job's lease, in nanoseconds: 1 s.
pub const MIN_LEASE_NS: u64 = 1_000_000_000;
/// Maximum duration of a job's lease, in nanoseconds: 30 days.
pub const MAX_LEASE_NS: u64 = 30 * 24 * 3600 * 1_000_000_000;
/// Maximum length of a job's or tenant's name, in bytes.
pub const MAX_NAME: usize = 64;
/// Number of different multicast addresses: jobs whose numbers are equal modulo 256 share one (docs/protocol.md, "Frame").
pub const NUMBERS: u16 = 256;

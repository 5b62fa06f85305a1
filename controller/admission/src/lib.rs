//! Which jobs a running switch sums for: who holds which slots, until when, and how much each may send.
//!
//! [`Book`] is what one switch has granted. It is rebuilt from the switch's own tables, so two controllers, or one that was
//! started again, decide the same. Time is the switch's clock, in nanoseconds, and always an argument.
//!
//! - `grant.rs`: what a job holds, and what its ranks are told.
//! - `tenant.rs`: partitions of the slots, with quotas.
//! - `slots.rs`: where a window has room.
//! - `book.rs`: admit, renew, release.
//! - `refusal.rs`: why not, with who holds what until when.

mod book;
mod grant;
mod refusal;
mod slots;
mod tenant;

pub use book::{Book, Request, check_lease};
pub use grant::{Grant, State};
pub use refusal::Refusal;
pub use tenant::{BadTenants, Tenant, Tenants};

/// How long a number is not given again after its job has ended, in nanoseconds: frames of it can be under way so long. A rank
/// gives up after some 20 s (docs/protocol.md, "Time"), and no network keeps a frame for long.
pub const QUARANTINE_NS: u64 = 30_000_000_000;
/// The shortest lease, in nanoseconds.
pub const MIN_LEASE_NS: u64 = 1_000_000_000;
/// The longest, in nanoseconds: 30 days.
pub const MAX_LEASE_NS: u64 = 30 * 24 * 3600 * 1_000_000_000;
/// The longest name of a job or tenant, in bytes.
pub const MAX_NAME: usize = 64;
/// Jobs whose numbers are equal modulo this share addresses (docs/protocol.md, "Frame").
pub const NUMBERS: u16 = 256;

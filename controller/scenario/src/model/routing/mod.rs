//! Multipath routing: which of several paths a packet takes, as in p4src/common/forward.p4.
//!
//! [`hash`] is the hash that switches compute of a packet's flow; [`Ways`] holds all paths between two hosts, the path that a
//! flow takes, and the table entries of each switch. [`planner::routing`] finds the paths. docs/decisions/0022 gives the
//! reasons.

mod entries;
pub mod hash;
mod ways;

pub use entries::{PathTables, ToHost};
pub use ways::{Way, Ways, WaysError};

//! Multipath routing: which of several paths a packet takes, as in p4src/common/forward.p4.
//!
//! [`hash`] is the hash that switches compute of a packet's flow; [`Ways`] holds all paths between two hosts, the path
//! that a flow takes, and the entries of each switch. [`planner::routing`] finds the paths. docs/decisions/0022 gives the
//! reasons.

mod entries;
pub mod hash;
mod ways;

use serde::Serialize;

pub use entries::{ToHost, Told};
pub use ways::{Way, Ways, WaysError};

/// Which paths are used between two hosts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Routing {
    /// One shortest path; of several, the one over the lowest port of each switch.
    #[default]
    Shortest,
    /// All shortest paths: each switch distributes flows over the ports on one (ECMP).
    Ecmp,
    /// Up to this many of the shortest paths, including longer ones.
    KShortest(u32),
}

impl Routing {
    /// The words in files.
    pub const WORDS: [&'static str; 3] = ["shortest", "ecmp", "k_shortest"];
    /// Maximum number of paths for [`Routing::KShortest`].
    pub const MOST_WAYS: u32 = 16;

    /// Whether there is a single path between two hosts.
    #[must_use]
    pub fn is_single(&self) -> bool {
        *self == Routing::Shortest
    }
}

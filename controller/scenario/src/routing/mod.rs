//! Which of several ways through the network a packet takes, as p4src/common/forward.p4 has it.
//!
//! [`hash`] is what switches reckon of a packet's flow; [`Ways`] knows all ways between two hosts, the one that a flow takes,
//! and what each switch is told. Ways are found by [`planner::routing`]. docs/decisions/0022 says why it is so.

mod entries;
pub mod hash;
mod ways;

use serde::Serialize;

pub use entries::{ToHost, Told};
pub use ways::{Way, Ways, WaysError};

/// Which ways there are between two hosts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Routing {
    /// One shortest way; of several, the one over the lowest port of each switch.
    #[default]
    Shortest,
    /// All shortest ways: each switch shares flows out over the ports that begin one (ECMP).
    Ecmp,
    /// So many of the shortest ways, longer ones among them, or as many as there are.
    KShortest(u32),
}

impl Routing {
    /// As files have it.
    pub const WORDS: [&'static str; 3] = ["shortest", "ecmp", "k_shortest"];
    /// The most ways that [`Routing::KShortest`] may ask for.
    pub const MOST_WAYS: u32 = 16;

    /// Whether there is one way between two hosts.
    #[must_use]
    pub fn is_single(&self) -> bool {
        *self == Routing::Shortest
    }
}

//! `share: 10%`: all packets of a share of the keys, none of the others.

use std::fmt;

use parser_gen::key::PacketKey;

use super::percent;
use crate::decision::Draws;

/// All packets of the keys that are drawn. What is drawn depends on the key alone: a key is hit from its first packet to its
/// last, and nothing is counted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Share {
    /// Greatest draw that fires.
    pub limit: u32,
    /// What packets of one key have in common.
    pub key: PacketKey,
    /// The keys, for people: `connections`.
    pub of: String,
}

impl Share {
    /// Whether packets whose key has this hash are hit.
    #[must_use]
    pub fn fires_on(&self, draws: &Draws, key: u32, hash: u32) -> bool {
        draws.words(key, hash).u <= self.limit
    }
}

impl fmt::Display for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {}", percent(self.limit), self.of)
    }
}

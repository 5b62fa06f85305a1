//! `share: 10%`: selects all packets of a random share of the keys (such as connections), and no packet of other keys.

use std::fmt;

use parser_gen::key::PacketKey;

use super::percent;
use crate::model::decision::Draws;

/// Selects all packets of randomly chosen keys. The choice depends only on the key: a key is hit from its first packet to
/// its last, and nothing is counted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Share {
    /// Greatest random draw with which a key is selected.
    pub limit: u32,
    /// The fields of a packet that are its key.
    pub key: PacketKey,
    /// Plural noun for the keys, for users: `connections`.
    pub of: String,
}

impl Share {
    /// Whether packets are selected whose key, such as their connection, has this hash. `key` is the decision key.
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

//! Converts P4Info between p4lang's plain data and the P4Runtime message, and finds a program's objects by name or id.

mod decode;
mod encode;
mod index;
#[cfg(test)]
pub(crate) mod tests;

pub use decode::{DecodeError, from_proto};
pub use encode::to_proto;
pub use index::{Index, Object, Section};
pub use p4lang::p4info::P4Info;

use crate::config::match_field::MatchType as Named;
use p4lang::runtime::MatchKind;

/// The match kinds that P4Runtime defines, with their names in P4Info messages.
const MATCH_TYPES: [(MatchKind, Named); 5] = [
    (MatchKind::Exact, Named::Exact),
    (MatchKind::Lpm, Named::Lpm),
    (MatchKind::Ternary, Named::Ternary),
    (MatchKind::Range, Named::Range),
    (MatchKind::Optional, Named::Optional),
];

/// Encodes a P4Info message in protobuf's binary format.
pub fn to_bytes(message: &crate::config::P4Info) -> Vec<u8> {
    prost::Message::encode_to_vec(message)
}

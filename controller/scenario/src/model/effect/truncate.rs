//! `truncate`: the packet is cut short on its way out: over the recirculation port on PSA, whose clones can be cut, and
//! by `truncate` on v1model. Lengths and checksums in its headers stay. If several faults cut a packet, the shortest
//! length applies.

use parser_gen::engine::Action;

use super::{Behaviour, Fate};

/// The effect that cuts the packet to a length.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Truncate {
    /// Length of the frame after the cut, in bytes from its start.
    pub to_bytes: u16,
}

impl Behaviour for Truncate {
    fn action(&self) -> Action {
        Action::Truncate(self.to_bytes)
    }

    fn compose(&self, _w: u32, _fate: &mut Fate) {}

    fn recirculates(&self) -> bool {
        true
    }

    fn changes(&self) -> bool {
        true
    }

    fn takes(&self) -> bool {
        true
    }

    fn leaves(&self) -> Option<u16> {
        Some(self.to_bytes)
    }
}

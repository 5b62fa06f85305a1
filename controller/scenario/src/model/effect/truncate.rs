//! `truncate`: the packet is cut short on its way out. On PSA the switch cuts a clone, which passes the recirculation port; on
//! v1model it calls `truncate`. Lengths and checksums in the packet's headers stay. Of several cuts, the shortest length
//! applies.

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

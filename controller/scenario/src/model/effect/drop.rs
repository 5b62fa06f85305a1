//! `drop`: the packet is dropped, regardless of other effects on it.

use parser_gen::engine::Action;

use super::{Behaviour, Fate};

/// The effect that drops the packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Drop;

impl Behaviour for Drop {
    fn action(&self) -> Action {
        Action::Drop
    }

    fn takes(&self) -> bool {
        true
    }

    fn is_overridden(&self) -> bool {
        false
    }

    fn compose(&self, _w: u32, fate: &mut Fate) {
        fate.copies = 0;
    }
}

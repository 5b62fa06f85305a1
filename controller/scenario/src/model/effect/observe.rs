//! `observe`: the packet is counted and listed, and continues unchanged.

use parser_gen::engine::Action;

use super::{Behaviour, Fate};

/// The effect that counts the packet without changing it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Observe;

impl Behaviour for Observe {
    fn action(&self) -> Action {
        Action::Observe
    }

    fn compose(&self, _w: u32, _fate: &mut Fate) {}

    fn is_overridden(&self) -> bool {
        false
    }
}

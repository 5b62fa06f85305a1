//! `observe`: the packet is counted and listed, and continues unchanged.

use parser_gen::engine::Action;

use super::{Behaviour, Effect, Fate, Kind};

/// Counts the packet without changing it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Observe;

pub(super) const KIND: Kind = Kind {
    word: "observe",
    about: "it is counted and listed, and nothing happens to it",
    shape: None,
    example: "",
    read: |sink, written| {
        written.nothing(sink);
        Some(Effect::Observe(Observe))
    },
};

impl Behaviour for Observe {
    fn word(&self) -> &'static str {
        KIND.word
    }

    fn verb(&self) -> &'static str {
        "observes"
    }

    fn action(&self) -> Action {
        Action::Observe
    }

    fn compose(&self, _w: u32, _fate: &mut Fate) {}

    fn is_overridden(&self) -> bool {
        false
    }
}

//! `drop`: the packet ends here, and no later fault sees it.

use super::{Behaviour, Effect, Fate, Kind};

/// The packet ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Drop;

pub(super) const KIND: Kind = Kind {
    word: "drop",
    read: |sink, written| {
        written.nothing(sink);
        Some(Effect::Drop(Drop))
    },
};

impl Behaviour for Drop {
    fn word(&self) -> &'static str {
        KIND.word
    }

    fn verb(&self) -> &'static str {
        "drops"
    }

    fn code(&self) -> (u8, &'static str) {
        (1, "EFFECT_DROP")
    }

    fn compose(&self, fate: &mut Fate) {
        fate.copies = 0;
    }
}

//! `duplicate`: the packet goes over the recirculation port by a multicast group that has it twice, and both copies are
//! forwarded as the original would have been. A packet is doubled once, however many faults ask for it.

use parser_gen::engine::Action;

use super::{Behaviour, Effect, Fate, Kind};
use crate::plan::TargetModel;

/// The packet comes twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Duplicate;

pub(super) const KIND: Kind = Kind {
    word: "duplicate",
    read: |sink, written| {
        written.nothing(sink);
        Some(Effect::Duplicate(Duplicate))
    },
};

impl Behaviour for Duplicate {
    fn word(&self) -> &'static str {
        KIND.word
    }

    fn verb(&self) -> &'static str {
        "duplicates"
    }

    fn action(&self) -> Action {
        Action::Duplicate
    }

    fn compose(&self, _w: u32, fate: &mut Fate) {
        fate.copies = 2;
    }

    fn recirculates(&self) -> bool {
        true
    }

    /// docs/decisions/0003.
    fn refused_by(&self, target: &TargetModel) -> Option<&'static str> {
        (!target.multicast_recirculates)
            .then_some("duplicate packets: its multicast does not reach the recirculation port")
    }
}

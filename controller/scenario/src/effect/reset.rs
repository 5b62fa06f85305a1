//! `reset`: turns the TCP packet itself into a reset of its connection, so that its sequence number is the one that the
//! receiver expects.

use parser_gen::engine::Action;
use parser_gen::{Headers, Library, reset};

use super::{Behaviour, Effect, Fate, Kind, MENDS};
use crate::plan::TargetModel;

/// Turns the packet into a TCP reset.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reset;

pub(super) const KIND: Kind = Kind {
    word: "reset",
    about: "it becomes the reset of its TCP connection",
    shape: None,
    example: "",
    read: |sink, written| {
        written.nothing(sink);
        Some(Effect::Reset(Reset))
    },
};

impl Behaviour for Reset {
    fn word(&self) -> &'static str {
        KIND.word
    }

    fn verb(&self) -> &'static str {
        "resets the connections of"
    }

    fn action(&self) -> Action {
        Action::Reset
    }

    fn compose(&self, _w: u32, _fate: &mut Fate) {}

    fn refused_by(&self, target: &TargetModel) -> Option<&'static str> {
        (!target.mends_checksums).then_some(MENDS)
    }

    fn changes(&self) -> bool {
        true
    }

    fn change(&self, library: &Library, headers: &Headers, _w: u32, frame: &mut [u8]) {
        reset::apply(library, headers, frame);
    }
}

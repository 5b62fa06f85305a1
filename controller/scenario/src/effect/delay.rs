//! `{delay: 20ms}`: the packet goes round over the recirculation port until its deadline; several delays add up.

use parser_gen::engine::Action;

use super::{Behaviour, Effect, Fate, Kind};
use crate::diagnostic::Code;
use crate::schema::reader;
use crate::units::Dimension;

/// The packet waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Delay {
    /// How long.
    pub ns: u64,
}

/// The hold header's deadline has 48 bits and is compared by the sign of a difference.
const MAX_NS: u64 = (1 << 47) - 1;

pub(super) const KIND: Kind = Kind {
    word: "delay",
    read: |sink, written| {
        let node = written.needed(sink, "20ms")?;
        let delay = reader::quantity(sink, node, "`delay`", Dimension::Duration)?;
        if !(1..=MAX_NS).contains(&delay.value) {
            sink.error(
                Code::OutOfRange,
                delay.span,
                "a delay lies between 1ns and 140737s",
            );
            return None;
        }
        Some(Effect::Delay(Delay { ns: delay.value }))
    },
};

impl Behaviour for Delay {
    fn word(&self) -> &'static str {
        KIND.word
    }

    fn verb(&self) -> &'static str {
        "delays"
    }

    fn action(&self) -> Action {
        Action::Delay
    }

    fn compose(&self, fate: &mut Fate) {
        fate.delay_ns = fate.delay_ns.saturating_add(self.ns);
    }

    fn hold_ns(&self) -> u64 {
        self.ns
    }

    fn recirculates(&self) -> bool {
        true
    }
}

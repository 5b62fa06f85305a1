//! `truncate`: the packet is cut short on its way out: over the recirculation port on PSA, whose clones can be cut, and
//! by `truncate` on v1model. Lengths and checksums in its headers stay. If several faults cut a packet, the shortest
//! length applies.

use parser_gen::engine::Action;

use super::{Behaviour, Effect, Fate, Kind};
use crate::diagnostic::Code;
use crate::plan::TargetModel;
use crate::schema::reader;
use crate::schema::shape::SIZE;
use crate::units::Dimension;

/// Cuts the packet to a length.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Truncate {
    /// Remaining length of the frame, in bytes from its start.
    pub to_bytes: u16,
}

/// Length of an Ethernet header. A host does not accept anything shorter as a frame.
const LEAST: u64 = 14;
/// The largest clone session number, which equals the length in bytes, less the header in front of a held packet.
const MOST: u64 = 32_000;

const EXAMPLE: &str = "64B";

pub(super) const KIND: Kind = Kind {
    word: "truncate",
    about: "it is cut to so many bytes",
    shape: Some(&SIZE),
    example: EXAMPLE,
    read: |sink, written| {
        let node = written.needed(sink, EXAMPLE)?;
        let size = reader::quantity_of(sink, node, "`truncate`", Dimension::Size, LEAST..=MOST)?;
        if !(LEAST..=MOST).contains(&size.value) {
            let message = format!(
                "`truncate` lies between {LEAST}B and {MOST}B; found {}B",
                size.value
            );
            sink.error(Code::OutOfRange, size.span, message);
            return None;
        }
        Some(Effect::Truncate(Truncate {
            to_bytes: size.value as u16,
        }))
    },
};

impl Behaviour for Truncate {
    fn word(&self) -> &'static str {
        KIND.word
    }

    fn verb(&self) -> &'static str {
        "cuts short"
    }

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

    fn refused_by(&self, target: &TargetModel) -> Option<&'static str> {
        target.truncates.is_none().then_some("cut packets short")
    }
}

//! `duplicate`: a multicast group sends the packet to the recirculation port several times, and all copies are forwarded
//! as the original would have been. If several faults duplicate a packet, the one declared first decides.

use std::fmt;

use parser_gen::engine::{Action, Copies};

use super::{Behaviour, Effect, Fate, Kind};
use crate::diagnostic::Code;
use crate::plan::TargetModel;
use crate::schema::reader;
use crate::schema::shape::{DURATION, Object, Shape, may};
use crate::units::{Dimension, show_duration};

/// Duplicates the packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Duplicate {
    /// Number of copies besides the packet itself.
    pub copies: u32,
    /// Time between one copy and the next, in nanoseconds.
    pub spaced_ns: u64,
}

impl Duplicate {
    /// One copy, without a delay.
    pub const ONCE: Duplicate = Duplicate {
        copies: 1,
        spaced_ns: 0,
    };
}

/// Each copy is a replica of a multicast group.
const MAX_COPIES: u64 = 15;
/// All copies together wait no longer than the maximum delay.
const MAX_SPACED_NS: u64 = super::distribution::MAX_NS / MAX_COPIES;

static DUPLICATE: Object = Object {
    what: "`duplicate`",
    keys: &[
        may(
            "copies",
            Shape::Integer(1, MAX_COPIES),
            "more than the packet itself; 1",
        ),
        may("spaced", DURATION, "each so much after the one before; 0s"),
    ],
};

pub(super) const KIND: Kind = Kind {
    word: "duplicate",
    about: "it comes twice, or more often",
    shape: Some(&Shape::Object(&DUPLICATE)),
    example: "",
    read: |sink, written| {
        if written.payload.is_none() {
            return Some(Effect::Duplicate(Duplicate::ONCE));
        }
        let (_, fields) = written.mapping(sink, &DUPLICATE, "{copies: 3}")?;
        let mut duplicate = Duplicate::ONCE;
        if let Some(node) = fields.get("copies") {
            duplicate.copies = reader::integer(sink, node, "`copies`", 1..=MAX_COPIES)? as u32;
        }
        if let Some(node) = fields.get("spaced") {
            let spaced = reader::quantity_of(
                sink,
                node,
                "`spaced`",
                Dimension::Duration,
                0..=MAX_SPACED_NS,
            )?;
            if spaced.value > MAX_SPACED_NS {
                let most = show_duration(MAX_SPACED_NS);
                let message = format!(
                    "`spaced` is at most {most}; found {}",
                    show_duration(spaced.value)
                );
                sink.error(Code::OutOfRange, spaced.span, message);
                return None;
            }
            duplicate.spaced_ns = spaced.value;
        }
        Some(Effect::Duplicate(duplicate))
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
        Action::Duplicate(Copies::default())
    }

    fn compose(&self, _w: u32, fate: &mut Fate) {
        if fate.copies == 1 {
            fate.copies += self.copies;
            fate.spaced_ns = self.spaced_ns;
        }
    }

    fn recirculates(&self) -> bool {
        true
    }

    fn duplicate(&self) -> Option<Duplicate> {
        Some(*self)
    }

    /// docs/decisions/0003.
    fn refused_by(&self, target: &TargetModel) -> Option<&'static str> {
        (!target.multicast_recirculates)
            .then_some("duplicate packets: its multicast does not reach the recirculation port")
    }
}

/// Empty for a single copy without spacing, or ` 3 times, 5ms apart`.
impl fmt::Display for Duplicate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.copies {
            1 => {}
            copies => write!(f, " {copies} times")?,
        }
        match self.spaced_ns {
            0 => Ok(()),
            spaced_ns if self.copies == 1 => write!(f, " {} later", show_duration(spaced_ns)),
            spaced_ns => write!(f, ", {} apart", show_duration(spaced_ns)),
        }
    }
}

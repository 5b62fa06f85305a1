//! `duplicate`: the packet goes over the recirculation port by a multicast group that has it several times, and all of them
//! are forwarded as the original would have been. Of several faults that ask for it, the one declared first has its way.

use std::fmt;

use parser_gen::engine::{Action, Copies};

use super::{Behaviour, Effect, Fate, Kind};
use crate::diagnostic::Code;
use crate::plan::TargetModel;
use crate::schema::reader;
use crate::schema::shape::{DURATION, Object, Shape, may};
use crate::units::{Dimension, show_duration};

/// The packet comes more than once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Duplicate {
    /// How many leave besides the packet itself.
    pub copies: u32,
    /// How much later than the one before each of them does.
    pub spaced_ns: u64,
}

impl Duplicate {
    /// One copy, at once.
    pub const ONCE: Duplicate = Duplicate {
        copies: 1,
        spaced_ns: 0,
    };
}

/// Each is a replica of a multicast group.
const MAX_COPIES: u64 = 15;
/// So that all copies together wait no longer than a delay may.
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

/// Nothing, or ` 3 times, 5ms apart`.
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

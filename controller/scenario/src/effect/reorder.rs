//! `reorder`: the packet lets others of its flow pass. It goes round over the recirculation port until so many have come, or
//! until it has waited as long as it may.

use std::fmt;

use parser_gen::engine::{self, Action};

use super::{Behaviour, Effect, Fate, Kind};
use crate::diagnostic::Code;
use crate::plan::TargetModel;
use crate::schema::reader;
use crate::schema::shape::{DURATION, Object, Shape, needed};
use crate::units::{Dimension, show_duration};

/// The packet waits for others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reorder {
    /// So many packets of the flow come after it, whatever becomes of them.
    pub distance: u32,
    /// But it goes after this time at the latest.
    pub within_ns: u64,
}

/// More than any window that TCP has open for long.
const MAX_DISTANCE: u64 = 10_000;
/// As many nanoseconds as a word holds, less a little.
const MAX_WITHIN_NS: u64 = 4_000_000_000;

static REORDER: Object = Object {
    what: "`reorder`",
    keys: &[
        needed(
            "distance",
            Shape::Integer(1, MAX_DISTANCE),
            "how many others",
        ),
        needed("within", DURATION, "but for no longer than this"),
    ],
};

const EXAMPLE: &str = "{distance: 3, within: 50ms}";

pub(super) const KIND: Kind = Kind {
    word: "reorder",
    about: "it lets others of its flow pass",
    shape: Some(&Shape::Object(&REORDER)),
    example: EXAMPLE,
    read: |sink, written| {
        let (_, fields) = written.mapping(sink, &REORDER, EXAMPLE)?;
        let distance = fields.get("distance").and_then(|node| {
            let what = "`distance`";
            reader::integer(sink, node, what, 1..=MAX_DISTANCE)
        });
        let within = fields.get("within").and_then(|node| {
            reader::quantity_of(
                sink,
                node,
                "`within`",
                Dimension::Duration,
                1..=MAX_WITHIN_NS,
            )
        })?;
        if !(1..=MAX_WITHIN_NS).contains(&within.value) {
            let most = show_duration(MAX_WITHIN_NS);
            let message = format!(
                "`within` lies between 1ns and {most}; found {}",
                show_duration(within.value)
            );
            sink.error(Code::OutOfRange, within.span, message);
            return None;
        }
        Some(Effect::Reorder(Reorder {
            distance: distance? as u32,
            within_ns: within.value,
        }))
    },
};

impl Behaviour for Reorder {
    fn word(&self) -> &'static str {
        KIND.word
    }

    fn verb(&self) -> &'static str {
        "reorders"
    }

    fn action(&self) -> Action {
        Action::Reorder(engine::Reorder {
            distance: self.distance,
            within_ns: self.within_ns,
        })
    }

    /// It goes when both are over, what others hold it for and what it waits for.
    fn compose(&self, w: u32, fate: &mut Fate) {
        fate.waits_ns = fate.waits_ns.max(self.hold_ns(w));
    }

    /// What stands for a word is how long the packet waits, in nanoseconds: see [`crate::replay::Classified::passed_ns`].
    fn hold_ns(&self, w: u32) -> u64 {
        u64::from(w).min(self.within_ns)
    }

    fn longest_hold_ns(&self) -> u64 {
        self.within_ns
    }

    fn recirculates(&self) -> bool {
        true
    }

    fn distance(&self) -> Option<u32> {
        Some(self.distance)
    }

    fn refused_by(&self, target: &TargetModel) -> Option<&'static str> {
        (!target.reorders).then_some(
            "let packets wait for others: a packet that comes back would have to ask a register that others write",
        )
    }
}

/// ` by 3, within 50ms`
impl fmt::Display for Reorder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "by {}, within {}",
            self.distance,
            show_duration(self.within_ns)
        )
    }
}

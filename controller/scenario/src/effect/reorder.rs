//! `reorder`: the packet lets later packets of its flow overtake. It recirculates until `distance` packets have come, or
//! until its time limit.

use std::fmt;

use parser_gen::engine::{self, Action};

use super::{Behaviour, Effect, Fate, Kind};
use crate::diagnostic::Code;
use crate::plan::TargetModel;
use crate::schema::reader;
use crate::schema::shape::{DURATION, Object, Shape, needed};
use crate::units::{Dimension, show_duration};

/// Delays the packet until later packets have overtaken it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reorder {
    /// Number of packets of the flow that the packet waits for, whatever happens to them.
    pub distance: u32,
    /// Time limit of the wait, in nanoseconds.
    pub within_ns: u64,
}

/// Larger than any window that TCP keeps open for long.
const MAX_DISTANCE: u64 = 10_000;
/// Slightly less than the number of nanoseconds that a 32-bit word holds.
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

    /// The packet leaves when both the hold time of other faults and its own wait are over.
    fn compose(&self, w: u32, fate: &mut Fate) {
        fate.waits_ns = fate.waits_ns.max(self.hold_ns(w));
    }

    /// The word is the packet's waiting time in nanoseconds: see [`crate::replay::Classified::passed_ns`].
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

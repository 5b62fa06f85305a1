//! Refuses effects that a target cannot carry out.

use super::TargetModel;
use crate::diagnostic::{Code, Sink};
use crate::model::Scenario;
use crate::model::effect::{Corrupt, Effect, Set};

pub(super) fn check(sink: &mut Sink<'_>, scenario: &Scenario, target: &TargetModel) {
    for fault in &scenario.faults {
        if let Some(why) = refused(&fault.effect, target) {
            sink.error(
                Code::Effect,
                fault.span,
                format!("this target cannot {why}"),
            )
            .hint("use the embedded switch or simple_switch_grpc, which can");
        }
    }
}

/// The part of an effect that a target does not support, as the end of `this target cannot …`; `None` if it supports all.
fn refused(effect: &Effect, target: &TargetModel) -> Option<&'static str> {
    const MENDS: &str =
        "update checksums: their computation is nested deeper than its actions allow";
    let (is_possible, why) = match effect {
        Effect::Drop(_) | Effect::Observe(_) => return None,
        Effect::Delay(delay) => (
            !delay.keeps_order || target.compares_deadlines,
            "keep the order of packets that it delays: its registers do not compare deadlines",
        ),
        // docs/decisions/0003.
        Effect::Duplicate(_) => (
            target.multicast_recirculates,
            "duplicate packets: its multicast does not reach the recirculation port",
        ),
        Effect::Set(Set { rewrite, .. }) | Effect::Corrupt(Corrupt { rewrite, .. }) => {
            (!rewrite.has_sums_to_mend() || target.mends_checksums, MENDS)
        }
        Effect::Reset(_) => (target.mends_checksums, MENDS),
        Effect::Rate(_) | Effect::Police(_) => (
            target.compares_deadlines,
            "limit the rate of packets: it does not multiply, and its registers do not compare deadlines",
        ),
        Effect::Truncate(_) => (target.truncates.is_some(), "cut packets short"),
        Effect::Reorder(_) => (
            target.reorders,
            "reorder packets: a packet that recirculates cannot read a register that other packets write",
        ),
    };
    (!is_possible).then_some(why)
}

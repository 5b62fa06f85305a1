//! Explains why a fault hit no packet, or why a fault on a program or switch did not act.

use std::ops::RangeInclusive;

use crate::model::selection::Selection;
use crate::model::traffic::no_packets;
use crate::model::{Fault, Scenario};
use crate::units::show_duration;

/// The reason why a fault hit none of the `met` packets that it examined. `armed` says if the epoch with a number was in force.
#[must_use]
pub fn reason(scenario: &Scenario, fault: &Fault, met: u64, armed: impl Fn(u16) -> bool) -> String {
    if fault.selection == Selection::Never {
        return "its probability is 0".to_owned();
    }
    if !fault.epochs.iter().cloned().flatten().any(armed) {
        return too_late(scenario, &fault.epochs);
    }
    if met == 0 {
        return no_packets(scenario, fault)
            .or_else(|| {
                let trigger = &scenario.triggers.get(fault.when?)?.name;
                let why =
                    format!("no packet of its flows arrived while trigger `{trigger}` was on");
                Some(why)
            })
            .unwrap_or_else(|| {
                let what = match fault.selection {
                    Selection::Psn(_) => {
                        "data packet of an RDMA connection (SEND, WRITE or READ response)"
                    }
                    _ => "packet",
                };
                format!("no {what} of its flows arrived while it was armed")
            });
    }
    let packets = match met {
        1 => "the 1 packet".to_owned(),
        met => format!("the {met} packets"),
    };
    let drawn = |limit: u32| {
        let expected = met as f64 * (f64::from(limit) + 1.0) / 4_294_967_296.0;
        format!(
            "it selected none of {packets} that it saw; on average it would have selected {expected:.2}"
        )
    };
    match &fault.selection {
        Selection::Counted(counted) => match (counted.first_ordinal(), &fault.keys) {
            (Some(n), Some(keys)) => format!(
                "it selects packet {n} per key, but none of the {} had that many packets; it saw {met} in all",
                keys.of
            ),
            (Some(n), None) => {
                format!("it selects packet {n} of a flow, but saw only {met} in all")
            }
            (None, _) => format!("it saw {met}"),
        },
        Selection::Probability { limit } => drawn(*limit),
        Selection::Share(share) => format!(
            "it saw {packets} of its flows, but their {} are not among the {share}",
            share.of
        ),
        Selection::Psn(psn) => format!(
            "it selects {psn} of each RDMA connection, but none of {packets} of data that it saw has such a sequence number"
        ),
        Selection::GilbertElliott(_) => {
            format!("its channel selected none of {packets} that it saw")
        }
        Selection::Always | Selection::Never => format!("it saw {met}"),
    }
}

/// The reason why a fault did not act, if none of its epochs (intervals of the timeline) was in force.
#[must_use]
pub fn too_late(scenario: &Scenario, epochs: &[RangeInclusive<u16>]) -> String {
    if let Some(condition) = awaited(scenario, epochs) {
        return format!("the run ended before its step started, which waits for `{condition}`");
    }
    let first = epochs
        .first()
        .and_then(|epochs| scenario.begins_ns(*epochs.start()));
    let first = first.map_or_else(String::new, |at_ns| {
        format!(", {} after the start", show_duration(at_ns))
    });
    format!("the run ended before its step started{first}")
}

/// The condition for which the first of these epochs waits, or the last condition before it; `None` if there is none.
fn awaited<'s>(scenario: &'s Scenario, epochs: &[RangeInclusive<u16>]) -> Option<&'s str> {
    let first = *epochs.first()?.start();
    let mut before = scenario.epochs.iter().rev();
    before.find_map(|epoch| epoch.on.as_deref().filter(|_| epoch.epoch <= first))
}

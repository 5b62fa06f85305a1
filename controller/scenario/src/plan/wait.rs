//! Refuses two faults that make the same packet wait for later packets: the packet's header has space for only one count.

use std::collections::BTreeSet;

use super::{PlannedFlow, Unit};
use crate::diagnostic::{Code, Sink};
use crate::model::{Fault, Scenario};

/// Refuses two faults that both make a packet wait for later packets, if their flows have a packet in common.
pub(super) fn check(
    sink: &mut Sink<'_>,
    scenario: &Scenario,
    flows: &[PlannedFlow],
    classes: &[Vec<usize>],
    units: &[Unit],
) {
    let faults = units
        .iter()
        .filter_map(|unit| scenario.faults.iter().find(|f| f.id == unit.fault));
    let waiting: Vec<&Fault> = faults
        .filter(|fault| fault.effect.distance().is_some())
        .collect();
    let positions = |fault: &Fault| -> BTreeSet<usize> {
        let names = fault.flows.iter().map(|flow| &scenario.flows[*flow].name);
        names
            .filter_map(|name| flows.iter().position(|flow| flow.name == *name))
            .collect()
    };
    for (number, other) in waiting.iter().enumerate() {
        for fault in &waiting[..number] {
            let (own, others) = (positions(fault), positions(other));
            let meets = |of: &BTreeSet<usize>, class: &Vec<usize>| {
                class.iter().copied().find(|flow| of.contains(flow))
            };
            let shared = classes
                .iter()
                .find_map(|class| meets(&own, class).and(meets(&others, class)));
            if let Some(flow) = shared {
                let message = format!(
                    "faults `{}` and `{}` both reorder packets of flow `{}`: only one fault can reorder a packet",
                    fault.id, other.id, flows[flow].name
                );
                let source = scenario.source();
                sink.error(Code::Effect, other.span, message).related(
                    &source,
                    fault.span,
                    format!("`{}` is declared here", fault.id),
                );
            }
        }
    }
}

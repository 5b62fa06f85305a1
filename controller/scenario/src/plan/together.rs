//! Scenarios that would run on the same network at the same time.

use super::Plan;
use crate::check::may_meet;
use crate::diagnostic::{Code, Diagnostics, Sink};
use crate::model::{Fault, Scenario};

/// Finds pairs of faults of different scenarios that may hit the same packet on a shared switch at the same time, and
/// faults of one that may hit a protected flow of another. Switches are shared when they have the same name; times are
/// counted from one common start.
#[must_use]
pub fn check_together(scenarios: &[(&Scenario, &Plan)]) -> Diagnostics {
    let mut found = Vec::new();
    for (i, (later, later_plan)) in scenarios.iter().enumerate() {
        let mut sink = Sink::new(later.source());
        for (earlier, earlier_plan) in &scenarios[..i] {
            faults(&mut sink, (earlier, earlier_plan), (later, later_plan));
            protected(&mut sink, (earlier, earlier_plan), (later, later_plan));
        }
        found.extend(sink.into_diagnostics().0);
    }
    Diagnostics(found)
}

fn faults(
    sink: &mut Sink<'_>,
    (earlier, earlier_plan): (&Scenario, &Plan),
    (later, later_plan): (&Scenario, &Plan),
) {
    for first in &earlier.faults {
        for second in &later.faults {
            if !overlap_in_time(earlier, first, later, second) {
                continue;
            }
            let Some((switch, a, b)) =
                meet(earlier, earlier_plan, first, later, later_plan, second)
            else {
                continue;
            };
            let message = format!(
                "fault `{}` and fault `{}` of {} may hit the same packet on switch `{switch}` at the same time",
                second.id, first.id, earlier.file
            );
            sink.error(Code::Contradiction, second.span, message)
                .related(&later.source(), second.span, rule(second, &later.flows[b].name, later.flows[b].filter.text()))
                .related(&earlier.source(), first.span, rule(first, &earlier.flows[a].name, earlier.flows[a].filter.text()))
                .hint("give them disjoint flows or steps; or check the files one at a time if they never run together");
        }
    }
}

fn protected(sink: &mut Sink<'_>, first: (&Scenario, &Plan), second: (&Scenario, &Plan)) {
    for ((guarding, _), (acting, plan), acting_is_later) in
        [(first, second, true), (second, first, false)]
    {
        for fault in &acting.faults {
            for flow in fault.flows.iter().map(|i| &acting.flows[*i]) {
                for (_, guarded) in guarding.protected() {
                    let shared = plan
                        .injections
                        .iter()
                        .filter(|i| i.fault == fault.id && i.flow == flow.name);
                    let passes = |switch: &str| {
                        guarded
                            .paths
                            .iter()
                            .any(|path| path.switches.iter().any(|s| s == switch))
                    };
                    let Some(point) = shared.into_iter().find(|point| passes(&point.switch)) else {
                        continue;
                    };
                    if !may_meet(flow, guarded) {
                        continue;
                    }
                    let span = if acting_is_later {
                        fault.span
                    } else {
                        guarded.span
                    };
                    let message = format!(
                        "fault `{}` of {} may hit flow `{}`, which {} protects, on switch `{}`",
                        fault.id, acting.file, guarded.name, guarding.file, point.switch
                    );
                    sink.error(Code::Protected, span, message)
                        .related(
                            &acting.source(),
                            fault.span,
                            rule(fault, &flow.name, flow.filter.text()),
                        )
                        .related(
                            &guarding.source(),
                            guarded.span,
                            format!("protected: `{}`", guarded.filter.text()),
                        );
                }
            }
        }
    }
}

/// A switch where both faults act, and two of their flows that a packet may belong to at once.
fn meet<'p>(
    earlier: &Scenario,
    earlier_plan: &'p Plan,
    first: &Fault,
    later: &Scenario,
    later_plan: &Plan,
    second: &Fault,
) -> Option<(&'p str, usize, usize)> {
    for a in earlier_plan
        .injections
        .iter()
        .filter(|injection| injection.fault == first.id)
    {
        for b in later_plan
            .injections
            .iter()
            .filter(|injection| injection.fault == second.id)
        {
            if a.switch != b.switch {
                continue;
            }
            let flow_a = earlier.flows.iter().position(|flow| flow.name == a.flow)?;
            let flow_b = later.flows.iter().position(|flow| flow.name == b.flow)?;
            if may_meet(&earlier.flows[flow_a], &later.flows[flow_b]) {
                return Some((&a.switch, flow_a, flow_b));
            }
        }
    }
    None
}

/// Stretches of time in which a fault acts; the last one has no end.
fn times<'s>(scenario: &'s Scenario, fault: &'s Fault) -> impl Iterator<Item = (u64, u64)> + 's {
    let start = |epoch: u16| {
        scenario
            .epochs
            .iter()
            .find(|e| e.epoch == epoch)
            .map_or(u64::MAX, |e| e.at_ns)
    };
    fault
        .epochs
        .iter()
        .map(move |range| (start(*range.start()), start(range.end().saturating_add(1))))
}

fn overlap_in_time(a: &Scenario, first: &Fault, b: &Scenario, second: &Fault) -> bool {
    times(a, first).any(|(start, end)| {
        times(b, second).any(|(other, other_end)| start < other_end && other < end)
    })
}

fn rule(fault: &Fault, flow: &str, filter: &str) -> String {
    format!(
        "`{}` {} packets of `{flow}`: `{filter}`",
        fault.id,
        fault.effect.verb()
    )
}

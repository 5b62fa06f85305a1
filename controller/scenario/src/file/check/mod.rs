//! Checks a resolved scenario: contradictory faults, protected flows, effects that the injection point cannot carry out.
//!
//! Two faults contradict each other when the file asks for both on the same packets and one of them drops: a dropped packet
//! cannot be delayed, duplicated or dropped again. The check compares ordinals within the flow, as the file declares them:
//!
//! - A fault that always drops leaves no packets to any other fault on the same packets while both are active.
//! - Two counting selections (`nth`, `every`, `burst` …) conflict if every packet that one selects is also selected by the
//!   other and one of the two faults drops.
//!
//! Selections that coincide only occasionally (`every: 5` and `every: 3`, or random ones) compose: a drop overrides the rest.

mod disruptions;
pub(super) mod triggers;
mod vacuous;

use std::collections::BTreeSet;
use std::ops::RangeInclusive;

use parser_gen::{Classes, Filter, psn};

use crate::diagnostic::{Code, Sink};
use crate::model::effect::Effect;
use crate::model::expect::metric::{FaultMetric, Metric, Metrics, TriggerMetric};
use crate::model::overlap;
use crate::model::selection::{Selection, Share};
use crate::model::trigger::Event;
use crate::model::{Direction, Fault, Scenario};

pub(crate) fn check(sink: &mut Sink<'_>, scenario: &Scenario) {
    effects(sink, scenario);
    awaited(sink, scenario);
    protected(sink, scenario);
    for (i, later) in scenario.faults.iter().enumerate() {
        for earlier in &scenario.faults[..i] {
            contradiction(sink, scenario, earlier, later);
        }
    }
    disruptions::check(sink, scenario);
    if !sink.has_errors() {
        vacuous::check(sink, scenario);
    }
}

/// Refuses a step that waits for a fault's hits, or for a trigger that counts them, if the fault acts in no earlier step.
fn awaited(sink: &mut Sink<'_>, scenario: &Scenario) {
    let waiting = scenario.epochs.iter().filter(|epoch| epoch.on.is_some());
    for (epoch, condition) in waiting.zip(&scenario.awaited) {
        let mut metrics = Metrics::new();
        let is_late = |fault: &Fault| {
            let first = fault.epochs.first();
            first.map_or(u16::MAX, |epochs| *epochs.start()) >= epoch.epoch
        };
        for fault in scenario.faults.iter().filter(|fault| is_late(fault)) {
            metrics.insert(Metric::fault(&fault.id, FaultMetric::Fired), 0.0);
        }
        for trigger in &scenario.triggers {
            let mut stages = trigger.stages.iter();
            let counts_late = stages.any(|stage| match stage.event {
                Event::Fault { fault, .. } => scenario.faults.get(fault).is_some_and(is_late),
                Event::Flow { .. } => false,
            });
            if counts_late {
                metrics.insert(Metric::trigger(&trigger.name, TriggerMetric::On), 0.0);
            }
        }
        for disruption in &scenario.disruptions {
            let first = disruption.epochs.first();
            let first = first.map_or(u16::MAX, |epochs| *epochs.start());
            if first >= epoch.epoch {
                let metric = Metric::fault(&disruption.id, FaultMetric::Fired);
                metrics.insert(metric, 0.0);
            }
        }
        let is_known = condition
            .metrics()
            .all(|(metric, _)| metrics.contains_key(metric));
        if is_known && !condition.evaluate(scenario, &metrics).passed {
            let message = format!(
                "step `{}` never starts: it waits for hits of faults that do not act before it",
                epoch.step.as_deref().unwrap_or_default()
            );
            sink.error(Code::Contradiction, condition.span, message)
                .hint("let the fault act in an earlier step; or leave its `during` out, so that it acts in the whole run");
        }
    }
}

/// Warns if a fault sets a field of RoCE packets and leaves their ICRC wrong although checksums were to be updated.
fn spoiled_icrc(sink: &mut Sink<'_>, scenario: &Scenario, fault: &Fault) {
    let Effect::Set(set) = &fault.effect else {
        return;
    };
    let Some((header, field)) = set.rewrite.under_icrc().filter(|_| set.rewrite.mends()) else {
        return;
    };
    let is_roce = |index: &usize| {
        let filter = &scenario.flows[*index].filter;
        overlap::Allowed::new(&scenario.protocols, filter).all_have(&[], "roce")
    };
    if fault.flows.iter().any(is_roce) {
        let header = header.trim_start_matches("hdr.");
        let message = format!(
            "fault `{}` changes `{field}` of {header} in RoCE packets, but the switch does not recompute their ICRC: the receiver drops them",
            fault.id
        );
        sink.warning(Code::Suspicious, fault.span, message)
            .hint("if you want that, add `checksums: left` to the fields");
    }
}

fn effects(sink: &mut Sink<'_>, scenario: &Scenario) {
    for fault in &scenario.faults {
        spoiled_icrc(sink, scenario, fault);
    }
    for fault in &scenario.faults {
        let in_egress = fault
            .place
            .as_ref()
            .is_some_and(|place| place.direction == Direction::Egress);
        if let Selection::Share(share) = &fault.selection {
            shared(sink, fault, share, in_egress);
        }
        if let Selection::Psn(_) = &fault.selection {
            carry_data(sink, scenario, fault);
        }
        if let Some(keys) = fault.keys.as_ref().filter(|_| in_egress) {
            let message = format!(
                "fault `{}` cannot count the packets of {} in egress: there the switch distinguishes only flows",
                fault.id, keys.of
            );
            sink.error(Code::Effect, keys.span, message).hint(
                "write `where: {ingress: SWITCH}`; SWITCH may be the next switch on the path",
            );
        }
        if in_egress && fault.effect.is_for_ingress() {
            let message = format!(
                "fault `{}` cannot {} in egress",
                fault.id,
                fault.effect.word()
            );
            sink.error(Code::Effect, fault.place_span, message)
                .hint("only `drop` and `observe` act in egress; write `where: {ingress: SWITCH}`; SWITCH may be the next switch on the path");
        }
    }
}

/// Refuses the selection `psn` on a flow that cannot contain data packets of RDMA, and together with the effect `reset`.
fn carry_data(sink: &mut Sink<'_>, scenario: &Scenario, fault: &Fault) {
    let library = &scenario.protocols;
    let Ok(data) = Filter::parse(library, psn::DATA) else {
        return;
    };
    if let Effect::Reset(_) = fault.effect {
        let message = format!(
            "fault `{}` cannot reset the packets that it selects by `psn`: RDMA data travels over UDP, which has no reset",
            fault.id
        );
        sink.error(Code::Effect, fault.span, message).hint(
            "write `effect: drop`; with `at: \"3..\", round: \"1..\"` it also drops every retransmission, and the connection fails",
        );
    }
    let source = sink.source();
    for flow in fault.flows.iter().map(|index| &scenario.flows[*index]) {
        let both =
            [("flow", &flow.filter), ("data", &data)].map(|(name, filter)| parser_gen::Flow {
                name: name.to_owned(),
                filter: filter.clone(),
            });
        // A filter that has too many classes on its own has already been refused.
        let Ok(classes) = Classes::new(library, &both) else {
            continue;
        };
        if !classes.meet(0, 1) {
            let message = format!(
                "fault `{}` selects by `psn`, but flow `{}` has no data packets of RDMA connections",
                fault.id, flow.name
            );
            sink.error(Code::Effect, fault.span, message)
                .related(
                    &source,
                    flow.span,
                    format!("`{}` is `{}`", flow.name, flow.filter.text()),
                )
                .hint("let the flow match SEND, WRITE or READ response packets of RoCEv2 over IPv4: write `filter: roce`, or only `from` and `to`");
        }
    }
}

/// Refuses the selection `share` (all packets of a share of the connections) with effects that a switch cannot combine with it:
/// a fault unit draws only one random word per packet, and knows a packet's connection only in ingress.
fn shared(sink: &mut Sink<'_>, fault: &Fault, share: &Share, in_egress: bool) {
    if fault.effect.draws() {
        let message = format!(
            "fault `{}` selects a share of {} and has a random effect: only one of the two can be random",
            fault.id, share.of
        );
        sink.error(Code::Effect, fault.span, message)
            .hint("write a fixed delay or fixed bits to flip (`xor`), or select packets with `select: {probability: …}`");
    }
    if in_egress {
        let message = format!(
            "fault `{}` cannot select a share of {} in egress: there the switch distinguishes only flows",
            fault.id, share.of
        );
        sink.error(Code::Effect, fault.place_span, message)
            .hint("write `where: {ingress: SWITCH}`; SWITCH may be the next switch on the path");
    }
}

fn protected(sink: &mut Sink<'_>, scenario: &Scenario) {
    let source = sink.source();
    for fault in &scenario.faults {
        for index in &fault.flows {
            let flow = &scenario.flows[*index];
            if flow.protected {
                let message = format!(
                    "fault `{}` acts on flow `{}`, which is protected",
                    fault.id, flow.name
                );
                sink.error(Code::Protected, fault.span, message)
                    .hint("take the flow out of `protect`, or out of the fault's `flows`");
                continue;
            }
            let met = scenario.meeting(*index);
            for guarded in met.iter().map(|i| &scenario.flows[*i]) {
                if !guarded.protected {
                    continue;
                }
                let message = format!(
                    "fault `{}` may hit protected flow `{}`: flow `{}` can match the same packet",
                    fault.id, guarded.name, flow.name
                );
                sink.error(Code::Protected, fault.span, message)
                    .related(
                        &source,
                        flow.span,
                        format!("`{}` is `{}`", flow.name, flow.filter.text()),
                    )
                    .related(
                        &source,
                        guarded.span,
                        format!("`{}` is `{}`", guarded.name, guarded.filter.text()),
                    )
                    .hint(
                        "make the flows disjoint, for example by different hosts in `from` or `to`",
                    );
            }
        }
    }
}

fn contradiction(sink: &mut Sink<'_>, scenario: &Scenario, earlier: &Fault, later: &Fault) {
    let hides = |fault: &Fault, other: &Fault| {
        fault.effect.ends_packet() && (other.effect.ends_packet() || other.effect.is_overridden())
    };
    if !hides(earlier, later) && !hides(later, earlier) {
        return;
    }
    let first: BTreeSet<usize> = earlier.flows.iter().copied().collect();
    for b in &later.flows {
        for a in scenario.meeting(*b).intersection(&first) {
            let Some(why) = excludes(scenario, (earlier, *a), (later, *b)) else {
                continue;
            };
            let source = sink.source();
            let message = format!(
                "faults `{}` and `{}` contradict each other on flow `{}`: {why}",
                earlier.id, later.id, scenario.flows[*b].name
            );
            sink.error(Code::Contradiction, later.span, message)
                .related(
                    &source,
                    earlier.span,
                    format!("`{}` is declared here", earlier.id),
                )
                .hint("give them different packets, or different steps in `during`");
            return;
        }
    }
}

fn excludes(
    scenario: &Scenario,
    (earlier, a): (&Fault, usize),
    (later, b): (&Fault, usize),
) -> Option<String> {
    let drops = |fault: &Fault| fault.effect.ends_packet();
    let always_drops = |fault: &Fault| drops(fault) && fault.selection.is_always();
    // `nothing_left(by, of)`: every packet of one flow also belongs to the other, whenever the fault is active.
    let nothing_left = |by: (&Fault, usize), of: (&Fault, usize)| {
        let is_there = by.0.when.is_none() || by.0.when == of.0.when;
        is_there && within(&of.0.epochs, &by.0.epochs) && scenario.classes.implies(of.1, by.1)
    };
    if always_drops(earlier) && nothing_left((earlier, a), (later, b)) {
        return Some(format!(
            "`{}` drops every packet that `{}` acts on",
            earlier.id, later.id
        ));
    }
    if always_drops(later) && !drops(earlier) && nothing_left((later, b), (earlier, a)) {
        return Some(format!(
            "`{}` drops every packet that `{}` acts on",
            later.id, earlier.id
        ));
    }
    let meet = a == b && overlap_in_time(&earlier.epochs, &later.epochs);
    let nested = selects_within(&earlier.selection, &later.selection)
        || selects_within(&later.selection, &earlier.selection);
    let numbered_alike =
        earlier.keys.as_ref().map(|keys| &keys.key) == later.keys.as_ref().map(|keys| &keys.key);
    let numbered_alike = numbered_alike && earlier.when == later.when;
    (meet && nested && numbered_alike)
        .then(|| "both select the same packets, and one drops them".to_owned())
}

/// Whether the counting selection `outer` selects every packet that `inner` selects.
fn selects_within(inner: &Selection, outer: &Selection) -> bool {
    match (inner, outer) {
        (Selection::Counted(inner), Selection::Counted(outer)) => inner.is_within(outer),
        (Selection::Psn(inner), Selection::Psn(outer)) => inner.is_within(outer),
        _ => false,
    }
}

fn overlap_in_time(a: &[RangeInclusive<u16>], b: &[RangeInclusive<u16>]) -> bool {
    a.iter().any(|a| {
        b.iter()
            .any(|b| a.start() <= b.end() && b.start() <= a.end())
    })
}

fn within(inner: &[RangeInclusive<u16>], outer: &[RangeInclusive<u16>]) -> bool {
    !inner.is_empty()
        && inner.iter().all(|inner| {
            outer
                .iter()
                .any(|outer| outer.start() <= inner.start() && inner.end() <= outer.end())
        })
}

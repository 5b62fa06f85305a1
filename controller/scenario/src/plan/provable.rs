//! Checks that captures on both sides of a switch can prove what each fault did in the switch.
//!
//! The proof replays the frames that a switch received, in the order in which a fault unit counted them. The capture of one
//! port shows that order; captures of several ports do not, and a held packet reaches egress later than packets that came after
//! it. A switch that sums consumes frames, so captures do not show them again.

use std::collections::{BTreeMap, BTreeSet};

use super::{Injection, Plan, TargetModel, flows_met, plan};
use crate::diagnostic::{Code, Diagnostics, Sink, few_names};
use crate::model::overlap;
use crate::model::selection::Selection;
use crate::model::{Direction, Fault, Flow, Scenario};

/// Makes the plan of a scenario if captures can prove its faults; otherwise returns the reasons why not.
pub fn plan_to_prove(scenario: &Scenario, target: &TargetModel) -> Result<Plan, Diagnostics> {
    let plan = plan(scenario, target)?;
    let mut sink = scenario.sink();
    let flows: BTreeMap<&str, usize> = scenario
        .flows
        .iter()
        .enumerate()
        .map(|(index, flow)| (flow.name.as_str(), index))
        .collect();
    let points: Vec<_> = plan
        .injections
        .iter()
        .filter_map(|injection| Point::new(scenario, &flows, injection))
        .collect();
    let mut held = Held::default();
    for point in &points {
        if point.fault.effect.recirculates() {
            let flow = (point.switch, point.index);
            held.by_flow.entry(flow).or_insert(point.fault);
        }
        if point.fault.effect.changes() {
            held.changing.entry(point.switch).or_insert(point.fault);
        }
    }
    let mut told = BTreeSet::new();
    for point in &points {
        // Reported once per fault: its flows mostly fail for the same reason.
        if !told.contains(&point.fault.id) && point.is_unprovable(&mut sink, scenario, &held) {
            told.insert(&point.fault.id);
        }
    }
    triggers_are_seen(&mut sink, scenario, &plan);
    if sink.has_errors() {
        return Err(sink.into_diagnostics());
    }
    Ok(plan)
}

/// Refuses triggers on a switch that sums: the switch consumes frames, so captures cannot show which frames it counted.
fn triggers_are_seen(sink: &mut Sink<'_>, scenario: &Scenario, plan: &Plan) {
    let summing = plan
        .switches
        .iter()
        .filter(|switch| scenario.sums(&switch.name));
    for (switch, planned) in summing.flat_map(|switch| {
        let triggers = switch.triggers.iter();
        triggers.map(move |trigger| (switch, trigger))
    }) {
        let message = format!(
            "captures cannot prove trigger `{}` on switch `{}`, which sums a job: the frames that it sums do not leave it",
            planned.name, switch.name
        );
        let span = scenario.triggers[planned.index].span;
        let mut others = scenario.topology.switches.iter();
        let hint = match others.find(|other| !scenario.sums(other)) {
            Some(other) => format!(
                "narrow its flows to those that cross another switch, such as `on: {other}`"
            ),
            None => "put a switch that does not sum between the flow's hosts and this switch: the trigger can count there".to_owned(),
        };
        sink.error(Code::Unprovable, span, message).hint(hint);
    }
}

/// For each switch, faults that change the order or content of packets between ingress and egress.
#[derive(Default)]
struct Held<'a> {
    /// By switch and index of a flow: a fault that holds packets of the flow.
    by_flow: BTreeMap<(&'a str, usize), &'a Fault>,
    /// By switch: a fault that changes packets there. A changed packet may belong to any flow.
    changing: BTreeMap<&'a str, &'a Fault>,
}

/// An injection point, with the fault and flow that it refers to.
struct Point<'a> {
    fault: &'a Fault,
    flow: &'a Flow,
    /// Index of the flow in the scenario.
    index: usize,
    switch: &'a str,
    direction: Direction,
}

impl<'a> Point<'a> {
    fn new(
        scenario: &'a Scenario,
        flows: &BTreeMap<&str, usize>,
        injection: &'a Injection,
    ) -> Option<Point<'a>> {
        let mut faults = scenario.faults.iter();
        let index = *flows.get(injection.flow.as_str())?;
        Some(Point {
            fault: faults.find(|fault| fault.id == injection.fault)?,
            flow: &scenario.flows[index],
            index,
            switch: &injection.switch,
            direction: injection.direction,
        })
    }

    fn is_unprovable(&self, sink: &mut Sink<'_>, scenario: &Scenario, held: &Held<'_>) -> bool {
        self.is_at_aggregator(sink, scenario)
            || self.is_counted_over_ports(sink, scenario)
            || self.is_behind_a_hold(sink, scenario, held)
    }

    /// Reports a fault on a switch that sums, since the switch consumes frames and sends others; returns whether it did.
    fn is_at_aggregator(&self, sink: &mut Sink<'_>, scenario: &Scenario) -> bool {
        if !scenario.sums(self.switch) {
            return false;
        }
        let message = format!(
            "captures cannot prove fault `{}` on switch `{}`, which sums a job: the frames that it sums do not leave it",
            self.fault.id, self.switch
        );
        let on_the_way = self.flow.paths.iter().flat_map(|path| &path.switches);
        let mut others = on_the_way.filter(|switch| !scenario.sums(switch));
        let hint = match others.next() {
            Some(other) => format!("let the fault act on another switch of its flow, such as `where: {other}`"),
            None => "put a switch that does not sum between the flow's hosts and this switch: the fault can act there".to_owned(),
        };
        sink.error(Code::Unprovable, self.fault.place_span, message)
            .hint(hint);
        true
    }

    fn is_counted_over_ports(&self, sink: &mut Sink<'_>, scenario: &Scenario) -> bool {
        // Words are also drawn by ordinal.
        let draws = self.fault.effect.draws() || self.fault.effect.goes_by_time();
        let counts = draws || !self.fault.selection.is_always();
        // A selection by key is independent of the packets' order.
        let counts =
            counts && !matches!(self.fault.selection, Selection::Never | Selection::Share(_));
        let entries = entries(scenario, self.flow, self.switch);
        if !counts || entries.len() < 2 {
            return false;
        }
        let effect = &self.fault.effect;
        let does = if effect.goes_by_time() {
            format!("`{}` depends on the order of packets", effect.word())
        } else if effect.draws() {
            format!(
                "`{}` draws a random number from each packet's position",
                effect.word()
            )
        } else {
            "`select` counts packets".to_owned()
        };
        let message = format!(
            "fault `{}` cannot be proved: {does}, and packets of flow `{}` enter switch `{}` from {}, whose captures have no common order",
            self.fault.id,
            self.flow.name,
            self.switch,
            few_names(entries.iter().copied())
        );
        let from = "name the flow's senders in `from`: each sender then has its own flow, with its own order";
        sink.error(Code::Unprovable, self.fault.span, message).hint(
            match draws || self.fault.selection.is_always() {
                true => from.to_owned(),
                false => format!("{from}; or leave `select` out"),
            },
        );
        true
    }

    fn is_behind_a_hold(&self, sink: &mut Sink<'_>, scenario: &Scenario, held: &Held<'_>) -> bool {
        if self.direction == Direction::Ingress {
            return false;
        }
        let met = scenario.meeting(self.index);
        let holding = met
            .iter()
            .find_map(|flow| held.by_flow.get(&(self.switch, *flow)));
        let Some(held) = holding.or_else(|| held.changing.get(self.switch)) else {
            return false;
        };
        let (cannot, does) = match held.effect.changes() {
            true => ("show which packets of flow", "changes packets"),
            false => ("show when packets of flow", "holds some of them"),
        };
        let message = format!(
            "captures cannot {cannot} `{}` reach the egress of switch `{}`, where fault `{}` acts: fault `{}` {does} in ingress",
            self.flow.name, self.switch, self.fault.id, held.id
        );
        let source = scenario.source();
        sink.error(Code::Unprovable, self.fault.place_span, message)
            .related(
                &source,
                held.span,
                format!("`{}` is declared here", held.id),
            )
            .hint("let one of the two act on another switch: `where: SWITCH`");
        true
    }
}

/// Whether frames from several ports of a switch change or await one trigger: the judge then replays all ports in one order.
#[must_use]
pub fn triggers_join_ports(scenario: &Scenario, plan: &Plan, switch: &str) -> bool {
    let Some(planned) = plan.switch(switch) else {
        return false;
    };
    // Triggers that share a fault belong together; here all triggers of a switch are treated as one.
    let mut from: BTreeSet<&str> = BTreeSet::new();
    for named in &planned.triggers {
        let flows = flows_met(scenario, named.index).into_iter();
        from.extend(flows.flat_map(|flow| entries(scenario, &scenario.flows[flow], switch)));
        // A SYN resets a connection's trigger, whatever flow it belongs to.
        let keys = scenario.triggers[named.index].keys.as_ref();
        if keys.is_some_and(|keys| keys.restarts) {
            let ports = scenario.topology.ports(switch);
            from.extend(ports.map(|port| port.peer));
        }
    }
    from.len() > 1
}

/// The neighbors of a switch from which packets of a flow come, according to the flow's paths and the ports in its filter.
fn entries<'f>(scenario: &Scenario, flow: &'f Flow, switch: &str) -> BTreeSet<&'f str> {
    let from = flow.paths.iter().filter_map(|path| {
        let hop = path.switches.iter().position(|other| other == switch)?;
        Some(match hop.checked_sub(1) {
            Some(before) => path.switches[before].as_str(),
            None => path.from.as_str(),
        })
    });
    let mut from: BTreeSet<&str> = from.collect();
    if from.len() > 1 && flow.filter.fields().contains(&overlap::PORT) {
        let allowed = overlap::Allowed::new(&scenario.protocols, &flow.filter);
        from.retain(|neighbor| allowed.enters(&scenario.topology, switch, neighbor));
    }
    from
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_or_a_mac_address_says_which_capture_has_the_packets() {
        for (filter, is_provable) in [
            ("eth.type == 0x86dd && switch.port == 1", true),
            ("eth.type == 0x86dd && eth.src == 02:57:45:00:00:02", true),
            ("udp && switch.port in {3}", true),
            ("eth.src == 02:57:45:00:00:02 && switch.port <= 2", true),
            ("eth.type == 0x86dd", false),
            ("eth.type == 0x86dd && switch.port in {1, 2}", false),
            ("udp && switch.port != 1", false),
            // No host has this address, so any host may send from it.
            ("eth.src == 0a:00:00:00:00:07", false),
        ] {
            let text = format!(
                "weir: 1\nname: lab\ntopology: {{star: {{hosts: [a, b, s], switch: sw}}}}\nflows: {{f: '{filter}'}}\n\
                 faults: [{{id: x, flows: f, effect: drop, select: {{every: 3}}}}]\n"
            );
            let scenario = crate::load("lab.yaml", &text).unwrap_or_else(|e| panic!("{e}"));
            let plan = plan_to_prove(&scenario, &TargetModel::EMBEDDED);
            assert_eq!(plan.is_ok(), is_provable, "{filter}: {:?}", plan.err());
        }
    }
}

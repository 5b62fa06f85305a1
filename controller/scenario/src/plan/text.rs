//! A plan for people.

use std::fmt;

use super::{Plan, Resources, SwitchPlan, show_bound};
use crate::model::Direction;
use crate::units::{show_duration, show_rate};

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "scenario {}, seed {}", self.scenario, self.seed)?;
        writeln!(f, "\ntimeline")?;
        for epoch in &self.timeline {
            let step = epoch.step.as_deref().unwrap_or("–");
            writeln!(
                f,
                "  {:>8}  epoch {}  {step}",
                show_duration(epoch.at_ns),
                epoch.epoch
            )?;
        }
        if self.injections.is_empty() {
            writeln!(f, "\nno fault")?;
        } else {
            writeln!(f, "\ninjection points")?;
        }
        for point in &self.injections {
            let side = side(point.direction);
            let place = format!(
                "{} {side}, unit {}, cell {}",
                point.switch, point.unit, point.cell
            );
            writeln!(
                f,
                "  {} on {}: {place}{}",
                point.fault,
                point.flow,
                show_bound(point.lateness_bound_ns)
            )?;
        }
        self.switches
            .iter()
            .try_for_each(|switch| show_switch(f, switch))
    }
}

fn show_switch(f: &mut fmt::Formatter<'_>, switch: &SwitchPlan) -> fmt::Result {
    writeln!(f, "\nswitch {}", switch.name)?;
    for flow in &switch.flows {
        let protected = if flow.protected { " (protected)" } else { "" };
        writeln!(
            f,
            "  flow bit {}: {}{protected}: {}",
            flow.bit,
            flow.name,
            flow.filter.text()
        )?;
    }
    for unit in &switch.units {
        writeln!(
            f,
            "  {} unit {}: {}",
            side(unit.direction),
            unit.unit,
            unit.fault
        )?;
    }
    let Resources {
        ingress_units,
        egress_units,
        flow_bits,
        select_entries,
        forward_entries,
        replicas,
        ..
    } = switch.resources;
    writeln!(
        f,
        "  takes {ingress_units}/8 ingress and {egress_units}/8 egress units, {flow_bits}/32 flow bits, {select_entries} select and {forward_entries} forwarding entries, {replicas} replicas",
    )?;
    if switch.resources.held_bits > 0 {
        let rate = show_rate(switch.resources.recirculation_bps);
        writeln!(f, "  recirculates up to {rate} for held packets")?;
    }
    Ok(())
}

fn side(direction: Direction) -> &'static str {
    match direction {
        Direction::Ingress => "ingress",
        Direction::Egress => "egress",
    }
}

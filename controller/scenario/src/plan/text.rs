//! Writes a plan as text for users.

use std::fmt;

use p4lang::runtime::TableEntry;

use super::runtime::show_match;
use super::{LOOK_EVERY_NS, Plan, Resources, SwitchPlan, engine, show_bound};
use crate::model::decision;
use crate::model::gradient;
use crate::plan::names;
use crate::units::{show_duration, show_rate};

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "scenario {}, seed {}", self.scenario, self.seed)?;
        if self.draw_bits < 32 {
            writeln!(
                f,
                "on this target, a probability is a multiple of 2^-{}",
                self.draw_bits
            )?;
        }
        for rounded in &self.rounded {
            writeln!(f, "  {}", engine::show(rounded))?;
        }
        for drawn in &self.drawn {
            writeln!(
                f,
                "fault {} draws one of {} delays: {} at least, {} in the middle, {} at most",
                drawn.fault,
                drawn.steps,
                show_duration(drawn.least_ns),
                show_duration(drawn.median_ns),
                show_duration(drawn.most_ns)
            )?;
        }
        if !self.injections.is_empty() {
            writeln!(f, "{}", self.lease)?;
        }
        if let Some(gradients) = &self.gradients {
            writeln!(f, "\ngradients, by {}", gradients.by.name())?;
            for line in gradient::text(gradients) {
                writeln!(f, "  {line}")?;
            }
        }
        if !self.blast_radius.is_empty() {
            writeln!(f, "\nblast radius")?;
        }
        for reach in &self.blast_radius {
            writeln!(f, "  {reach}")?;
        }
        writeln!(f, "\ntimeline")?;
        let mut waited = "";
        for epoch in &self.timeline {
            let step = epoch.step.as_deref().unwrap_or("–");
            let number = epoch.epoch;
            if let Some(condition) = &epoch.on {
                let looks = show_duration(LOOK_EVERY_NS);
                writeln!(
                    f,
                    "        on  epoch {number}  {step}: {condition}, which the controller checks every {looks}"
                )?;
                waited = "+";
                continue;
            }
            let at = format!("{waited}{}", show_duration(epoch.at_ns));
            writeln!(f, "  {at:>8}  epoch {number}  {step}")?;
        }
        if let Some(first) = self.disruptions.first() {
            let within = show_duration(first.within_ns);
            writeln!(f, "\nby the controller, within {within} of the step")?;
        }
        for disruption in &self.disruptions {
            writeln!(f, "  {disruption}")?;
        }
        if !self.injections.is_empty() {
            writeln!(f, "\ninjection points")?;
        } else if self.disruptions.is_empty() {
            writeln!(f, "\nno fault")?;
        }
        for point in &self.injections {
            let side = point.direction;
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
        if let Some(fullest) = self.fullest.iter().find(|fullest| fullest.is_told()) {
            writeln!(f, "  faults take up to {fullest}")?;
        }
        self.switches.iter().try_for_each(|switch| {
            // A switch may sum by a later plan, after another one dies.
            let may_come_to = self
                .gradients
                .as_ref()
                .is_some_and(|gradients| !gradients.summing().any(|sums| sums == switch.name));
            let sums = if may_come_to { "can sum" } else { "sums" };
            show_switch(f, switch, sums)
        })
    }
}

fn show_switch(f: &mut fmt::Formatter<'_>, switch: &SwitchPlan, sums: &str) -> fmt::Result {
    writeln!(f, "\nswitch {}", switch.name)?;
    for flow in &switch.flows {
        let protected = if flow.protected { " (protected)" } else { "" };
        writeln!(
            f,
            "  flow {}: {}{protected}: {}",
            flow.index,
            flow.name,
            flow.filter.text()
        )?;
    }
    for (class, flows) in switch.classes.iter().enumerate().skip(1) {
        let names: Vec<&str> = flows
            .iter()
            .map(|flow| switch.flows[*flow].name.as_str())
            .collect();
        writeln!(f, "  class {class}: {}", names.join(" and "))?;
    }
    if let Some(values) = switch.aggregates {
        writeln!(f, "  {sums} frames of {} values", values.count())?;
    }
    for unit in &switch.units {
        let place = match switch.before_sum {
            Some(_) => ", before the sum",
            None => "",
        };
        writeln!(
            f,
            "  {} unit {}: {}{place}",
            unit.direction, unit.unit, unit.fault
        )?;
    }
    for trigger in &switch.triggers {
        let cells = trigger.cells.map(|cells| format!("; {cells} cells"));
        writeln!(
            f,
            "  trigger {}: {}{}",
            trigger.name,
            trigger.what,
            cells.unwrap_or_default()
        )?;
    }
    let Resources {
        ingress_units,
        egress_units,
        classes,
        select_entries,
        forward_entries,
        replicas,
        ..
    } = switch.resources;
    writeln!(
        f,
        "  takes {ingress_units} ingress and {egress_units} egress units, {classes} classes, {select_entries} select and {forward_entries} forwarding entries, {replicas} replicas",
    )?;
    if switch.resources.held_bits > 0 {
        let rate = show_rate(switch.resources.recirculation_bps);
        writeln!(f, "  recirculates up to {rate} for held packets")?;
    }
    let mut table = None;
    let shown = switch.entries.iter().filter(|entry| !is_word(entry));
    for entry in shown {
        if table != Some(&entry.table) {
            writeln!(f, "  entries of {}", entry.table)?;
            table = Some(&entry.table);
        }
        show_entry(f, entry)?;
    }
    let words = switch.entries.iter().filter(|entry| is_word(entry)).count();
    if words > 0 {
        writeln!(
            f,
            "  {words} entries of the tables that units draw from, as seed and distributions fill them"
        )?;
    }
    for group in &switch.groups {
        let ports: Vec<String> = group.replicas.iter().map(|r| show_port(r.port)).collect();
        writeln!(
            f,
            "  multicast group {}: to ports {}",
            group.id,
            ports.join(", ")
        )?;
    }
    for session in &switch.sessions {
        let bytes = session.packet_length_bytes;
        writeln!(f, "  clone session {}: cut to {bytes} bytes", session.id)?;
    }
    Ok(())
}

/// Text for a port: its number, or `recirculation` for PSA's recirculation port, whose number means nothing to a user.
fn show_port(port: u32) -> String {
    match port {
        names::port::PSA_RECIRCULATE => "recirculation".to_owned(),
        port => port.to_string(),
    }
}

/// Writes a table entry as text: `hdr.ethernet.dst 0x25745000001: unicast(port 1)`
fn show_entry(f: &mut fmt::Formatter<'_>, entry: &TableEntry) -> fmt::Result {
    let key = entry.key.iter();
    let key = key.map(|field| format!("{} {}", field.field, show_match(&field.value)));
    let params = entry.action.params.iter();
    let params = params.map(|(name, value)| format!("{name} {value}"));
    // An action's name begins with the control of its table, which is omitted.
    let action = entry.action.name.rsplit('.').next().unwrap_or_default();
    let key = match key.collect::<Vec<_>>() {
        all if all.is_empty() => "anything".to_owned(),
        key => key.join(", "),
    };
    write!(f, "    {key}")?;
    if entry.priority > 0 {
        write!(f, ", priority {}", entry.priority)?;
    }
    writeln!(f, ": {action}({})", params.collect::<Vec<_>>().join(", "))
}

/// Whether a table entry serves a fault unit's random draws. The text omits such entries, which mean nothing to users.
fn is_word(entry: &TableEntry) -> bool {
    let action = entry.action.name.rsplit('.').next();
    action == Some(names::fault::LOT)
        || (0..decision::TABLES).any(|table| action == Some(names::fault::words(table).1.as_str()))
}

//! Resolves the names in a scenario file that was read, and thus turns it into a [`Scenario`].

mod disruptions;
mod epochs;
mod flows;
mod gradients;
mod jobs;
mod routes;
mod triggers;
mod workload;

use std::collections::{BTreeMap, BTreeSet};

use crate::diagnostic::{Code, Diagnostics, Sink, Source, Spanned, unknown};
use crate::file::schema::{Raw, RawFault};
use crate::file::yaml::Node;
use crate::file::{check, expect};
use crate::model::decision;
use crate::model::disruption::Disruption;
use crate::model::routing::Ways;
use crate::model::topology::{Host, Topology};
use crate::model::trigger::Trigger;
use crate::model::{Epoch, Fault, InjectionPoint, MAX_FLOWS_PER_FAULT, Scenario};
use routes::PlannedWays;

pub(super) fn resolve(sink: &mut Sink<'_>, raw: Raw) -> Option<Scenario> {
    // A broken topology makes every host unknown, so only its own errors are reported.
    if sink.has_errors() && raw.topology.links.is_empty() {
        return None;
    }
    workload::check(sink, &raw);
    let jobs = jobs::resolve(sink, &raw);
    let gradients = gradients::resolve(sink, &raw);
    let (jobs, planned) = match (&gradients, raw.training()) {
        (Some(gradients), Some((training, span))) => (
            gradients.jobs(training, span),
            PlannedWays {
                gradients: gradients.paths(&training.server).collect(),
                answers: gradients.answered(&raw.topology, training).collect(),
            },
        ),
        _ => (jobs, PlannedWays::default()),
    };
    let ways = ways(sink, &raw.topology);
    let flows = flows::resolve(sink, &raw, planned, ways.as_ref());
    let classes = flows::classes(sink, &raw, &flows);
    let by_name = flows::by_name(&flows);
    let epochs = epochs::all(sink, &raw.steps);
    let (written, named) = (&raw.triggers, &raw.faults);
    let triggers = triggers::resolve(sink, written, named, &raw.declared, &by_name);
    let faults: Vec<Fault> = raw
        .faults
        .iter()
        .filter_map(|fault| resolve_fault(sink, &raw, fault, (&by_name, &triggers), &epochs))
        .collect();
    let disruptions: Vec<Disruption> = raw
        .disruptions
        .iter()
        .filter_map(|disruption| disruptions::resolve(sink, &raw, disruption, &epochs))
        .collect();
    disruptions::refuse_triggers(sink, &raw);
    let ids = raw.faults.iter().map(|fault| &fault.id);
    let others = raw.disruptions.iter().map(|disruption| &disruption.id);
    check_duplicate_ids(sink, &ids.chain(others).collect::<Vec<_>>());
    // Triggers refer to faults by position.
    let is_whole = faults.len() == raw.faults.len() && triggers.len() == raw.triggers.len();
    if is_whole {
        check::triggers::check(sink, &triggers, &faults, &flows);
    }
    let Raw {
        protocols,
        name,
        description,
        seed,
        topology,
        topology_file,
        workload,
        workload_file,
        probes,
        expect,
        limits,
        captures,
        lease,
        abort_if,
        blast_radius,
        declared,
        steps,
        ..
    } = raw;
    let Source { file, text } = sink.source();
    let mut scenario = Scenario {
        protocols,
        file: file.to_owned(),
        text: text.to_owned(),
        name,
        description,
        seed,
        topology,
        topology_file,
        workload: workload.map(|workload| workload.value.workload),
        workload_file: workload_file.map(|(source, _)| source),
        probes: probes.into_iter().map(|raw| raw.probe).collect(),
        jobs,
        gradients,
        ways,
        flows,
        classes,
        faults,
        disruptions,
        triggers,
        epochs,
        awaited: Vec::new(),
        expectations: Vec::new(),
        limits,
        captures: captures.map(|word| word.value).unwrap_or_default(),
        captures_span: captures.map(|word| word.span),
        lease,
        abort_if: Vec::new(),
        blast_radius,
        warnings: Diagnostics::default(),
    };
    scenario.expectations = expect::read(sink, &scenario, &declared, &expect);
    let awaited: Vec<Node> = steps.iter().filter_map(|step| step.on.clone()).collect();
    scenario.awaited = expect::read_while_running(sink, &scenario, &declared, &awaited);
    scenario.abort_if = expect::read_while_running(sink, &scenario, &declared, &abort_if);
    // A refused line may have named one.
    let read = [
        &scenario.expectations,
        &scenario.awaited,
        &scenario.abort_if,
    ];
    let is_read = read.map(Vec::len) == [&expect, &awaited, &abort_if].map(Vec::len);
    if is_whole && is_read {
        check::triggers::unused(sink, &scenario);
    }
    check::check(sink, &scenario);
    Some(scenario)
}

/// All paths between hosts; `None` if every two hosts have only one path. Does nothing if errors were already reported.
fn ways(sink: &mut Sink<'_>, topology: &Topology) -> Option<Ways> {
    if sink.has_errors() {
        return None;
    }
    match Ways::from_topology(topology) {
        Ok(ways) => ways,
        Err(error) => {
            sink.error(Code::Capacity, topology.routing_span, error.to_string());
            None
        }
    }
}

fn host<'t>(
    sink: &mut Sink<'_>,
    topology: &'t Topology,
    name: &Spanned<String>,
) -> Option<&'t Host> {
    let found = topology.host(&name.value);
    if found.is_none() {
        unknown(
            sink,
            "host",
            name,
            topology.hosts.iter().map(|host| host.name.as_str()),
        );
    }
    found
}

fn switch(sink: &mut Sink<'_>, topology: &Topology, name: &Spanned<String>) -> bool {
    let found = topology.has_switch(&name.value);
    if !found {
        unknown(
            sink,
            "switch",
            name,
            topology.switches.iter().map(String::as_str),
        );
    }
    found
}

fn resolve_fault(
    sink: &mut Sink<'_>,
    raw: &Raw,
    fault: &RawFault,
    (by_name, triggers): (&BTreeMap<String, Vec<usize>>, &[Trigger]),
    epochs: &[Epoch],
) -> Option<Fault> {
    let mut indexes: Vec<usize> = Vec::new();
    let mut named = BTreeSet::new();
    for name in &fault.flows {
        if !named.insert(&name.value) {
            sink.error(
                Code::Duplicate,
                name.span,
                format!("flow `{}` is named twice", name.value),
            );
        }
        let found = by_name.get(&name.value);
        if found.is_none() && !raw.declared.flows.contains(&name.value) {
            unknown(
                sink,
                "flow",
                name,
                raw.flows.iter().map(|flow| flow.name.value.as_str()),
            );
        }
        indexes.extend(found.into_iter().flatten());
    }
    if indexes.len() > MAX_FLOWS_PER_FAULT {
        let message = format!(
            "fault `{}` acts on {} flows; a fault can act on at most {MAX_FLOWS_PER_FAULT}",
            fault.id.value,
            indexes.len()
        );
        sink.error(Code::Capacity, fault.id.span, message)
            .hint("split the fault in two, or replace its flows by fewer, wider ones");
    }
    let place = match &fault.place {
        Some(place) if switch(sink, &raw.topology, &place.switch) => Some(InjectionPoint {
            switch: place.switch.value.clone(),
            direction: place.direction,
        }),
        Some(_) => return None,
        None => None,
    };
    let when = match &fault.when {
        Some(when) => Some(triggers::awaited(sink, when, &raw.triggers, triggers)?),
        None => None,
    };
    let epochs = epochs::during(sink, &fault.during, raw, epochs)?;
    Some(Fault {
        key: decision::fault_key(raw.seed, &fault.id.value),
        id: fault.id.value.clone(),
        flows: indexes,
        effect: fault.effect.value.clone(),
        selection: fault.selection.value.clone(),
        keys: fault.keys.clone(),
        place,
        when,
        epochs,
        span: fault.id.span,
        place_span: fault
            .place
            .as_ref()
            .map_or(fault.span, |place| place.switch.span),
    })
}

fn check_duplicate_ids(sink: &mut Sink<'_>, ids: &[&Spanned<String>]) {
    for (i, id) in ids.iter().enumerate() {
        if let Some(first) = ids[..i].iter().find(|other| other.value == id.value) {
            let (source, first) = (sink.source(), first.span);
            sink.error(
                Code::Duplicate,
                id.span,
                format!("two faults are called `{}`", id.value),
            )
            .related(&source, first, "first declared here");
        }
    }
}

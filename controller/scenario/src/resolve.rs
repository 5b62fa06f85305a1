//! Names to what they name: a file as written becomes a [`Scenario`].

mod disruptions;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;

use parser_gen::{Classes, GenerateError};

use crate::diagnostic::{
    Code, Diagnostic, Diagnostics, Sink, Source, Spanned, enumerate_names, nearest,
};
use crate::disruption::{self, Disruption};
use crate::expect;
use crate::model::{Epoch, Fault, Flow, MAX_FLOWS, MAX_FLOWS_PER_FAULT, Path, Place, Scenario};
use crate::protocols::{Given, Protocols};
use crate::schema::{self, Raw, RawFault, RawFlow, RawStep, Role, templates};
use crate::topology::{Host, Topology};
use crate::trigger::{self, Trigger};
use crate::workload::commands::Command;
use crate::workload::{Workload, WorkloadSource};
use crate::yaml::Node;
use crate::{check, decision, filter, job, overlap, vacuous};

/// Reads and checks a file. Everything that is wrong with it comes back at once.
///
/// A file that names protocol files needs [`load_with`].
pub fn load(file: &str, text: &str) -> Result<Scenario, Diagnostics> {
    load_with(file, text, &Given::default())
}

/// The same with the files that it names, and with those that the command line gives.
pub fn load_with(file: &str, text: &str, given: &Given) -> Result<Scenario, Diagnostics> {
    let mut sink = Sink::new(Source { file, text });
    let scenario = schema::read(&mut sink, given).and_then(|raw| resolve(&mut sink, raw));
    match scenario {
        Some(mut scenario) if !sink.has_errors() => {
            scenario.warnings = sink.into_diagnostics();
            Ok(scenario)
        }
        _ => Err(sink.into_diagnostics()),
    }
}

fn resolve(sink: &mut Sink<'_>, raw: Raw) -> Option<Scenario> {
    // A broken topology makes every host unknown: say only what is wrong with it.
    if sink.has_errors() && raw.topology.links.is_empty() {
        return None;
    }
    check_workload(sink, &raw);
    let flows = flows(sink, &raw);
    let classes = classes(sink, &raw, &flows);
    let by_name = by_name(&flows);
    let epochs = epochs(sink, &raw.steps);
    let (written, named) = (&raw.triggers, &raw.faults);
    let triggers = trigger::resolve(sink, written, named, &raw.declared, &by_name);
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
    // Triggers name faults by their position.
    let is_whole = faults.len() == raw.faults.len() && triggers.len() == raw.triggers.len();
    if is_whole {
        trigger::check(sink, &triggers, &faults, &flows);
    }
    let jobs = job::resolve(sink, &raw);
    let Raw {
        name,
        description,
        seed,
        topology,
        workload,
        workload_file,
        probes,
        expect,
        limits,
        lease,
        abort_if,
        blast_radius,
        declared,
        steps,
        ..
    } = raw;
    let Source { file, text } = sink.source();
    let mut scenario = Scenario {
        protocols: sink.protocols(),
        file: file.to_owned(),
        text: text.to_owned(),
        name,
        description,
        seed,
        topology,
        workload: workload.map(|workload| workload.value.workload),
        workload_file: workload_file.map(|(source, _)| source),
        probes: probes.into_iter().map(|raw| raw.probe).collect(),
        jobs,
        flows,
        classes,
        faults,
        disruptions,
        triggers,
        epochs,
        awaited: Vec::new(),
        expectations: Vec::new(),
        limits,
        lease,
        abort_if: Vec::new(),
        blast_radius,
        warnings: Diagnostics::default(),
    };
    scenario.expectations = expect::read(sink, &scenario, &declared, &expect);
    let awaited: Vec<Node> = steps.iter().filter_map(|step| step.on.clone()).collect();
    scenario.awaited = expect::read_while_running(sink, &scenario, &declared, &awaited);
    scenario.abort_if = expect::read_while_running(sink, &scenario, &declared, &abort_if);
    // A line that was refused may have named one.
    let read = [
        &scenario.expectations,
        &scenario.awaited,
        &scenario.abort_if,
    ];
    let is_read = read.map(Vec::len) == [&expect, &awaited, &abort_if].map(Vec::len);
    if is_whole && is_read {
        trigger::unused(sink, &scenario);
    }
    check::check(sink, &scenario);
    disruption::check(sink, &scenario);
    if !sink.has_errors() {
        vacuous::check(sink, &scenario);
    }
    Some(scenario)
}

/// Reports a name that is not declared, with the nearest one that is.
pub(crate) fn unknown<'s, 'a>(
    sink: &'s mut Sink<'_>,
    what: &str,
    name: &Spanned<String>,
    candidates: impl Iterator<Item = &'a str> + Clone,
) -> &'s mut Diagnostic {
    let hint = match nearest(&name.value, candidates.clone()) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("declared: {}", enumerate_names(candidates)),
    };
    sink.error(
        Code::UnknownName,
        name.span,
        format!("no {what} is called `{}`", name.value),
    )
    .hint(hint)
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

fn check_workload(sink: &mut Sink<'_>, raw: &Raw) {
    let radius = raw.blast_radius.iter();
    for name in radius.flat_map(|radius| radius.hosts.iter().flatten()) {
        host(sink, &raw.topology, name);
    }
    if raw.topology.wire {
        refuse_hosts_of_ours(sink, raw);
        return;
    }
    for probe in raw.probes.iter().filter(|probe| !probe.is_of_file) {
        for name in [&probe.from].into_iter().chain(&probe.hosts) {
            host(sink, &raw.topology, name);
        }
        // Of commands that were refused, no more is said where they are named.
        if !raw.declared.workload_is_refused {
            let commands = || commands(raw).iter().map(|command| command.name.as_str());
            templates::check_folders(sink, &probe.folders, commands);
        }
    }
    let Some(workload) = &raw.workload else {
        return;
    };
    for name in &workload.value.hosts {
        host(sink, &raw.topology, name);
    }
    for name in &workload.value.switches {
        switch(sink, &raw.topology, name);
    }
    if let Some((source, roles)) = &raw.workload_file {
        check_roles(sink, &raw.topology, source, roles);
    }
}

/// Roles that no host was given are played by the hosts of the same name.
fn check_roles(sink: &mut Sink<'_>, topology: &Topology, source: &WorkloadSource, roles: &[Role]) {
    let file = Source {
        file: &source.file,
        text: &source.text,
    };
    for Role { name, declared } in roles {
        if topology.host(&name.value).is_some() {
            continue;
        }
        let role = &name.value;
        let hosts = topology.hosts.iter().map(|host| host.name.as_str());
        let message = format!("role `{role}` of the workload file has no host");
        sink.error(Code::UnknownName, name.span, message)
            .hint(format!(
                "give it one: `hosts: {{{role}: …}}`; the topology has {}",
                enumerate_names(hosts)
            ))
            .related(&file, *declared, "the role");
    }
}

/// The user's programs, if those are the workload.
fn commands(raw: &Raw) -> &[Command] {
    match raw
        .workload
        .as_ref()
        .map(|workload| &workload.value.workload)
    {
        Some(Workload::Commands(commands)) => &commands.commands,
        _ => &[],
    }
}

/// The sides of a wire are machines of somebody else's.
fn refuse_hosts_of_ours(sink: &mut Sink<'_>, raw: &Raw) {
    let hint = "start it on the machines themselves, while `weir between` runs";
    if let Some(workload) = &raw.workload {
        let message = "nothing of ours runs at the ends of a wire: it has no `workload`";
        sink.error(Code::Topology, workload.span, message)
            .hint(hint);
    }
    if let Some(probe) = raw.probes.first() {
        let message = "nothing of ours runs at the ends of a wire: it has no `probes`";
        sink.error(Code::Topology, probe.from.span, message)
            .hint(hint);
    }
}

fn flows(sink: &mut Sink<'_>, raw: &Raw) -> Vec<Flow> {
    let protocols = sink.protocols();
    let declared: BTreeSet<&str> = raw.declared.flows.iter().map(String::as_str).collect();
    for name in &raw.protect {
        if !declared.contains(name.value.as_str()) {
            unknown(
                sink,
                "flow",
                name,
                raw.flows.iter().map(|flow| flow.name.value.as_str()),
            );
        }
    }
    let protected: BTreeSet<&str> = raw.protect.iter().map(|name| name.value.as_str()).collect();
    let mut routes = AllRoutes::new(&raw.topology, &protocols);
    let flows: Vec<Flow> = raw
        .flows
        .iter()
        .flat_map(|flow| {
            let is_protected = protected.contains(flow.name.value.as_str());
            expand(sink, raw, &protocols, &mut routes, flow, is_protected)
        })
        .collect();
    if let Some(flow) = flows.get(MAX_FLOWS) {
        let message = format!(
            "{} flows, and a switch tells {MAX_FLOWS} apart",
            flows.len()
        );
        sink.error(Code::Capacity, flow.span, message)
            .hint("a flow with several hosts in `from` or `to` counts once for each pair");
    }
    flows
}

/// One flow for each pair of the hosts in `from` and `to`, so that each has its own ordinals: a sequence over several
/// senders would depend on how their packets interleave.
fn expand(
    sink: &mut Sink<'_>,
    raw: &Raw,
    library: &Protocols,
    routes: &mut AllRoutes<'_>,
    flow: &RawFlow,
    is_protected: bool,
) -> Vec<Flow> {
    let mut hosts = |names: &[Spanned<String>]| -> Option<Vec<Option<Host>>> {
        let found: Vec<_> = names
            .iter()
            .map(|name| host(sink, &raw.topology, name).cloned())
            .collect();
        if found.iter().any(Option::is_none) {
            return None;
        }
        Some(if found.is_empty() { vec![None] } else { found })
    };
    let (from, to) = (hosts(&flow.from), hosts(&flow.to));
    if let Some(on) = &flow.on
        && !switch(sink, &raw.topology, on)
    {
        return Vec::new();
    }
    let (Some(from), Some(to)) = (from, to) else {
        return Vec::new();
    };
    let pairs = from.len() * to.len();
    if pairs > MAX_FLOWS {
        let message = format!(
            "flow `{}` has {pairs} pairs of hosts, and a switch tells {MAX_FLOWS} flows apart",
            flow.name.value
        );
        sink.error(Code::Capacity, flow.name.span, message)
            .hint("leave `from` or `to` out, and the hosts to its filter");
        return Vec::new();
    }
    let mut flows = Vec::new();
    for (source, target) in from
        .iter()
        .flat_map(|source| to.iter().map(move |target| (source, target)))
    {
        let errors = sink.has_errors();
        let Some(filter) = filter::compile(
            sink,
            library,
            flow.filter.as_ref(),
            &raw.topology,
            source.as_ref(),
            target.as_ref(),
        ) else {
            // The same text would be wrong again for the next pair.
            return flows;
        };
        let mut name = flow.name.value.clone();
        for host in [(&from, source), (&to, target)]
            .iter()
            .filter(|(all, _)| all.len() > 1)
            .filter_map(|(_, h)| h.as_ref())
        {
            name = format!("{name}.{}", host.name);
        }
        let mut paths = routes.paths(&filter, source.as_ref(), target.as_ref());
        if let Some(on) = &flow.on {
            paths.retain(|path| path.switches.contains(&on.value));
        }
        if paths.is_empty() {
            report_unreachable(sink, raw, flow, &filter, errors);
        }
        flows.push(Flow {
            key: decision::flow_key(&name),
            name,
            declared: flow.name.value.clone(),
            filter,
            paths,
            on: flow.on.as_ref().map(|on| on.value.clone()),
            protected: is_protected,
            span: flow.name.span,
        });
    }
    flows
}

/// The flows that a name in a fault stands for: a declared name for all it was expanded to, `name.host` for one.
fn by_name(flows: &[Flow]) -> BTreeMap<String, Vec<usize>> {
    let mut by_name: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    for (index, flow) in flows.iter().enumerate() {
        by_name
            .entry(flow.declared.clone())
            .or_default()
            .push(index);
        if flow.name != flow.declared {
            by_name.entry(flow.name.clone()).or_default().push(index);
        }
    }
    by_name
}

/// Which sets of flows a packet can be in; none, and an error, if the filters ask for too much.
fn classes(sink: &mut Sink<'_>, raw: &Raw, flows: &[Flow]) -> Classes {
    if sink.has_errors() {
        return Classes::default();
    }
    let named: Vec<parser_gen::Flow> = flows
        .iter()
        .map(|flow| parser_gen::Flow {
            name: flow.name.clone(),
            filter: flow.filter.clone(),
        })
        .collect();
    let error = match Classes::new(&sink.protocols(), &named) {
        Ok(classes) => {
            refuse_empty(sink, raw, flows, &classes);
            return classes;
        }
        Err(error) => error,
    };
    let worst = match &error {
        GenerateError::TooManyTerms { flow } => Some(flow),
        GenerateError::TooManyClasses { flows } => flows.first().map(|(flow, _)| flow),
        _ => None,
    };
    let flow = flows.iter().find(|flow| Some(&flow.name) == worst);
    let span = flow.map(|flow| flow.span).unwrap_or_default();
    let hint = match &error {
        GenerateError::TooManyClasses { .. } => Some(
            "each way to overlap takes a number: make filters exclude each other, by ports or hosts",
        ),
        _ => None,
    };
    let diagnostic = sink.error(Code::Capacity, span, error.to_string());
    if let Some(hint) = hint {
        diagnostic.hint(hint);
    }
    Classes::default()
}

/// Filters that contradict what messages are made of, such as a text that is longer than its number can say.
fn refuse_empty(sink: &mut Sink<'_>, raw: &Raw, flows: &[Flow], classes: &Classes) {
    let mut refused = BTreeSet::new();
    for (index, flow) in flows.iter().enumerate() {
        // Of a flow with several hosts, each pair has the same filter.
        if !classes.containing(index).is_empty() || !refused.insert(&flow.declared) {
            continue;
        }
        let mut written = raw.flows.iter();
        let written = written.find(|written| written.name.value == flow.declared);
        let filter = written.and_then(|written| written.filter.as_ref());
        let message = format!(
            "no packet can pass the filter of flow `{}`: its comparisons exclude each other",
            flow.declared
        );
        sink.error(
            Code::Filter,
            filter.map_or(flow.span, |node| node.span),
            message,
        )
        .hint("`&&` asks for all at once, and a text is as long as the number says that counts it");
    }
}

/// The ways between all pairs of hosts: found once, asked for by every flow.
struct AllRoutes<'t> {
    topology: &'t Topology,
    protocols: &'t Protocols,
    /// By position of the receiver, then of the sender.
    ways: BTreeMap<(usize, usize), Option<Vec<String>>>,
}

impl<'t> AllRoutes<'t> {
    fn new(topology: &'t Topology, protocols: &'t Protocols) -> AllRoutes<'t> {
        AllRoutes {
            topology,
            protocols,
            ways: BTreeMap::new(),
        }
    }

    /// The ways that packets of a flow can take: between all hosts whose addresses its filter lets pass.
    fn paths(
        &mut self,
        filter: &parser_gen::Filter,
        from: Option<&Host>,
        to: Option<&Host>,
    ) -> Vec<Path> {
        let topology = self.topology;
        let chosen = |chosen: Option<&Host>| -> Vec<(usize, &Host)> {
            let hosts = topology.hosts.iter().enumerate();
            hosts
                .filter(|(_, host)| chosen.is_none_or(|chosen| chosen.name == host.name))
                .collect()
        };
        let address = |host: &Host| u128::from(host.ip.to_bits());
        let allowed = overlap::Allowed::of(self.protocols, filter);
        let mut paths = Vec::new();
        for (to_at, receiver) in chosen(to) {
            for (from_at, sender) in chosen(from) {
                let mut fixed = vec![("ip.src", address(sender)), ("ip.dst", address(receiver))];
                if topology.wire {
                    let port = topology.next_hop(Topology::WIRE, &sender.name);
                    let port = port.map(|port| ("switch.port", u128::from(port.number)));
                    fixed = port.into_iter().collect();
                }
                if sender.name == receiver.name || !allowed.allows(&fixed, &[]) {
                    continue;
                }
                if let Some(switches) = self.way((to_at, receiver), (from_at, sender)) {
                    paths.push(Path {
                        from: sender.name.clone(),
                        to: receiver.name.clone(),
                        switches,
                    });
                }
            }
        }
        paths
    }

    fn way(&mut self, to: (usize, &Host), from: (usize, &Host)) -> Option<Vec<String>> {
        if let Some(way) = self.ways.get(&(to.0, from.0)) {
            return way.clone();
        }
        let routes = self.topology.routes_to(&to.1.name);
        for (at, sender) in self.topology.hosts.iter().enumerate() {
            let way = routes.path_from(&sender.name);
            let way = way.map(|switches| switches.into_iter().map(str::to_owned).collect());
            self.ways.insert((to.0, at), way);
        }
        self.ways.get(&(to.0, from.0)).cloned().flatten()
    }
}

fn report_unreachable(
    sink: &mut Sink<'_>,
    raw: &Raw,
    flow: &RawFlow,
    filter: &parser_gen::Filter,
    errors: bool,
) {
    if errors && flow.filter.is_none() {
        return;
    }
    let protocols = sink.protocols();
    let no_host = |field: &str| {
        let accepted = |host: &Host| {
            overlap::allows(
                &protocols,
                filter,
                &[(field, u128::from(host.ip.to_bits()))],
            )
        };
        !raw.topology.hosts.iter().any(accepted)
    };
    let reason = if raw.topology.wire {
        "no packet that crosses the wire passes its filter with its `from` and `to`".to_owned()
    } else if !overlap::possible(&protocols, filter) {
        "no packet passes its filter and its hosts' addresses together".to_owned()
    } else if no_host("ip.src") {
        "no host has an address that its filter accepts as source".to_owned()
    } else if no_host("ip.dst") {
        "no host has an address that its filter accepts as destination".to_owned()
    } else if let Some(on) = &flow.on {
        format!("no path between its hosts crosses switch `{}`", on.value)
    } else {
        "no path of the network leads from its senders to its receivers".to_owned()
    };
    sink.error(
        Code::Unreachable,
        flow.name.span,
        format!("no path reaches flow `{}`: {reason}", flow.name.value),
    )
    .hint(format!(
        "the flow's filter with its hosts' addresses is `{}`",
        filter.text()
    ));
}

/// Steps and the gaps between them, numbered from 1: a fault without `during` acts in all of them.
fn epochs(sink: &Sink<'_>, steps: &[RawStep]) -> Vec<Epoch> {
    let start = Epoch {
        epoch: 1,
        at_ns: 0,
        step: None,
        on: None,
    };
    let mut epochs = vec![start.clone()];
    for step in steps {
        let text = |node: &Node| sink.source().text.get(node.span.start..node.span.end);
        let mut on = step.on.as_ref().and_then(text).map(str::to_owned);
        for time in &step.times {
            let on = on.take();
            // A step that starts where the last mark stands takes its place, but where that waits for something.
            let is_hidden = |last: &Epoch| on.is_none() && last.at_ns >= time.at_ns;
            while epochs
                .last()
                .is_some_and(|last| is_hidden(last) && last.on.is_none())
            {
                epochs.pop();
            }
            let name = Some(step.name.value.clone());
            epochs.push(Epoch {
                at_ns: time.at_ns,
                step: name,
                on,
                ..start.clone()
            });
            if let Some(length) = time.for_ns {
                epochs.push(Epoch {
                    at_ns: time.at_ns.saturating_add(length),
                    ..start.clone()
                });
            }
        }
    }
    for (epoch, number) in epochs.iter_mut().zip(1..) {
        epoch.epoch = number;
    }
    epochs
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
            "fault `{}` acts on {} flows; a unit has {MAX_FLOWS_PER_FAULT} state cells",
            fault.id.value,
            indexes.len()
        );
        sink.error(Code::Capacity, fault.id.span, message)
            .hint("split the fault, or widen its flows' filters");
    }
    let place = match &fault.place {
        Some(place) if switch(sink, &raw.topology, &place.switch) => Some(Place {
            switch: place.switch.value.clone(),
            direction: place.direction,
        }),
        Some(_) => return None,
        None => None,
    };
    let when = match &fault.when {
        Some(when) => Some(trigger::awaited(sink, when, &raw.triggers, triggers)?),
        None => None,
    };
    let epochs = during(sink, &fault.during, raw, epochs)?;
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

fn during(
    sink: &mut Sink<'_>,
    steps: &[Spanned<String>],
    raw: &Raw,
    epochs: &[Epoch],
) -> Option<Vec<RangeInclusive<u16>>> {
    let known = |name: &str| raw.steps.iter().any(|step| step.name.value == name);
    let mut good = true;
    for name in steps.iter().filter(|name| !known(&name.value)) {
        good = false;
        unknown(
            sink,
            "step",
            name,
            raw.steps.iter().map(|step| step.name.value.as_str()),
        );
    }
    let wanted = |epoch: &&Epoch| {
        let named = |step: &String| steps.iter().any(|name| name.value == *step);
        steps.is_empty() || epoch.step.as_ref().is_some_and(named)
    };
    let mut ranges: Vec<RangeInclusive<u16>> = Vec::new();
    for epoch in epochs.iter().filter(wanted) {
        match ranges.last_mut() {
            Some(last) if last.end() + 1 == epoch.epoch => *last = *last.start()..=epoch.epoch,
            _ => ranges.push(epoch.epoch..=epoch.epoch),
        }
    }
    good.then_some(ranges)
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
            .related(&source, first, "the first");
        }
    }
}

//! Resolves flows: expands each declared flow to flows between two hosts, and computes which flows share packets.

use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;

use parser_gen::filter::{Expr, Node, ValueSet};
use parser_gen::{Classes, GenerateError};

use super::routes::{AllRoutes, PlannedWays};
use super::{host, switch};
use crate::diagnostic::{Code, Sink, Spanned, unknown};
use crate::file::filter;
use crate::file::schema::{Raw, RawFlow};
use crate::file::yaml::Kind;
use crate::model::protocols::Protocols;
use crate::model::routing::Ways;
use crate::model::topology::Host;
use crate::model::workload::Training;
use crate::model::{Flow, MAX_FLOWS};
use crate::model::{decision, overlap};

pub(super) fn resolve(
    sink: &mut Sink<'_>,
    raw: &Raw,
    planned: PlannedWays,
    ways: Option<&Ways>,
) -> Vec<Flow> {
    let protocols = &raw.protocols;
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
    let mut routes = AllRoutes::new(&raw.topology, protocols, planned, ways);
    let flows: Vec<Flow> = raw
        .flows
        .iter()
        .flat_map(|flow| {
            let is_protected = protected.contains(flow.name.value.as_str());
            expand(sink, raw, protocols, &mut routes, flow, is_protected)
        })
        .collect();
    if let Some(flow) = flows.get(MAX_FLOWS) {
        let message = format!(
            "the file has {} flows; a switch can distinguish {MAX_FLOWS}",
            flows.len()
        );
        sink.error(Code::Capacity, flow.span, message)
            .hint("a flow with several hosts in `from` or `to` counts once for each pair of hosts");
    }
    flows
}

/// Expands a declared flow to one flow for each pair of hosts in `from` and `to`, so that packets are counted for each pair. If
/// several senders shared a count, it would depend on the order in which their packets come.
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
            "flow `{}` has {pairs} pairs of hosts; a switch can distinguish {MAX_FLOWS} flows",
            flow.name.value
        );
        sink.error(Code::Capacity, flow.name.span, message)
            .hint("leave `from` or `to` out, and test the hosts' addresses in `filter`");
        return Vec::new();
    }
    let is_rank = |host: &Host| {
        let mut ranks = raw.jobs.iter().flat_map(|job| &job.ranks);
        let trains = |training: &Training| training.workers.contains(&host.name);
        ranks.any(|rank| rank.value == host.name)
            || raw.training().is_some_and(|(training, _)| trains(training))
    };
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
            (source.as_ref(), source.as_ref().is_some_and(is_rank)),
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

/// For each name of flows that faults may use: indexes of the flows. A declared name means all its flows, `name.host` one.
pub(super) fn by_name(flows: &[Flow]) -> BTreeMap<String, Vec<usize>> {
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

/// Each set of flows to which one packet can belong; empty, with an error reported, if the filters exceed the limits.
pub(super) fn classes(sink: &mut Sink<'_>, raw: &Raw, flows: &[Flow]) -> Classes {
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
    let error = match Classes::new(&raw.protocols, &named) {
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
            "make the flows disjoint, for example by ports or hosts: each combination of overlapping flows needs its own number on the switch",
        ),
        _ => None,
    };
    let diagnostic = sink.error(Code::Capacity, span, error.to_string());
    if let Some(hint) = hint {
        diagnostic.hint(hint);
    }
    Classes::default()
}

/// Refuses filters that no message can match, such as a text that is longer than its length field allows.
fn refuse_empty(sink: &mut Sink<'_>, raw: &Raw, flows: &[Flow], classes: &Classes) {
    let mut refused = BTreeSet::new();
    for (index, flow) in flows.iter().enumerate() {
        // In a flow with several hosts, each pair has the same filter.
        if !classes.containing(index).is_empty() || !refused.insert(&flow.declared) {
            continue;
        }
        let mut written = raw.flows.iter();
        let written = written.find(|written| written.name.value == flow.declared);
        let filter = written.and_then(|written| written.filter.as_ref());
        let message = format!(
            "no packet can match the filter of flow `{}`: its comparisons contradict each other",
            flow.declared
        );
        sink.error(
            Code::Filter,
            filter.map_or(flow.span, |node| node.span),
            message,
        )
        .hint(
            "all comparisons joined by `&&` must hold for one packet; a text field must have the length that its length field gives",
        );
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
    let protocols = &raw.protocols;
    let no_host = |field: &str| {
        let accepted = |host: &Host| {
            overlap::allows(protocols, filter, &[(field, u128::from(host.ip.to_bits()))])
        };
        !raw.topology.hosts.iter().any(accepted)
    };
    let reason = if raw.topology.wire {
        "no packet that crosses the wire matches its filter and its `from` and `to`".to_owned()
    } else if !overlap::possible(protocols, filter) {
        "no packet matches both its filter and its hosts' addresses".to_owned()
    } else if no_host("ip.src") {
        "no host has a source address that its filter accepts".to_owned()
    } else if no_host("ip.dst") {
        "no host has a destination address that its filter accepts".to_owned()
    } else if let Some(on) = &flow.on {
        format!("no path between its hosts crosses switch `{}`", on.value)
    } else {
        "the network has no path from its senders to its receivers".to_owned()
    };
    let elsewhere = instead(protocols, flow).filter(|_| !raw.topology.wire);
    sink.error(
        Code::Unreachable,
        flow.name.span,
        format!(
            "no packet can belong to flow `{}`: {reason}",
            flow.name.value
        ),
    )
    .hint(elsewhere.unwrap_or_else(|| {
        format!(
            "the flow's filter, including its hosts' addresses, is `{}`",
            filter.text()
        )
    }));
}

/// The hint for a flow whose filter excludes the IPv4 addresses of all hosts: it tests other protocols or multicast addresses.
fn instead(protocols: &Protocols, flow: &RawFlow) -> Option<String> {
    let Kind::Text { value, .. } = &flow.filter.as_ref()?.kind else {
        return None;
    };
    let filter = parser_gen::Filter::parse(protocols, value).ok()?;
    let mut tests = Vec::new();
    collect(filter.root(), &mut tests);
    let ether_type =
        tests.iter().find_map(
            |(name, _)| match name.split('.').next().unwrap_or_default() {
                "arp" => Some("0x0806"),
                name if name.starts_with("ipv6") || name == "icmpv6" => Some("0x86dd"),
                _ => None,
            },
        );
    if let Some(ether_type) = ether_type {
        return Some(format!(
            "hosts have IPv4 addresses only: write `eth.type == {ether_type}` without `from` and `to`, or `eth.type == {ether_type} && switch.port == 1` for packets that enter at that port"
        ));
    }
    tests.into_iter().find_map(|(name, node)| {
        let Expr::Test(test) = &node.expr else {
            return None;
        };
        let ValueSet::Numbers(ranges) = &test.set else {
            return None;
        };
        let address = u32::try_from(*ranges.first()?.start()).ok()?;
        let ip = Ipv4Addr::from_bits(address);
        let mac = match (ip.is_multicast(), ip.is_broadcast()) {
            (true, _) => {
                let [_, second, third, fourth] = ip.octets();
                format!("01:00:5e:{:02x}:{third:02x}:{fourth:02x}", second & 0x7f)
            }
            (_, true) => "ff:ff:ff:ff:ff:ff".to_owned(),
            _ => return None,
        };
        let is_one = ranges.len() == 1 && ranges[0].start() == ranges[0].end() && !test.negated;
        (name == "ip.dst" && is_one).then(|| {
            let mut text = value.clone();
            text.replace_range(node.span.clone(), &format!("eth.dst == {mac}"));
            format!("no host has a multicast or broadcast address: write `{text}`")
        })
    })
}

/// Collects the names of the protocols and fields that a filter tests, with their nodes.
fn collect<'f>(node: &'f Node, found: &mut Vec<(&'f str, &'f Node)>) {
    match &node.expr {
        Expr::Or(parts) | Expr::And(parts) => parts.iter().for_each(|part| collect(part, found)),
        Expr::Not(inner) => collect(inner, found),
        Expr::Present { protocol } => found.push((protocol, node)),
        Expr::Test(test) => found.push((&test.field, node)),
    }
}

//! Reads topologies whose switches, hosts and links are listed.

use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;

use super::super::reader;
use super::super::shape::{Object, Shape, may, needed};
use super::attributes::{
    self, Attributes, ECN, FRAMES, HOST_BUSY, HOST_GPUS, HOST_SLOTS, LINK_LOAD, MTU_RANGE,
    POSITIVE_RATE, latency,
};
use super::{For, once, too_many};
use crate::diagnostic::{Code, Sink, Span, Spanned, nearest};
use crate::file::yaml::{Kind, Node};
use crate::model::topology::{
    Capacity, DEFAULT_LATENCY_NS, DEFAULT_MTU, DEFAULT_RATE_BPS, Host, Link, Mac, Machine,
    Topology, default_ip,
};

pub(super) static EXPLICIT: Object = Object {
    what: "a topology",
    keys: &[
        needed("switches", SWITCHES, "names, or `{name, throughput, …}`"),
        needed("hosts", HOSTS, "names, or `{name, ip, mac}`"),
        needed(
            "links",
            Shape::List(&LINK_OR_ENDS),
            "`[a, sw]`, or with attributes",
        ),
        may("rate", POSITIVE_RATE, "of links without `rate`").or(DEFAULT_RATE_BPS),
        latency("of links without `latency`, one way").or(DEFAULT_LATENCY_NS),
        ECN,
        may("mtu", MTU_RANGE, "of links without `mtu`").or(DEFAULT_MTU as u64),
    ],
};

const SWITCHES: Shape = Shape::Either(&[
    Shape::Names("a switch"),
    Shape::List(&Shape::Either(&[
        Shape::Name("a switch"),
        Shape::Object(&attributes::SWITCH),
    ])),
]);
pub(super) const HOSTS: Shape = Shape::List(&Shape::Either(&[
    Shape::Name("a host"),
    Shape::Object(&HOST),
]));

static HOST: Object = Object {
    what: "a host",
    keys: &[
        needed("name", Shape::Name("a host"), "its name"),
        may("ip", Shape::Text, "its IPv4 address; the n-th has 10.0.0.n"),
        may(
            "mac",
            Shape::Text,
            "its MAC address; the n-th has 02:57:45:00:00:n",
        ),
        HOST_GPUS,
        HOST_SLOTS,
        HOST_BUSY,
    ],
};

static LINK_OR_ENDS: Shape =
    Shape::Either(&[Shape::Names("an end of a link"), Shape::Object(&LINK)]);

static LINK: Object = Object {
    what: "a link",
    keys: &[
        needed(
            "ends",
            Shape::Names("an end of a link"),
            "a host or switch, and a switch",
        ),
        may(
            "rate",
            POSITIVE_RATE,
            "what it carries in each direction; the topology's",
        ),
        latency("one way; the topology's"),
        may(
            "ecn",
            FRAMES,
            "queue length at a switch's port, in frames, from which it marks (ECN) further frames; the topology's",
        ),
        may("mtu", MTU_RANGE, "the largest packet; the topology's"),
        LINK_LOAD,
    ],
};

pub(super) fn read(sink: &mut Sink<'_>, node: &Node, what_for: For) -> Option<Topology> {
    let fields = reader::fields(sink, node, &EXPLICIT)?;
    let attributes = Attributes::default().read(sink, &fields);
    let named = fields.get("switches")?;
    let switches = switches(sink, named)?;
    // Checked before links are matched with switches, to bound the work.
    if switches.len() > what_for.most_nodes() {
        too_many(sink, "switches", switches.len(), named.span, what_for);
        return None;
    }
    let hosts = hosts(sink, fields.get("hosts")?, what_for)?;
    let mut seen = BTreeSet::new();
    let names = switches.iter().map(|(name, _)| (&name.value, name.span));
    for (name, span) in names.chain(hosts.iter().map(|(host, span)| (&host.name, *span))) {
        once(sink, &mut seen, name, span);
    }
    let most = what_for.most_nodes();
    if switches.len() + hosts.len() > most {
        sink.error(
            Code::Capacity,
            node.span,
            format!("the topology has more than {most} hosts and switches"),
        );
    }
    let stated = |(name, capacity): &(Spanned<String>, Capacity)| {
        (*capacity != Capacity::default()).then(|| (name.value.clone(), *capacity))
    };
    let mut topology = Topology {
        capacities: switches.iter().filter_map(stated).collect(),
        switches: switches.into_iter().map(|(name, _)| name.value).collect(),
        hosts: hosts.iter().map(|(host, _)| host.clone()).collect(),
        ..Topology::default()
    };
    for item in reader::list(sink, fields.get("links")?, "`links`").unwrap_or_default() {
        topology.links.extend(link(sink, item, &seen, attributes));
    }
    check_shape(sink, &topology, &hosts, node.span, what_for);
    if what_for == For::Running {
        check_addresses(sink, &hosts);
    }
    Some(topology)
}

/// Reads the list of switches: names, or mappings with name and capacity.
fn switches(sink: &mut Sink<'_>, node: &Node) -> Option<Vec<(Spanned<String>, Capacity)>> {
    let Kind::List(items) = &node.kind else {
        let name = reader::name(sink, node, "a switch")?;
        return Some(vec![(name, Capacity::default())]);
    };
    let mut switch = |item: &Node| match item.kind {
        Kind::Map(_) => {
            let fields = reader::fields(sink, item, &attributes::SWITCH)?;
            let capacity = attributes::capacity(sink, &fields);
            Some((fields.name(sink, "name")?, capacity))
        }
        _ => Some((reader::name(sink, item, "a switch")?, Capacity::default())),
    };
    Some(items.iter().filter_map(&mut switch).collect())
}

/// Reads the hosts of a topology, each with its position: a list of names, or of `{name, ip, mac}`.
pub(super) fn hosts(sink: &mut Sink<'_>, node: &Node, what_for: For) -> Option<Vec<(Host, Span)>> {
    let mut hosts = Vec::new();
    let items = reader::list(sink, node, "`hosts`").unwrap_or_default();
    if let Some(beyond) = items.get(what_for.most_nodes()) {
        too_many(sink, "hosts", items.len(), beyond.span, what_for);
        return None;
    }
    for item in items {
        let index = hosts.len() + 1;
        let (mut ip, mut mac) = (default_ip(index), Mac::of_host(index));
        let mut machine = Machine::default();
        let name = if let Kind::Map(_) = item.kind {
            let Some(fields) = reader::fields(sink, item, &HOST) else {
                continue;
            };
            if let Some(text) = fields.text(sink, "ip") {
                ip = address(sink, &text, "an IPv4 address", "10.0.0.1").unwrap_or(ip);
            }
            if let Some(text) = fields.text(sink, "mac") {
                mac = address(sink, &text, "a MAC address", "02:00:00:00:00:01").unwrap_or(mac);
                if mac.0[0] & 1 == 1 {
                    sink.error(
                        Code::Topology,
                        text.span,
                        format!("{mac} is a multicast address, not the address of one host"),
                    );
                }
            }
            machine = attributes::machine(sink, &fields);
            fields.name(sink, "name")
        } else {
            reader::name(sink, item, "a host")
        };
        if let Some(name) = name {
            hosts.push((
                Host {
                    name: name.value,
                    ip,
                    mac,
                    machine,
                },
                name.span,
            ));
        }
    }
    Some(hosts)
}

fn address<T: std::str::FromStr>(
    sink: &mut Sink<'_>,
    text: &Spanned<String>,
    what: &str,
    example: &str,
) -> Option<T> {
    let parsed = text.value.parse().ok();
    if parsed.is_none() {
        sink.error(
            Code::WrongType,
            text.span,
            format!("`{}` is not {what}", text.value),
        )
        .hint(format!("write for example `{example}`"));
    }
    parsed
}

/// Reads a link: `[a, sw]` or `{ends: [a, sw], rate: …}`.
fn link(
    sink: &mut Sink<'_>,
    node: &Node,
    known: &BTreeSet<String>,
    inherited: Attributes,
) -> Option<Link> {
    let (ends, attributes, load_bps) = match &node.kind {
        Kind::List(_) => (node, inherited, [0, 0]),
        _ => {
            let fields = reader::fields(sink, node, &LINK)?;
            let attributes = inherited.read(sink, &fields);
            let load = fields.read("load", |node| {
                attributes::load(sink, node, attributes.rate_bps)
            });
            (fields.get("ends")?, attributes, load.unwrap_or([0, 0]))
        }
    };
    let names = reader::names(sink, ends, "an end of a link")?;
    let [a, b] = names.as_slice() else {
        sink.error(
            Code::Topology,
            ends.span,
            format!("a link must have two ends; found {}", names.len()),
        )
        .hint("write for example `[a, sw]`");
        return None;
    };
    let mut good = true;
    for end in [a, b] {
        if !known.contains(&end.value) {
            good = false;
            let diagnostic = sink.error(
                Code::UnknownName,
                end.span,
                format!("no host or switch is called `{}`", end.value),
            );
            if let Some(near) = nearest(&end.value, known.iter().map(String::as_str)) {
                diagnostic.hint(format!("did you mean `{near}`?"));
            }
        }
    }
    if a.value == b.value {
        good = false;
        sink.error(
            Code::Topology,
            ends.span,
            format!("a link connects `{}` to itself", a.value),
        );
    }
    good.then(|| Link {
        load_bps,
        ..attributes.link(&a.value, &b.value)
    })
}

/// The names of the neighbors of each host and switch, by name.
pub(super) fn links_of_hosts(topology: &Topology) -> BTreeMap<&str, Vec<&str>> {
    let mut peers: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for link in &topology.links {
        let [a, b] = link.ends.each_ref().map(String::as_str);
        peers.entry(a).or_default().push(b);
        peers.entry(b).or_default().push(a);
    }
    peers
}

fn check_shape(
    sink: &mut Sink<'_>,
    topology: &Topology,
    hosts: &[(Host, Span)],
    span: Span,
    what_for: For,
) {
    if topology.switches.is_empty() {
        sink.error(
            Code::Topology,
            span,
            "a topology needs at least one switch; found none",
        );
    }
    let switches: BTreeSet<&str> = topology.switches.iter().map(String::as_str).collect();
    let peers = links_of_hosts(topology);
    for (host, span) in hosts {
        let peers = peers.get(host.name.as_str()).map_or(&[][..], Vec::as_slice);
        let other = peers.iter().find(|peer| !switches.contains(*peer));
        match (peers.len(), other, what_for) {
            (1, None, _) | (1.., None, For::Planning) => {}
            (1, Some(other), _) | (1.., Some(other), For::Planning) => {
                sink.error(
                    Code::Topology,
                    *span,
                    format!("host `{}` is linked to host `{other}`", host.name),
                )
                .hint("link both hosts to a switch");
            }
            (links, ..) => report_links(sink, &host.name, links, *span),
        }
    }
}

/// Reports a host without a link, or with more links than a testbed supports.
pub(super) fn report_links(sink: &mut Sink<'_>, host: &str, links: usize, span: Span) {
    let message =
        format!("host `{host}` has {links} links, but must have exactly one, to a switch");
    let diagnostic = sink.error(Code::Topology, span, message);
    if links > 1 {
        diagnostic.hint(
            "leave the other links out: weir can plan for hosts with several links, but cannot run them yet",
        );
    }
}

pub(super) fn check_addresses(sink: &mut Sink<'_>, hosts: &[(Host, Span)]) {
    for (i, (host, span)) in hosts.iter().enumerate() {
        for (other, _) in &hosts[..i] {
            if host.ip == other.ip || host.mac == other.mac {
                let address = if host.ip == other.ip {
                    host.ip.to_string()
                } else {
                    host.mac.to_string()
                };
                let message = format!(
                    "hosts `{}` and `{}` have the same address {address}",
                    other.name, host.name
                );
                sink.error(Code::Topology, *span, message)
                    .hint("leave the address out of one of them, or write another");
            }
        }
        let octets = Ipv4Addr::octets(&host.ip);
        if hosts
            .first()
            .is_some_and(|(first, _)| first.ip.octets()[..2] != octets[..2])
        {
            let message = format!(
                "the address {} of host `{}` is outside the first host's /16 subnet",
                host.ip, host.name
            );
            sink.error(Code::Topology, *span, message)
                .hint("all hosts share one subnet: switches do not route");
        }
    }
}

//! Section `topology`: a built-in shape, a wire, or switches, hosts and links.

use std::net::Ipv4Addr;

use super::shape::{DURATION, Object, RATE, Shape, may, needed};
use super::{reader, sides};
use crate::diagnostic::{Code, Sink, Span, Spanned, nearest};
use crate::topology::{Host, Link, MAX_LATENCY_NS, MOST_MARK_AT, Mac, Topology, default_ip};
use crate::units::Dimension;
use crate::yaml::{Kind, Node};

const MAX_NODES: usize = 512;

pub(super) static TOPOLOGY: Shape = Shape::Either(&[
    Shape::Object(&IN_A_STAR),
    Shape::Object(&WIRE),
    Shape::Object(&EXPLICIT),
]);

static IN_A_STAR: Object = Object {
    what: "a star as a topology",
    keys: &[needed(
        "star",
        Shape::Object(&STAR),
        "one switch, and each host on it",
    )],
};

static STAR: Object = Object {
    what: "a star",
    keys: &[
        needed("hosts", HOSTS, "names, or `{name, ip, mac}`"),
        may("switch", Shape::Name, "its name; `sw`"),
        may("rate", RATE, "of each link; 1Gbit/s"),
        may("latency", DURATION, "of each link, one way; 0s"),
        may("ecn", FRAMES, ECN),
        may("mtu", MTU, "of each link; 1500"),
    ],
};

static WIRE: Object = Object {
    what: "a wire",
    keys: &[
        needed(
            "wire",
            Shape::List(&SIDE_OR_NAME),
            "two sides that exist, for `weir between`",
        ),
        may("rate", RATE, "what it carries; 1Gbit/s"),
    ],
};

static SIDE_OR_NAME: Shape = Shape::Either(&[Shape::Name, Shape::Object(&sides::SIDE)]);

static EXPLICIT: Object = Object {
    what: "a topology",
    keys: &[
        needed("switches", Shape::Names, "names"),
        needed("hosts", HOSTS, "names, or `{name, ip, mac}`"),
        needed(
            "links",
            Shape::List(&LINK_OR_ENDS),
            "`[a, sw]`, or with attributes",
        ),
        may("rate", RATE, "of links that say nothing; 1Gbit/s"),
        may(
            "latency",
            DURATION,
            "of links that say nothing, one way; 0s",
        ),
        may("ecn", FRAMES, ECN),
        may("mtu", MTU, "of links that say nothing; 1500"),
    ],
};

const HOSTS: Shape = Shape::List(&Shape::Either(&[Shape::Name, Shape::Object(&HOST)]));
const MTU: Shape = Shape::Integer(576, 65_535);
const FRAMES: Shape = Shape::Integer(1, MOST_MARK_AT as u64);
const ECN: &str = "so many frames that wait at a switch's port have it mark (ECN) those that come";

static HOST: Object = Object {
    what: "a host",
    keys: &[
        needed("name", Shape::Name, "its name"),
        may("ip", Shape::Text, "its IPv4 address; the n-th has 10.0.0.n"),
        may(
            "mac",
            Shape::Text,
            "its MAC address; the n-th has 02:57:45:00:00:n",
        ),
    ],
};

static LINK_OR_ENDS: Shape = Shape::Either(&[Shape::Names, Shape::Object(&LINK)]);

static LINK: Object = Object {
    what: "a link",
    keys: &[
        needed("ends", Shape::Names, "a host or switch, and a switch"),
        may(
            "rate",
            RATE,
            "what it carries in each direction; the topology's",
        ),
        may("latency", DURATION, "one way; the topology's"),
        may(
            "ecn",
            FRAMES,
            "so many frames that wait at a switch's port for it have that mark (ECN) those that come; the topology's",
        ),
        may("mtu", MTU, "the largest packet; the topology's"),
    ],
};

pub(super) fn read(sink: &mut Sink<'_>, node: &Node) -> Option<Topology> {
    match &node.kind {
        Kind::Map(entries) if entries.len() == 1 && entries[0].key == "star" => {
            star(sink, &entries[0].value)
        }
        Kind::Map(entries) if entries.iter().any(|entry| entry.key == "wire") => wire(sink, node),
        _ => explicit(sink, node),
    }
}

/// `star: {hosts: [a, b], switch: sw, rate: …}`
fn star(sink: &mut Sink<'_>, node: &Node) -> Option<Topology> {
    let fields = reader::fields(sink, node, &STAR)?;
    let switch = match fields.get("switch") {
        Some(node) => reader::name(sink, node, "a switch")?.value,
        None => "sw".to_owned(),
    };
    let attributes = Attributes::default().read(sink, &fields);
    let hosts = hosts(sink, fields.get("hosts")?)?;
    let links = hosts
        .iter()
        .map(|(host, _)| attributes.link(&host.name, &switch))
        .collect();
    check_addresses(sink, &hosts);
    let mut seen = vec![switch.clone()];
    for (host, span) in &hosts {
        once(sink, &mut seen, &host.name, *span);
    }
    Some(Topology {
        switches: vec![switch],
        hosts: hosts.into_iter().map(|(host, _)| host).collect(),
        links,
        wire: false,
        sides: Vec::new(),
    })
}

/// `wire: [left, right]`: two sides that exist, and what stands between them. A side may say what it is (sides.rs).
fn wire(sink: &mut Sink<'_>, node: &Node) -> Option<Topology> {
    let fields = reader::fields(sink, node, &WIRE)?;
    let attributes = Attributes::default().read_rate(sink, &fields);
    let named = fields.get("wire")?;
    let read = sides::read(sink, named)?;
    let sides: Vec<_> = read.iter().map(|(name, _)| name.clone()).collect();
    let [a, b] = sides.as_slice() else {
        let message = format!("a wire has two sides; found {}", sides.len());
        sink.error(Code::Topology, named.span, message)
            .hint("for example `wire: [left, right]`");
        return None;
    };
    let mut seen = vec![Topology::WIRE.to_owned()];
    for side in [a, b] {
        once(sink, &mut seen, &side.value, side.span);
    }
    let mut topology = Topology::wire_between([&a.value, &b.value]);
    for link in &mut topology.links {
        link.rate_bps = attributes.rate_bps;
    }
    topology.sides = sides::together(sink, named, read)?;
    Some(topology)
}

fn explicit(sink: &mut Sink<'_>, node: &Node) -> Option<Topology> {
    let fields = reader::fields(sink, node, &EXPLICIT)?;
    let attributes = Attributes::default().read(sink, &fields);
    let switches = reader::names(sink, fields.get("switches")?, "a switch")?;
    let named = fields.get("switches")?;
    // Before they are held against each other.
    if switches.len() > MAX_NODES {
        too_many(sink, "switches", switches.len(), named.span);
        return None;
    }
    let hosts = hosts(sink, fields.get("hosts")?)?;
    let mut seen = Vec::new();
    for (name, span) in switches
        .iter()
        .map(|s| (&s.value, s.span))
        .chain(hosts.iter().map(|(h, s)| (&h.name, *s)))
    {
        once(sink, &mut seen, name, span);
    }
    if seen.len() > MAX_NODES {
        sink.error(
            Code::Capacity,
            node.span,
            format!("more than {MAX_NODES} hosts and switches"),
        );
    }
    let mut topology = Topology {
        switches: switches.into_iter().map(|switch| switch.value).collect(),
        hosts: hosts.iter().map(|(host, _)| host.clone()).collect(),
        links: Vec::new(),
        wire: false,
        sides: Vec::new(),
    };
    for item in reader::list(sink, fields.get("links")?, "`links`").unwrap_or_default() {
        topology.links.extend(link(sink, item, &seen, attributes));
    }
    check_shape(sink, &topology, &hosts, node.span);
    check_addresses(sink, &hosts);
    Some(topology)
}

fn once(sink: &mut Sink<'_>, seen: &mut Vec<String>, name: &str, span: Span) {
    if seen.iter().any(|other| other == name) {
        sink.error(Code::Duplicate, span, format!("`{name}` is declared twice"));
    }
    seen.push(name.to_owned());
}

fn too_many(sink: &mut Sink<'_>, what: &str, count: usize, span: Span) {
    let message = format!("{count} {what}; a topology has at most {MAX_NODES}");
    sink.error(Code::Capacity, span, message);
}

/// A list of names, or of `{name, ip, mac}`.
fn hosts(sink: &mut Sink<'_>, node: &Node) -> Option<Vec<(Host, Span)>> {
    let mut hosts = Vec::new();
    let items = reader::list(sink, node, "`hosts`").unwrap_or_default();
    if let Some(beyond) = items.get(MAX_NODES) {
        too_many(sink, "hosts", items.len(), beyond.span);
        return None;
    }
    for item in items {
        let index = hosts.len() + 1;
        let (mut ip, mut mac) = (default_ip(index), Mac::of_host(index));
        let name = if let Kind::Map(_) = item.kind {
            let Some(fields) = reader::fields(sink, item, &HOST) else {
                continue;
            };
            if let Some(text) = fields
                .get("ip")
                .and_then(|node| reader::text(sink, node, "an address"))
            {
                ip = address(sink, &text, "an IPv4 address", "10.0.0.1").unwrap_or(ip);
            }
            if let Some(text) = fields
                .get("mac")
                .and_then(|node| reader::text(sink, node, "a MAC address"))
            {
                mac = address(sink, &text, "a MAC address", "02:00:00:00:00:01").unwrap_or(mac);
                if mac.0[0] & 1 == 1 {
                    sink.error(
                        Code::Topology,
                        text.span,
                        format!("{mac} is a group address, not one host's"),
                    );
                }
            }
            fields
                .get("name")
                .and_then(|node| reader::name(sink, node, "a host"))
        } else {
            reader::name(sink, item, "a host")
        };
        if let Some(name) = name {
            hosts.push((
                Host {
                    name: name.value,
                    ip,
                    mac,
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
        .hint(format!("for example `{example}`"));
    }
    parsed
}

/// What a link has, and what links inherit from the section.
#[derive(Clone, Copy)]
struct Attributes {
    rate_bps: u64,
    latency_ns: u64,
    latency_span: Span,
    mark_at: Option<u32>,
    mark_span: Span,
    mtu: u32,
}

impl Default for Attributes {
    fn default() -> Self {
        let Link {
            rate_bps,
            latency_ns,
            latency_span,
            mark_at,
            mark_span,
            mtu,
            ..
        } = Link::new("", "");
        Self {
            rate_bps,
            latency_ns,
            latency_span,
            mark_at,
            mark_span,
            mtu,
        }
    }
}

impl Attributes {
    fn read(self, sink: &mut Sink<'_>, fields: &reader::Fields<'_>) -> Self {
        let mut read = self.read_rate(sink, fields);
        if let Some(node) = fields.get("latency")
            && let Some(latency) = reader::quantity(sink, node, "`latency`", Dimension::Duration)
        {
            if latency.value > MAX_LATENCY_NS {
                sink.error(
                    Code::OutOfRange,
                    latency.span,
                    "a link takes at most 10s one way",
                );
            }
            read.latency_ns = latency.value;
            read.latency_span = latency.span;
        }
        if let Some(node) = fields.get("ecn")
            && let Some(frames) = reader::integer(sink, node, "`ecn`", 1..=u64::from(MOST_MARK_AT))
        {
            read.mark_at = Some(frames as u32);
            read.mark_span = node.span;
        }
        if let Some(node) = fields.get("mtu")
            && let Some(mtu) = reader::integer(sink, node, "`mtu`", 576..=65_535)
        {
            read.mtu = mtu as u32;
        }
        read
    }

    fn read_rate(mut self, sink: &mut Sink<'_>, fields: &reader::Fields<'_>) -> Self {
        if let Some(node) = fields.get("rate")
            && let Some(rate) = reader::quantity(sink, node, "`rate`", Dimension::Rate)
        {
            if rate.value == 0 {
                sink.error(
                    Code::OutOfRange,
                    rate.span,
                    "a link carries more than 0bit/s",
                );
            }
            self.rate_bps = rate.value;
        }
        self
    }

    fn link(self, a: &str, b: &str) -> Link {
        let ends = [a.to_owned(), b.to_owned()];
        Link {
            ends,
            rate_bps: self.rate_bps,
            latency_ns: self.latency_ns,
            latency_span: self.latency_span,
            mark_at: self.mark_at,
            mark_span: self.mark_span,
            mtu: self.mtu,
        }
    }
}

/// `[a, sw]` or `{ends: [a, sw], rate: …}`
fn link(sink: &mut Sink<'_>, node: &Node, known: &[String], inherited: Attributes) -> Option<Link> {
    let (ends, attributes) = match &node.kind {
        Kind::List(_) => (node, inherited),
        _ => {
            let fields = reader::fields(sink, node, &LINK)?;
            (fields.get("ends")?, inherited.read(sink, &fields))
        }
    };
    let names = reader::names(sink, ends, "an end of a link")?;
    let [a, b] = names.as_slice() else {
        sink.error(
            Code::Topology,
            ends.span,
            format!("a link has two ends; found {}", names.len()),
        );
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
            format!("`{}` is linked to itself", a.value),
        );
    }
    good.then(|| attributes.link(&a.value, &b.value))
}

fn check_shape(sink: &mut Sink<'_>, topology: &Topology, hosts: &[(Host, Span)], span: Span) {
    if topology.switches.is_empty() {
        sink.error(Code::Topology, span, "a topology has at least one switch");
    }
    for (host, span) in hosts {
        let links: Vec<_> = topology
            .links
            .iter()
            .filter_map(|link| link.peer(&host.name))
            .collect();
        match links.as_slice() {
            [switch] if topology.has_switch(switch) => {}
            [other] => {
                sink.error(
                    Code::Topology,
                    *span,
                    format!("host `{}` is linked to host `{other}`", host.name),
                )
                .hint("hosts are linked to switches");
            }
            links => {
                let message = format!(
                    "host `{}` has {} links; it has one, to a switch",
                    host.name,
                    links.len()
                );
                sink.error(Code::Topology, *span, message);
            }
        }
    }
}

fn check_addresses(sink: &mut Sink<'_>, hosts: &[(Host, Span)]) {
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
                sink.error(Code::Topology, *span, message);
            }
        }
        let octets = Ipv4Addr::octets(&host.ip);
        if hosts
            .first()
            .is_some_and(|(first, _)| first.ip.octets()[..2] != octets[..2])
        {
            let message = format!(
                "{} of host `{}` is outside the first host's /16",
                host.ip, host.name
            );
            sink.error(Code::Topology, *span, message)
                .hint("all hosts share one subnet: switches do not route");
        }
    }
}

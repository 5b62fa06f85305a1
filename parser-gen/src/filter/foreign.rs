//! Maps field names of P4 programs, Wireshark and tcpdump to the corresponding fields of this library, for hints in errors.

mod hint;
pub(super) mod whole;

use crate::library::{FieldType, Library};

pub(super) use hint::{for_field, for_filter};

/// Foreign names of a header, in small letters without underscores, and the protocol's name in this library.
const PROTOCOLS: [(&[&str], &str); 7] = [
    (&["ipv4", "ip4", "iphdr"], "ip"),
    (&["ip6", "ipv6hdr"], "ipv6"),
    (&["ethernet", "ether", "ethhdr"], "eth"),
    (&["vlantag", "dot1q", "ieee8021q"], "vlan"),
    (&["icmp4", "icmpv4"], "icmp"),
    (&["icmp6"], "icmpv6"),
    (&["bth", "infiniband", "ibbth"], "roce"),
];

/// Foreign names of a field, in small letters without underscores and dots, and its names in this
/// library, of which a protocol has one at most.
const FIELDS: [(&[&str], &[&str]); 24] = [
    (&["srcaddr", "saddr", "source", "srcip", "srcmac"], &["src"]),
    (
        &["dstaddr", "daddr", "destination", "dstip", "dstmac"],
        &["dst"],
    ),
    (&["protocol", "nexthdr", "nextheader"], &["proto", "nxt"]),
    (
        &["totallen", "totallength", "length", "payloadlen", "len"],
        &["len", "plen"],
    ),
    (&["payloadlength"], &["plen", "len"]),
    (&["identification", "vid", "vlanid"], &["id"]),
    (&["diffserv", "dsfield", "tos"], &["tclass"]),
    (&["dsfielddscp"], &["dscp"]),
    (&["dsfieldecn"], &["ecn"]),
    (&["hoplimit", "ttl", "hlim"], &["hlim", "ttl"]),
    (&["ethertype"], &["type"]),
    (&["srcport", "sourceport"], &["sport"]),
    (&["dstport", "destport", "destinationport"], &["dport"]),
    (&["seqno", "seqnum", "sequence"], &["seq"]),
    (&["ackno", "acknum", "acknowledgement"], &["ack"]),
    (&["dataoffset"], &["hdr_words", "ihl"]),
    (&["windowsize", "windowsizevalue"], &["window"]),
    (&["flagsreset", "rst", "reset"], &["flags.rst"]),
    (&["flagspush", "psh", "push"], &["flags.psh"]),
    (&["pcp", "prio"], &["priority"]),
    (&["destqp", "dqpn", "qpn"], &["qp"]),
    (&["qryname"], &["name"]),
    (&["requestmethod"], &["method"]),
    (&["requesturi", "uri", "url"], &["path"]),
];

/// Protocols that this library does not parse, and a filter that matches their packets in both directions.
const SERVICES: [(&[&str], &str); 9] = [
    (&["bootp", "dhcp"], "udp.dport in {67, 68}"),
    (
        &["tls", "ssl", "https"],
        "(tcp.sport == 443 || tcp.dport == 443)",
    ),
    (&["ssh"], "(tcp.sport == 22 || tcp.dport == 22)"),
    (&["smtp"], "(tcp.sport == 25 || tcp.dport == 25)"),
    (&["mysql"], "(tcp.sport == 3306 || tcp.dport == 3306)"),
    (&["mqtt"], "(tcp.sport == 1883 || tcp.dport == 1883)"),
    (&["amqp"], "(tcp.sport == 5672 || tcp.dport == 5672)"),
    (&["ntp"], "(udp.sport == 123 || udp.dport == 123)"),
    (&["quic"], "(udp.sport == 443 || udp.dport == 443)"),
];

/// Meaning of a field or protocol name of another tool, in terms of this library.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Meaning {
    /// One of these fields of this library.
    Fields(Vec<String>),
    /// The field of either end of a connection, as in Wireshark's `ip.addr`.
    Ends([String; 2]),
    /// A whole byte of flags; these are the fields of this library for its bits, from the highest bit on.
    Flags(Vec<String>),
    /// The byte of the IPv4 header that holds DSCP and ECN.
    TypeOfService,
    /// The version of the Internet protocol, which is not a field of this library.
    Version,
    /// The length of a header in bytes; this field of the library counts 4-byte words instead.
    HeaderLength(String),
    /// A length that is not a field of this library; the nearest field is `ip.len`, and the text states what it includes.
    Length(&'static str),
    /// A protocol of this library, by its name.
    Protocol(String),
    /// A protocol that this library does not parse: a filter for its packets.
    Service(&'static str),
    /// This library has no such field; the text says why.
    NoField(&'static str),
}

fn meaning(library: &Library, name: &str) -> Option<Meaning> {
    let lower = name.to_ascii_lowercase().replace('_', "");
    let mut parts: Vec<&str> = lower.split('.').collect();
    if parts.len() > 1 && matches!(parts[0], "hdr" | "headers" | "header") {
        parts.remove(0);
    }
    if parts.len() > 2 && parts[0] == "infiniband" {
        parts.remove(0);
    }
    let (first, rest) = parts.split_first()?;
    let written = rest.concat();
    let is_frame = matches!(*first, "frame" | "pkt" | "packet" | "standardmetadata");
    if is_frame && written.starts_with("time") {
        return Some(Meaning::NoField(
            "a packet carries no time: a step of the `timeline` sets when a fault acts",
        ));
    }
    if is_frame && written == "number" {
        return Some(Meaning::NoField(
            "a packet carries no number: a fault counts packets by `select`, such as `{nth: 3}`",
        ));
    }
    let is_length = matches!(written.as_str(), "len" | "length" | "packetlength");
    if is_length && is_frame {
        return Some(Meaning::Length("includes the IP header"));
    }
    if is_length && *first == "tcp" {
        return Some(Meaning::Length("includes the headers of IP and TCP"));
    }
    if matches!(*parts.last()?, "ingressport" | "inport" | "interfaceid") {
        return Some(Meaning::Fields(vec!["switch.port".to_owned()]));
    }
    let protocol = protocol(first);
    if rest.is_empty() {
        return alone(library, first, protocol);
    }
    let has = |field: &String| library.field(field).is_some();
    let own = |field: &str| Some(format!("{protocol}.{field}")).filter(has);
    let ends = |ends: [&str; 2]| {
        let [from, to] = ends;
        Some(Meaning::Ends([own(from)?, own(to)?]))
    };
    let known = match written.as_str() {
        "addr" | "host" => ends(["src", "dst"]),
        "port" => ends(["sport", "dport"]),
        "version" if matches!(protocol, "ip" | "ipv6") => Some(Meaning::Version),
        "tos" | "diffserv" | "dsfield" if protocol == "ip" => Some(Meaning::TypeOfService),
        "hdrlen" => own("ihl").or(own("hdr_words")).map(Meaning::HeaderLength),
        _ => None,
    };
    known
        .or_else(|| flags(library, &format!("{protocol}.{}", rest.join("."))))
        .or_else(|| Some(Meaning::Fields(vec![field(library, protocol, &written)?])))
}

/// Meaning of a name without a dot: a protocol, or a field whose protocol is left out.
fn alone(library: &Library, name: &str, protocol: &str) -> Option<Meaning> {
    let fields = |names: &[&str]| {
        let names = names.iter().map(|name| (*name).to_owned());
        Some(Meaning::Fields(names.collect()))
    };
    let mut protocols = library.protocols().iter();
    let is_known = protocols.any(|known| known.filter == protocol);
    if protocol != name && is_known {
        return Some(Meaning::Protocol(protocol.to_owned()));
    }
    let mut services = SERVICES.iter();
    if let Some((_, filter)) = services.find(|(names, _)| names.contains(&name)) {
        return Some(Meaning::Service(filter));
    }
    match name {
        "src" | "dst" => fields(&[&format!("ip.{name}")]),
        "proto" | "protocol" => fields(&["ip.proto"]),
        "sport" | "srcport" => fields(&["tcp.sport", "udp.sport"]),
        "port" | "dport" | "dstport" => fields(&["tcp.dport", "udp.dport"]),
        "tos" | "diffserv" | "dsfield" => Some(Meaning::TypeOfService),
        "len" | "length" => Some(Meaning::Length("includes the IP header")),
        "flags" => flags(library, "tcp.flags"),
        "payload" => Some(Meaning::NoField(
            "bytes of a payload have no field: filters compare them, such as `tcp.payload[0:4] == \"GET \"`",
        )),
        _ => ["ip", "tcp", "udp", "vlan", "eth", "roce"]
            .iter()
            .find_map(|protocol| field(library, protocol, name))
            .map(|field| Meaning::Fields(vec![field])),
    }
}

/// Meaning of a name for a whole group of flags, such as `tcp.flags`; `None` if the name is no such group.
fn flags(library: &Library, group: &str) -> Option<Meaning> {
    let of_group = |name: &str| {
        let rest = name.strip_prefix(group);
        rest.is_some_and(|rest| rest.starts_with('.'))
    };
    let fields = library.fields();
    let fields = fields.filter(|field| field.ty == FieldType::Flag && of_group(field.name));
    let fields: Vec<String> = fields.map(|field| field.name.to_owned()).collect();
    (fields.len() > 1).then_some(Meaning::Flags(fields))
}

/// Field of a protocol in this library, by its foreign name in small letters without underscores and dots.
fn field(library: &Library, protocol: &str, written: &str) -> Option<String> {
    let fields: Vec<&str> = library
        .fields()
        .filter_map(|field| field.name.split_once('.'))
        .filter_map(|(of, field)| (of == protocol).then_some(field))
        .collect();
    let named = |wanted: &str| fields.iter().find(|field| **field == wanted);
    let aliases = FIELDS.iter().filter(|(names, _)| names.contains(&written));
    let field = fields
        .iter()
        .find(|field| field.replace(['_', '.'], "") == written)
        .or_else(|| {
            aliases
                .flat_map(|(_, here)| *here)
                .find_map(|here| named(here))
        })
        .or_else(|| named(&format!("flags.{written}")))?;
    Some(format!("{protocol}.{field}"))
}

/// Name in this library of a protocol with this foreign name.
fn protocol(name: &str) -> &str {
    let mut known = PROTOCOLS.iter();
    known
        .find(|(names, _)| names.contains(&name))
        .map_or(name, |(_, protocol)| protocol)
}

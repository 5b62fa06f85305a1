//! Field names of P4 programs, Wireshark and tcpdump, and the field of this library that each of them means.

use crate::library::Library;

/// Names of a header, in small letters without underscores, and the protocol that has it here.
const PROTOCOLS: [(&[&str], &str); 7] = [
    (&["ipv4", "ip4", "iphdr"], "ip"),
    (&["ip6", "ipv6hdr"], "ipv6"),
    (&["ethernet", "ether", "ethhdr"], "eth"),
    (&["vlantag", "dot1q", "ieee8021q"], "vlan"),
    (&["icmp4", "icmpv4"], "icmp"),
    (&["icmp6"], "icmpv6"),
    (&["bth", "infiniband", "ibbth"], "roce"),
];

/// Names of a field, in small letters without underscores and dots, and its names here: the protocol has one of them.
const FIELDS: [(&[&str], &[&str]); 23] = [
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
    (&["diffserv", "dsfielddscp", "tos"], &["dscp", "tclass"]),
    (&["dsfieldecn"], &["ecn"]),
    (&["hoplimit", "ttl", "hlim"], &["hlim", "ttl"]),
    (&["ethertype"], &["type"]),
    (&["srcport", "sourceport"], &["sport"]),
    (&["dstport", "destport", "destinationport"], &["dport"]),
    (&["seqno", "seqnum", "sequence"], &["seq"]),
    (&["ackno", "acknum", "acknowledgement"], &["ack"]),
    (&["dataoffset", "hdrlen"], &["hdr_words", "ihl"]),
    (&["windowsize", "windowsizevalue"], &["window"]),
    (&["flagsreset", "rst", "reset"], &["flags.rst"]),
    (&["flagspush", "psh", "push"], &["flags.psh"]),
    (&["pcp", "prio"], &["priority"]),
    (&["destqp", "dqpn", "qpn"], &["qp"]),
    (&["qryname"], &["name"]),
    (&["requestmethod"], &["method"]),
    (&["requesturi", "uri", "url"], &["path"]),
];

/// What is written here for such a name.
pub(super) fn meaning(library: &Library, name: &str) -> Option<String> {
    let lower = name.to_ascii_lowercase().replace('_', "");
    let mut parts: Vec<&str> = lower.split('.').collect();
    if parts.len() > 1 && matches!(parts[0], "hdr" | "headers" | "header") {
        parts.remove(0);
    }
    let (first, rest) = parts.split_first()?;
    let written = rest.concat();
    let is_length = matches!(written.as_str(), "len" | "length" | "packetlength");
    if is_length && matches!(*first, "frame" | "pkt" | "packet" | "standardmetadata") {
        return Some("`ip.len`, which counts from the IP header on".to_owned());
    }
    if is_length && *first == "tcp" {
        return Some("`ip.len`, which counts the headers of IP and TCP as well".to_owned());
    }
    if matches!(*parts.last()?, "ingressport" | "inport" | "interfaceid") {
        return Some("`switch.port`".to_owned());
    }
    let protocol = protocol(first);
    if rest.is_empty() {
        let mut protocols = library.protocols().iter();
        let is_known = protocols.any(|known| known.filter == protocol);
        return match *first {
            "src" | "dst" => Some(format!("`ip.{first}`")),
            "proto" | "protocol" => Some("`ip.proto`".to_owned()),
            "sport" | "srcport" => Some("`tcp.sport` or `udp.sport`".to_owned()),
            "dport" | "dstport" => Some("`tcp.dport` or `udp.dport`".to_owned()),
            _ => (protocol != *first && is_known).then(|| format!("`{protocol}`")),
        };
    }
    let fields: Vec<&str> = library
        .fields()
        .filter_map(|field| field.name.split_once('.'))
        .filter_map(|(of, field)| (of == protocol).then_some(field))
        .collect();
    let named = |wanted: &str| fields.iter().find(|field| **field == wanted);
    let aliases = FIELDS
        .iter()
        .filter(|(names, _)| names.contains(&written.as_str()));
    let field = fields
        .iter()
        .find(|field| field.replace(['_', '.'], "") == written)
        .or_else(|| {
            aliases
                .flat_map(|(_, here)| *here)
                .find_map(|here| named(here))
        })
        .or_else(|| named(&format!("flags.{written}")))?;
    Some(format!("`{protocol}.{field}`"))
}

/// The name here of a protocol.
pub(super) fn protocol(name: &str) -> &str {
    let mut known = PROTOCOLS.iter();
    known
        .find(|(names, _)| names.contains(&name))
        .map_or(name, |(_, protocol)| protocol)
}

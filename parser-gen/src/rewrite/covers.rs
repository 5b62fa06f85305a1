//! Finds the internet checksums that cover a header field, from the parse graph alone.

use super::RewriteError;
use crate::library::{Body, Library, Protocol, ProtocolId};

/// Name of the field that holds a header's internet checksum.
pub(super) const CHECKSUM: &str = "checksum";

/// Protocols whose checksum covers their header and all bytes after it.
const SEGMENTS: [&str; 4] = ["udp", "tcp", "icmp", "icmpv6"];
/// Protocol whose checksum covers its header only.
const HEADER_ALONE: &str = "ipv4";
/// Protocol and field of a network header, and the transports whose checksum covers it through their pseudo-header (RFC 768;
/// RFC 9293, section 3.1; RFC 4443, section 2.3).
const PSEUDO_HEADER: [(&str, &str, &[&str]); 4] = [
    ("ipv4", "src", &["udp", "tcp"]),
    ("ipv4", "dst", &["udp", "tcp"]),
    ("ipv6", "src", &["udp", "tcp", "icmpv6"]),
    ("ipv6", "dst", &["udp", "tcp", "icmpv6"]),
];
/// Protocol of RoCEv2's base transport header: the ICRC covers it and all bytes behind it.
const ROCE: &str = "roce";

/// How a checksum covers a header field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Coverage {
    /// The header of the field holds the checksum.
    Header,
    /// The checksum covers the field through its pseudo-header.
    PseudoHeader,
    /// The checksum is in a header in front of the field's header.
    Segment,
    /// As `Segment`, and the field's header has a checksum of its own. The inner checksum is updated
    /// with the field, so the sum over the header stays unchanged, and with it the outer checksum.
    Balanced,
}

/// Checksum that covers a header field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Cover {
    /// Protocol whose header holds this checksum.
    pub by: ProtocolId,
    pub coverage: Coverage,
}

impl Coverage {
    /// Whether the checksum is in a header in front of the field's header, and covers the field.
    pub fn is_behind(self) -> bool {
        matches!(self, Coverage::Segment | Coverage::Balanced)
    }
}

/// Byte offset of a protocol's internet checksum in its header.
pub(super) fn checksum_at(protocol: &Protocol) -> Option<usize> {
    match protocol.place(CHECKSUM)? {
        (bit, 16) if bit % 8 == 0 => Some(bit / 8),
        _ => None,
    }
}

/// Checksums that cover a field of a header.
///
/// # Errors
///
/// If no switch can update a covering checksum: the ICRC, or that of a user's protocol, whose range is unknown.
pub(super) fn covers(
    library: &Library,
    id: ProtocolId,
    field: &str,
    name: &str,
) -> Result<Vec<Cover>, RewriteError> {
    let protocol = &library.protocols[id];
    let behind = match field != CHECKSUM && checksum_at(protocol).is_some() {
        true => Coverage::Balanced,
        false => Coverage::Segment,
    };
    let mut covers = Vec::new();
    for (by, other) in library.protocols.iter().enumerate() {
        let is_before = by != id && library.leads_to(by, id);
        if other.name == ROCE && (by == id || is_before) {
            return Err(RewriteError::Icrc(name.to_owned()));
        }
        let is_segment = SEGMENTS.contains(&other.name.as_str());
        let is_known = is_segment || other.name == HEADER_ALONE;
        let has_checksum = other.place(CHECKSUM).is_some();
        let is_internet = checksum_at(other).is_some();
        if by == id && field == CHECKSUM && is_internet {
            return Err(RewriteError::Checksum(name.to_owned()));
        }
        let is_own = by == id && field != CHECKSUM;
        if has_checksum && !is_known && (is_before || (is_own && !is_internet)) {
            return Err(RewriteError::UnknownChecksum {
                field: name.to_owned(),
                checksum: format!("{}.{CHECKSUM}", other.filter),
            });
        }
        let has_pseudo = PSEUDO_HEADER.iter().any(|(network, address, by)| {
            protocol.name == *network && field == *address && by.contains(&other.name.as_str())
        });
        let coverage = match (has_checksum && is_own, has_pseudo, is_segment && is_before) {
            (true, _, _) => Coverage::Header,
            (_, true, _) => Coverage::PseudoHeader,
            (_, _, true) => behind,
            _ => continue,
        };
        covers.push(Cover { by, coverage });
    }
    Ok(covers)
}

/// Whether the ICRC of a RoCEv2 packet covers a field in front of its base transport header. It does not cover fields that
/// routers change (InfiniBand architecture, annex A17, RoCEv2).
pub(super) fn is_under_icrc(header: &str, field: &str) -> bool {
    let changes_on_the_way: &[&str] = match header {
        "hdr.ipv4" => &["dscp", "ecn", "ttl", CHECKSUM],
        "hdr.ipv6" => &["traffic_class", "flow_label", "hop_limit"],
        "hdr.udp" => &[CHECKSUM],
        _ => return false,
    };
    !changes_on_the_way.contains(&field)
}

/// Protocols of the headers that may lie between two other headers, in wire order.
pub(super) fn between(
    library: &Library,
    before: ProtocolId,
    behind: ProtocolId,
) -> impl Iterator<Item = ProtocolId> + '_ {
    let inner = before + 1..behind;
    inner.filter(move |id| {
        let is_header = matches!(library.protocols[*id].body, Body::Header { .. });
        is_header && library.leads_to(before, *id) && library.leads_to(*id, behind)
    })
}

//! Contradictions between a packet and its virtio header.

/// Reason why [`super::Cut`] refuses a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
pub enum Malformed {
    /// The kind is not a plain frame, TCPV4, TCPV6 or UDP_L4. [`super::Offload::UDP`] counts as unknown.
    #[error("unknown kind {0:#04x} of bundle; known are TCPV4 (1), TCPV6 (4) and UDP_L4 (5)")]
    UnknownKind(u8),
    /// The bundle has neither `NEEDS_CSUM` nor `DATA_VALID`: the frames' new checksums would hide an error in its data.
    #[error("the bundle's checksum is neither verified nor to be finished")]
    Unverified,
    /// The checksum to be finished lies outside the packet, or its bytes start before the network header.
    #[error("the checksum lies outside the packet")]
    ChecksumOutside,
    /// The checksum to be finished is not the one in the bundle's TCP or UDP header.
    #[error("the checksum is not the one in the TCP or UDP header")]
    ChecksumElsewhere,
    /// The length of a segment is 0.
    #[error("the segments' length is 0")]
    SegmentZero,
    /// A segment is longer than the bundle's payload.
    #[error("a segment is longer than the bundle's payload")]
    SegmentBeyond,
    /// A frame would be longer than the link carries.
    #[error("a segment makes a longer frame than the link carries")]
    SegmentLong,
    /// The bundle has more segments than [`super::MAX_UDP_SEGMENTS`] or [`super::MAX_TCP_SEGMENTS`].
    #[error("the bundle has more than 128 segments of UDP or 1,365 of TCP")]
    ManySegments,
    /// The bundle is neither IPv4 nor IPv6 after at most two VLAN tags.
    #[error("the bundle is neither IPv4 nor IPv6")]
    NotIp,
    /// The bundle's protocol differs from that of its kind.
    #[error("the bundle's protocol is not the one of its kind")]
    Protocol,
    /// TCP segments that are in UDP (VXLAN, Geneve), GRE or IP. The virtio header describes the inner packet alone.
    #[error(
        "it has TCP segments in a tunnel; at the sending end, let the kernel split them before the tunnel (`ethtool -K IF tso off \
         gso off`, IF: the interface that carries the tunnel)"
    )]
    Tunnel,
    /// The packet ends within its headers.
    #[error("the bundle ends within its headers")]
    Truncated,
    /// The headers have more than 256 bytes.
    #[error("the bundle's headers have more than 256 bytes")]
    HeadersLong,
    /// The length of the IPv4 or TCP header is below its minimum.
    #[error("the IPv4 or TCP header's length is below 20 bytes")]
    HeaderShort,
    /// The IPv4 header has options.
    #[error("the bundle's IPv4 header has options")]
    Options,
    /// The bundle is a fragment of a packet.
    #[error("the bundle is an IP fragment")]
    Fragment,
    /// Bytes follow the IP packet.
    #[error("bytes follow the bundle's IP packet")]
    Padding,
    /// IP's length is above the packet's, or 0 (a packet of more than 65,535 bytes).
    #[error("the IP length is above the bundle's, or 0")]
    IpLength,
    /// UDP's length differs from the packet's.
    #[error("the UDP length differs from the bundle's")]
    UdpLength,
}

impl Malformed {
    /// A short name for counters and log lines.
    pub fn name(self) -> &'static str {
        match self {
            Malformed::UnknownKind(_) => "unknown kind",
            Malformed::Unverified => "unverified",
            Malformed::ChecksumOutside => "checksum outside",
            Malformed::ChecksumElsewhere => "checksum elsewhere",
            Malformed::SegmentZero => "segment of 0 bytes",
            Malformed::SegmentBeyond => "segment beyond packet",
            Malformed::SegmentLong => "segment above MTU",
            Malformed::ManySegments => "too many segments",
            Malformed::NotIp => "not IP",
            Malformed::Protocol => "other protocol",
            Malformed::Tunnel => "tunnel",
            Malformed::Truncated => "truncated",
            Malformed::HeadersLong => "long headers",
            Malformed::HeaderShort => "short header",
            Malformed::Options => "IP options",
            Malformed::Fragment => "fragment",
            Malformed::Padding => "padding",
            Malformed::IpLength => "IP length",
            Malformed::UdpLength => "UDP length",
        }
    }
}

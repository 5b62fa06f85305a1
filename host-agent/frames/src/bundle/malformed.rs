//! Packets whose virtio header and bytes do not belong together.

/// Reason why a packet is not cut into frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
pub enum Malformed {
    /// The kind is none that [`super::Offload`] names, or it is [`super::Offload::UDP`].
    #[error("unknown kind {0:#04x} of bundle; known are TCPV4 (1), TCPV6 (4) and UDP_L4 (5)")]
    UnknownKind(u8),
    /// The bundle has neither `NEEDS_CSUM` nor `DATA_VALID`, so new checksums would hide errors in its data.
    #[error("the bundle's checksum is neither verified nor to be finished")]
    Unverified,
    /// The checksum that is to be finished lies outside the packet, or before its network header.
    #[error("the checksum lies outside the packet")]
    ChecksumOutside,
    /// A bundle's checksum that is to be finished is not that of its TCP or UDP header.
    #[error("the checksum is not that of the TCP or UDP header")]
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
    /// The bundle has more segments than allowed.
    #[error("the bundle has too many segments")]
    ManySegments,
    /// A bundle that is neither IPv4 nor IPv6, after at most two VLAN tags.
    #[error("the bundle is neither IPv4 nor IPv6")]
    NotIp,
    /// The protocol is not the one that the kind names.
    #[error("the bundle's protocol is not the one of its kind")]
    Protocol,
    /// The headers end after the packet.
    #[error("the bundle ends within its headers")]
    Truncated,
    /// The headers are longer than any that the kernel bundles.
    #[error("the bundle's headers are too long")]
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
    /// IP's length field is longer than the packet, or 0.
    #[error("the IP length is not the bundle's")]
    IpLength,
    /// UDP's length field differs from that of the packet.
    #[error("the UDP length is not the bundle's")]
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

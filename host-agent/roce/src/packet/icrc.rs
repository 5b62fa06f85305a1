//! Computes the invariant CRC (ICRC) of RoCEv2 packets (annex A17.3.3).

use crc32fast::Hasher;

use super::{BTH_LEN, ETHERNET_LEN, IPV4_LEN, UDP_LEN};

/// Number of bytes of ones in place of InfiniBand's local route header, which Ethernet does not have.
const PSEUDO_LEN: usize = 8;
/// Length in bytes of the headers that contain fields that may change on the path.
const VARIANT_LEN: usize = IPV4_LEN + UDP_LEN + BTH_LEN;

/// The ICRC of a packet from its IPv4 header to the last byte of padding; it is sent with its low byte first.
///
/// Fields that may change on the path count as ones: type of service, time to live and checksum of IPv4, the UDP checksum,
/// and the BTH's byte with FECN and BECN. The missing local route header in front counts as ones, too.
///
/// # Panics
/// If the packet is shorter than its headers without extensions.
pub fn icrc(packet: &[u8]) -> u32 {
    let (variant, rest) = packet.split_at(VARIANT_LEN);
    let mut masked = [0; PSEUDO_LEN + VARIANT_LEN];
    masked[PSEUDO_LEN..].copy_from_slice(variant);
    mask(&mut masked);
    let mut hasher = Hasher::new();
    hasher.update(&masked);
    hasher.update(rest);
    hasher.finalize()
}

/// The ICRC of a frame without its ICRC field, in one pass: during it, the eight bytes before the IPv4 header are set to ones.
pub(super) fn icrc_in_place(frame: &mut [u8]) -> u32 {
    const START: usize = ETHERNET_LEN - PSEUDO_LEN;
    let covered = &mut frame[START..];
    let mut headers = [0; PSEUDO_LEN + VARIANT_LEN];
    headers.copy_from_slice(&covered[..PSEUDO_LEN + VARIANT_LEN]);
    mask(&mut covered[..PSEUDO_LEN + VARIANT_LEN]);
    let crc = crc32fast::hash(covered);
    covered[..PSEUDO_LEN + VARIANT_LEN].copy_from_slice(&headers);
    crc
}

/// Sets the header fields that may change on the path to ones.
fn mask(headers: &mut [u8]) {
    const UDP_CHECKSUM: usize = IPV4_LEN + 6;
    const FECN_BECN: usize = IPV4_LEN + UDP_LEN + 4;
    headers[..PSEUDO_LEN].fill(0xFF);
    for at in [1, 8, 10, 11, UDP_CHECKSUM, UDP_CHECKSUM + 1, FECN_BECN] {
        headers[PSEUDO_LEN + at] = 0xFF;
    }
}

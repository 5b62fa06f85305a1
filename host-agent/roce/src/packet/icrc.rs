//! Computes the invariant CRC (ICRC) of RoCEv2 packets (annex A17.3.3).

use crc32fast::Hasher;

use super::{BTH_LEN, ETHERNET_LEN, IPV4_LEN, UDP_LEN};

/// Number of bytes that stand for InfiniBand's local route header, which Ethernet lacks; all their bits are 1.
const PSEUDO_LEN: usize = 8;
/// Length in bytes of the headers with fields that may change on the path: IPv4, UDP and BTH.
const VARIANT_LEN: usize = IPV4_LEN + UDP_LEN + BTH_LEN;

/// The ICRC of a packet from its IPv4 header to the last byte of padding; it is sent with its low byte first.
///
/// All bits of fields that may change on the path count as 1: type of service, time to live and checksum of IPv4, the UDP
/// checksum, and the BTH's byte with FECN and BECN. The missing local route header in front counts as ones, too.
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

/// The ICRC of a frame without its ICRC field. The function changes the frame's headers for the computation, and restores them.
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

/// Sets all bits of the header fields that may change on the path to 1.
fn mask(headers: &mut [u8]) {
    const UDP_CHECKSUM: usize = IPV4_LEN + 6;
    const FECN_BECN: usize = IPV4_LEN + UDP_LEN + 4;
    headers[..PSEUDO_LEN].fill(0xFF);
    for at in [1, 8, 10, 11, UDP_CHECKSUM, UDP_CHECKSUM + 1, FECN_BECN] {
        headers[PSEUDO_LEN + at] = 0xFF;
    }
}

//! Finishes the checksum of a single frame.

use super::headers::{IPV4, IPV6, SCTP, UDP, UDP_HEADER, is_fragment, network, number, write};
use super::{Checksums, Malformed, Offload, fold, sum};

/// Change that completes a single frame.
#[derive(Debug)]
pub(super) enum Repair {
    Nothing,
    /// Its UDP checksum at this position becomes 0.
    Clear(usize),
    /// Its checksum at `field` becomes that of the bytes `start..end`.
    Finish {
        start: usize,
        field: usize,
        end: usize,
    },
}

impl Repair {
    /// Finds out what a frame with this virtio header lacks; `inserted` as in [`super::Cut::new`].
    pub fn find(
        offload: Offload,
        frame: &[u8],
        inserted: usize,
        checksums: Checksums,
    ) -> Result<Repair, Malformed> {
        let start = usize::from(offload.checksum_start) + inserted;
        let field = start + usize::from(offload.checksum_offset);
        if checksums == Checksums::Omit
            && offload.is_vouched_for()
            && let Some(udp) = udp_checksum_over_ipv4(frame)
            // Else it is the checksum of a packet in a tunnel.
            && (!offload.needs_checksum() || field == udp)
        {
            return Ok(Repair::Clear(udp));
        }
        if !offload.needs_checksum() {
            return Ok(Repair::Nothing);
        }
        let network = network(frame).map_or(frame.len(), |(_, at)| at);
        if start < network || field + 2 > frame.len() {
            return Err(Malformed::ChecksumOutside);
        }
        if is_sctp(frame) {
            // Its checksum is another one (CRC32c).
            return Ok(Repair::Nothing);
        }
        // Padding of Ethernet does not belong to the segment.
        let end = packet_end(frame).filter(|end| (field + 2..=frame.len()).contains(end));
        Ok(Repair::Finish {
            start,
            field,
            end: end.unwrap_or(frame.len()),
        })
    }

    /// Changes the frame that was passed to [`find`](Self::find).
    pub fn apply(&self, frame: &mut [u8]) {
        match *self {
            Repair::Nothing => {}
            Repair::Clear(field) => write(frame, field, 0),
            Repair::Finish { start, field, end } => {
                let checksum = match !fold(sum(&frame[start..end])) {
                    // In UDP, 0 means no checksum.
                    0 => 0xffff,
                    checksum => checksum,
                };
                write(frame, field, checksum);
            }
        }
    }
}

/// Position of the end of the IP packet in a frame, as its IP header says; `None` for other frames.
fn packet_end(frame: &[u8]) -> Option<usize> {
    let (ethertype, network) = network(frame)?;
    let length = match ethertype {
        0x0800 => usize::from(number(frame, network + 2)?),
        0x86dd => IPV6 + usize::from(number(frame, network + 4)?),
        _ => return None,
    };
    Some(network + length)
}

/// Position of the checksum of a UDP datagram over IPv4, which is no fragment; `None` for other frames.
fn udp_checksum_over_ipv4(frame: &[u8]) -> Option<usize> {
    let (0x0800, network) = network(frame)? else {
        return None;
    };
    let packet = &frame[network..];
    let header = usize::from(packet.first()? & 0xf) * 4;
    if header < IPV4 || *packet.get(9)? != UDP || is_fragment(packet)? {
        return None;
    }
    packet.get(header..header + UDP_HEADER)?;
    Some(network + header + 6)
}

/// Whether a frame is SCTP right after its IP header.
fn is_sctp(frame: &[u8]) -> bool {
    let protocol = match network(frame) {
        Some((0x0800, network)) => frame.get(network + 9),
        Some((0x86dd, network)) => frame.get(network + 6),
        _ => None,
    };
    protocol == Some(&SCTP)
}

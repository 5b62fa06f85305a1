//! Takes a received packet apart into the frames that it stands for.

use super::headers::{self, CWR, FIN, Headers, IPV4, IPV6, PSH, TCP_FLAGS, number, write};
use super::plain::Repair;
use super::{Checksums, MAX_TCP_SEGMENTS, MAX_UDP_SEGMENTS, Malformed, Offload, fold, sum};

/// Maximum length of a bundle's headers in bytes: two VLAN tags, IPv6 with 174 bytes of extensions, and a UDP header fit.
const HEADERS: usize = 256;

/// A received packet that is taken apart. The frames are written into the packet itself: each frame's headers are written right
/// before its payload, over the payload of the frame before, so payloads are never moved.
#[derive(Debug)]
pub struct Cut {
    frames: usize,
    taken: usize,
    form: Form,
}

#[derive(Debug)]
#[allow(clippy::large_enum_variant)] // A Cut lives on the stack while its packet is read.
enum Form {
    Plain(usize, Repair),
    Bundle(Bundle),
}

/// Rule for the frames of a bundle.
#[derive(Debug)]
struct Bundle {
    /// Length of the bundle in bytes.
    len: usize,
    headers: Headers,
    /// The bundle's headers, with checksums of 0.
    template: [u8; HEADERS],
    /// Payload of each frame but the last in bytes.
    segment: usize,
    /// IPv4 identification of the first frame.
    identification: u16,
    /// TCP sequence number of the first frame.
    sequence: u32,
    /// Sum of the pseudo header without its length; `None` if the checksum is omitted.
    pseudo: Option<u64>,
}

impl Cut {
    /// Starts to take a packet apart, whose Ethernet header is on.
    ///
    /// `inserted` is the number of bytes (VLAN tags) that were inserted into the Ethernet header after the kernel had written
    /// `offload`. `longest` is the length of the longest frame that the link carries, in bytes without VLAN tags; it holds for the
    /// frames of bundles.
    ///
    /// # Errors
    /// The packet contradicts its header. No frame of such a packet may be used.
    #[inline]
    pub fn new(
        offload: Offload,
        packet: &[u8],
        inserted: usize,
        checksums: Checksums,
        longest: usize,
    ) -> Result<Cut, Malformed> {
        let (frames, form) = if offload.kind == Offload::PLAIN {
            let repair = Repair::find(offload, packet, inserted, checksums)?;
            (1, Form::Plain(packet.len(), repair))
        } else {
            let bundle = Bundle::new(offload, packet, inserted, checksums, longest)?;
            (bundle.frames(), Form::Bundle(bundle))
        };
        Ok(Cut {
            frames,
            taken: 0,
            form,
        })
    }

    /// Number of frames of a packet of `len` bytes that is lost, except for its beginning `head`; 1 if it is no valid bundle.
    pub(crate) fn lost(offload: Offload, head: &[u8], len: usize) -> usize {
        let headers = offload.is_bundle().then(|| Headers::parse(head, len).ok());
        let payload = headers.flatten().map_or(0, |headers| len - headers.payload);
        let segment = usize::from(offload.segment).max(1);
        payload.div_ceil(segment).clamp(1, MAX_TCP_SEGMENTS)
    }

    /// Number of frames in all.
    pub fn frames(&self) -> usize {
        self.frames
    }

    /// Number of frames that [`next`](Self::next) has not yet returned.
    pub fn remaining(&self) -> usize {
        self.frames - self.taken
    }

    /// The next frame, whole and with finished checksums; `None` after the last. `packet` is the one that was passed to
    /// [`new`](Self::new). The caller may change the frames that this has returned, and no other bytes of it.
    pub fn next<'a>(&mut self, packet: &'a mut [u8]) -> Option<&'a mut [u8]> {
        if self.remaining() == 0 {
            return None;
        }
        let frame = match &self.form {
            Form::Plain(len, repair) => {
                let frame = packet.get_mut(..*len)?;
                repair.apply(frame);
                frame
            }
            Form::Bundle(bundle) => bundle.write(self.taken, self.frames, packet)?,
        };
        self.taken += 1;
        Some(frame)
    }
}

impl Bundle {
    fn new(
        offload: Offload,
        packet: &[u8],
        inserted: usize,
        checksums: Checksums,
        longest: usize,
    ) -> Result<Bundle, Malformed> {
        let (tcp, ipv6) = match (offload.kind, offload.kind & !Offload::ECN) {
            (_, Offload::TCPV4) => (true, Some(false)),
            (_, Offload::TCPV6) => (true, Some(true)),
            (Offload::UDP_L4, _) => (false, None),
            (kind, _) => return Err(Malformed::UnknownKind(kind)),
        };
        let other_protocol = match tcp {
            true => Malformed::Tunnel,
            false => Malformed::Protocol,
        };
        let headers = match Headers::parse(packet, packet.len()) {
            Err(Malformed::Protocol) => return Err(other_protocol),
            headers => headers?,
        };
        if headers.tcp != tcp {
            return Err(other_protocol);
        }
        if ipv6.is_some_and(|ipv6| headers.ipv6 != ipv6) {
            return Err(Malformed::Protocol);
        }
        let pseudo = pseudo(offload, packet, inserted, headers)?;
        let omits = checksums == Checksums::Omit && !tcp && !headers.ipv6;
        let bundle = Bundle {
            len: packet.len(),
            headers,
            template: template(packet, headers)?,
            segment: usize::from(offload.segment),
            identification: number(packet, headers.network + 4).unwrap_or(0),
            sequence: sequence(packet, headers),
            pseudo: (!omits).then_some(pseudo),
        };
        bundle.check_segments(longest)?;
        Ok(bundle)
    }

    fn check_segments(&self, longest: usize) -> Result<(), Malformed> {
        let tags = self.headers.network - headers::ETHERNET;
        if self.segment == 0 {
            return Err(Malformed::SegmentZero);
        }
        if self.segment > self.len - self.headers.payload {
            return Err(Malformed::SegmentBeyond);
        }
        if self.headers.payload + self.segment - tags > longest {
            return Err(Malformed::SegmentLong);
        }
        let most = match self.headers.tcp {
            true => MAX_TCP_SEGMENTS,
            false => MAX_UDP_SEGMENTS,
        };
        if self.frames() > most {
            return Err(Malformed::ManySegments);
        }
        Ok(())
    }

    fn frames(&self) -> usize {
        (self.len - self.headers.payload).div_ceil(self.segment)
    }

    /// Writes the headers of frame `k` of `frames` before its payload, and returns the frame. Its headers overlap payloads of
    /// earlier frames only.
    fn write<'a>(&self, k: usize, frames: usize, packet: &'a mut [u8]) -> Option<&'a mut [u8]> {
        let at = self.headers;
        let start = k * self.segment;
        let end = (start + at.payload + self.segment).min(self.len);
        let frame = packet.get_mut(start..end)?;
        frame[..at.payload].copy_from_slice(&self.template[..at.payload]);
        let length = frame.len() - at.network;
        if at.ipv6 {
            write(frame, at.network + 4, (length - IPV6) as u16);
        } else {
            let identification = self.identification.wrapping_add(k as u16);
            write(frame, at.network + 2, length as u16);
            write(frame, at.network + 4, identification);
            let checksum = !fold(sum(&frame[at.network..at.network + IPV4]));
            write(frame, at.network + 10, checksum);
        }
        let length = frame.len() - at.transport;
        if at.tcp {
            let sequence = self.sequence.wrapping_add(start as u32);
            frame[at.transport + 4..at.transport + 8].copy_from_slice(&sequence.to_be_bytes());
            let flags = &mut frame[at.transport + TCP_FLAGS];
            if k > 0 {
                *flags &= !CWR;
            }
            if k + 1 < frames {
                *flags &= !(FIN | PSH);
            }
        } else {
            write(frame, at.transport + 4, length as u16);
        }
        if let Some(pseudo) = self.pseudo {
            let total = pseudo + length as u64 + sum(&frame[at.transport..]);
            let checksum = match !fold(total) {
                // In UDP, 0 means no checksum. Linux leaves it in segments of TCP.
                0 if !at.tcp => 0xffff,
                checksum => checksum,
            };
            write(frame, at.checksum(), checksum);
        }
        Some(frame)
    }
}

/// The headers of a bundle, with checksums of 0.
fn template(packet: &[u8], headers: Headers) -> Result<[u8; HEADERS], Malformed> {
    let mut template = [0; HEADERS];
    let to = template
        .get_mut(..headers.payload)
        .ok_or(Malformed::HeadersLong)?;
    to.copy_from_slice(&packet[..headers.payload]);
    if !headers.ipv6 {
        write(to, headers.network + 10, 0);
    }
    write(to, headers.checksum(), 0);
    Ok(template)
}

fn sequence(packet: &[u8], headers: Headers) -> u32 {
    match packet[headers.transport..] {
        [_, _, _, _, a, b, c, d, ..] if headers.tcp => u32::from_be_bytes([a, b, c, d]),
        _ => 0,
    }
}

/// Sum of a bundle's pseudo header without its length.
fn pseudo(
    offload: Offload,
    packet: &[u8],
    inserted: usize,
    headers: Headers,
) -> Result<u64, Malformed> {
    if !offload.is_vouched_for() {
        return Err(Malformed::Unverified);
    }
    if !offload.needs_checksum() {
        return Ok(headers.pseudo(packet));
    }
    let start = usize::from(offload.checksum_start) + inserted;
    let offset = usize::from(offload.checksum_offset);
    if start + offset + 2 > packet.len() {
        return Err(Malformed::ChecksumOutside);
    }
    if (start, offset) != (headers.transport, headers.checksum_offset()) {
        return Err(Malformed::ChecksumElsewhere);
    }
    // The sender's sum has the whole bundle's length. Like Linux, trust it otherwise: with a routing header, the addresses of the
    // packet are not those of the pseudo header.
    let field = number(packet, headers.checksum()).unwrap_or(0);
    let length = (packet.len() - headers.transport) as u16;
    Ok(u64::from(field) + u64::from(!length))
}

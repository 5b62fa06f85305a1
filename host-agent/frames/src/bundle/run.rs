//! Joins frames that continue each other to one bundle, as Linux does on reception (generic receive offload).

use super::headers::{CWR, FIN, Headers, IPV4, IPV6, PSH, RST, SYN, TCP_FLAGS, URG, number, write};
use super::{Joins, MAX_FRAMES, Offload, fold, sum};

/// Maximum length of a bundle's IP packet in bytes.
const PACKET: usize = 65_535;
/// Maximum length of the headers of a frame that is written to a run's room: UDP over IPv4 or IPv6, with tags.
const OVERLAP: usize = 14 + 2 * 4 + 40 + 8;

/// Maximum length of a bundle in bytes, with its Ethernet header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Longest {
    /// Length of the packet that stands for the frames.
    pub packet: usize,
    /// Length of all its frames together, each with its headers.
    pub on_link: usize,
}

impl Default for Longest {
    /// No limit.
    fn default() -> Longest {
        Longest {
            packet: usize::MAX,
            on_link: usize::MAX,
        }
    }
}

/// A run of outgoing frames in one buffer, which leaves as one packet. A frame joins the run if [`super::Cut`] would restore it byte
/// for byte; only a UDP checksum of 0 ("no checksum") becomes the right one. So a damaged frame never joins a run.
///
/// The identification of IPv4 frames must count up by one per frame, since the kernel writes it so when it cuts.
#[derive(Debug, Default)]
pub struct Run {
    /// The run, followed by bytes of earlier runs.
    buffer: Vec<u8>,
    /// Length of the run in bytes.
    len: usize,
    count: usize,
    /// Headers of the first frame; `None` if no frame can join it.
    headers: Option<Headers>,
    /// Payload of the first frame in bytes.
    segment: usize,
    /// Whether the first frame's TCP or UDP checksum has been verified.
    is_verified: bool,
    /// Whether another frame may still join.
    is_open: bool,
    /// Bytes of the run that the headers of a frame in its room overlap.
    kept: Vec<u8>,
    longest: Longest,
}

impl Run {
    /// An empty run, which allocates with its first frames.
    pub fn new() -> Run {
        Run::default()
    }

    /// An empty run of frames that together stay within a limit; a single frame may exceed it.
    pub fn up_to(longest: Longest) -> Run {
        Run {
            longest,
            ..Run::default()
        }
    }

    /// Number of frames in the run.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Length of the run's first frame, which is the longest, in bytes: as Linux compares it with an interface's MTU, so without a
    /// tag of 802.1Q.
    pub fn longest_frame(&self) -> usize {
        const TAG: [u8; 2] = [0x81, 0x00];
        let len = match self.headers.filter(|_| self.count > 1) {
            Some(headers) => headers.payload + self.segment,
            None => self.len,
        };
        match self.buffer[..self.len].get(12..14) {
            Some(kind) if kind == TAG => len - 4,
            _ => len,
        }
    }

    /// Whether the run has no frame.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Removes all frames.
    pub fn clear(&mut self) {
        self.kept.clear();
        self.len = 0;
        self.count = 0;
        self.headers = None;
        self.is_open = false;
    }

    /// Adds a frame. Returns `false` if the frame does not continue the run: the caller sends the run, clears it, and adds the
    /// frame again. An empty run takes any frame.
    pub fn add(&mut self, frame: &[u8], may: Joins) -> bool {
        self.close_room();
        if self.is_empty() {
            self.grow(frame.len());
            self.buffer[..frame.len()].copy_from_slice(frame);
            self.begin(frame.len(), may);
            return true;
        }
        let Some(headers) = self.continued(frame, frame.len(), may) else {
            return false;
        };
        if !is_checksum_right(frame, headers) {
            return false;
        }
        let payload = &frame[headers.payload..];
        self.append(payload.len(), flags(frame, headers))
            .copy_from_slice(payload);
        true
    }

    /// Whether a UDP frame of `len` bytes might continue the run, so that it may be written to the run's [room](Self::room).
    pub fn may_grow(&self, len: usize, may: Joins) -> bool {
        let fits = self.headers.is_some_and(|at| {
            let head = at.payload;
            head <= OVERLAP && len > head && self.has_space(at, len - head)
        });
        self.is_open && may.udp && fits && self.count < MAX_FRAMES
    }

    /// A place of `len` bytes to write a whole frame to, for [`written`](Self::written): an empty run takes any frame; for others
    /// ask [`may_grow`](Self::may_grow) before.
    ///
    /// The frame's headers overlap the run's last payload, which is kept meanwhile, so that a frame's payload is written where it
    /// is sent from. If no [`written`](Self::written) follows, what was written there has no effect.
    pub fn room(&mut self, len: usize) -> &mut [u8] {
        self.close_room();
        let start = self.room_start();
        self.kept.extend_from_slice(&self.buffer[start..self.len]);
        if self.buffer.len() < start + len {
            self.buffer.resize(start + len, 0);
        }
        &mut self.buffer[start..start + len]
    }

    /// Puts back the bytes of the run that the last room overlaps.
    fn close_room(&mut self) {
        let start = self.len - self.kept.len();
        self.buffer[start..self.len].copy_from_slice(&self.kept);
        self.kept.clear();
    }

    fn room_start(&self) -> usize {
        let head = self.headers.map_or(0, |headers| headers.payload);
        match self.is_empty() {
            true => 0,
            false => self.len - head,
        }
    }

    /// Adds the frame of `len` bytes that was written to the room. Returns `false` if it does not continue the run: then it is in
    /// `unfit`, whose content it replaces. A frame with a UDP checksum never does.
    pub fn written(&mut self, len: usize, may: Joins, unfit: &mut Vec<u8>) -> bool {
        let start = self.room_start();
        if self.is_empty() {
            self.begin(len, may);
            return true;
        }
        let overlap = self.len - start;
        let mut head = [0; OVERLAP];
        let head = &mut head[..overlap.min(len)];
        head.copy_from_slice(&self.buffer[start..start + head.len()]);
        self.close_room();
        if let Some(found) = self.continued(head, len, may) {
            // A checksum would have to be verified.
            let has_none = !found.ipv6 && !found.tcp && number(head, found.checksum()) == Some(0);
            if has_none {
                self.append(len - found.payload, 0);
                return true;
            }
        }
        unfit.clear();
        unfit.extend_from_slice(head);
        unfit.extend_from_slice(&self.buffer[start + head.len()..start + len]);
        false
    }

    /// Completes the run: its virtio header and its packet. A single frame stays as it was added. No frame joins after this;
    /// [`clear`](Self::clear) restarts the run.
    pub fn finish(&mut self) -> (Offload, &[u8]) {
        self.close_room();
        self.is_open = false;
        let packet = &mut self.buffer[..self.len];
        let Some(at) = self.headers.filter(|_| self.count > 1) else {
            return (Offload::NONE, packet);
        };
        let length = packet.len() - at.network;
        if at.ipv6 {
            write(packet, at.network + 4, (length - IPV6) as u16);
        } else {
            write(packet, at.network + 2, length as u16);
            write(packet, at.network + 10, 0);
            let checksum = !fold(sum(&packet[at.network..at.network + IPV4]));
            write(packet, at.network + 10, checksum);
        }
        let length = packet.len() - at.transport;
        if !at.tcp {
            write(packet, at.transport + 4, length as u16);
        }
        let pseudo = fold(at.pseudo(packet) + length as u64);
        write(packet, at.checksum(), pseudo);
        let kind = match (at.tcp, at.ipv6) {
            (false, _) => Offload::UDP_L4,
            (true, false) => Offload::TCPV4,
            (true, true) => Offload::TCPV6,
        };
        let ecn = match flags(packet, at) & CWR {
            0 => 0,
            _ => Offload::ECN,
        };
        let offload = Offload {
            flags: Offload::NEEDS_CSUM,
            kind: kind | ecn,
            header_length: at.payload as u16,
            segment: self.segment as u16,
            checksum_start: at.transport as u16,
            checksum_offset: at.checksum_offset() as u16,
        };
        (offload, packet)
    }

    /// Takes the first frame, which stands in the buffer.
    fn begin(&mut self, len: usize, may: Joins) {
        self.len = len;
        self.count = 1;
        self.is_verified = false;
        self.is_open = false;
        let head = &self.buffer[..len];
        self.headers = joinable(head, len, may);
        if let Some(headers) = self.headers {
            self.segment = len - headers.payload;
            self.is_open = flags(head, headers) & (FIN | PSH) == 0;
        }
    }

    /// Headers of a frame of `len` bytes that continues the run, of which `head` are given.
    fn continued(&mut self, head: &[u8], len: usize, may: Joins) -> Option<Headers> {
        if !self.is_open || self.count == MAX_FRAMES {
            return None;
        }
        let first = self.headers?;
        let headers = joinable(head, len, may).filter(|headers| *headers == first)?;
        let payload = len - headers.payload;
        if payload > self.segment || !self.has_space(first, payload) {
            return None;
        }
        if !continues(&self.buffer, head, headers, self.count, self.segment) {
            return None;
        }
        if !self.is_verified {
            self.is_verified = is_checksum_right(&self.buffer[..self.len], first);
            self.is_open = self.is_verified;
        }
        self.is_open.then_some(headers)
    }

    /// Whether the run stays within its limits with another frame of `payload` bytes after the headers `at`.
    fn has_space(&self, at: Headers, payload: usize) -> bool {
        let len = self.len + payload;
        len - at.network <= PACKET
            && len <= self.longest.packet
            && len + self.count * at.payload <= self.longest.on_link
    }

    /// Space for the payload of a frame that continues the run.
    fn append(&mut self, payload: usize, flags: u8) -> &mut [u8] {
        let start = self.len;
        self.grow(payload);
        self.count += 1;
        self.is_open = payload == self.segment;
        if let Some(first) = self.headers.filter(|_| flags & (FIN | PSH) != 0) {
            self.buffer[first.transport + TCP_FLAGS] |= flags & (FIN | PSH);
            self.is_open = false;
        }
        &mut self.buffer[start..self.len]
    }

    fn grow(&mut self, by: usize) {
        self.len += by;
        if self.buffer.len() < self.len {
            self.buffer.resize(self.len, 0);
        }
    }
}

/// Headers of a frame that can be part of a run of several.
fn joinable(head: &[u8], len: usize, may: Joins) -> Option<Headers> {
    if may == Joins::default() {
        return None;
    }
    let headers = Headers::parse(head, len).ok()?;
    let is_taken = if headers.tcp { may.tcp } else { may.udp };
    let ip = if headers.ipv6 { IPV6 } else { IPV4 };
    let has_extensions = headers.transport - headers.network != ip;
    let is_joinable = is_taken
        && !has_extensions
        && headers.payload < len
        && len - headers.network <= PACKET
        && flags(head, headers) & (SYN | RST | URG) == 0
        && (headers.ipv6 || is_right(&head[headers.network..headers.transport], 10));
    is_joinable.then_some(headers)
}

/// Whether a frame's headers are those of frame `count` of the run that starts with `first`.
fn continues(first: &[u8], next: &[u8], at: Headers, count: usize, segment: usize) -> bool {
    let is_equal = |from: usize, to: usize| first[from..to] == next[from..to];
    let (ip, transport) = (at.network, at.transport);
    let is_ip_equal = match at.ipv6 {
        true => is_equal(ip, ip + 4) && is_equal(ip + 6, ip + IPV6),
        false => {
            let identification = number(first, ip + 4).map(|id| id.wrapping_add(count as u16));
            is_equal(ip, ip + 2)
                && number(next, ip + 4) == identification
                && is_equal(ip + 6, ip + 10)
                && is_equal(ip + 12, ip + IPV4)
        }
    };
    // Ethernet, tags, ports.
    if !is_equal(0, ip) || !is_ip_equal || !is_equal(transport, transport + 4) {
        return false;
    }
    if !at.tcp {
        return true;
    }
    let position = (count * segment) as u32;
    let allowed = flags(first, at) & !CWR | flags(next, at) & (FIN | PSH);
    sequence(next, at) == sequence(first, at).wrapping_add(position)
        // Acknowledgement, header length.
        && is_equal(transport + 8, transport + TCP_FLAGS)
        && flags(next, at) == allowed
        // Window, urgent pointer, options.
        && is_equal(transport + 14, transport + 16)
        && is_equal(transport + 18, at.payload)
}

/// Flags of a TCP segment; 0 for UDP.
fn flags(frame: &[u8], headers: Headers) -> u8 {
    match headers.tcp {
        true => frame[headers.transport + TCP_FLAGS],
        false => 0,
    }
}

fn sequence(frame: &[u8], headers: Headers) -> u32 {
    let at = headers.transport + 4;
    let bytes = frame[at..at + 4].try_into().expect("four bytes");
    u32::from_be_bytes(bytes)
}

/// Whether a frame's TCP or UDP checksum is the one that [`super::Cut`] would write, or 0 in UDP over IPv4.
fn is_checksum_right(frame: &[u8], headers: Headers) -> bool {
    let (field, segment) = (
        number(frame, headers.checksum()),
        &frame[headers.transport..],
    );
    if !headers.tcp && field == Some(0) {
        return !headers.ipv6;
    }
    // TCP has two ways to write 0.
    if headers.tcp && field == Some(0xffff) {
        return false;
    }
    fold(headers.pseudo(frame) + segment.len() as u64 + sum(segment)) == 0xffff
}

/// Whether a header's checksum at a position is right, and not 0xffff, the other way to write 0.
fn is_right(header: &[u8], checksum: usize) -> bool {
    fold(sum(header)) == 0xffff && number(header, checksum) != Some(0xffff)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A UDP frame without a checksum.
    fn datagram(identification: u8, payload: &[u8]) -> Vec<u8> {
        let mut frame = vec![0; 42];
        frame[12..14].copy_from_slice(&[8, 0]);
        frame[14] = 0x45;
        frame[17] = (28 + payload.len()) as u8;
        frame[19] = identification;
        frame[23] = 17;
        let checksum = !fold(sum(&frame[14..34]));
        write(&mut frame, 24, checksum);
        frame[39] = (8 + payload.len()) as u8;
        frame.extend_from_slice(payload);
        frame
    }

    #[test]
    fn a_room_that_is_not_used_changes_no_frame() {
        let mut unfit = Vec::new();
        let payloads = [[1; 50], [2; 50], [3; 50]];
        let mut run = Run::new();
        for (number, payload) in payloads.iter().enumerate() {
            run.room(100).fill(0xaa);
            run.room(200).fill(0xbb);
            let frame = datagram(number as u8, payload);
            match number {
                1 => assert!(run.add(&frame, Joins::ALL)),
                _ => {
                    run.room(frame.len()).copy_from_slice(&frame);
                    assert!(run.written(frame.len(), Joins::ALL, &mut unfit));
                }
            }
        }
        run.room(100).fill(0xcc);
        let (offload, packet) = run.finish();
        assert!(offload.is_bundle());
        assert_eq!(packet[42..], payloads.concat());
        run.room(100).fill(0xdd);
        run.clear();
        assert_eq!(run.finish(), (Offload::NONE, &[][..]));
    }
}

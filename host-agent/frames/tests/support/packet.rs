//! Builds bundles, and the frames that they stand for, field by field, with sums computed word by word.

use frames::bundle::Offload;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transport {
    Udp,
    Tcp,
}

/// A bundle to be built.
#[derive(Debug, Clone)]
pub struct Bundle {
    pub transport: Transport,
    pub ipv6: bool,
    pub tags: Vec<u8>,
    pub segment: usize,
    pub payload: usize,
    /// Flags of TCP.
    pub flags: u8,
    /// Bytes of options of TCP, a multiple of 4.
    pub options: usize,
    pub sequence: u32,
    pub identification: u16,
    /// Source port.
    pub source: u16,
}

impl Default for Bundle {
    fn default() -> Bundle {
        Bundle {
            transport: Transport::Udp,
            ipv6: false,
            tags: Vec::new(),
            segment: 1000,
            payload: 3000,
            flags: 0x10,
            options: 0,
            sequence: 0x1234_5678,
            identification: 0x4242,
            source: 0x1234,
        }
    }
}

/// Ones' complement sum of big-endian words.
pub fn sum_by_words(bytes: &[u8]) -> u16 {
    let word = |pair: &[u8]| u32::from(pair[0]) << 8 | u32::from(*pair.get(1).unwrap_or(&0));
    let mut sum: u32 = bytes.chunks(2).map(word).sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

impl Bundle {
    /// The bundle from the port with which its first frame's checksum is 0.
    pub fn with_checksum_of_zero(mut self) -> Bundle {
        self.source = 0;
        let frame = self.frame(0);
        let at = frame.len() - self.segment - self.header() + self.checksum_offset();
        self.source = u16::from_be_bytes([frame[at], frame[at + 1]]);
        self
    }

    /// Number of frames.
    pub fn count(&self) -> usize {
        self.payload.div_ceil(self.segment).max(1)
    }

    /// The bundle with its virtio header.
    pub fn build(&self) -> (Offload, Vec<u8>) {
        let (mut packet, transport) = self.headers(0, self.payload, self.flags);
        packet.extend((0..self.payload).map(payload_byte));
        let field = self.checksum_offset();
        let pseudo = self.pseudo(self.payload);
        packet[transport + field..transport + field + 2].copy_from_slice(&pseudo.to_be_bytes());
        let kind = match (self.transport, self.ipv6) {
            (Transport::Udp, _) => Offload::UDP_L4,
            (Transport::Tcp, false) => Offload::TCPV4,
            (Transport::Tcp, true) => Offload::TCPV6,
        };
        let ecn = match self.transport == Transport::Tcp && self.flags & 0x80 != 0 {
            true => Offload::ECN,
            false => 0,
        };
        let offload = Offload {
            flags: Offload::NEEDS_CSUM,
            kind: kind | ecn,
            header_length: (packet.len() - self.payload) as u16,
            segment: self.segment as u16,
            checksum_start: transport as u16,
            checksum_offset: field as u16,
        };
        (offload, packet)
    }

    /// The frames that the bundle stands for.
    pub fn frames(&self) -> Vec<Vec<u8>> {
        (0..self.count()).map(|k| self.frame(k)).collect()
    }

    fn frame(&self, k: usize) -> Vec<u8> {
        let start = k * self.segment;
        let end = self.payload.min(start + self.segment);
        // CWR only in the first, FIN and PSH only in the last.
        let mut flags = self.flags;
        if k > 0 {
            flags &= !0x80;
        }
        if end < self.payload {
            flags &= !0x09;
        }
        let (mut frame, transport) = self.headers(k, end - start, flags);
        frame.extend((start..end).map(payload_byte));
        let pseudo = self.pseudo(end - start).to_be_bytes();
        let mut checksum = !sum_by_words(&[&pseudo, &frame[transport..]].concat());
        if checksum == 0 && self.transport == Transport::Udp {
            checksum = 0xffff;
        }
        let field = transport + self.checksum_offset();
        frame[field..field + 2].copy_from_slice(&checksum.to_be_bytes());
        frame
    }

    fn checksum_offset(&self) -> usize {
        match self.transport {
            Transport::Udp => 6,
            Transport::Tcp => 16,
        }
    }

    fn protocol(&self) -> u8 {
        match self.transport {
            Transport::Udp => 17,
            Transport::Tcp => 6,
        }
    }

    /// Length of the TCP or UDP header.
    fn header(&self) -> usize {
        match self.transport {
            Transport::Udp => 8,
            Transport::Tcp => 20 + self.options,
        }
    }

    fn addresses(&self) -> Vec<u8> {
        match self.ipv6 {
            false => vec![10, 9, 0, 1, 10, 9, 0, 2],
            true => (0..32).map(|byte| byte * 7 + 1).collect(),
        }
    }

    /// Sum of the pseudo header of a segment with this payload.
    fn pseudo(&self, payload: usize) -> u16 {
        let mut pseudo = self.addresses();
        pseudo.extend([0, self.protocol()]);
        pseudo.extend(((self.header() + payload) as u16).to_be_bytes());
        sum_by_words(&pseudo)
    }

    /// Headers of frame `k` with a TCP or UDP checksum of 0, and the position of the TCP or UDP header.
    fn headers(&self, k: usize, payload: usize, flags: u8) -> (Vec<u8>, usize) {
        let (header, protocol) = (self.header(), self.protocol());
        let length = header + payload;
        // Not the receiver's own address, so that its kernel does not answer.
        let mut packet = vec![2, 0, 0, 0, 9, 2, 2, 0, 0, 0, 9, 1];
        packet.extend(&self.tags);
        match self.ipv6 {
            false => {
                packet.extend([8, 0]);
                let mut ip = vec![0x45, 0x02];
                ip.extend((20 + length as u16).to_be_bytes());
                ip.extend(self.identification.wrapping_add(k as u16).to_be_bytes());
                ip.extend([0x40, 0, 61, protocol, 0, 0]);
                ip.extend(self.addresses());
                let sum = !sum_by_words(&ip);
                ip[10..12].copy_from_slice(&sum.to_be_bytes());
                packet.extend(ip);
            }
            true => {
                packet.extend([0x86, 0xdd, 0x60, 0x21, 0x43, 0x65]);
                packet.extend((length as u16).to_be_bytes());
                packet.extend([protocol, 61]);
                packet.extend(self.addresses());
            }
        }
        let start = packet.len();
        packet.extend(self.source.to_be_bytes());
        packet.extend([0x56, 0x78]);
        match self.transport {
            Transport::Udp => {
                packet.extend((length as u16).to_be_bytes());
                packet.extend([0, 0]);
            }
            Transport::Tcp => {
                let sequence = self.sequence.wrapping_add((k * self.segment) as u32);
                packet.extend(sequence.to_be_bytes());
                packet.extend([9, 8, 7, 6, (header as u8 / 4) << 4, flags]);
                packet.extend([5, 4, 0, 0, 0, 0]);
                packet.extend((0..self.options).map(|byte| byte as u8));
            }
        }
        (packet, start)
    }
}

fn payload_byte(at: usize) -> u8 {
    (at * at / 3) as u8
}

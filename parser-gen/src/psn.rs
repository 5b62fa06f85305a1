//! Data packets of RDMA connections by packet sequence number (PSN): which packets carry data, and each one's position in its
//! connection. The P4 text and the computation on a frame's bytes must agree.
//!
//! A base transport header has no source queue pair, so a connection is (source, destination, destination queue pair), and each
//! direction is a connection of its own. READ responses have PSNs of the requester, while all other packets from that sender to
//! that queue pair have the sender's: responses therefore count as a separate connection.

use crate::library::{Library, ProtocolId};
use crate::writer::Writer;

/// Filter names of the fields that identify an RDMA connection.
pub const CONNECTION: [&str; 3] = ["ip.src", "ip.dst", "roce.qp"];

/// Filter that matches data packets (InfiniBand architecture, volume 1, table 38): SEND and WRITE of reliable and unreliable
/// connections, and READ responses.
pub const DATA: &str = "ip && roce.opcode in {0x00..0x0b, 0x0d..0x10, 0x16..0x17, 0x20..0x2b}";

/// XORed into the key of READ responses; an arbitrary number by which two keys hardly ever differ.
pub const RESPONSES: u32 = 0x5EAD_0B5E;

/// PSNs have 24 bits: they count modulo 2^24.
pub const MODULUS: u32 = 1 << 24;

/// RoCEv2 packet over IPv4: the header fields that identify its connection and its kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Packet {
    /// Sender's IPv4 address.
    pub source: [u8; 4],
    /// Receiver's IPv4 address.
    pub destination: [u8; 4],
    /// Receiver's queue pair number, 24 bits.
    pub qp: u32,
    /// Packet sequence number, 24 bits.
    pub psn: u32,
    /// Opcode of the base transport header.
    pub opcode: u8,
    /// First byte behind the base transport header: the syndrome, in an acknowledgement. `None` if the frame ends before it.
    pub syndrome: Option<u8>,
}

/// Length of the base transport header in bytes.
const HEADER: usize = 12;

impl Packet {
    /// Parses a frame as a RoCEv2 packet over IPv4; `None` if it is anything else.
    #[must_use]
    pub fn parse(library: &Library, frame: &[u8]) -> Option<Packet> {
        let headers = library.headers(frame);
        let header = |name: &str| {
            let mut found = headers.iter();
            let is_it = |(id, _): &&(ProtocolId, usize)| library.protocols[*id].name == name;
            frame.get(found.find(is_it)?.1..)
        };
        let (ip, bth) = (header("ipv4")?, header("roce")?);
        let number = |at: usize| {
            let [high, middle, low] = bth.get(at..at + 3)?.try_into().ok()?;
            Some(u32::from_be_bytes([0, high, middle, low]))
        };
        Some(Packet {
            source: ip.get(12..16)?.try_into().ok()?,
            destination: ip.get(16..20)?.try_into().ok()?,
            qp: number(5)?,
            psn: number(9)?,
            opcode: *bth.first()?,
            syndrome: bth.get(HEADER).copied(),
        })
    }

    /// The packet as an RDMA data packet; `None` if it carries no data.
    #[must_use]
    pub fn data(&self) -> Option<DataPacket> {
        let responds = match self.opcode {
            0x00..=0x0b | 0x16..=0x17 | 0x20..=0x2b => false,
            0x0d..=0x10 => true,
            _ => return None,
        };
        let psn = self.psn;
        Some(DataPacket { psn, responds })
    }

    /// Whether the packet requests retransmission from its PSN on: "RC Acknowledge" whose syndrome is a NAK, PSN sequence error
    /// (InfiniBand architecture, volume 1, 9.7.5.2).
    #[must_use]
    pub fn is_sequence_nak(&self) -> bool {
        self.opcode == 0x11 && self.syndrome == Some(0x60)
    }

    /// Whether the packet is an RDMA READ request of a reliable connection.
    #[must_use]
    pub fn is_read_request(&self) -> bool {
        self.opcode == 0x0c
    }
}

/// RoCEv2 packet that carries data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DataPacket {
    /// Packet sequence number, 24 bits.
    pub psn: u32,
    /// Whether the packet is a READ response.
    pub responds: bool,
}

impl DataPacket {
    /// Parses a frame as a RoCEv2 data packet; `None` if it is anything else.
    #[must_use]
    pub fn parse(library: &Library, frame: &[u8]) -> Option<DataPacket> {
        Packet::parse(library, frame)?.data()
    }

    /// Number to XOR into the key of the packet's connection, so that READ responses count as a connection of their own.
    #[must_use]
    pub fn salt(self) -> u32 {
        if self.responds { RESPONSES } else { 0 }
    }
}

/// Position of an RDMA data packet in its connection, by which faults select packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PsnPosition {
    /// The packet's PSN less the connection's first PSN, modulo [`MODULUS`].
    pub relative: u32,
    /// Number of sequences of consecutive PSNs in the connection so far, this packet's included; from 1.
    pub round: u32,
}

/// State of an RDMA connection that a switch keeps in registers. Round 0: no packet has arrived.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Connection {
    first: u32,
    last: u32,
    round: u32,
    /// Latest announcement of the connection, as [`Begun::word`]; 0 before the first announcement.
    told: u32,
}

/// Announcement of an RDMA connection to the switch, by which the switch knows where the connection's PSNs begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Begun {
    /// PSN of the connection's first packet.
    pub first: u32,
    /// Generation of the queue pair, from 1: each new connection on the queue pair has another generation.
    pub life: u8,
}

impl Begun {
    fn word(self) -> u32 {
        (u32::from(self.life) << 24) | (self.first % MODULUS)
    }
}

impl Connection {
    /// Records the next data packet. `told` is the connection's latest announcement to the switch by then:
    /// if it differs from the previous one, the packet belongs to a new connection on the queue pair.
    pub fn take(&mut self, psn: u32, told: Option<Begun>) -> PsnPosition {
        let told = told.map_or(0, Begun::word);
        if told != 0 && told != self.told {
            self.told = told;
            self.first = told % MODULUS;
            self.round = 1;
        } else if self.round == 0 {
            self.first = psn;
            self.round = 1;
        } else if psn != (self.last + 1) % MODULUS {
            self.round = self.round.wrapping_add(1);
        }
        self.last = psn;
        PsnPosition {
            relative: psn.wrapping_sub(self.first) % MODULUS,
            round: self.round,
        }
    }
}

/// P4 registers that hold the fields of [`Connection`], one cell per connection: register name and cell type.
pub(crate) const REGISTERS: [(&str, &str); 4] = [
    ("firsts", "bit<24>"),
    ("lasts", "bit<24>"),
    ("rounds", "bit<32>"),
    ("tellings", "bit<32>"),
];

/// Size of the table of announced connections: both directions of as many connections as a unit can have cells for,
/// and READ responses. The tables of all units have this size, so all units have capacity for the same connections.
pub const MOST_TOLD: usize = 1 << 18;

/// Variables that the control declares for a packet's connection and position: type and name.
pub(crate) const VARIABLES: [(&str, &str); 4] = [
    ("bit<24>", "relative"),
    ("bit<32>", "round"),
    ("bit<8>", "data"),
    ("bit<32>", "told"),
];

/// Writes the table of announced connections. Its key is [`CONNECTION`] and `data`, which is 2 for READ responses and 1 for all
/// other data packets.
pub(crate) fn write_table(w: &mut Writer) {
    w.open("action began(bit<8> life, bit<24> first)");
    w.line("told = life ++ first;");
    w.close();
    w.open("table connections");
    w.open("key =");
    w.line("hdr.ipv4.src: exact @name(\"source\");");
    w.line("hdr.ipv4.dst: exact @name(\"destination\");");
    w.line("hdr.roce.dest_qp: exact @name(\"qp\");");
    w.line("data: exact @name(\"data\");");
    w.close();
    w.line("actions = { began; NoAction; }");
    w.line("const default_action = NoAction();");
    w.line(format!("size = {MOST_TOLD};"));
    w.close();
}

/// Writes statements that set `data`, the kind of a packet: 1 for a data packet, 2 for a READ response, otherwise 0.
pub(crate) fn write_kind(w: &mut Writer) {
    w.line("data = 0;");
    w.line("told = 0;");
    w.open("if (hdr.ipv4.isValid() && hdr.roce.isValid())");
    w.line(
        "// SEND and WRITE of reliable connections, SEND with invalidate, both of unreliable ones.",
    );
    w.open(
        "if (hdr.roce.opcode <= 0x0b || (hdr.roce.opcode >= 0x16 && hdr.roce.opcode <= 0x17) || \
         (hdr.roce.opcode >= 0x20 && hdr.roce.opcode <= 0x2b))",
    );
    w.line("data = 1;");
    w.close_open("else if (hdr.roce.opcode >= 0x0d && hdr.roce.opcode <= 0x10)");
    w.line("data = 2;");
    w.close();
    w.close();
}

/// Writes statements that put [`PsnPosition`] into `relative` and `round`. `read` (register, variable) and `write`
/// (register, value) return a register's statements.
pub(crate) fn write_place(
    read: impl Fn(&str, &str) -> String,
    write: impl Fn(&str, &str) -> String,
    w: &mut Writer,
) {
    w.open("@atomic");
    w.line("bit<24> first = 0;");
    w.line("bit<24> last = 0;");
    w.line("bit<32> before = 0;");
    w.line(read("firsts", "first"));
    w.line(read("lasts", "last"));
    w.line(read("rounds", "round"));
    w.line(read("tellings", "before"));
    w.open("if (told != 0 && told != before)");
    w.line("first = told[23:0];");
    w.line("round = 1;");
    w.line(write("tellings", "told"));
    w.line(write("firsts", "first"));
    w.line(write("rounds", "round"));
    w.close_open("else if (round == 0)");
    w.line("first = hdr.roce.psn;");
    w.line("round = 1;");
    w.line(write("firsts", "first"));
    w.line(write("rounds", "round"));
    w.close_open("else if (hdr.roce.psn != last + 1)");
    w.line("round = round + 1;");
    w.line(write("rounds", "round"));
    w.close();
    w.line(write("lasts", "hdr.roce.psn"));
    w.line("relative = hdr.roce.psn - first;");
    w.close();
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::filter::Filter;

    fn frame(opcode: u8, psn: u32) -> Vec<u8> {
        let mut frame = vec![2; 12];
        frame.extend([0x08, 0x00, 0x45, 0, 0, 60, 0, 0, 0x40, 0, 64, 17, 0, 0]);
        frame.extend([10, 0, 0, 1, 10, 0, 0, 2]);
        frame.extend([0xC0, 0x00, 0x12, 0xB7, 0, 40, 0, 0]);
        frame.extend([opcode, 0x40, 0xFF, 0xFF, 0, 0, 0, 0x11, 0x80]);
        frame.extend(&psn.to_be_bytes()[1..]);
        frame.extend([0; 20]);
        frame
    }

    #[test]
    fn the_filter_means_what_the_bytes_are_taken_for() {
        let library = Library::builtin();
        let filter = Filter::parse(&library, DATA).unwrap();
        for opcode in 0..=u8::MAX {
            let frame = frame(opcode, 0xAB_CDEF);
            let found = DataPacket::parse(&library, &frame);
            let values = library.dissect(&frame, 1);
            assert_eq!(filter.matches(&values), found.is_some(), "{opcode:#04x}");
            assert!(found.is_none_or(|packet| packet.psn == 0xAB_CDEF));
        }
    }

    #[test]
    fn what_is_cut_short_is_no_data() {
        let library = Library::builtin();
        let frame = frame(0x04, 7);
        for length in 0..54 {
            assert_eq!(
                DataPacket::parse(&library, &frame[..length]),
                None,
                "{length}"
            );
        }
        assert!(DataPacket::parse(&library, &frame[..54]).is_some());
    }

    #[test]
    fn a_round_begins_where_numbers_do_not_follow() {
        let mut connection = Connection::default();
        let psns = [MODULUS - 2, MODULUS - 1, 0, 1, MODULUS - 1, 0, 1, 2, 2, 4];
        let places = psns.map(|psn| {
            let place = connection.take(psn, None);
            (place.relative, place.round)
        });
        let expected = [
            (0, 1),
            (1, 1),
            (2, 1),
            (3, 1),
            (1, 2),
            (2, 2),
            (3, 2),
            (4, 2),
            (4, 3),
            (6, 4),
        ];
        assert_eq!(places, expected);
    }

    #[test]
    fn a_first_number_that_is_told_counts_from_then_on() {
        let mut connection = Connection::default();
        let begun = |first, life| Some(Begun { first, life });
        let taken = [
            // Announced before the first packet, and not again.
            (7, begun(0, 1)),
            (8, begun(0, 1)),
            (9, None),
            // A new generation of the queue pair.
            (100, begun(98, 2)),
            (101, begun(98, 2)),
            (101, begun(98, 2)),
            // A generation with an equal first PSN.
            (98, begun(98, 3)),
        ];
        let places = taken.map(|(psn, told)| {
            let place = connection.take(psn, told);
            (place.relative, place.round)
        });
        let expected = [(7, 1), (8, 1), (9, 1), (2, 1), (3, 1), (3, 2), (0, 1)];
        assert_eq!(places, expected);
        // A packet arrived before the announcement.
        let mut late = Connection::default();
        let seen = late.take(5, None);
        assert_eq!((seen.relative, seen.round), (0, 1));
        assert_eq!(
            (late.take(7, None).relative, late.take(9, None).round),
            (2, 3)
        );
        let told = late.take(10, begun(5, 1));
        assert_eq!((told.relative, told.round), (5, 1));
    }
}

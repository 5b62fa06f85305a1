//! A TCP packet becomes the reset of its connection: as P4 text, and on a frame's bytes, which must come to the same.
//!
//! Its sequence number stays, since a receiver takes a reset only where it waits for the next byte (RFC 5961, section 3.2), and
//! so do the acknowledgement and its flag, without which one in the handshake is ignored (RFC 9293, section 3.10.7.3). The
//! network header's length ends it behind 20 bytes of TCP; what came behind them stays in the frame, where receivers of
//! Ethernet take it for padding (RFC 1122, section 3.2.1.1; RFC 894). No switch need be able to shorten a packet.

use crate::dissect::Headers;
use crate::generate::writer::Writer;
use crate::library::{Library, ProtocolId};

/// The headers that it reads and writes.
const PROTOCOLS: [&str; 3] = ["ipv4", "ipv6", "tcp"];
/// Of TCP without options.
const TCP_BYTES: usize = 20;
/// Words that a TCP header has then, and the flags: its 13th and 14th byte.
const RST: u16 = 0x5004;
const RST_ACK: u16 = 0x5014;
const ACK_BIT: u8 = 0x10;
const TCP: u8 = 6;

/// The protocols that a program must parse for it.
pub(crate) fn protocols(library: &Library) -> impl Iterator<Item = ProtocolId> {
    let protocols = library.protocols.iter().enumerate();
    let named = protocols.filter(|(_, protocol)| PROTOCOLS.contains(&protocol.name.as_str()));
    named.map(|(id, _)| id)
}

/// Changes a frame that carries TCP, whose sender's and receiver's addresses stand before it; others stay as they are. `headers`:
/// where they begin ([`Library::parsed`]).
pub fn apply(library: &Library, headers: &Headers, frame: &mut [u8]) {
    let place = |name: &str| {
        let mut headers = headers.0.iter();
        headers
            .find(|(id, _)| library.protocols[*id].name == name)
            .map(|(_, start)| *start)
    };
    let Some(tcp) = place("tcp") else {
        return;
    };
    let mut sum = u32::from(TCP) + TCP_BYTES as u32;
    if let Some(ip) = place("ipv4") {
        let old = word(frame, ip + 2);
        let new = u16::from(frame[ip] & 15) * 4 + TCP_BYTES as u16;
        put(frame, ip + 2, new);
        let checksum = word(frame, ip + 10);
        let changed = u32::from(!checksum) + u32::from(!old) + u32::from(new);
        put(frame, ip + 10, !fold(changed));
        sum += words(frame, ip + 12, 4);
    } else if let Some(ip) = place("ipv6").filter(|ip| frame[ip + 6] == TCP) {
        put(frame, ip + 4, TCP_BYTES as u16);
        sum += words(frame, ip + 8, 16);
    } else {
        return;
    }
    let acknowledges = frame[tcp + 13] & ACK_BIT != 0;
    put(frame, tcp + 12, if acknowledges { RST_ACK } else { RST });
    if !acknowledges {
        frame[tcp + 8..tcp + 12].fill(0);
    }
    frame[tcp + 14..tcp + TCP_BYTES].fill(0);
    sum += words(frame, tcp, TCP_BYTES / 2);
    put(frame, tcp + 16, !fold(sum));
}

fn word(frame: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([frame[at], frame[at + 1]])
}

fn put(frame: &mut [u8], at: usize, word: u16) {
    frame[at..at + 2].copy_from_slice(&word.to_be_bytes());
}

fn words(frame: &[u8], at: usize, count: usize) -> u32 {
    let words = (0..count).map(|number| u32::from(word(frame, at + 2 * number)));
    words.sum()
}

/// Of ones' complement.
fn fold(sum: u32) -> u16 {
    let sum = (sum & 0xFFFF) + (sum >> 16);
    ((sum & 0xFFFF) + (sum >> 16)) as u16
}

/// The control that does the same to a packet's headers.
pub(crate) fn write(name: &str, w: &mut Writer) {
    let add = |w: &mut Writer, field: &str, bits: usize| {
        for word in (0..bits / 16).rev() {
            let (high, low) = (16 * word + 15, 16 * word);
            let part = match bits {
                16 => field.to_owned(),
                _ => format!("{field}[{high}:{low}]"),
            };
            w.line(format!("sum = sum + (bit<32>) {part};"));
        }
    };
    let fold = |w: &mut Writer, name: &str| {
        for _ in 0..2 {
            w.line(format!("{name} = ({name} & 0xffff) + ({name} >> 16);"));
        }
    };
    w.open(format!("control {name}(inout headers_t hdr)"));
    w.open("apply");
    w.line(format!("bit<32> sum = {};", usize::from(TCP) + TCP_BYTES));
    w.line("bit<1> known = 0;");
    w.open("if (hdr.tcp.isValid() && hdr.ipv4.isValid())");
    w.line("known = 1;");
    w.line("bit<32> network = (bit<32>) (~hdr.ipv4.checksum);");
    w.line("network = network + (bit<32>) (~hdr.ipv4.total_len);");
    w.line(format!(
        "hdr.ipv4.total_len = ((bit<16>) hdr.ipv4.ihl << 2) + {TCP_BYTES};"
    ));
    w.line("network = network + (bit<32>) hdr.ipv4.total_len;");
    fold(w, "network");
    w.line("hdr.ipv4.checksum = ~network[15:0];");
    add(w, "hdr.ipv4.src", 32);
    add(w, "hdr.ipv4.dst", 32);
    w.close_open(&format!(
        "else if (hdr.tcp.isValid() && hdr.ipv6.isValid() && hdr.ipv6.next_header == {TCP})"
    ));
    w.line("known = 1;");
    w.line(format!("hdr.ipv6.payload_len = {TCP_BYTES};"));
    add(w, "hdr.ipv6.src", 128);
    add(w, "hdr.ipv6.dst", 128);
    w.close();
    w.open("if (known == 1)");
    w.line("hdr.tcp.data_offset = 5;");
    for field in [
        "reserved", "cwr", "ece", "urg", "psh", "syn", "fin", "window", "urgent",
    ] {
        w.line(format!("hdr.tcp.{field} = 0;"));
    }
    w.line("hdr.tcp.rst = 1;");
    w.open("if (hdr.tcp.ack == 0)");
    w.line("hdr.tcp.ack_no = 0;");
    w.line(format!("sum = sum + {RST:#x};"));
    w.close_open("else");
    w.line(format!("sum = sum + {RST_ACK:#x};"));
    w.close();
    add(w, "hdr.tcp.src_port", 16);
    add(w, "hdr.tcp.dst_port", 16);
    add(w, "hdr.tcp.seq", 32);
    add(w, "hdr.tcp.ack_no", 32);
    fold(w, "sum");
    w.line("hdr.tcp.checksum = ~sum[15:0];");
    w.close();
    w.close();
    w.close();
}

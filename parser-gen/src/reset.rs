//! A TCP packet becomes the reset of its connection: as P4 text, and on a frame's bytes for the proof.
//!
//! Its sequence number stays, since a receiver takes a reset only where it waits for the next byte (RFC 5961, section 3.2), and
//! so do the acknowledgement and its flag, without which one in the handshake is ignored (RFC 9293, section 3.10.7.3). The
//! network header's length ends it behind 20 bytes of TCP; what came behind them stays in the frame, where receivers of
//! Ethernet take it for padding (RFC 1122, section 3.2.1.1; RFC 894). No switch need be able to shorten a packet.

use crate::checksums::Checksums;
use crate::dissect::Headers;
use crate::generate::writer::Writer;
use crate::library::{Library, ProtocolId};
use crate::rewrite::text::{fold, write_checksum};

/// The headers that it reads and writes.
const PROTOCOLS: [&str; 3] = ["ipv4", "ipv6", "tcp"];
/// Of TCP without options.
const TCP_BYTES: usize = 20;
/// Words that a TCP header has then, and the flags: its 13th and 14th byte.
const RST: u16 = 0x5004;
const RST_ACK: u16 = 0x5014;
const ACK_BIT: u8 = 0x10;
const TCP: u8 = 6;
/// The byte of an IPv4 header at which its checksum stands.
const IPV4_CHECKSUM: usize = 10;

/// The protocols that a program must parse for it.
pub(crate) fn protocols(library: &Library) -> impl Iterator<Item = ProtocolId> {
    let protocols = library.protocols.iter().enumerate();
    let named = protocols.filter(|(_, protocol)| PROTOCOLS.contains(&protocol.name.as_str()));
    named.map(|(id, _)| id)
}

/// Makes a reset of a frame with TCP in IPv4 or IPv6; any other frame stays as it is. `headers` are those of the frame
/// ([`Library::parsed`]).
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
    let errors = Checksums::of(library, headers, frame).errors(frame);
    match (place("ipv4"), place("ipv6")) {
        (Some(ip), _) => put(frame, ip + 2, (tcp - ip + TCP_BYTES) as u16),
        (None, Some(ip)) => put(frame, ip + 4, TCP_BYTES as u16),
        (None, None) => return,
    }
    let acknowledges = frame[tcp + 13] & ACK_BIT != 0;
    put(frame, tcp + 12, if acknowledges { RST_ACK } else { RST });
    if !acknowledges {
        frame[tcp + 8..tcp + 12].fill(0);
    }
    frame[tcp + 14..tcp + TCP_BYTES].fill(0);
    // The segment is new, and so is its checksum; that of the network header is as right as it was.
    let sums = Checksums::of(library, headers, frame);
    sums.restore(frame, &errors);
    sums.make_right(frame, tcp + 16);
}

fn put(frame: &mut [u8], at: usize, word: u16) {
    frame[at..at + 2].copy_from_slice(&word.to_be_bytes());
}

/// The control that makes a reset of a packet's headers.
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
    w.open(format!("control {name}(inout headers_t hdr)"));
    w.open("apply");
    w.line(format!("bit<32> sum = {};", usize::from(TCP) + TCP_BYTES));
    w.line("bit<1> known = 0;");
    w.open("if (hdr.tcp.isValid() && hdr.ipv4.isValid())");
    w.line("known = 1;");
    w.line("bit<32> sum_ipv4 = (bit<32>) (~hdr.ipv4.total_len);");
    w.line(format!(
        "hdr.ipv4.total_len = ((bit<16>) hdr.ipv4.ihl << 2) + {TCP_BYTES};"
    ));
    w.line("sum_ipv4 = sum_ipv4 + (bit<32>) hdr.ipv4.total_len;");
    write_checksum("ipv4", IPV4_CHECKSUM, w);
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
    fold("sum", w);
    w.line("hdr.tcp.checksum = ~sum[15:0];");
    w.close();
    w.close();
    w.close();
}

//! Turns a TCP packet into the reset of its connection: as P4 text, and on a frame's bytes for the proof.
//!
//! The sequence number stays, since a receiver accepts a reset only at the next byte that it expects (RFC 5961, section 3.2).
//! The acknowledgement and its flag stay too, since a reset in the handshake is ignored without them (RFC 9293, section
//! 3.10.7.3). The length in the network header then covers 20 bytes of TCP; later bytes stay in the frame, and receivers of
//! Ethernet treat them as padding (RFC 1122, section 3.2.1.1; RFC 894). No switch has to shorten a packet.

use crate::checksums::Checksums;
use crate::dissect::Headers;
use crate::library::Library;
use crate::rewrite::text::{fold, write_checksum};
use crate::writer::Writer;

/// Protocols whose headers the reset reads and writes; a program must parse them.
pub(crate) const PROTOCOLS: [&str; 3] = ["ipv4", "ipv6", "tcp"];
/// Bytes of a TCP header without options.
const TCP_BYTES: usize = 20;
/// Data offset and flags of a reset (bytes 12 and 13 of the TCP header): without ACK, and with ACK in `RST_ACK`.
const RST: u16 = 0x5004;
const RST_ACK: u16 = 0x5014;
const ACK_BIT: u8 = 0x10;
const TCP: u8 = 6;
/// Byte offset of the checksum in an IPv4 header.
const IPV4_CHECKSUM: usize = 10;

/// Turns a TCP frame over IPv4 or IPv6 into a reset; any other frame stays as it is. `headers` are
/// the headers of this frame ([`Library::parsed`]).
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
    let errors = Checksums::locate(library, headers, frame).errors(frame);
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
    // The segment is new, so its checksum is recomputed; the network header's keeps its error, if it had one.
    let sums = Checksums::locate(library, headers, frame);
    sums.restore(frame, &errors);
    sums.make_right(frame, tcp + 16);
}

fn put(frame: &mut [u8], at: usize, word: u16) {
    frame[at..at + 2].copy_from_slice(&word.to_be_bytes());
}

/// Writes the P4 control `name`, which turns a packet's headers into a reset of its TCP connection.
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

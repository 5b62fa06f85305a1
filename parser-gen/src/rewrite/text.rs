//! Writes changes of header fields as P4 text. Checksums change by the difference in ones' complement (RFC 1624, equation 3).

use super::covers::{CHECKSUM, Coverage, between, checksum_at};
use super::{Change, NewValue, Rewrite};
use crate::library::{Library, Protocol, ProtocolId};
use crate::writer::Writer;

/// IP protocol numbers of transports whose checksum covers addresses but that no program parses: DCCP, UDP-Lite.
const UNREAD: [u8; 2] = [33, 136];
/// Protocol numbers of IPv6 extension headers, behind which no transport is parsed.
const EXTENSIONS: [u8; 8] = [0, 43, 44, 51, 60, 135, 139, 140];

impl Rewrite {
    /// Writes the P4 control `name`, which changes a packet's headers.
    pub(crate) fn write(&self, library: &Library, name: &str, w: &mut Writer) {
        w.open(match self.drawn_bits() {
            Some(bits) => format!("control {name}(inout headers_t hdr, in bit<{bits}> mask)"),
            None => format!("control {name}(inout headers_t hdr)"),
        });
        w.open("apply");
        for id in self.sums() {
            w.line(format!("bit<32> sum_{} = 0;", library.protocols[id].name));
        }
        for (number, change) in self.changes.iter().enumerate() {
            change.write(library, number, w);
        }
        for id in self.sums() {
            let protocol = &library.protocols[id];
            let at = checksum_at(protocol).unwrap_or_default();
            write_checksum(&protocol.name, at, w);
        }
        w.close();
        w.close();
    }
}

impl Change {
    fn write(&self, library: &Library, number: usize, w: &mut Writer) {
        let field = format!("{}.{}", self.header, self.field);
        let segments = self.covers.iter().filter(|by| by.coverage.is_behind());
        let segments: Vec<ProtocolId> = segments.map(|cover| cover.by).collect();
        let guard = match self.covered_as(Coverage::PseudoHeader).next() {
            Some(_) => format!(" && {}", transport_is_read(&self.header)),
            None => String::new(),
        };
        w.open(format!("if ({}.isValid(){guard})", self.header));
        if !segments.is_empty() {
            self.write_position(library, number, &segments, w);
            w.open(format!("if (whole{number} == 1)"));
        }
        if !self.covers.is_empty() {
            self.write_padded("old", number, w);
        }
        w.line(match self.to {
            NewValue::Set(value) => format!("{field} = {value:#x};"),
            NewValue::Xor(mask) => format!("{field} = {field} ^ {mask:#x};"),
            NewValue::Drawn => format!("{field} = {field} ^ mask;"),
        });
        if !self.covers.is_empty() {
            self.write_padded("new", number, w);
            self.write_sums(library, number, w);
        }
        if !segments.is_empty() {
            w.close();
        }
        w.close();
    }

    fn covered_as(&self, coverage: Coverage) -> impl Iterator<Item = ProtocolId> + '_ {
        let covers = self.covers.iter();
        let covers = covers.filter(move |cover| cover.coverage == coverage);
        covers.map(|cover| cover.by)
    }

    /// Writes statements that compute the changed header's offset behind the transport's first byte, and
    /// whether the packet's length includes the header: a parser may have taken padding for a header.
    fn write_position(&self, library: &Library, number: usize, by: &[ProtocolId], w: &mut Writer) {
        let own = &library.protocols[self.protocol];
        w.line(format!("bit<1> whole{number} = 1;"));
        w.line(format!("bit<32> at{number} = 0;"));
        for id in by {
            let transport = &library.protocols[*id];
            let at = format!("at{number}");
            w.open(format!("if (hdr.{}.isValid())", transport.name));
            w.line(format!("{at} = {};", length(transport)));
            for inner in between(library, *id, self.protocol) {
                let inner = &library.protocols[inner];
                w.open(format!("if (hdr.{}.isValid())", inner.name));
                w.line(format!("{at} = {at} + {};", length(inner)));
                w.close();
            }
            let end = format!("{at} + {}", own.header_bits() / 8);
            let not_whole = |held: &str, w: &mut Writer| {
                w.open(format!("if ({end} > {held})"));
                w.line(format!("whole{number} = 0;"));
                w.close();
            };
            if transport.name == "udp" {
                not_whole("(bit<32>) hdr.udp.length", w);
            } else {
                w.open("if (hdr.ipv4.isValid())");
                let options = "((bit<32>) hdr.ipv4.ihl << 2)";
                w.open(format!(
                    "if ({end} + {options} > (bit<32>) hdr.ipv4.total_len)"
                ));
                w.line(format!("whole{number} = 0;"));
                w.close();
                w.close_open("else");
                not_whole("(bit<32>) hdr.ipv6.payload_len", w);
                w.close();
            }
            w.close();
        }
    }

    /// Writes statements that put the changed field's value at its position in the header's 16-bit words.
    fn write_padded(&self, when: &str, number: usize, w: &mut Writer) {
        let wide = 16 * self.words();
        let field = format!("{}.{}", self.header, self.field);
        let moved = match self.shift() {
            0 => format!("(bit<{wide}>) {field}"),
            shift => format!("(bit<{wide}>) {field} << {shift}"),
        };
        w.line(format!("bit<{wide}> {when}{number} = {moved};"));
    }

    /// Writes statements that add the field's difference to the sums for the checksums that cover the field.
    fn write_sums(&self, library: &Library, number: usize, w: &mut Writer) {
        let delta = format!("delta{number}");
        w.line(format!("bit<32> {delta} = 0;"));
        for word in 0..self.words() {
            let (high, low) = (16 * word + 15, 16 * word);
            w.line(format!(
                "{delta} = {delta} + (bit<32>) (~old{number}[{high}:{low}]);"
            ));
            w.line(format!(
                "{delta} = {delta} + (bit<32>) new{number}[{high}:{low}];"
            ));
        }
        let add = |id: ProtocolId, w: &mut Writer| {
            let sum = format!("sum_{}", library.protocols[id].name);
            w.line(format!("{sum} = {sum} + {delta};"));
        };
        let aligned = self.covers.iter();
        let aligned = aligned.filter(|cover| !cover.coverage.is_behind());
        aligned.for_each(|cover| add(cover.by, w));
        let mut segments = self.covered_as(Coverage::Segment).peekable();
        if segments.peek().is_some() {
            w.open(format!("if (at{number}[0:0] == 1)"));
            swap(&delta, w);
            w.close();
        }
        segments.for_each(|id| add(id, w));
    }

    /// Number of 16-bit words of the header that the changed field touches.
    fn words(&self) -> usize {
        (self.bits + self.shift()).div_ceil(16)
    }

    /// Distance in bits of the field's last bit from the end of its 16-bit word of the header.
    fn shift(&self) -> usize {
        (16 - (self.begin + self.bits) % 16) % 16
    }
}

/// P4 expression for the length of a header in bytes, options included.
fn length(protocol: &Protocol) -> String {
    match protocol.options() {
        Some(options) => {
            let words = &protocol.fields[options.length].name;
            format!("((bit<32>) hdr.{}.{words} << 2)", protocol.name)
        }
        None => (protocol.header_bits() / 8).to_string(),
    }
}

/// P4 condition: the checksum over a network header's addresses is parsed, if the packet has one.
/// Otherwise addresses stay unchanged: the receiver would drop a packet whose checksum is not updated.
fn transport_is_read(header: &str) -> String {
    let read = |number: &str, protocols: &[(u8, &str)], unread: &[u8]| {
        let read = protocols.iter();
        let read = read
            .map(|(value, name)| format!("({header}.{number} != {value} || hdr.{name}.isValid())"));
        let unread = unread.iter();
        let unread = unread.map(|value| format!("{header}.{number} != {value}"));
        read.chain(unread).collect::<Vec<_>>().join(" && ")
    };
    if header == "hdr.ipv4" {
        // Only the first fragment has the transport's header.
        let read = read("protocol", &[(6, "tcp"), (17, "udp")], &UNREAD);
        return format!("({header}.frag_offset != 0 || ({read}))");
    }
    let unread = [&UNREAD[..], &EXTENSIONS].concat();
    let protocols = [(6, "tcp"), (17, "udp"), (58, "icmpv6")];
    read("next_header", &protocols, &unread)
}

/// Writes statements that update the checksum at byte `at` of a header by the sum of the differences that it covers. A sum of 0
/// or 0xffff is no difference.
pub(crate) fn write_checksum(name: &str, at: usize, w: &mut Writer) {
    let (sum, checksum) = (format!("sum_{name}"), format!("hdr.{name}.{CHECKSUM}"));
    let is_udp = name == "udp";
    fold(&sum, w);
    let has_one = match is_udp {
        true => format!("hdr.{name}.isValid() && {checksum} != 0"),
        false => format!("hdr.{name}.isValid()"),
    };
    w.open(format!("if ({has_one} && {sum} != 0 && {sum} != 0xffff)"));
    if at % 2 == 1 {
        swap(&sum, w);
    }
    w.line(format!("{sum} = {sum} + (bit<32>) (~{checksum});"));
    fold(&sum, w);
    w.line(format!("{checksum} = ~{sum}[15:0];"));
    if is_udp {
        w.line("// 0 would mean that there is no checksum (RFC 768).");
        w.open(format!("if ({checksum} == 0)"));
        w.line(format!("{checksum} = 0xffff;"));
        w.close();
    }
    w.close();
}

/// Writes the swap of a ones' complement sum for words that begin at an odd byte (RFC 1071, section 2, B).
fn swap(sum: &str, w: &mut Writer) {
    fold(sum, w);
    w.line(format!("{sum} = (({sum} << 8) | ({sum} >> 8)) & 0xffff;"));
}

/// Writes statements that fold the carries of a ones' complement sum into its lower 16 bits.
pub(crate) fn fold(sum: &str, w: &mut Writer) {
    for _ in 0..2 {
        w.line(format!("{sum} = ({sum} & 0xffff) + ({sum} >> 16);"));
    }
}

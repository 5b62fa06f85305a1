//! The check of a RESP command's length against its segment's, in P4.

use super::Program;
use super::writer::Writer;

/// `RedisSegment`: what the parser cannot know, because it cannot add.
pub(super) fn write(program: &Program<'_>, w: &mut Writer) {
    if !program.reads_resp() {
        return;
    }
    w.line(
        "// Adds the bytes of a length, of the text that it announces and of the text's line end.",
    );
    w.open("control RespBytes(in redis_number_h number, inout bit<16> bytes)");
    w.open("apply");
    w.line("// The low four bits of a digit's character are its value.");
    for name in ["first", "second", "third"] {
        w.line(format!(
            "bit<16> {name} = (bit<16>) (number.{name} & 0x0f);"
        ));
    }
    w.open("if (number.second == RESP_CR)");
    w.line("bytes = bytes + 6 + first;");
    w.close_open("else if (number.third == RESP_CR)");
    w.line("bytes = bytes + 7 + (first << 3) + (first << 1) + second;");
    w.close_open("else");
    w.line("bytes = bytes + 8 + (first << 6) + (first << 5) + (first << 2) + (second << 3) + (second << 1) + third;");
    w.close();
    w.close();
    w.close();
    w.blank();

    w.line("// Compares the first command's length with what the segment carries, where the parser has read enough to know it:");
    w.line("// commands of one or two elements, and of three with a key that is read whole.");
    w.open("control RedisSegment(in headers_t hdr, inout bit<8> note, out bool empty)");
    w.line("RespBytes() command_bytes;");
    w.line("RespBytes() key_bytes;");
    w.line("RespBytes() value_bytes;");
    w.open("apply");
    payload_length(program, w);
    w.line("// \"*N\" CR LF with one digit, which is all that is decided below.");
    w.line("bit<16> bytes = 4;");
    w.line("bool known = false;");
    w.line("empty = payload == 0;");
    w.open("if (empty)");
    w.line("// A bare acknowledgement; the parser ran into the frame's end or padding.");
    w.line("note = NOTE_NONE;");
    w.close_open("else if (note == NOTE_NONE && hdr.redis_elements.second == RESP_CR)");
    w.line("command_bytes.apply(hdr.redis_command_length, bytes);");
    w.open("if (hdr.redis_elements.first == 0x31)");
    w.line("known = true;");
    w.close_open("else");
    w.line("key_bytes.apply(hdr.redis_key_length, bytes);");
    w.line("known = hdr.redis_elements.first == 0x32;");
    w.close();
    w.open("if (hdr.redis_value_length.isValid())");
    w.line("value_bytes.apply(hdr.redis_value_length, bytes);");
    w.line("// Three digits are all of them only if the line ends there.");
    w.line("known = !hdr.redis_value_length_crlf.isValid() || hdr.redis_value_length_crlf.text == RESP_LINE_END;");
    w.close();
    w.close();
    w.open("if (known && payload > bytes)");
    w.line("note = NOTE_REDIS_PIPELINED;");
    w.close_open("else if (known && payload < bytes)");
    w.line("note = NOTE_REDIS_SPLIT;");
    w.close();
    w.close();
    w.close();
    w.blank();
}

fn payload_length(program: &Program<'_>, w: &mut Writer) {
    let has = |name: &str| {
        program
            .slice
            .nodes
            .iter()
            .any(|id| program.library.protocols[*id].name == name)
    };
    w.line("// What the network header accounts for, less the TCP header.");
    w.line("bit<16> payload = 0;");
    if has("ipv4") {
        w.open("if (hdr.ipv4.isValid())");
        w.line("payload = hdr.ipv4.total_len - ((bit<16>) hdr.ipv4.ihl << 2);");
        w.close();
    }
    if has("ipv6") {
        w.open("if (hdr.ipv6.isValid())");
        w.line("payload = hdr.ipv6.payload_len;");
        w.close();
    }
    w.line("payload = payload - ((bit<16>) hdr.tcp.data_offset << 2);");
}

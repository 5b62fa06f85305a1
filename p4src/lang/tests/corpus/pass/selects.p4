// features: select with masks and ranges, select on several values, calls in keysets, lookahead, advance and length
#include <core.p4>
#include <v1model.p4>
header h_t { bit<8> a; bit<8> b; bit<8> calls; bit<8> state; }
struct headers_t { h_t h; }
struct meta_t { }
bit<8> count(inout bit<8> calls, in bit<8> v) { calls = calls + 1; return v; }
parser P(packet_in pkt, out headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {
    bit<8> calls = 0;
    state start {
        verify(pkt.length() >= 5, error.PacketTooShort);
        pkt.advance(8);
        bit<8> next = pkt.lookahead<bit<8>>();
        pkt.extract(hdr.h);
        transition select(next, hdr.h.b) {
            (0x10 &&& 0xf0, 0): masked;
            (1 .. 5, _): ranged;
            (6, 6): both;
            // Keysets with calls are evaluated from top to bottom, as long as no case has matched.
            (count(calls, 7), _): called;
            (count(calls, 8), 0 .. 3): called;
            default: other;
        }
    }
    state masked { hdr.h.state = 1; transition done; }
    state ranged { hdr.h.state = 2; transition done; }
    state both { hdr.h.state = 3; transition done; }
    state called { hdr.h.state = 4; transition done; }
    state other { hdr.h.state = 5; transition done; }
    state done { hdr.h.calls = calls; transition accept; }
}
control C(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {
    apply { std.egress_spec = 1; }
}
#include "shell/v1model.p4"
// The parser skips the first byte.
//> packet 0 ff 1a 00 00 00
//> expect 1 1a 00 00 01
//> packet 0 ff 05 99 00 00
//> expect 1 05 99 00 02
//> packet 0 ff 06 06 00 00
//> expect 1 06 06 00 03
//> packet 0 ff 07 99 00 00
//> expect 1 07 99 01 04
//> packet 0 ff 08 03 00 00
//> expect 1 08 03 02 04
//> packet 0 ff 08 04 00 00
//> expect 1 08 04 02 05
//> packet 0 ff 08 04 00
//> expect 1 ff 08 04 00

// features: scopes and shadowing, global names with a dot, blocks, order of evaluation, annotations on statements
#include <core.p4>
#include <v1model.p4>
const bit<8> v = 0x40;
header h_t { bit<8> a; bit<8> b; }
struct headers_t { h_t h; }
struct meta_t { }
bit<8> bump(inout bit<8> x) { x = x + 1; return x; }
parser P(packet_in pkt, out headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {
    state start { pkt.extract(hdr.h); transition accept; }
}
control C(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {
    bit<8> v = 1;
    apply {
        std.egress_spec = 1;
        {
            bit<8> v = 2;
            hdr.h.a = v | .v;
        }
        @atomic { hdr.h.a = hdr.h.a + v; }
        // Left to right: 5 + 6 + 6.
        bit<8> n = hdr.h.b;
        hdr.h.b = n + bump(n) + n;
    }
}
#include "shell/v1model.p4"
//> packet 0 00 05
//> expect 1 43 11

// features: value sets, value sets of structs with @match
#include <core.p4>
#include <v1model.p4>
header h_t { bit<8> kind; bit<8> v; }
struct headers_t { h_t h; h_t second; }
struct meta_t { bit<8> seen; }
struct range_t { @match(ternary) bit<8> v; }
parser P(packet_in pkt, out headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {
    value_set<bit<8>>(4) known;
    value_set<range_t>(4) masked;
    state start {
        pkt.extract(hdr.h);
        transition select(hdr.h.kind) { known: found; masked: half; default: accept; }
    }
    state found { meta.seen = 0x11; transition accept; }
    state half { meta.seen = 0x22; transition accept; }
}
control C(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {
    apply { std.egress_spec = 1; hdr.h.v = meta.seen; }
}
#include "shell/v1model.p4"
//> set P.known 0x05
//> set P.masked 0xa0&&&0xf0
//> packet 0 05 ff
//> expect 1 05 11
//> packet 0 a7 ff
//> expect 1 a7 22
//> packet 0 06 ff
//> expect 1 06 00

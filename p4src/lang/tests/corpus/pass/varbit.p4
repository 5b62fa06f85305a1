// features: varbit, extract with a length, sizes of types
#include <core.p4>
#include <v1model.p4>
header opt_t { bit<8> len; varbit<32> data; }
header end_t { bit<8> v; }
struct headers_t { opt_t o; opt_t copy; end_t e; }
struct meta_t { }
const int MOST = opt_t.maxSizeInBytes();
parser P(packet_in pkt, out headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {
    state start {
        pkt.extract(hdr.o, (bit<32>) pkt.lookahead<bit<8>>() * 8);
        pkt.extract(hdr.e);
        transition accept;
    }
}
control C(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {
    apply {
        std.egress_spec = 1;
        if (std.parser_error == error.HeaderTooShort) { std.egress_spec = 2; return; }
        hdr.copy = hdr.o;
        if (hdr.copy == hdr.o) { hdr.copy.len = MOST; }
        hdr.e.v = opt_t.minSizeInBits();
    }
}
#include "shell/v1model.p4"
//> packet 0 02 aabb 77 99
//> expect 1 02 aabb 05 aabb 08 99
//> packet 0 00 77
//> expect 1 00 05 08
// The length exceeds what the field can hold.
//> packet 0 05 0102030405 77
//> expect 2 05 0102030405 77

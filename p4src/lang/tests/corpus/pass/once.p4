// features: for loops over lists, for loops over stacks, header stacks as constants, varbit
#include <core.p4>
#include <v1model.p4>
header n_t { bit<8> list; bit<8> stack; bit<8> array; bit<8> fixed; bit<8> size; }
header x_t { bit<8> v; }
header o_t { bit<8> first; varbit<16> data; }
struct headers_t { n_t n; x_t[2] x; o_t o; }
struct meta_t { }
const x_t[2] FIXED = { { 1 }, { 2 } };
const bit<(FIXED[1].v)> TWO_BITS = 3;
const bool SAME = FIXED == FIXED && FIXED[0] != {#};
parser P(packet_in pkt, out headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {
    state start {
        pkt.extract(hdr.n); pkt.extract(hdr.x.next); pkt.extract(hdr.x.next);
        pkt.extract<o_t>(_, 16);
        transition accept;
    }
}
control Sum(inout bit<8> sum)(x_t[2] s) {
    apply {
        for (x_t x in s) { sum = sum + x.v; }
        sum = sum + s[1].v + (bit<8>) s.size;
    }
}
control C(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {
    Sum({ { 1 }, { 2 } }) more;
    apply {
        std.egress_spec = 1;
        // The range of a loop is evaluated before the loop starts.
        bit<8> y = 2;
        for (bit<8> x in (list<bit<8>>) { 1, y, y }) { y = 50; hdr.n.list = hdr.n.list + x; }
        for (x_t x in hdr.x) { hdr.x[1].v = 50; hdr.n.stack = hdr.n.stack + x.v; }
        bit<8>[3] a = { 1, 2, 3 };
        for (bit<8> x in a) { a[2] = 50; hdr.n.array = hdr.n.array + x; }
        for (x_t x in FIXED) { hdr.n.fixed = hdr.n.fixed + x.v; }
        more.apply(hdr.n.fixed);
        hdr.n.size = (bit<8>) FIXED.size + (bit<8>) TWO_BITS + (SAME ? 8w16 : 0);
        // A varbit field is empty by default.
        varbit<16> none = ...;
        hdr.o = { 0x77, none };
        hdr.o = { 0x78, ... };
    }
}
#include "shell/v1model.p4"
//> packet 0 00 00 00 00 00 03 04 09 aa bb cc
//> expect 1 05 07 06 0a 15 03 32 78 cc

// features: tuples, tuple fields by index, lists, structure-valued expressions, default initialisers
#include <core.p4>
#include <v1model.p4>
header h_t { bit<8> a; bit<8> b; bit<8> c; bit<8> d; }
struct headers_t { h_t h; h_t made; }
struct meta_t { bit<8> x; bit<8> y; }
struct outer_t { meta_t m; bit<8> z; }
parser P(packet_in pkt, out headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {
    state start { pkt.extract(hdr.h); transition accept; }
}
control C(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {
    apply {
        std.egress_spec = 1;
        tuple<bit<8>, bit<8>> t = { hdr.h.b, hdr.h.a };
        hdr.h.a = t[0];
        t[1] = t[1] + 1;
        hdr.h.b = t[1];
        outer_t o = { z = 4, m = { y = hdr.h.c, x = 6 } };
        meta = o.m;
        hdr.h.c = meta.x;
        hdr.h.d = (meta == { 6, o.m.y }) ? o.z : 0;
        hdr.made = { 1, o.m.y, ... };                     // the others: 0, and the header is valid
        outer_t none = ...;
        if (none.m.x == 0 && none.z == 0) { hdr.made.d = 0xee; }
    }
}
#include "shell/v1model.p4"
//> packet 0 11 22 33 44
//> expect 1 22 12 06 04  01 33 00 ee

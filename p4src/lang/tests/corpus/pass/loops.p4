// features: for loops, for loops over ranges, for loops over lists, break and continue
#include <core.p4>
#include <v1model.p4>
header h_t { bit<8> n; bit<16> sum; bit<8> found; }
header x_t { bit<8> v; }
struct headers_t { h_t h; x_t[4] x; }
struct meta_t { }
parser P(packet_in pkt, out headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {
    state start {
        pkt.extract(hdr.h);
        pkt.extract(hdr.x.next); pkt.extract(hdr.x.next); pkt.extract(hdr.x.next); pkt.extract(hdr.x.next);
        transition accept;
    }
}
const list<bit<8>> WANTED = { 3, 5, 7 };
control C(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {
    apply {
        std.egress_spec = 1;
        for (bit<8> i = 0, bit<8> j = 10; i < hdr.h.n; i = i + 1, j = j - 1) {
            if (i == 2) { continue; }
            if (i == 5) { break; }
            hdr.h.sum = hdr.h.sum + (bit<16>) j;
        }
        for (bit<8> i in 1 .. hdr.h.n) { hdr.h.sum = hdr.h.sum + ((bit<16>) i << 8); }
        for (bit<8> i in WANTED) {
            if (i == hdr.h.n) { hdr.h.found = i; }
        }
        for (bit<8> i in (list<bit<8>>) { 8, 9 }) { hdr.h.found = hdr.h.found + (i >> 3); }
        for (bit<3> i = 0; i < 4; i = i + 1) { hdr.x[i].v = hdr.x[i].v ^ (bit<8>) i; }
    }
}
#include "shell/v1model.p4"
// j over 10, 9 and 7; 1 + 2 + 3 + 4 in the high byte.
//> packet 0 04 0000 00 10 10 10 10
//> expect 1 04 0a1a 02 10 11 12 13
//> packet 0 07 0000 00 00 00 00 00
//> expect 1 07 1c20 09 00 01 02 03
//> packet 0 00 0001 00 00 00 00 00
//> expect 1 00 0001 02 00 01 02 03

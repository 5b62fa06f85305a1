// features: equality of headers, equality of structs, equality of stacks, validity
#include <core.p4>
#include <v1model.p4>
header h_t { bit<8> v; }
struct s_t { bit<8> x; h_t h; }
struct headers_t { h_t[2] h; h_t res; }
struct meta_t { }
parser P(packet_in pkt, out headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {
    state start { pkt.extract(hdr.h.next); pkt.extract(hdr.h.next); transition accept; }
}
control C(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {
    apply {
        std.egress_spec = 1;
        hdr.res.setValid();
        hdr.res.v = 0;
        if (hdr.h[0] == hdr.h[1]) { hdr.res.v = hdr.res.v | 1; }
        s_t a = { 3, hdr.h[0] };
        s_t b = { 3, hdr.h[1] };
        if (a == b) { hdr.res.v = hdr.res.v | 2; }
        a.h.setInvalid();
        b.h.setInvalid();
        if (a == b) { hdr.res.v = hdr.res.v | 4; }        // invalid headers are equal, whatever was in them
        h_t[2] copy = hdr.h;
        if (copy == hdr.h) { hdr.res.v = hdr.res.v | 8; }
        copy[1].setInvalid();
        if (copy != hdr.h) { hdr.res.v = hdr.res.v | 16; }
        if (hdr.h[0] == (h_t) {#}) { hdr.res.v = 0xff; }
    }
}
#include "shell/v1model.p4"
//> packet 0 05 05
//> expect 1 05 05 1f
//> packet 0 05 06
//> expect 1 05 06 1c

// features: header unions, stacks of unions, invalid headers {#}, emit of unions
#include <core.p4>
#include <v1model.p4>
header a_t { bit<8> kind; bit<8> v; }
header b_t { bit<8> kind; bit<16> v; }
header_union u_t { a_t a; b_t b; }
struct headers_t { u_t[2] u; }
struct meta_t { }
parser P(packet_in pkt, out headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {
    state start {
        transition select(pkt.lookahead<bit<8>>()) { 1: as_a; 2: as_b; default: accept; }
    }
    state as_a { pkt.extract(hdr.u.next.a); transition start; }
    state as_b { pkt.extract(hdr.u.next.b); transition start; }
}
control C(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {
    apply {
        std.egress_spec = 1;
        if (hdr.u[0].a.isValid()) {
            hdr.u[0].b = { 2, (bit<16>) hdr.u[0].a.v };   // makes `a` invalid
        } else if (hdr.u[0].b.isValid()) {
            hdr.u[0].a.setValid();
            hdr.u[0].a.kind = 1;
            hdr.u[0].a.v = 9;
        }
        u_t none = (u_t) {#};
        if (hdr.u[1] == none) { std.egress_spec = 2; }
        if (hdr.u[1].isValid() && !hdr.u[1].a.isValid()) { hdr.u[1] = none; }
    }
}
#include "shell/v1model.p4"
//> packet 0 01 05 00
//> expect 2 02 0005 00
//> packet 0 02 0102 00
//> expect 2 01 09 00
//> packet 0 01 05 01 06 00
//> expect 1 02 0005 01 06 00
//> packet 0 01 05 02 0607 00
//> expect 1 02 0005 00

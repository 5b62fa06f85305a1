// features: subparsers, subcontrols, direct application of a type, constructor parameters, extern objects as parameters, exit and return
#include <core.p4>
#include <v1model.p4>
header h_t { bit<8> a; bit<8> b; bit<8> c; bit<8> d; }
header n_t { bit<8> v; }
struct headers_t { h_t h; n_t[2] n; }
struct meta_t { }
parser Numbers(packet_in pkt, inout n_t[2] n)(bool two) {
    state start { pkt.extract(n.next); transition select(two) { true: second; default: accept; } }
    state second { pkt.extract(n.next); transition accept; }
}
parser P(packet_in pkt, out headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {
    Numbers(true) both;
    Numbers(false) one;
    state start {
        pkt.extract(hdr.h);
        transition select(hdr.h.a) { 1: first; 2: second; default: accept; }
    }
    state first { one.apply(pkt, hdr.n); transition accept; }
    state second { both.apply(pkt, hdr.n); transition accept; }
}
control Increase(inout bit<8> v)(bit<8> by) { apply { if (v == 0xff) { return; } v = v + by; } }
control Plain(inout bit<8> v) { apply { v = v ^ 0xf0; } }
// The register is selected where the control is applied.
control Sum(register<bit<8>> cells, in bit<8> v, out bit<8> sum) {
    bit<8> old;
    apply { cells.read(old, 0); sum = old + v; cells.write(0, sum); }
}
control Outer(register<bit<8>> cells, in bit<8> v, out bit<8> sum) {
    Sum() inner;
    apply { inner.apply(cells, v, sum); }
}
control C(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {
    register<bit<8>>(1) evens;
    register<bit<8>>(1) odds;
    Increase(1) by_one;
    Increase(4) by_four;
    Outer() outer;
    action leave() { exit; }
    apply {
        std.egress_spec = 1;
        by_one.apply(hdr.h.b);
        by_four.apply(hdr.h.b);
        Plain.apply(hdr.h.c);
        if (hdr.h.d[0:0] == 1) { outer.apply(odds, hdr.h.d, hdr.h.d); }
        else { outer.apply(evens, hdr.h.d, hdr.h.d); }
        if (hdr.n[1].isValid()) { leave(); }
        hdr.h.a = 0;
    }
}
#include "shell/v1model.p4"
//> packet 0 00 10 0f 02
//> expect 1 00 15 ff 02
//> packet 0 01 fe 00 03 77
//> expect 1 00 ff f0 03 77
//> packet 0 02 ff 00 04 77 88
//> expect 1 02 ff f0 06 77 88
//> packet 0 00 00 00 05
//> expect 1 00 05 f0 08

// features: named arguments, default arguments, optional arguments, directions copy-in copy-out, overloads
#include <core.p4>
#include <v1model.p4>
header h_t { bit<8> a; bit<8> b; bit<8> c; bit<8> d; }
struct headers_t { h_t h; }
struct meta_t { }
parser P(packet_in pkt, out headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {
    state start { pkt.extract(hdr.h); transition accept; }
}
// Arguments are copied in from left to right, and out in the same order (P4_16 1.2.5, section 6.8).
bit<8> both(inout bit<8> x, inout bit<8> y) { x = x + 1; y = y + 2; return x + y; }
bit<8> weigh(in bit<8> a, in bit<8> by = 3, in bit<8> plus = 0) { return a * by + plus; }
bit<8> pick(in bit<8> only) { return only; }
bit<8> pick(in bit<8> first, in bit<8> second) { return first - second; }
control C(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {
    action set(out bit<8> place, in bit<8> value) { place = value; }
    apply {
        std.egress_spec = 1;
        bit<8> v = 10;
        bit<8> sum = both(v, v);                          // 11 + 12; v is 12 behind it
        hdr.h.a = sum + v;
        hdr.h.b = weigh(plus = 1, a = hdr.h.b);
        hdr.h.c = weigh(hdr.h.c) + pick(first = 9, second = 4) + pick(1);
        set(value = hdr.h.a, place = hdr.h.d);
        bit<8> kept;
        set(kept, 4);
        log_msg("d = {}", { hdr.h.d });
        hdr.h.d = hdr.h.d + kept;
    }
}
#include "shell/v1model.p4"
//> packet 0 00 05 06 00
//> expect 1 23 10 18 27

// features: slices as places, part selects, concatenation, shifts, saturating arithmetic, signed arithmetic, casts, lazy operators
#include <core.p4>
#include <v1model.p4>
header h_t { bit<8> a; bit<8> b; int<8> s; bit<16> w; bit<8> calls; }
struct headers_t { h_t h; }
struct meta_t { }
bool counted(inout bit<8> calls, in bool v) { calls = calls + 1; return v; }
parser P(packet_in pkt, out headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {
    state start { pkt.extract(hdr.h); transition accept; }
}
control C(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {
    apply {
        std.egress_spec = 1;
        bit<8> a = hdr.h.a;
        hdr.h.w[11:4] = a;                                // bits of a field are a place
        hdr.h.w[15:12] = a[7:4] ^ a[3:0];
        hdr.h.w = hdr.h.w + (bit<16>) (a[3:0] ++ a[7:4]);
        hdr.h.a = (a |+| 0xf0) - (hdr.h.b |-| 0x80);
        hdr.h.b = (bit<8>) (hdr.h.s >> 1) + (hdr.h.b >> 4 << 1);
        hdr.h.s = -hdr.h.s;
        if (counted(hdr.h.calls, a == 1) && counted(hdr.h.calls, true)) { hdr.h.calls = hdr.h.calls | 0x80; }
        if (a == 1 || counted(hdr.h.calls, false)) { hdr.h.calls = hdr.h.calls | 0x40; }
        if (hdr.h.s < 0 && (int<16>) hdr.h.s > -200) { hdr.h.calls = hdr.h.calls | 0x20; }
    }
}
#include "shell/v1model.p4"
// w: 0x1010 + 0x10; a: 0xf1 - 0; b: 0xfc + 0; s: 8
//> packet 0 01 00 f8 0000 00
//> expect 1 f1 fc 08 1020 c2
// w: 0x3120 with the last digit kept, + 0x21; a: 0xff - 0x7f; b: 0x08 + 0x1e; s: -16
//> packet 0 12 ff 10 ffff 00
//> expect 1 80 26 f0 3150 22

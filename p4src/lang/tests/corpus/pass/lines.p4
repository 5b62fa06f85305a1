// features: #line, #define, #if and #ifdef, #include, comments and line splices
#include <core.p4>
#include <v1model.p4>
#define WIDTH 8
#define BITS(n) bit<n>
#define ADD(x, y) ((x) + \
                   (y))
#if defined(WIDTH) && WIDTH * 2 == 16 && !defined(NOTHING)
header h_t { BITS(WIDTH) a; /* a comment
   over lines */ bit<8> b; }
#elif 1
#error "not reached"
#endif
#ifndef WIDTH
# error "not reached"
#else
struct headers_t { h_t h; }
#endif
#undef WIDTH
#ifdef WIDTH
struct meta_t { bit<1> wrong; }
#else
struct meta_t { }
#endif
parser P(packet_in pkt, out headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {
    state start { pkt.extract(hdr.h); transition accept; }
}
#line 100 "generated.p4"
control C(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {
    apply { std.egress_spec = 1; hdr.h.a = ADD(hdr.h.a, __LINE__); hdr.h.b = ADD(1, ADD(2, 3)); }
}
#line 33 "lines.p4"
#include "shell/v1model.p4"
//> packet 0 01 00
//> expect 1 66 06

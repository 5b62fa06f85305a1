// features: constant folding at arbitrary precision, static_assert, integer literals, numbers without a width
#include <core.p4>
#include <v1model.p4>
header h_t { bit<64> big; bit<8> a; int<8> s; }
struct headers_t { h_t h; }
struct meta_t { }
const int HUGE = 1 << 200;
const int BACK = (HUGE * HUGE + 12345) % (HUGE - 1) - (1 << 100 >> 99);
const bit<64> MIDDLE = (HUGE / 3)[127:64];
const bit<8> WRAPPED = 8w250 + 10;
const int<8> NEGATIVE = -8s127 |-| 8s9;
const bool SAME = static_assert(BACK == 12344, "arithmetic on int is exact");
const bool DIGITS = static_assert(0xff == 255 && 0b1111_0000 == 240 && 0o17 == 15 && 1_000 == 1000, "bases");
const bit<4> CAST = (bit<4>) 9w0x1f3;
const int SIZE = h_t.minSizeInBytes() * 2;
parser P(packet_in pkt, out headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {
    state start { static_assert(SIZE == 20, "ten bytes"); pkt.extract(hdr.h); transition accept; }
}
control C(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {
    apply {
        std.egress_spec = 1;
        hdr.h.big = MIDDLE ^ (bit<64>) BACK;
        hdr.h.a = WRAPPED == 4 ? 4w0 ++ CAST : 0xee;
        hdr.h.s = NEGATIVE |-| 1;
    }
}
#include "shell/v1model.p4"
//> packet 0 0000000000000000 00 00
//> expect 1 555555555555656d 03 80

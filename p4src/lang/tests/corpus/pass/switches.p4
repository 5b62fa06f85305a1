// features: switch on expressions, switch on action_run, fall-through of labels
#include <core.p4>
#include <v1model.p4>
header h_t { bit<8> a; bit<8> b; }
struct headers_t { h_t h; }
struct meta_t { }
parser P(packet_in pkt, out headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {
    state start { pkt.extract(hdr.h); transition accept; }
}
control C(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {
    action low() { }
    action high(bit<8> by) { hdr.h.b = hdr.h.b + by; }
    table t {
        key = { hdr.h.a : range; }
        actions = { low; high; NoAction; }
        const entries = { 0 .. 3 : low(); 0xf0 .. 0xff : high(2); }
        const default_action = NoAction();
    }
    apply {
        std.egress_spec = 1;
        switch (t.apply().action_run) {
            low: { hdr.h.b = 0x10; }
            high: { hdr.h.b = hdr.h.b + 1; }
            default: { hdr.h.b = 0x30; }
        }
        switch (hdr.h.a + 1) {
            1:
            2: { hdr.h.a = 0xaa; }
            0x10: { hdr.h.a = 0xbb; }
            default: { }
        }
    }
}
#include "shell/v1model.p4"
//> packet 0 00 00
//> expect 1 aa 10
//> packet 0 01 00
//> expect 1 aa 10
//> packet 0 02 00
//> expect 1 02 10
//> packet 0 0f 00
//> expect 1 bb 30
//> packet 0 f1 07
//> expect 1 f1 0a

// features: exact keys, lpm keys, ternary keys, range keys, optional keys, const entries and priorities, key expressions that call, default actions
#include <core.p4>
#include <v1model.p4>
header h_t { bit<32> dst; bit<8> a; bit<8> b; bit<8> res; }
struct headers_t { h_t h; }
struct meta_t { }
bit<8> twice(in bit<8> v) { return v * 2; }
parser P(packet_in pkt, out headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {
    state start { pkt.extract(hdr.h); transition accept; }
}
control C(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {
    action to(bit<9> port) { std.egress_spec = port; }
    action mark(bit<8> v) { hdr.h.res = hdr.h.res | v; }
    table route {
        key = { hdr.h.dst : lpm; }
        actions = { to; }
        default_action = to(1);
        size = 16;
    }
    table classify {
        key = { hdr.h.a : ternary; hdr.h.b : range; hdr.h.isValid() : optional @name("valid"); }
        actions = { mark; @defaultonly NoAction; }
        largest_priority_wins = true;
        entries = {
            const priority = 10 : (0x10 &&& 0xf0, 0 .. 9, true) : mark(1);
            priority = 20 : (0x11, 5 .. 5, _) : mark(2);
        }
        default_action = NoAction();
    }
    table doubled {
        key = { twice(hdr.h.a) : exact @name("doubled"); }
        actions = { mark; NoAction; }
        const entries = { 0x22 : mark(0x40); }
        const default_action = NoAction();
    }
    apply {
        if (route.apply().hit) { hdr.h.res = 0x80; }
        classify.apply();
        if (doubled.apply().miss) { hdr.h.b = 0; }
    }
}
#include "shell/v1model.p4"
//> add C.route hdr.h.dst=0x0a000000/8 => C.to(port=2)
//> add C.route hdr.h.dst=0x0a010000/16 => C.to(port=3)
//> add C.classify hdr.h.a=0x00&&&0x00 hdr.h.b=100..200 priority=30 => C.mark(v=4)
//> packet 0 0a000001 11 05 00
//> expect 2 0a000001 11 05 c2
//> packet 0 0a010001 12 05 00
//> expect 3 0a010001 12 00 81
//> packet 0 0b000000 11 96 00
//> expect 1 0b000000 11 96 44

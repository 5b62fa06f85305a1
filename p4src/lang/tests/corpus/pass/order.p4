// features: order of evaluation
#include <core.p4>
#include <v1model.p4>
header byte_h { bit<8> v; }
header pair_h { bit<8> a; bit<8> b; }
header triple_h { bit<8> a; bit<8> b; bit<8> c; }
struct headers_t {
    byte_h k; byte_h subparser; pair_h value; triple_h place; byte_h action_call; byte_h control_call; triple_h assigned;
    triple_h added; byte_h named; byte_h selected; triple_h looked_up; byte_h left;
}
struct meta_t { bit<8> x; bit<8> selected; }
// Changes its argument, and returns another value.
bit<8> step(inout bit<8> x) { x = x + 1; return 0x50; }
bit<8> far(inout bit<8> x) { x = x + 100; return 1; }
bit<8> next(inout bit<8> x) { x = x + 1; return 7; }
bit<8> less(in bit<8> x, in bit<8> y) { return x - y; }
bit<8> swap(inout bit<8> x, in bit<8> y) { bit<8> old = x; x = x + y; return old; }
parser Sum(inout bit<8> x, in bit<8> y) { state start { x = x + y; transition accept; } }
parser P(packet_in pkt, out headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {
    Sum() sum;
    state start {
        pkt.extract(hdr.k);
        meta.x = hdr.k.v;
        sum.apply(meta.x, step(meta.x));
        bit<8> a = hdr.k.v;
        // The keys have their values from before the call: (3, 0x50).
        transition select(a, step(a)) {
            (3, 0x50): before;
            (4, 0x50): behind;
            default: accept;
        }
    }
    state before { meta.selected = 1; transition accept; }
    state behind { meta.selected = 2; transition accept; }
}
control Total(inout bit<8> x, in bit<8> y) { apply { x = x + y; } }
control C(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {
    Total() total;
    action add(inout bit<8> x, in bit<8> y) { x = x + y; }
    action leave(inout bit<8> x, in bit<8> y) { x = x + y; exit; }
    bit<8> c = 3;
    bit<8> seen = 0;
    action mark(in bit<8> x) { seen = x; }
    table keyed {
        key = { c: exact; step(c): exact @name("called"); }
        actions = { mark(next(c)); NoAction; }
        const entries = { (3, 0x50): mark(next(c)); }
    }
    // An action's bound argument is evaluated when the action is invoked, which never happens here.
    bit<8> calls = 0;
    table missed {
        key = { hdr.k.v: exact; }
        actions = { mark(step(calls)); NoAction; }
        const entries = { 0xff: mark(step(calls)); }
        default_action = NoAction;
    }
    apply {
        std.egress_spec = 1;
        hdr.subparser = { meta.x };
        // An `inout` argument is read before the later arguments' calls: 5 here, and 6 after the call.
        bit<8> a = 5;
        bit<8> old = swap(a, far(a));
        hdr.value = { old, a };
        // The element that an `inout` argument names is selected before these calls, too: s[0].
        byte_h[3] s;
        s[0] = { 1 };
        s[1] = { 2 };
        s[2] = { 3 };
        bit<8> i = 0;
        swap(s[i].v, step(i));
        hdr.place = { s[0].v, s[1].v, s[2].v };
        // Calls of actions and controls follow the same order.
        bit<8> q = hdr.k.v;
        add(q, step(q));
        hdr.action_call = { q };
        q = hdr.k.v;
        total.apply(q, step(q));
        hdr.control_call = { q };
        // The left side is selected before the right side is evaluated: s[0], then s[1].
        i = 0;
        s[i].v = next(i);
        hdr.assigned = { s[0].v, s[1].v, i };
        s[i].v += next(i);
        hdr.added = { s[0].v, s[1].v, i };
        // Named arguments are evaluated in the order of the call: y = 7 and x = 1.
        i = 0;
        hdr.named = { less(y = next(i), x = i) };
        // The keys have their former values (3, 0x50). The action's argument is evaluated after the lookup.
        hdr.selected = { meta.selected };
        keyed.apply();
        missed.apply();
        hdr.looked_up = { seen, c, calls };
        // `exit` also copies out.
        hdr.left = hdr.k;
        leave(hdr.left.v, step(hdr.left.v));
    }
}
#include "shell/v1model.p4"
//> packet 0 03
//> expect 1 03 53 05 06 51 02 03 53 53 07 02 01 07 09 02 FA 01 07 05 00 53

// Expressions that must be known at compile time, and numbers out of range.
#include <core.p4>
const bool HELD = static_assert(1 + 1 == 3, "one and one");
control c(inout bit<8> v, inout bit<16> w) {
    const bit<8> not_known = v;
    const int zero = 0;
    const int ratio = 7 / zero;
    action set(bit<8> x) { v = x; }
    table t {
        key = { v : exact; }
        actions = { set; NoAction; }
        const entries = { v + 1 : set(1); 2 : set(v); w[7:0] : set(3); }
        size = v;
        default_action = NoAction();
    }
    apply {
        t.apply();
        bit<0> nothing;
        bit<8> big = 300;
        v = (bit<8>) (v == 1 ? 2 : 3);
        w = w << 20;
        v = w[v:0];
        v = w[0:3];
    }
}

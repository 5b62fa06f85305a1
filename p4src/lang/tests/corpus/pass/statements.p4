// features: statements
// Loops, switches, annotations, empty statements.
#include <core.p4>
enum bit<8> kind_t { one = 1, two = 2, }
@pragma note this is for nobody
control c(inout bit<8> v) {
    ;
    const bit<8> limit = 4;
    @name("renamed") action a(bit<8> x) { v = x; exit; }
    action b() { v = 0; return; }
    @anything(goes here, "even" (this), isn't it?) table t {
        key = { v : exact @name("v"); v & 0xf : ternary; }
        actions = { a; @defaultonly b; NoAction; }
        entries = {
            const priority = 10 : (1, 2 &&& 3) : a(1);
            priority = 20 : (4, default) : NoAction();
        }
        const default_action = b();
        size = 64;
    }
    apply @atomic {
        for (bit<8> i = 0, bit<8> j = 1; i < limit; i += 1, j += 2) {
            if (i == 2) continue; else if (j == 9) break;
            v = v + j;
        }
        for (bit<8> k in 1 .. limit) { v = v ^ k; }
        switch (v) {
            1:
            2: { v = 3; }
            default: { }
        }
        switch (t.apply().action_run) { a: { v = 1; } b: { return; } }
        if (t.apply().hit) { v = 2; } else ;
        { @note { v = 7; } }
    }
}
control C(inout bit<8> v);
package P(C c);
P(c()) main;

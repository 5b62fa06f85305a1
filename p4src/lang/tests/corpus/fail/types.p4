// Expressions of types that do not match.
#include <core.p4>
header h_t { bit<8> a; bit<16> w; }
header g_t { bit<8> a; }
header_union u_t { h_t h; g_t g; }
struct s_t { bit<8> x; bool f; }
enum Colour { RED, GREEN }
bit<8> f(in bit<8> a, in bit<8> b) { return a; }
control c(inout h_t h, inout s_t s, in bit<8> fixed) {
    apply {
        h.a = h.w;
        h.a = true;
        s.f = 1;
        s = { 1, 2, 3 };
        s = { x = 1 };
        u_t u = { { 1, 2 }, { 3 } };
        h.a = h.a + h.w;
        h.a = s ? 1 : 2;
        if (h.a) { }
        h.a = Colour.RED;
        h.a = f(1);
        h.a = f(1, 2, 3);
        h.a = h.w[3:0];
        h.a = h.w[16:9];
        fixed = 1;
        f(1, h) ;
        int n = 3;
        h.a = 1 << h.w;
        h.a = s.x.y;
        switch (h.a) { 1: { } 1: { } true: { } }
        for (bool b in 1 .. 3) { }
        return 3;
    }
}

// features: lexical ambiguities, methods with type arguments
// Names of types and other names, where the parser must distinguish them.
#include <core.p4>
extern E<T> {
    E();
    T get<U>(in U x);
}
struct pair<A, B> { A first; B second; }
header h_t { bit<8> x; }
typedef bit<8> byte;
bit<8> f<T>(in T x) { return 1; }
bool both(in bool a, in bool b) { return a && b; }
control c(inout bit<8> a, inout bit<8> b, inout bool r) {
    E<pair<bit<8>, bit<16>>>() e;
    action set(bit<8> apply, byte key, bit<8> type, bit<8> state) { a = apply + key + type + state; }
    table t { actions = { set; } default_action = set(1, 2, 3, 4); }
    apply {
        r = a < b;
        r = both(a < b, b > a);
        r = (a < b) == (b > (a));
        a = f<bit<8>>(b);
        a = f<pair<bit<8>, bit<16>>>(e.get<bit<8>>(b));
        a = (byte) b;
        a = (byte) (b);
        a = (bit<8>) -b;
        a = (a) - b;
        a = b >> 2 >> 1;
        r = a > b;
        a = r ? a : b;
        b = a[3:0] ++ a[7:4];
        a |+|= b;
        a >>= 1;
        b <<= 2;
        h_t[2] stack;
        stack[0] = { 1 };
        stack[1] = (h_t) { x = 2 };
        byte local = stack[0].x;
        a = local;
        bit<(4 + 4)> w = a;
        bit<2 * 4> v = w;
        b = v;
        t.apply();
    }
}
control C(inout bit<8> a, inout bit<8> b, inout bool r);
package P(C c);
P(c()) main;

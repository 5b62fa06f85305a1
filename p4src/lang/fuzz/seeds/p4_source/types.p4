#include <core.p4>
typedef bit<9> port_t;
type bit<32> addr_t;
enum bit<4> kind_t { A = 1, B = 2 }
enum plain { X, Y }
header h_t { bit<4> a; bit<4> b; varbit<64> v; }
header_union u_t { h_t one; h_t two; }
struct pair<T, U> { T first; U second; }
struct s_t { h_t[4] stack; u_t u; tuple<bit<8>, bool> t; pair<bit<8>, int<8>> p; }
const pair<bit<8>, int<8>> C = { 1, -2 };
const tuple<bit<8>, bool> T = { 3, true };
error { MyError }
match_kind { mine }
extern E<T> { E(bit<32> size); T get(in bit<8> x); abstract void f(inout T x); }
bit<8> max(in bit<8> a, in bit<8> b) { return a > b ? a : b; }
bit<8> sum<T>(in T a) { bit<8> n = 0; for (bit<8> i in 1..4) { if (i == 2) continue; n += i; } return n; }
control c(inout s_t s)(bit<8> k) {
    action set(bit<8> v) { s.p.first = v |+| k; }
    table t {
        key = { s.p.first : exact; s.t[0] : ternary @name("x"); }
        actions = { set; @defaultonly NoAction; }
        const entries = { (1, 2 &&& 3) : set(4); (5, _) : NoAction(); }
        default_action = NoAction;
        size = 16;
    }
    apply {
        switch (t.apply().action_run) { set: { s.stack.push_front(1); } default: { exit; } }
        if (!t.apply().hit) { s.p.first[3:0] = s.p.first[7:4] ++ 2w0[1:0] ++ 2w1; }
        s.stack[0] = { 1, 2, {} };
        switch (s.p.first) { 1: 2: { return; } }
    }
}
control C(inout s_t s);
package P(C c);
P(c(3)) main;

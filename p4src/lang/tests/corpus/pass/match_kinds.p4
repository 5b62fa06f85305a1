// features: match_kind extension, architectures of the user's own, abstract extern methods, this in a method, objects in an object's block, string parameters
#include <core.p4>
match_kind { fuzzy, nearest }
extern Cell<T> { Cell(T initial); T get(); void put(in T v); }
extern Balancer {
    Balancer();
    abstract bit<4> on_new_flow(in bit<32> address);
    abstract bit<4> otherwise();
    void note(string what);
    bit<4> choose(in bit<32> address);
}
control Main<H>(inout H hdr);
package Arch<H>(Main<H> main_control, bit<8> level = 3, @optional Main<H> second);
struct h_t { bit<32> address; bit<4> choice; }
control C(inout h_t h) {
    Balancer() b = {
        Cell<bit<4>>(3) last;
        bit<4> on_new_flow(in bit<32> address) {
            if (address == 0) { return this.otherwise(); }
            last.put(last.get() + 1);
            return last.get();
        }
        bit<4> otherwise() { this.note("none"); return 0; }
    };
    action set(bit<4> v) { h.choice = v; }
    table t {
        key = { h.address : nearest; h.choice : fuzzy; }
        actions = { set; NoAction; }
        architecture_property = 5;
    }
    apply { h.choice = b.choose(h.address); t.apply(); }
}
Arch(main_control = C()) main;

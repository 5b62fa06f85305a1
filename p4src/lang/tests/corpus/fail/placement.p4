// Declarations, statements and calls at positions where P4 does not allow them.
#include <core.p4>
header h_t { bit<8> a; }
extern Cell { Cell(); bit<8> get(); }
bit<8> of_cell(Cell cell) { return 1; }
parser sub(packet_in b) { state start { transition accept; } }
control inner(inout bit<8> v) { apply { } }
control c(inout h_t h) {
    action a() { t.apply(); }
    table t { actions = { NoAction; } default_action = NoAction(); }
    action b(in bit<8> x) { inner.apply(h.a); Cell() made; }
    action d(Cell cell) { }
    apply {
        sub.apply();
        verify(true, error.NoError);
        Cell() late;
        break;
        this.get();
    }
}
parser p(packet_in b, out h_t h) {
    state start { h.a = 1; exit; transition accept; }
}

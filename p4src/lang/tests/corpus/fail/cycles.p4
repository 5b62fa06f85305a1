// P4 has no recursion, and a parser must end.
#include <core.p4>
struct s_t { s_t inner; }
bit<8> down(in bit<8> n) { return down(n - 1); }
control c(inout bit<8> v) { c() again; apply { v = down(v); } }
parser p(packet_in b) {
    state start { transition other; }
    state other { transition start; }
}

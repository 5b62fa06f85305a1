// Without the last line the program is accepted: warnings are printed together with errors.
#include <core.p4>
control c(inout bit<8> v, inout bit<16> w) {
    apply {
        v = 8w300;
        w = 0x12345;
    }
}
parser p(packet_in b, in bit<8> v) {
    state start { transition select(v) { 5 .. 3: accept; default: accept; 4: reject; } }
}
bit<8> pure(in bit<8> v) { return v; }
control last() { apply { pure(1); nothing_here = 1; } }

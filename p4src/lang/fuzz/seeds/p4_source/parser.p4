#include <core.p4>
header e_t { bit<48> dst; bit<48> src; bit<16> type; }
header v_t { bit<16> tci; bit<16> type; }
header o_t { bit<8> n; varbit<320> rest; }
struct h_t { e_t e; v_t[2] v; o_t o; }
parser P(packet_in p, out h_t h, in bit<16> x) {
    value_set<bit<16>>(4) ours;
    state start {
        p.extract(h.e);
        transition select(h.e.type, x) {
            (0x8100, _): tag;
            (0x800 &&& 0xff00, 1 .. 5): options;
            (ours, default): accept;
            default: reject;
        }
    }
    state tag {
        p.extract(h.v.next);
        verify(h.v.last.type != 0, error.NoMatch);
        transition select(p.lookahead<bit<8>>()) { 0: tag; _: accept; }
    }
    state options {
        p.extract(h.o, (bit<32>) (((bit<9>) h.o.n) << 3));
        p.advance(8);
        transition accept;
    }
}
parser Q(packet_in p, out h_t h, in bit<16> x);
package S(Q q);
S(P()) main;

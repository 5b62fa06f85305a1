// features: generics, type inference, type arguments, functions, generic structs
#include <core.p4>
#include <v1model.p4>
header h_t { bit<8> a; bit<8> b; bit<16> w; }
struct headers_t { h_t h; }
struct meta_t { }
struct pair_t<A, B> { A first; B second; }
header box_h<T> { T v; }
T choose<T>(in bool first, in T a, in T b) { if (first) { return a; } return b; }
pair_t<B, A> swap<A, B>(in pair_t<A, B> p) { return { p.second, p.first }; }
parser P(packet_in pkt, out headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {
    state start { pkt.extract(hdr.h); transition accept; }
}
control Set<T>(inout T place, in T value) { apply { place = value; } }
control C(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {
    Set<bit<16>>() set_word;
    apply {
        std.egress_spec = 1;
        pair_t<bit<8>, bit<16>> p = { hdr.h.a, 16w7 };
        pair_t<bit<16>, bit<8>> q = swap(p);              // A and B are inferred
        set_word.apply(hdr.h.w, q.first + (bit<16>) q.second);
        hdr.h.b = choose<bit<8>>(false, hdr.h.a, 3);      // T is given
        box_h<bit<8>> box = { 5 };
        if (box.isValid()) { hdr.h.a = choose(box.v == 9, box.v, 9); }
    }
}
#include "shell/v1model.p4"
//> packet 0 02 00 0000
//> expect 1 09 03 0009
//> packet 0 03 00 0000 ff
//> expect 1 09 03 000a ff

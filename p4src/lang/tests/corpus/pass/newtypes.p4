// features: typedef aliases, new types, annotations on types
#include <core.p4>
#include <v1model.p4>
typedef bit<16> word_t;
typedef word_t alias_of_an_alias_t;
@p4runtime_translation("example.org/port", 32)
type bit<9> port_t;
type word_t id_t;
header h_t { bit<7> pad; port_t port; word_t w; id_t id; }
struct headers_t { h_t h; }
struct meta_t { }
const port_t OUT = (port_t) 1;
parser P(packet_in pkt, out headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {
    state start { pkt.extract(hdr.h); transition accept; }
}
control C(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {
    action to(port_t port) { std.egress_spec = (bit<9>) port; }
    table t {
        key = { hdr.h.port : exact; }
        actions = { to; }
        default_action = to(OUT);
    }
    apply {
        t.apply();
        if (hdr.h.port == OUT) { hdr.h.id = (id_t) (hdr.h.w + 1); }
        alias_of_an_alias_t w = (word_t) hdr.h.id;
        hdr.h.w = w << 8;
    }
}
#include "shell/v1model.p4"
//> add C.t hdr.h.port=0x2 => C.to(port=0x3)
//> packet 0 0001 1234 0000
//> expect 1 0001 3500 1235
//> packet 0 0002 1234 00ab
//> expect 3 0002 ab00 00ab

// features: enums without a type, enums with a type, enums as keys, casts of enums
#include <core.p4>
#include <v1model.p4>
enum Colour { RED, GREEN, BLUE }
enum bit<8> Kind { ONE = 1, TWO = 2, ALSO_TWO = TWO, LAST = 8w0xff }
header h_t { Kind kind; bit<8> v; }
struct headers_t { h_t h; }
struct meta_t { Colour colour; }
parser P(packet_in pkt, out headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {
    state start {
        pkt.extract(hdr.h);
        transition select(hdr.h.kind) { Kind.ONE: one; Kind.ALSO_TWO: two; default: accept; }
    }
    state one { meta.colour = Colour.GREEN; transition accept; }
    state two { meta.colour = Colour.BLUE; transition accept; }
}
control C(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {
    action set(bit<8> v) { hdr.h.v = v; }
    table t {
        key = { meta.colour : exact; hdr.h.kind : exact; }
        actions = { set; NoAction; }
        const entries = {
            (Colour.GREEN, Kind.ONE) : set(0x11);
            (Colour.BLUE, Kind.TWO) : set(0x22);
        }
        default_action = NoAction();
    }
    apply {
        std.egress_spec = 1;
        t.apply();
        if (hdr.h.kind == Kind.LAST) { hdr.h.kind = (Kind) (hdr.h.v + 1); }
        switch (meta.colour) {
            Colour.BLUE: { hdr.h.kind = Kind.ONE; }
            Colour.RED: { hdr.h.v = hdr.h.v + (bit<8>) Kind.TWO; }
        }
    }
}
#include "shell/v1model.p4"
//> packet 0 01 00
//> expect 1 01 11
//> packet 0 02 00
//> expect 1 01 22
//> packet 0 ff 06
//> expect 1 07 08

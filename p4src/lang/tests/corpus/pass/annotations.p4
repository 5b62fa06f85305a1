// features: annotations unstructured, concatenation of strings, annotations structured as lists, annotations structured as key-value pairs, @name and @hidden
#include <core.p4>
#include <v1model.p4>
const bit<8> LIMIT = 3;
@my_text(any tokens (in brackets), "even" this: { } ;)
header h_t { @list[1, LIMIT + 1, "text", true] bit<8> a; @pairs[first = LIMIT * 2, second = "x"] bit<8> b; }
struct headers_t { h_t h; }
@empty[] @flag struct meta_t { }
parser P(packet_in pkt, out headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {
    @name(".begin") state start { @here { pkt.extract(hdr.h); } transition accept; }
}
@name("pipe") control C(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {
    @name("re" ++ "named") @pragma_like(1) action set(@id_of_param[7] bit<8> v) { hdr.h.b = v; }
    @id(0x02000007) @hidden table t {
        key = { hdr.h.a : exact @name("the_key") @note; }
        actions = { @tableonly set; @defaultonly NoAction; }
        const entries = { 5 : set(9) @first; }
        default_action = NoAction();
    }
    apply { std.egress_spec = 1; t.apply(); log_msg("a = " ++ "{}", { hdr.h.a }); }
}
#include "shell/v1model.p4"
//> packet 0 05 00
//> expect 1 05 09
//> packet 0 06 01
//> expect 1 06 01

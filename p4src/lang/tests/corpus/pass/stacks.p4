// features: header stacks, stack next and last, push_front and pop_front, stack parser errors
#include <core.p4>
#include <v1model.p4>
header tag_t { bit<7> id; bit<1> more; }
header n_t { bit<8> v; }
struct headers_t { n_t n; tag_t[3] tags; }
struct meta_t { }
parser P(packet_in pkt, out headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {
    state start { pkt.extract(hdr.n); transition tags; }
    state tags {
        pkt.extract(hdr.tags.next);
        transition select(hdr.tags.last.more) { 1: tags; default: last; }
    }
    state last { hdr.n.v = (bit<8>) hdr.tags.lastIndex; transition accept; }
}
control C(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {
    apply {
        std.egress_spec = 1;
        if (std.parser_error == error.StackOutOfBounds) { hdr.n.v = 0xee; return; }
        if (hdr.tags[0].id == 1) {
            hdr.tags.push_front(1);
            hdr.tags[0] = { 0x7f, 1 };
        } else if (hdr.tags[0].id == 2) {
            hdr.tags.pop_front(1);
        } else {
            bit<2> i = hdr.tags[0].id[1:0];
            hdr.tags[i].id = 5;                           // an index known at run time
        }
        if (hdr.tags[2].isValid()) { hdr.n.v = hdr.n.v | 0x80; }
    }
}
#include "shell/v1model.p4"
// The packet has one tag; the program pushes another one in front.
//> packet 0 00 02 aa
//> expect 1 00 ff 02 aa
// The packet has two tags; the program pops the first.
//> packet 0 00 05 06 aa
//> expect 1 01 06 aa
// The packet has three tags; a push discards the last.
//> packet 0 00 03 07 08 aa
//> expect 1 82 ff 03 07 aa
// Tag 3 selects an element beyond the stack: the write has no effect.
//> packet 0 00 06
//> expect 1 00 06
// The stack has no space for a fourth tag.
//> packet 0 00 03 03 03 02
//> expect 1 ee 03 03 03 02

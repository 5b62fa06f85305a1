// Registers and digests with elements of every type that has values.
#include <core.p4>
#include <v1model.p4>

@p4runtime_translation("example/vrf", string)
type bit<10> vrf_t;
@p4runtime_translation("example/wide", bit<32>)
type bit<9> wide_t;
@p4runtime_translation("example/far", 32)
type bit<129> far_t;

header ethernet_h { bit<48> dst; bit<48> src; bit<16> type; }
header tag_h { bit<16> tag; }
struct headers_t { ethernet_h ethernet; tag_h tag; }
struct inner_t { bit<8> a; int<8> b; }
struct cell_t { inner_t inner; bool on; vrf_t vrf; wide_t wide; }
struct learn_t { bit<48> src; ethernet_h ethernet; tag_h tag; inner_t inner; }
struct meta_t {}

parser P(packet_in pkt, out headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {
    state start { pkt.extract(hdr.ethernet); transition accept; }
}
control V(inout headers_t hdr, inout meta_t meta) { apply {} }
control MyIngress(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {
    register<cell_t>(2) cells;
    register<far_t>(2) far;
    apply {
        far.write(1, (far_t) (129w1 << 128));
        cell_t cell;
        cells.read(cell, 1);
        cell.inner.a = cell.inner.a + 1;
        cells.write(1, cell);
        digest<learn_t>(1, { hdr.ethernet.src, hdr.ethernet, hdr.tag, cell.inner });
        std.egress_spec = 2;
    }
}
control E(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t std) { apply {} }
control U(inout headers_t hdr, inout meta_t meta) { apply {} }
control D(packet_out pkt, in headers_t hdr) { apply { pkt.emit(hdr.ethernet); } }
V1Switch(P(), V(), MyIngress(), E(), U(), D()) main;

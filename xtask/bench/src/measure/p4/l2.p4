// Forwards each Ethernet frame to the port that the table has for its destination.
#include <core.p4>
#include <v1model.p4>

header ethernet_h { bit<48> dst; bit<48> src; bit<16> type; }
struct headers_t { ethernet_h ethernet; }
struct metadata_t {}

parser L2Parser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    state start { packet.extract(hdr.ethernet); transition accept; }
}
control L2Ingress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    action drop() { mark_to_drop(std); }
    action forward(bit<9> port) { std.egress_spec = port; }
    table macs {
        key = { hdr.ethernet.dst: exact; }
        actions = { forward; drop; }
        default_action = drop();
        const entries = { 0x020000000001: forward(1); 0x020000000002: forward(2); }
    }
    apply { macs.apply(); }
}
control L2Verify(inout headers_t hdr, inout metadata_t meta) { apply {} }
control L2Egress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) { apply {} }
control L2Compute(inout headers_t hdr, inout metadata_t meta) { apply {} }
control L2Deparser(packet_out packet, in headers_t hdr) { apply { packet.emit(hdr); } }
V1Switch(L2Parser(), L2Verify(), L2Ingress(), L2Egress(), L2Compute(), L2Deparser()) main;

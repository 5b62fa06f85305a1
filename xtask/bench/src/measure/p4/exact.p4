// One large exact table.
#include <core.p4>
#include <v1model.p4>

header ethernet_h { bit<48> dst; bit<48> src; bit<16> type; }
struct headers_t { ethernet_h ethernet; }
struct meta_t {}

parser P(packet_in pkt, out headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {
    state start { pkt.extract(hdr.ethernet); transition accept; }
}
control V(inout headers_t hdr, inout meta_t meta) { apply {} }
control ingress(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {
    action drop() { mark_to_drop(std); }
    action send(bit<9> port) { std.egress_spec = port; }
    table forward {
        key = { hdr.ethernet.dst : exact; }
        actions = { send; drop; }
        default_action = drop();
        size = 1048576;
    }
    apply { forward.apply(); }
}
control E(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t std) { apply {} }
control U(inout headers_t hdr, inout meta_t meta) { apply {} }
control D(packet_out pkt, in headers_t hdr) { apply { pkt.emit(hdr.ethernet); } }
V1Switch(P(), V(), ingress(), E(), U(), D()) main;

// A prefix table and an exact table, with as little code as possible.
#include <core.p4>
#include <v1model.p4>

header ethernet_t { bit<48> dst; bit<48> src; bit<16> type; }
header ipv4_t {
    bit<96> before; bit<32> src; bit<32> dst;
}
struct headers_t { ethernet_t ethernet; ipv4_t ipv4; }
struct metadata_t { bit<16> next_hop; }

parser LookupParser(packet_in pkt, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    state start {
        pkt.extract(hdr.ethernet);
        pkt.extract(hdr.ipv4);
        transition accept;
    }
}

control LookupVerify(inout headers_t hdr, inout metadata_t meta) { apply { } }

control LookupIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    action via(bit<16> next_hop) { meta.next_hop = next_hop; }
    table routes {
        key = { hdr.ipv4.dst: lpm; }
        actions = { via; NoAction; }
        default_action = NoAction();
        size = 1048576;
    }
    action forward(bit<9> port) { std.egress_spec = port; }
    table hosts {
        key = { hdr.ipv4.dst: exact; }
        actions = { forward; NoAction; }
        default_action = NoAction();
        size = 1048576;
    }
    apply {
        std.egress_spec = 1;
        routes.apply();
        hosts.apply();
    }
}

control LookupEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) { apply { } }
control LookupCompute(inout headers_t hdr, inout metadata_t meta) { apply { } }
control LookupDeparser(packet_out pkt, in headers_t hdr) {
    apply {
        pkt.emit(hdr.ethernet);
        pkt.emit(hdr.ipv4);
    }
}

V1Switch(LookupParser(), LookupVerify(), LookupIngress(), LookupEgress(), LookupCompute(), LookupDeparser()) main;

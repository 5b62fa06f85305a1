// One ternary table over the fields of packet filters: parse, classify, count, forward.
#include <core.p4>
#include <v1model.p4>

header ethernet_t { bit<48> dst; bit<48> src; bit<16> type; }
header ipv4_t {
    bit<4> version; bit<4> ihl; bit<6> dscp; bit<2> ecn; bit<16> total_length;
    bit<16> id; bit<3> flags; bit<13> offset;
    bit<8> ttl; bit<8> protocol; bit<16> checksum;
    bit<32> src; bit<32> dst;
}
header ports_t { bit<16> src; bit<16> dst; }
header tcp_t { bit<32> seq; bit<32> ack; bit<4> offset; bit<4> reserved; bit<8> flags; bit<16> window; }
struct headers_t { ethernet_t ethernet; ipv4_t ipv4; ports_t ports; tcp_t tcp; }
struct metadata_t { bit<16> class; }

parser FilterParser(packet_in pkt, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    state start {
        pkt.extract(hdr.ethernet);
        transition select(hdr.ethernet.type) {
            0x0800: ipv4;
            default: accept;
        }
    }
    state ipv4 {
        pkt.extract(hdr.ipv4);
        transition select(hdr.ipv4.protocol) {
            6: tcp;
            17: udp;
            default: accept;
        }
    }
    state tcp {
        pkt.extract(hdr.ports);
        pkt.extract(hdr.tcp);
        transition accept;
    }
    state udp {
        pkt.extract(hdr.ports);
        transition accept;
    }
}

control FilterVerify(inout headers_t hdr, inout metadata_t meta) { apply { } }

control FilterIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    direct_counter(CounterType.packets_and_bytes) packets;
    action classify(bit<16> class, bit<9> port) {
        meta.class = class;
        std.egress_spec = port;
    }
    table filters {
        key = {
            hdr.ipv4.src: ternary;
            hdr.ipv4.dst: ternary;
            hdr.ports.src: ternary;
            hdr.ports.dst: ternary;
            hdr.ipv4.protocol: ternary;
            hdr.tcp.flags: ternary;
            hdr.ipv4.dscp: ternary;
            std.ingress_port: ternary;
        }
        actions = { classify; }
        default_action = classify(0, 1);
        counters = packets;
        size = 131072;
    }
    apply { filters.apply(); }
}

control FilterEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) { apply { } }
control FilterCompute(inout headers_t hdr, inout metadata_t meta) { apply { } }

control FilterDeparser(packet_out pkt, in headers_t hdr) {
    apply {
        pkt.emit(hdr.ethernet);
        pkt.emit(hdr.ipv4);
        pkt.emit(hdr.ports);
        pkt.emit(hdr.tcp);
    }
}

V1Switch(FilterParser(), FilterVerify(), FilterIngress(), FilterEgress(), FilterCompute(), FilterDeparser()) main;

// An IPv4 router of three tables: prefix to next hop, next hop to MAC and port, port to its own MAC. It verifies and updates
// the header checksum and decrements the TTL (RFC 1812, 5.2).
#include <core.p4>
#include <v1model.p4>

header ethernet_t { bit<48> dst; bit<48> src; bit<16> type; }
header ipv4_t {
    bit<4> version; bit<4> ihl; bit<8> tos; bit<16> total_length;
    bit<16> id; bit<3> flags; bit<13> offset;
    bit<8> ttl; bit<8> protocol; bit<16> checksum;
    bit<32> src; bit<32> dst;
}
struct headers_t { ethernet_t ethernet; ipv4_t ipv4; }
struct metadata_t { bit<16> next_hop; }

parser RouterParser(packet_in pkt, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    state start {
        pkt.extract(hdr.ethernet);
        transition select(hdr.ethernet.type) {
            0x0800: ipv4;
            default: accept;
        }
    }
    state ipv4 {
        pkt.extract(hdr.ipv4);
        transition accept;
    }
}

control Verify(inout headers_t hdr, inout metadata_t meta) {
    apply {
        verify_checksum(hdr.ipv4.isValid(),
            { hdr.ipv4.version, hdr.ipv4.ihl, hdr.ipv4.tos, hdr.ipv4.total_length, hdr.ipv4.id, hdr.ipv4.flags,
              hdr.ipv4.offset, hdr.ipv4.ttl, hdr.ipv4.protocol, hdr.ipv4.src, hdr.ipv4.dst },
            hdr.ipv4.checksum, HashAlgorithm.csum16);
    }
}

control RouterIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    action drop() { mark_to_drop(std); }
    action via(bit<16> next_hop) { meta.next_hop = next_hop; }
    table routes {
        key = { hdr.ipv4.dst: lpm; }
        actions = { via; drop; }
        default_action = drop();
        size = 65536;
    }
    action forward(bit<48> mac, bit<9> port) {
        hdr.ethernet.dst = mac;
        std.egress_spec = port;
        hdr.ipv4.ttl = hdr.ipv4.ttl - 1;
    }
    table next_hops {
        key = { meta.next_hop: exact; }
        actions = { forward; drop; }
        default_action = drop();
        size = 4096;
    }
    apply {
        if (!hdr.ipv4.isValid() || hdr.ipv4.ttl <= 1 || std.checksum_error == 1) {
            drop();
        } else if (routes.apply().hit) {
            next_hops.apply();
        }
    }
}

control RouterEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    action own_mac(bit<48> mac) { hdr.ethernet.src = mac; }
    table interfaces {
        key = { std.egress_port: exact; }
        actions = { own_mac; NoAction; }
        default_action = NoAction();
        size = 512;
    }
    apply { interfaces.apply(); }
}

control Compute(inout headers_t hdr, inout metadata_t meta) {
    apply {
        update_checksum(hdr.ipv4.isValid(),
            { hdr.ipv4.version, hdr.ipv4.ihl, hdr.ipv4.tos, hdr.ipv4.total_length, hdr.ipv4.id, hdr.ipv4.flags,
              hdr.ipv4.offset, hdr.ipv4.ttl, hdr.ipv4.protocol, hdr.ipv4.src, hdr.ipv4.dst },
            hdr.ipv4.checksum, HashAlgorithm.csum16);
    }
}

control RouterDeparser(packet_out pkt, in headers_t hdr) {
    apply {
        pkt.emit(hdr.ethernet);
        pkt.emit(hdr.ipv4);
    }
}

V1Switch(RouterParser(), Verify(), RouterIngress(), RouterEgress(), Compute(), RouterDeparser()) main;

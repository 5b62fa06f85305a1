// Contains an object of every kind in P4Runtime. Forwards by destination; the last byte of the source selects the other objects
// that the packet uses.
#include <core.p4>
#include <v1model.p4>

@p4runtime_translation("example/vrf", string)
type bit<10> vrf_t;

@controller_header("packet_in")
header packet_in_h { bit<9> ingress_port; @padding bit<7> pad; }
@controller_header("packet_out")
header packet_out_h { bit<9> egress_port; @padding bit<7> pad; }

header ethernet_h { bit<48> dst; bit<48> src; bit<16> type; }
header tag_h { bit<16> tag; }
struct headers_t { packet_in_h packet_in; packet_out_h packet_out; ethernet_h ethernet; tag_h tag; }
struct learn_t { bit<48> src; bit<9> port; }
struct meta_t { bit<2> colour; vrf_t vrf; }
struct cell_t { bit<32> sum; bit<8> bitmap; }

parser P(packet_in pkt, out headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {
    value_set<bit<16>>(4) tagged;
    state start {
        transition select(std.ingress_port) {
            510: out_header;
            default: ethernet;
        }
    }
    state out_header { pkt.extract(hdr.packet_out); transition ethernet; }
    state ethernet {
        pkt.extract(hdr.ethernet);
        transition select(hdr.ethernet.type) {
            tagged: tag;
            default: accept;
        }
    }
    state tag { pkt.extract(hdr.tag); transition accept; }
}

control V(inout headers_t hdr, inout meta_t meta) { apply {} }

control MyIngress(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {
    counter(4, CounterType.packets_and_bytes) fired;
    meter(4, MeterType.packets) rate;
    register<bit<32>>(4) last;
    register<cell_t>(4) cells;
    direct_counter(CounterType.packets_and_bytes) hits;
    direct_meter<bit<2>>(MeterType.packets) speed;
    action_selector(HashAlgorithm.identity, 64, 16) balance;

    action drop() { mark_to_drop(std); }
    action send(bit<9> port) { std.egress_spec = port; }
    action flood(bit<16> group) { std.mcast_grp = group; }
    action set_vrf(vrf_t vrf) { meta.vrf = vrf; }

    table forward {
        key = { hdr.ethernet.dst : exact @name("dst"); }
        actions = { send; flood; drop; }
        default_action = drop();
        size = 8;
    }
    table acl {
        key = { hdr.ethernet.src : ternary @name("src"); }
        actions = { send; drop; }
        default_action = drop();
        size = 8;
    }
    table fixed {
        key = { hdr.ethernet.dst : exact @name("dst"); }
        actions = { send; drop; }
        const default_action = drop();
        const entries = { 0xff: send(1); }
    }
    action count_and_send(bit<9> port) { std.egress_spec = port; hits.count(); speed.read(meta.colour); }
    table watched {
        key = { hdr.ethernet.src : exact @name("src"); }
        actions = { count_and_send; NoAction; }
        default_action = NoAction();
        counters = hits;
        meters = speed;
        support_timeout = true;
    }
    table balanced {
        key = { hdr.ethernet.type : exact @name("type"); hdr.ethernet.src : selector; }
        actions = { send; NoAction; }
        implementation = balance;
    }
    table vrfs {
        key = { meta.vrf : exact @name("vrf"); }
        actions = { send; set_vrf; NoAction; }
    }
    apply {
        if (hdr.packet_out.isValid()) {
            std.egress_spec = hdr.packet_out.egress_port;
            hdr.packet_out.setInvalid();
        } else {
            fired.count((bit<32>) hdr.ethernet.src[1:0]);
            rate.execute_meter((bit<32>) hdr.ethernet.src[1:0], meta.colour);
            last.write(0, hdr.ethernet.src[31:0]);
            if (!forward.apply().hit) {
                if (!watched.apply().hit) {
                    if (!balanced.apply().hit) {
                        if (!vrfs.apply().hit) {
                            if (!acl.apply().hit) { fixed.apply(); }
                        }
                    }
                }
            }
            if (hdr.ethernet.src[47:40] == 0xd1) {
                digest<learn_t>(1, { hdr.ethernet.src, std.ingress_port });
            }
            if (std.egress_spec == 510) {
                hdr.packet_in.setValid();
                hdr.packet_in.ingress_port = std.ingress_port;
            }
        }
    }
}

control E(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t std) { apply {} }
control U(inout headers_t hdr, inout meta_t meta) { apply {} }
control D(packet_out pkt, in headers_t hdr) {
    apply {
        pkt.emit(hdr.packet_in);
        pkt.emit(hdr.ethernet);
        pkt.emit(hdr.tag);
    }
}

V1Switch(P(), V(), MyIngress(), E(), U(), D()) main;

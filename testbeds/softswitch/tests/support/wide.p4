// Values of more than 128 bits wherever the control plane can access them. With `#define PSA` before it: PSA; else v1model.
#include <core.p4>
#ifdef PSA
#include <psa.p4>
#else
#include <v1model.p4>
#endif

header wide_h { bit<256> a; bit<200> t; bit<160> l; bit<192> r; bit<136> o; bit<8> seen; }
struct headers_t { wide_h w; }
struct learn_t { bit<200> t; bit<8> seen; }
struct meta_t {}
struct none_t {}

#ifdef PSA
parser P(packet_in pkt, out headers_t hdr, inout meta_t meta, in psa_ingress_parser_input_metadata_t std,
         in none_t resubmitted, in none_t recirculated) {
#else
parser P(packet_in pkt, out headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {
#endif
    value_set<bit<160>>(4) known;
    state start {
        pkt.extract(hdr.w);
        transition select(hdr.w.l) { known: found; default: accept; }
    }
    state found { hdr.w.seen = 0x80; transition accept; }
}

#ifdef PSA
control MyIngress(inout headers_t hdr, inout meta_t meta, in psa_ingress_input_metadata_t istd,
                  inout psa_ingress_output_metadata_t ostd) {
    Register<bit<256>, bit<32>>(2) cells;
#else
control MyIngress(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {
    register<bit<256>>(2) cells;
#endif
    action set(bit<256> v, bit<8> m) { hdr.w.a = v; hdr.w.seen = hdr.w.seen | m; }
    action mark(bit<8> m) { hdr.w.seen = hdr.w.seen | m; }
    table by_exact { key = { hdr.w.a: exact @name("a"); } actions = { set; NoAction; } }
    table by_ternary { key = { hdr.w.t: ternary @name("t"); } actions = { mark; NoAction; } }
    table by_prefix { key = { hdr.w.l: lpm @name("l"); } actions = { mark; NoAction; } }
    table by_range { key = { hdr.w.r: range @name("r"); } actions = { mark; NoAction; } }
    table by_value { key = { hdr.w.o: optional @name("o"); } actions = { mark; NoAction; } }
    table constant {
        key = { hdr.w.t: ternary @name("t"); hdr.w.l: lpm @name("l"); hdr.w.r: range @name("r"); }
        actions = { mark; NoAction; }
        const entries = {
            (200w5 << 197 &&& 200w7 << 197, 160w1 << 159 &&& 160w3 << 158, 192w1 << 130 .. (192w1 << 191) + 3): mark(0x40);
        }
    }
    apply {
        by_exact.apply();
        by_ternary.apply();
        by_prefix.apply();
        by_range.apply();
        by_value.apply();
        constant.apply();
        bit<256> kept;
#ifdef PSA
        kept = cells.read(0);
#else
        cells.read(kept, 0);
#endif
        cells.write(1, hdr.w.a);
        hdr.w.a = hdr.w.a ^ kept;
#ifdef PSA
        send_to_port(ostd, (PortId_t) 2);
#else
        digest<learn_t>(1, { hdr.w.t, hdr.w.seen });
        std.egress_spec = 2;
#endif
    }
}

#ifdef PSA
control D(packet_out pkt, out none_t cloned, out none_t resubmitted, out none_t normal, inout headers_t hdr, in meta_t meta,
          in psa_ingress_output_metadata_t istd) {
    Digest<learn_t>() learn_t;
    apply {
        learn_t.pack({ hdr.w.t, hdr.w.seen });
        pkt.emit(hdr.w);
    }
}
parser EP(packet_in pkt, out headers_t hdr, inout meta_t meta, in psa_egress_parser_input_metadata_t std, in none_t normal,
          in none_t cloned_i2e, in none_t cloned_e2e) {
    state start { transition accept; }
}
control E(inout headers_t hdr, inout meta_t meta, in psa_egress_input_metadata_t istd,
          inout psa_egress_output_metadata_t ostd) { apply {} }
control ED(packet_out pkt, out none_t cloned, out none_t recirculated, inout headers_t hdr, in meta_t meta,
           in psa_egress_output_metadata_t istd, in psa_egress_deparser_input_metadata_t edstd) { apply {} }
IngressPipeline(P(), MyIngress(), D()) ip;
EgressPipeline(EP(), E(), ED()) ep;
PSA_Switch(ip, PacketReplicationEngine(), ep, BufferingQueueingEngine()) main;
#else
control V(inout headers_t hdr, inout meta_t meta) { apply {} }
control E(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t std) { apply {} }
control U(inout headers_t hdr, inout meta_t meta) { apply {} }
control D(packet_out pkt, in headers_t hdr) { apply { pkt.emit(hdr.w); } }
V1Switch(P(), V(), MyIngress(), E(), U(), D()) main;
#endif

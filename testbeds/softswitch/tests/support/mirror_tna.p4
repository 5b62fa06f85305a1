// A program for Tofino. Ingress mirrors to the session that the first byte names, and floods group 7 if its top bit is set.
// Generated packets leave by port 1.
#include <core.p4>
#include <tna.p4>
header byte_h { bit<8> v; }
header mirror_h { bit<16> tag; }
struct headers_t { byte_h b; }
struct meta_t { bit<8> unused; }
parser IP(packet_in pkt, out headers_t hdr, out meta_t meta, out ingress_intrinsic_metadata_t ig) {
    state start {
        pkt.extract(ig);
        pkt.advance(PORT_METADATA_SIZE);
        transition select(ig.ingress_port) { 68: accept; default: byte; }
    }
    state byte { pkt.extract(hdr.b); transition accept; }
}
control I(inout headers_t hdr, inout meta_t meta, in ingress_intrinsic_metadata_t ig,
          in ingress_intrinsic_metadata_from_parser_t prsr,
          inout ingress_intrinsic_metadata_for_deparser_t dprsr,
          inout ingress_intrinsic_metadata_for_tm_t tm) {
    apply {
        if (!hdr.b.isValid()) { tm.ucast_egress_port = 1; }
        else if (hdr.b.v[7:7] == 1) { tm.mcast_grp_a = 7; }
        else { dprsr.mirror_type = 1; }
    }
}
control ID(packet_out pkt, inout headers_t hdr, in meta_t meta, in ingress_intrinsic_metadata_for_deparser_t dprsr) {
    Mirror(1) mirror;
    apply {
        if (dprsr.mirror_type == 1) { mirror.emit<mirror_h>((MirrorId_t) (bit<16>) hdr.b.v, {0xabcd}); }
        pkt.emit(hdr);
    }
}
parser EP(packet_in pkt, out headers_t hdr, out meta_t meta, out egress_intrinsic_metadata_t eg) {
    state start { pkt.extract(eg); transition accept; }
}
control E(inout headers_t hdr, inout meta_t meta, in egress_intrinsic_metadata_t eg,
          in egress_intrinsic_metadata_from_parser_t prsr,
          inout egress_intrinsic_metadata_for_deparser_t dprsr,
          inout egress_intrinsic_metadata_for_output_port_t oport) {
    apply {}
}
control ED(packet_out pkt, inout headers_t hdr, in meta_t meta, in egress_intrinsic_metadata_for_deparser_t dprsr) {
    apply { pkt.emit(hdr); }
}
Pipeline(IP(), I(), ID(), EP(), E(), ED()) pipe;
Switch(pipe) main;

// Legal programs that the embedded switch cannot execute.
#include <core.p4>
#include <tna.p4>
struct none_t { }
parser IP(packet_in pkt, out none_t hdr, out none_t meta, out ingress_intrinsic_metadata_t ig) {
    Register<bit<8>, bit<8>>(16) cells;
    RegisterAction<bit<8>, bit<8>, bit<8>>(cells) count = {
        void apply(inout bit<8> value, out bit<8> result) { result = value; value = value + 1; }
    };
    state start { pkt.extract(ig); transition select(count.execute(1)) { 1: accept; default: reject; } }
}
control I(inout none_t hdr, inout none_t meta, in ingress_intrinsic_metadata_t ig,
          in ingress_intrinsic_metadata_from_parser_t prsr, inout ingress_intrinsic_metadata_for_deparser_t dprsr,
          inout ingress_intrinsic_metadata_for_tm_t tm) { apply { } }
control D(packet_out pkt, inout none_t hdr, in none_t meta, in ingress_intrinsic_metadata_for_deparser_t dprsr) { apply { } }
parser EP(packet_in pkt, out none_t hdr, out none_t meta, out egress_intrinsic_metadata_t eg) {
    state start { pkt.extract(eg); transition accept; }
}
control E(inout none_t hdr, inout none_t meta, in egress_intrinsic_metadata_t eg,
          in egress_intrinsic_metadata_from_parser_t prsr, inout egress_intrinsic_metadata_for_deparser_t dprsr,
          inout egress_intrinsic_metadata_for_output_port_t oport) { apply { } }
control ED(packet_out pkt, inout none_t hdr, in none_t meta, in egress_intrinsic_metadata_for_deparser_t dprsr) { apply { } }
Pipeline(IP(), I(), D(), EP(), E(), ED()) pipe;
Switch(pipe) main;

// features: TNA externs
#include <core.p4>
#include <tna.p4>
struct none_t { }
struct headers_t { }
struct two_t { bit<32> lo; bit<32> hi; }
parser ip(packet_in pkt, out headers_t h, out none_t m, out ingress_intrinsic_metadata_t i) {
    state start { pkt.extract(i); pkt.advance(PORT_METADATA_SIZE); transition accept; }
}
control ig(inout headers_t h, inout none_t m, in ingress_intrinsic_metadata_t i, in ingress_intrinsic_metadata_from_parser_t p,
           inout ingress_intrinsic_metadata_for_deparser_t d, inout ingress_intrinsic_metadata_for_tm_t tm) {
    Register<two_t, bit<8>>(256) cells;
    RegisterAction<two_t, bit<8>, bit<32>>(cells) add = {
        void apply(inout two_t value, out bit<32> result) {
            value.lo = value.lo + 1;
            result = value.lo;
        }
    };
    Counter<bit<64>, bit<8>>(256, CounterType_t.PACKETS) hits;
    apply {
        hits.count(3);
        if (add.execute(1) == 7) { d.drop_ctl = 1; } else { tm.ucast_egress_port = i.ingress_port; }
    }
}
control id(packet_out pkt, inout headers_t h, in none_t m, in ingress_intrinsic_metadata_for_deparser_t d) {
    Mirror(1) mirror;
    apply { if (d.mirror_type == 1) { mirror.emit(5); } pkt.emit(h); }
}
parser ep(packet_in pkt, out headers_t h, out none_t m, out egress_intrinsic_metadata_t e) {
    state start { pkt.extract(e); transition accept; }
}
control eg(inout headers_t h, inout none_t m, in egress_intrinsic_metadata_t e, in egress_intrinsic_metadata_from_parser_t p,
           inout egress_intrinsic_metadata_for_deparser_t d, inout egress_intrinsic_metadata_for_output_port_t o) { apply { } }
control ed(packet_out pkt, inout headers_t h, in none_t m, in egress_intrinsic_metadata_for_deparser_t d) { apply { pkt.emit(h); } }
Pipeline(ip(), ig(), id(), ep(), eg(), ed()) pipe;
Switch(pipe) main;

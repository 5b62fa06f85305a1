// features: PSA externs
#include <core.p4>
#include <bmv2/psa.p4>
struct none_t { }
struct headers_t { }
parser ip(packet_in b, out headers_t h, inout none_t m, in psa_ingress_parser_input_metadata_t i, in none_t r, in none_t c) {
    state start { transition accept; }
}
control ig(inout headers_t h, inout none_t m, in psa_ingress_input_metadata_t i, inout psa_ingress_output_metadata_t o) {
    Register<bit<32>, bit<8>>(16, 7) cells;
    Counter<bit<64>, PortId_t>(512, PSA_CounterType_t.PACKETS_AND_BYTES) ports;
    Meter<bit<8>>(4, PSA_MeterType_t.BYTES) meter;
    Hash<bit<16>>(PSA_HashAlgorithm_t.CRC16) hash;
    Random<bit<8>>(0, 9) dice;
    apply {
        cells.write(1, cells.read(0) + 1);
        ports.count(i.ingress_port);
        if (meter.execute(dice.read()) == PSA_MeterColor_t.RED) { ingress_drop(o); }
        else { send_to_port(o, (PortId_t) (PortIdUint_t) (bit<32>) hash.get_hash({ i.ingress_timestamp })); }
    }
}
control id(packet_out b, out none_t c, out none_t r, out none_t n, inout headers_t h, in none_t m, in psa_ingress_output_metadata_t i) {
    InternetChecksum() sum;
    apply { sum.clear(); if (psa_normal(i)) { sum.add({ 16w1 }); } }
}
parser ep(packet_in b, out headers_t h, inout none_t m, in psa_egress_parser_input_metadata_t i, in none_t n, in none_t c, in none_t e) {
    state start { transition accept; }
}
control eg(inout headers_t h, inout none_t m, in psa_egress_input_metadata_t i, inout psa_egress_output_metadata_t o) {
    apply { if (i.egress_port == PSA_PORT_CPU) { egress_drop(o); } }
}
control ed(packet_out b, out none_t e, out none_t r, inout headers_t h, in none_t m, in psa_egress_output_metadata_t i, in psa_egress_deparser_input_metadata_t d) {
    apply { }
}
IngressPipeline(ip(), ig(), id()) ingress;
EgressPipeline(ep(), eg(), ed()) egress;
PSA_Switch(ingress, PacketReplicationEngine(), egress, BufferingQueueingEngine()) main;

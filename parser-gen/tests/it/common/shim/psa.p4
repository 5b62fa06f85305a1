// For tests: adds the results of the generated parser and Classify before the packet. No fault engine, no aggregator.

#include <core.p4>
#include <psa.p4>

#define NUM_SLOTS 1024
typedef bit<48> time_ns_t;
typedef bit<64> workers_t;
const int TIME_SIGN = 47;
typedef bit<32> draw_t;
#include "../common/types.p4"
#include "../common/headers.p4"
#include "../common/aggregate_types.p4"
#include "externs.p4"
#include "generated.p4"

header seen_h {
    class_t class;
    bit<8> note;
}
struct all_t {
    seen_h seen;
    headers_t flow;
}
struct empty_t { }

parser IngressParserImpl(
    packet_in pkt,
    out all_t hdr,
    inout metadata_t meta,
    in psa_ingress_parser_input_metadata_t istd,
    in empty_t resubmit_meta,
    in empty_t recirculate_meta)
{
    FlowParser() flow_parser;
    state start {
        flow_parser.apply(pkt, hdr.flow, meta);
        transition accept;
    }
}

control SwitchIngress(
    inout all_t hdr,
    inout metadata_t meta,
    in psa_ingress_input_metadata_t istd,
    inout psa_ingress_output_metadata_t ostd)
{
    Classify() classify;
    apply {
        meta.port = (port_t)(PortIdUint_t) istd.ingress_port;
        meta.class = 0;
        classify.apply(hdr.flow, meta);
        hdr.seen.setValid();
        hdr.seen.class = meta.class;
        hdr.seen.note = meta.parse_note;
        ostd.drop = false;
        ostd.egress_port = (PortId_t) (PortIdUint_t) 7;
    }
}

control IngressDeparserImpl(
    packet_out pkt,
    out empty_t clone_i2e_meta,
    out empty_t resubmit_meta,
    out empty_t normal_meta,
    inout all_t hdr,
    in metadata_t meta,
    in psa_ingress_output_metadata_t istd)
{
    FlowDeparser() flow_deparser;
    apply {
        pkt.emit(hdr.seen);
        flow_deparser.apply(pkt, hdr.flow);
    }
}

parser EgressParserImpl(
    packet_in pkt,
    out empty_t hdr,
    inout empty_t meta,
    in psa_egress_parser_input_metadata_t istd,
    in empty_t normal_meta,
    in empty_t clone_i2e_meta,
    in empty_t clone_e2e_meta)
{
    state start {
        transition accept;
    }
}

control SwitchEgress(
    inout empty_t hdr,
    inout empty_t meta,
    in psa_egress_input_metadata_t istd,
    inout psa_egress_output_metadata_t ostd)
{
    apply { }
}

control EgressDeparserImpl(
    packet_out pkt,
    out empty_t clone_e2e_meta,
    out empty_t recirculate_meta,
    inout empty_t hdr,
    in empty_t meta,
    in psa_egress_output_metadata_t istd,
    in psa_egress_deparser_input_metadata_t edstd)
{
    apply { }
}

IngressPipeline(IngressParserImpl(), SwitchIngress(), IngressDeparserImpl()) ip;
EgressPipeline(EgressParserImpl(), SwitchEgress(), EgressDeparserImpl()) ep;
PSA_Switch(ip, PacketReplicationEngine(), ep, BufferingQueueingEngine()) main;

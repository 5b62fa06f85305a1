// For tests: adds the results of the generated parser and Classify before the packet. No fault engine, no aggregator.

#include <core.p4>
#include <tna.p4>

#define NUM_SLOTS 1024
typedef bit<32> time_ns_t;
typedef bit<32> workers_t;
const int TIME_SIGN = 31;
typedef bit<16> draw_t;
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
    out metadata_t meta,
    out ingress_intrinsic_metadata_t ig_intr_md)
{
    FlowParser() flow_parser;
    state start {
        pkt.extract(ig_intr_md);
        pkt.advance(PORT_METADATA_SIZE);
        meta.parse_note = 0;
        flow_parser.apply(pkt, hdr.flow, meta);
        transition accept;
    }
}

control SwitchIngress(
    inout all_t hdr,
    inout metadata_t meta,
    in ingress_intrinsic_metadata_t ig_intr_md,
    in ingress_intrinsic_metadata_from_parser_t ig_prsr_md,
    inout ingress_intrinsic_metadata_for_deparser_t ig_dprsr_md,
    inout ingress_intrinsic_metadata_for_tm_t ig_tm_md)
{
    Classify() classify;
    apply {
        meta.port = (port_t) ig_intr_md.ingress_port;
        meta.class = 0;
        if (ig_prsr_md.parser_err != PARSER_ERROR_OK) {
            meta.parse_note = meta.parse_note | 0x80;
        }
        classify.apply(hdr.flow, meta);
        hdr.seen.setValid();
        hdr.seen.class = meta.class;
        hdr.seen.note = meta.parse_note;
        ig_tm_md.ucast_egress_port = 7;
        ig_tm_md.bypass_egress = 1w1;
    }
}

control IngressDeparserImpl(
    packet_out pkt,
    inout all_t hdr,
    in metadata_t meta,
    in ingress_intrinsic_metadata_for_deparser_t ig_dprsr_md)
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
    out empty_t meta,
    out egress_intrinsic_metadata_t eg_intr_md)
{
    state start {
        pkt.extract(eg_intr_md);
        transition accept;
    }
}

control SwitchEgress(
    inout empty_t hdr,
    inout empty_t meta,
    in egress_intrinsic_metadata_t eg_intr_md,
    in egress_intrinsic_metadata_from_parser_t eg_prsr_md,
    inout egress_intrinsic_metadata_for_deparser_t eg_dprsr_md,
    inout egress_intrinsic_metadata_for_output_port_t eg_oport_md)
{
    apply { }
}

control EgressDeparserImpl(
    packet_out pkt,
    inout empty_t hdr,
    in empty_t meta,
    in egress_intrinsic_metadata_for_deparser_t eg_dprsr_md)
{
    apply { }
}

Pipeline(
    IngressParserImpl(),
    SwitchIngress(),
    IngressDeparserImpl(),
    EgressParserImpl(),
    SwitchEgress(),
    EgressDeparserImpl()) pipe;

Switch(pipe) main;

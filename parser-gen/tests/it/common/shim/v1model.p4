// For tests: adds the results of the generated parser and Classify before the packet. No fault engine, no aggregator.

#include <core.p4>
#include <v1model.p4>

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

parser ParserImpl(
    packet_in pkt,
    out all_t hdr,
    inout metadata_t meta,
    inout standard_metadata_t standard_metadata)
{
    FlowParser() flow_parser;
    state start {
        flow_parser.apply(pkt, hdr.flow, meta);
        transition accept;
    }
}

control VerifyChecksumImpl(inout all_t hdr, inout metadata_t meta) {
    apply { }
}

control SwitchIngress(
    inout all_t hdr,
    inout metadata_t meta,
    inout standard_metadata_t standard_metadata)
{
    Classify() classify;
    apply {
        meta.port = (port_t) standard_metadata.ingress_port;
        meta.class = 0;
        classify.apply(hdr.flow, meta);
        hdr.seen.setValid();
        hdr.seen.class = meta.class;
        hdr.seen.note = meta.parse_note;
        standard_metadata.egress_spec = 7;
    }
}

control SwitchEgress(
    inout all_t hdr,
    inout metadata_t meta,
    inout standard_metadata_t standard_metadata)
{
    apply { }
}

control ComputeChecksumImpl(inout all_t hdr, inout metadata_t meta) {
    apply { }
}

control DeparserImpl(packet_out pkt, in all_t hdr) {
    FlowDeparser() flow_deparser;
    apply {
        pkt.emit(hdr.seen);
        flow_deparser.apply(pkt, hdr.flow);
    }
}

V1Switch(
    ParserImpl(),
    VerifyChecksumImpl(),
    SwitchIngress(),
    SwitchEgress(),
    ComputeChecksumImpl(),
    DeparserImpl()) main;

// weir on the Portable Switch Architecture: common/ between PSA's parsers, deparsers and metadata.
// generated.p4 is written by parser-gen: headers_t, FlowParser, FlowParserShort, Classify, FlowDeparser.

#include <core.p4>
#include <psa.p4>

#ifndef NUM_SLOTS
#define NUM_SLOTS 1024
#endif
// PSA leaves the unit of timestamps open: the embedded switch counts nanoseconds, BMv2's psa_switch microseconds (1000).
#ifndef NS_PER_TICK
#define NS_PER_TICK 1
#endif

#include "../common/types.p4"
#include "../common/headers.p4"
#include "../common/aggregate_types.p4"
#include "externs.p4"
#include "generated.p4"
#include "../common/decide.p4"
#include "../common/fault.p4"
#include "../common/engine8.p4"
#include "../common/values256.p4"
#include "slots.p4"
#include "../common/aggregate.p4"
#include "../common/forward.p4"

struct empty_t { }

parser IngressParserImpl(
    packet_in pkt,
    out headers_t hdr,
    inout metadata_t meta,
    in psa_ingress_parser_input_metadata_t istd,
    in empty_t resubmit_meta,
    in empty_t recirculate_meta)
{
    FlowParser() flow_parser;
    state start {
        transition select(istd.packet_path) {
            PSA_PacketPath_t.RECIRCULATE: held;
            default: headers;
        }
    }
    state held {
        pkt.extract(hdr.hold);
        transition headers;
    }
    state headers {
        flow_parser.apply(pkt, hdr, meta);
        transition accept;
    }
}

control SwitchIngress(
    inout headers_t hdr,
    inout metadata_t meta,
    in psa_ingress_input_metadata_t istd,
    inout psa_ingress_output_metadata_t ostd)
{
    HoldGate() gate;
    Timeline() timeline;
    Classify() classify;
    FaultEngine() faults;
    Detain() detain;
    Aggregate() aggregate;
    Forward() forward;

    apply {
        meta.verdict = VERDICT_FORWARD;
        meta.now = (time_ns_t)(TimestampUint_t) istd.ingress_timestamp * NS_PER_TICK;
        meta.port = (port_t)(PortIdUint_t) istd.ingress_port;
        meta.flows = 0;
        meta.delay_ns = 0;
        meta.duplicate = false;
        meta.multicast_group = 0;

        if (hdr.hold.isValid()) {
            meta.port = hdr.hold.port;
            gate.apply(hdr, meta);
        } else {
            timeline.apply(meta);
            if (meta.epoch != 0) {
                classify.apply(hdr, meta);
                faults.apply(meta);
                detain.apply(hdr, meta, false);
            }
        }
        if (meta.verdict == VERDICT_FORWARD) {
            aggregate.apply(hdr, meta);
        }
        if (meta.verdict == VERDICT_FORWARD) {
            forward.apply(hdr, meta);
        }

        ostd.drop = meta.verdict == VERDICT_DROP;
        if (meta.verdict == VERDICT_HOLD) {
            ostd.egress_port = PSA_PORT_RECIRCULATE;
            if (meta.duplicate) {
                ostd.multicast_group = (MulticastGroup_t)(MulticastGroupUint_t)(bit<32>) DUPLICATE_GROUP;
            }
        } else if (meta.multicast_group != 0) {
            ostd.multicast_group = (MulticastGroup_t)(MulticastGroupUint_t)(bit<32>) meta.multicast_group;
        } else {
            ostd.egress_port = (PortId_t)(PortIdUint_t) meta.egress_port;
        }
    }
}

control IngressDeparserImpl(
    packet_out pkt,
    out empty_t clone_i2e_meta,
    out empty_t resubmit_meta,
    out empty_t normal_meta,
    inout headers_t hdr,
    in metadata_t meta,
    in psa_ingress_output_metadata_t istd)
{
    FlowDeparser() flow_deparser;
    apply {
        pkt.emit(hdr.hold);
        flow_deparser.apply(pkt, hdr);
    }
}

// What goes to the recirculation port passes egress as it is.
parser EgressParserImpl(
    packet_in pkt,
    out headers_t hdr,
    inout metadata_t meta,
    in psa_egress_parser_input_metadata_t istd,
    in empty_t normal_meta,
    in empty_t clone_i2e_meta,
    in empty_t clone_e2e_meta)
{
    FlowParserShort() flow_parser;
    state start {
        transition select((PortIdUint_t) istd.egress_port) {
            (PortIdUint_t) PSA_PORT_RECIRCULATE: accept;
            default: headers;
        }
    }
    state headers {
        flow_parser.apply(pkt, hdr, meta);
        transition accept;
    }
}

control SwitchEgress(
    inout headers_t hdr,
    inout metadata_t meta,
    in psa_egress_input_metadata_t istd,
    inout psa_egress_output_metadata_t ostd)
{
    Timeline() timeline;
    Classify() classify;
    FaultEngine() faults;

    apply {
        meta.verdict = VERDICT_FORWARD;
        meta.now = (time_ns_t)(TimestampUint_t) istd.egress_timestamp * NS_PER_TICK;
        meta.port = (port_t)(PortIdUint_t) istd.egress_port;
        meta.flows = 0;
        meta.delay_ns = 0;
        meta.duplicate = false;

        if (istd.egress_port != PSA_PORT_RECIRCULATE) {
            timeline.apply(meta);
            if (meta.epoch != 0) {
                classify.apply(hdr, meta);
                faults.apply(meta);
            }
        }
        ostd.drop = meta.verdict == VERDICT_DROP;
    }
}

control EgressDeparserImpl(
    packet_out pkt,
    out empty_t clone_e2e_meta,
    out empty_t recirculate_meta,
    inout headers_t hdr,
    in metadata_t meta,
    in psa_egress_output_metadata_t istd,
    in psa_egress_deparser_input_metadata_t edstd)
{
    FlowDeparser() flow_deparser;
    apply {
        flow_deparser.apply(pkt, hdr);
    }
}

IngressPipeline(IngressParserImpl(), SwitchIngress(), IngressDeparserImpl()) ingress_pipeline;
EgressPipeline(EgressParserImpl(), SwitchEgress(), EgressDeparserImpl()) egress_pipeline;

PSA_Switch(ingress_pipeline, PacketReplicationEngine(), egress_pipeline, BufferingQueueingEngine()) main;

// weir on Tofino: connects common/ with TNA's parsers, deparsers and intrinsic metadata.
// parser-gen writes generated.p4 (headers_t, FlowParser, FlowParserShort, Classify, FlowDeparser) and engine.p4 (FaultEngine,
// EgressFaultEngine, and macros for the optional parts that the program has).

#include <core.p4>
#if __TARGET_TOFINO__ == 2
#include <t2na.p4>
#else
#include <tna.p4>
#endif

#ifndef NUM_SLOTS
#define NUM_SLOTS 1024
#endif

// Tofino computes with 32 bits: the time wraps after 4.3 s, so every delay must be less than 2.1 s.
typedef bit<32> time_ns_t;
const int TIME_SIGN = 31;
// Steps of 65,536 ns. Wraps after 78 hours, so a lease that expired 39 hours ago would be valid again.
typedef bit<32> lease_t;
const int LEASE_SIGN = 31;
// The upper half of a word of the decision function (docs/fault-engine.md).
typedef bit<16> draw_t;
// One bit for each child that a switch may have: a word of a stateful ALU.
typedef bit<32> workers_t;

#include "../common/types.p4"
#include "../common/headers.p4"
#include "../common/aggregate_types.p4"
#include "externs.p4"
#include "generated.p4"
#include "../common/fault.p4"
#include "engine.p4"
#ifdef AGGREGATES
#include "slots.p4"
#include "../common/aggregate.p4"
#endif
#include "../common/forward.p4"

// Only the fault engine processes the packet in this pass.
const verdict_t VERDICT_JUDGE = 3;

// Recirculation port of pipe 0.
const PortId_t RECIRCULATION_PORT = 68;

// The parser sets these fields. If ingress set them in its first stage, tables that depend on nothing else would come later.
#define INITIALISE \
    meta.parse_note = 0; \
    meta.verdict = VERDICT_FORWARD; \
    meta.class = 0; \
    meta.delay_ns = 0; \
    meta.duplicate = 0; \
    meta.detain = 0; \
    meta.way = WAY_UNKNOWN;

parser IngressParserImpl(
    packet_in pkt,
    out headers_t hdr,
    out metadata_t meta,
    out ingress_intrinsic_metadata_t ig_intr_md)
{
    FlowParser() flow_parser;
#ifdef EARLY_FAULT
    // The ports of arrival whose packets a fault before the sum may hit. Empty while the fault is disarmed.
    value_set<PortId_t>(MAX_ARMED_PORTS) armed;
    state start {
        pkt.extract(ig_intr_md);
        pkt.advance(PORT_METADATA_SIZE);
        INITIALISE
        meta.port = (port_t) ig_intr_md.ingress_port;
        transition select(ig_intr_md.ingress_port) {
            armed: armed_headers;
            default: disarmed_headers;
        }
    }
    state armed_headers {
        meta.epoch = 1;
        transition headers;
    }
    state disarmed_headers {
        meta.epoch = 0;
        transition headers;
    }
#else
    state start {
        pkt.extract(ig_intr_md);
        // Skips the port metadata, which weir does not use.
        pkt.advance(PORT_METADATA_SIZE);
        INITIALISE
#ifdef FAULTS
        transition select(ig_intr_md.ingress_port) {
            RECIRCULATION_PORT: held;
            default: fresh;
        }
    }
    state held {
        pkt.extract(hdr.hold);
        transition headers;
    }
    state fresh {
#endif
        // The parser sets the port, since tables of the first stage cannot wait for it.
        meta.port = (port_t) ig_intr_md.ingress_port;
        transition headers;
    }
#endif
    state headers {
        flow_parser.apply(pkt, hdr, meta);
        transition accept;
    }
}

// Units match the epoch by range. bf-p4c allows ranges on up to four nibbles, and without this may spread the field over more.
@pa_container_size("ingress", "meta.epoch", 16)
control SwitchIngress(
    inout headers_t hdr,
    inout metadata_t meta,
    in ingress_intrinsic_metadata_t ig_intr_md,
    in ingress_intrinsic_metadata_from_parser_t ig_prsr_md,
    inout ingress_intrinsic_metadata_for_deparser_t ig_dprsr_md,
    inout ingress_intrinsic_metadata_for_tm_t ig_tm_md)
{
#ifdef FAULTS
    HoldGate() gate;
    Timeline() timeline;
    Lease() lease;
    Classify() classify;
#endif
#if defined(FAULTS) || defined(EARLY_FAULT)
    FaultEngine() faults;
#endif
#ifdef AGGREGATES
    Aggregate() aggregate;
#endif
    Forward() forward;

    action drop() {
        ig_dprsr_md.drop_ctl = 1;
    }
#ifdef FAULTS
    // The packet is held once more, and already has its hold header.
    action again() {
        ig_tm_md.ucast_egress_port = RECIRCULATION_PORT;
    }
    action detain() {
        hdr.hold.setValid();
        hdr.hold.deadline = meta.now + meta.delay_ns;
        hdr.hold.port = meta.port;
        ig_tm_md.ucast_egress_port = RECIRCULATION_PORT;
    }
    action detain_twice() {
        hdr.hold.setValid();
        hdr.hold.deadline = meta.now + meta.delay_ns;
        hdr.hold.port = meta.port;
        ig_tm_md.mcast_grp_a = meta.multicast_group;
    }
#endif
    action unicast() {
        ig_tm_md.ucast_egress_port = (PortId_t) meta.egress_port;
    }
    action multicast() {
        ig_tm_md.mcast_grp_a = meta.multicast_group;
    }
    // Sends, drops or holds the packet, by the results of all controls. Nested conditions would take a table each.
    table leave {
        key = {
            meta.verdict: ternary;
            meta.way: ternary;
            // TNA drops a packet with a parser error unless the program reads the error.
            ig_prsr_md.parser_err: ternary;
#ifdef FAULTS
            meta.detain: ternary;
            meta.duplicate: ternary;
#endif
        }
        actions = {
            drop;
            unicast;
            multicast;
#ifdef FAULTS
            again;
            detain;
            detain_twice;
#endif
        }
        const default_action = drop();
        const entries = {
#ifdef FAULTS
            (VERDICT_HOLD, _, _, _, _): again();
            (VERDICT_DROP, _, _, _, _): drop();
            (_, _, _, 1, 1): detain_twice();
            (_, _, _, 1, _): detain();
            (_, WAY_PORT, _, _, _): unicast();
            (_, WAY_GROUP, _, _, _): multicast();
#else
            (VERDICT_DROP, _, _): drop();
            (_, WAY_PORT, _): unicast();
            (_, WAY_GROUP, _): multicast();
#endif
        }
        size = 8;
    }

    apply {
#ifdef FAULTS
        meta.now = ig_prsr_md.global_tstamp[31:0];
#endif
#ifndef WIRE
        forward.apply(hdr, meta);
#endif
#ifdef EARLY_FAULT
        faults.apply(hdr, meta);
#endif
#ifdef FAULTS
        if (hdr.hold.isValid()) {
            meta.port = hdr.hold.port;
            gate.apply(hdr, meta);
        } else {
            timeline.apply(meta);
            // Not global_tstamp: delays use other bits of it, and a field cannot be sliced in two ways.
            lease.apply(meta, ig_intr_md.ingress_mac_tstamp[47:16]);
            classify.apply(hdr, meta);
#ifdef AGGREGATES
            // An UPDATE of a flow under faults meets the fault engine in this pass and the sum in the next, since no pass has
            // the stages for a sum that waits for a fault (docs/tofino.md). All other packets take one pass.
            if (meta.epoch != 0 && meta.class != 0) {
                meta.verdict = VERDICT_JUDGE;
            }
#else
            faults.apply(hdr, meta);
#endif
        }
#endif
#ifdef WIRE
        // A held packet arrives at the recirculation port. Its original port is known only from here on.
        forward.apply(hdr, meta);
#endif
#ifdef AGGREGATES
        aggregate.apply(hdr, meta);
#ifdef FAULTS
        if (meta.verdict == VERDICT_JUDGE) {
            meta.verdict = VERDICT_FORWARD;
            faults.apply(hdr, meta);
            if (hdr.agg.isValid() && hdr.agg.kind == AGG_UPDATE) {
                meta.detain = 1;
            }
        }
#endif
#endif
        leave.apply();
    }
}

control IngressDeparserImpl(
    packet_out pkt,
    inout headers_t hdr,
    in metadata_t meta,
    in ingress_intrinsic_metadata_for_deparser_t ig_dprsr_md)
{
    FlowDeparser() flow_deparser;
    apply {
        pkt.emit(hdr.hold);
        flow_deparser.apply(pkt, hdr);
    }
}

// Packets to the recirculation port pass egress unchanged, and so do all packets if no fault acts there.
parser EgressParserImpl(
    packet_in pkt,
    out headers_t hdr,
    out metadata_t meta,
    out egress_intrinsic_metadata_t eg_intr_md)
{
#ifdef EGRESS_FAULTS
    FlowParserShort() flow_parser;
    state start {
        pkt.extract(eg_intr_md);
        meta.parse_note = 0;
        transition select(eg_intr_md.egress_port) {
#ifdef SPREADS_COPIES
            RECIRCULATION_PORT: held;
#else
            RECIRCULATION_PORT: accept;
#endif
            default: headers;
        }
    }
    state headers {
        flow_parser.apply(pkt, hdr, meta);
        transition accept;
    }
#elif defined(SPREADS_COPIES)
    state start {
        pkt.extract(eg_intr_md);
        transition select(eg_intr_md.egress_port) {
            RECIRCULATION_PORT: held;
            default: accept;
        }
    }
#else
    state start {
        pkt.extract(eg_intr_md);
        transition accept;
    }
#endif
#ifdef SPREADS_COPIES
    state held {
        pkt.extract(hdr.hold);
        transition accept;
    }
#endif
}

control SwitchEgress(
    inout headers_t hdr,
    inout metadata_t meta,
    in egress_intrinsic_metadata_t eg_intr_md,
    in egress_intrinsic_metadata_from_parser_t eg_prsr_md,
    inout egress_intrinsic_metadata_for_deparser_t eg_dprsr_md,
    inout egress_intrinsic_metadata_for_output_port_t eg_oport_md)
{
#ifdef EGRESS_FAULTS
    Timeline() timeline;
    Lease() lease;
    Classify() classify;
    EgressFaultEngine() faults;
#endif
#ifdef SPREADS_COPIES
    SpreadCopies() spread;
#endif

    apply {
#ifdef SPREADS_COPIES
        if (hdr.hold.isValid()) {
            spread.apply(hdr, eg_intr_md.egress_rid);
        }
#endif
#ifdef EGRESS_FAULTS
        meta.verdict = VERDICT_FORWARD;
        meta.port = (port_t) eg_intr_md.egress_port;
        meta.class = 0;

        if (eg_intr_md.egress_port != RECIRCULATION_PORT) {
            timeline.apply(meta);
            lease.apply(meta, eg_prsr_md.global_tstamp[47:16]);
            classify.apply(hdr, meta);
            faults.apply(hdr, meta);
        }
        if (meta.verdict == VERDICT_DROP) {
            eg_dprsr_md.drop_ctl = 1;
        }
#endif
    }
}

control EgressDeparserImpl(
    packet_out pkt,
    inout headers_t hdr,
    in metadata_t meta,
    in egress_intrinsic_metadata_for_deparser_t eg_dprsr_md)
{
    FlowDeparser() flow_deparser;
    apply {
#ifdef SPREADS_COPIES
        pkt.emit(hdr.hold);
#endif
        flow_deparser.apply(pkt, hdr);
    }
}

Pipeline(
    IngressParserImpl(),
    SwitchIngress(),
    IngressDeparserImpl(),
    EgressParserImpl(),
    SwitchEgress(),
    EgressDeparserImpl()) pipe;

Switch(pipe) main;

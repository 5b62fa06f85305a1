// weir on the Portable Switch Architecture: connects common/ with PSA's parsers, deparsers and metadata.
// parser-gen writes generated.p4 (headers_t, FlowParser, FlowParserShort, Classify, FlowDeparser) and engine.p4 (FaultEngine,
// EgressFaultEngine, and macros for the optional parts that the program has).

#include <core.p4>
#include <psa.p4>

#ifndef NUM_SLOTS
#define NUM_SLOTS 1024
#endif
#ifndef NUM_CONTACTS
#define NUM_CONTACTS 1024
#endif
// PSA does not define the unit of timestamps. The embedded switch counts nanoseconds, BMv2's psa_switch microseconds (1000).
#ifndef NS_PER_TICK
#define NS_PER_TICK 1
#endif

// Wraps after 78 hours.
typedef bit<48> time_ns_t;
const int TIME_SIGN = 47;
// The clock as the switch reports it. It does not wrap.
typedef TimestampUint_t lease_t;
const int LEASE_SIGN = 63;
typedef bit<32> draw_t;
// One bit for each child that a switch may have.
typedef bit<64> workers_t;

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
#ifdef SUMS_ROCE
#include "../common/roce_types.p4"
#include "roce.p4"
#include "../common/roce_sum.p4"
#endif
#ifdef GUARDS_JOBS
#include "guard.p4"
#include "../common/job_guard.p4"
#endif
#ifdef MULTIPATH
#include "flow_hash.p4"
#endif
#include "../common/forward.p4"

struct empty_t { }

// Metadata of a packet that ingress passes to egress.
struct bridge_t {
#ifdef TRUNCATES
    bit<16> cut;
#endif
#ifdef SUMS_ROCE
    bit<3> roce;
#endif
}

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
#ifdef REORDERS
        pkt.extract(hdr.wait);
#endif
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
#ifdef REORDERS
    WaitLimit() wait_limit;
#endif
    Timeline() timeline;
#ifdef FAULTS
    Lease() lease;
#endif
    Classify() classify;
    FaultEngine() faults;
    Detain() detain;
#ifdef GUARDS_JOBS
    JobGuard() guard;
#endif
#ifdef AGGREGATES
    Aggregate() aggregate;
#endif
#ifdef SUMS_ROCE
    RoceIn() roce;
    RoceKind() roce_kind;
#endif
    Forward() forward;

    apply {
        meta.verdict = VERDICT_FORWARD;
        meta.now = (time_ns_t)(TimestampUint_t) istd.ingress_timestamp * NS_PER_TICK;
        meta.port = (port_t)(PortIdUint_t) istd.ingress_port;
        meta.class = 0;
        meta.delay_ns = 0;
        meta.duplicate = 0;
        meta.detain = 0;
        meta.cut = 0;
        meta.way = WAY_UNKNOWN;

        bool is_back = hdr.hold.isValid();
        meta.epoch = 0;
        if (!is_back) {
            timeline.apply(meta);
#ifdef FAULTS
            lease.apply(meta, (TimestampUint_t) istd.ingress_timestamp);
#endif
            if (meta.epoch != 0) {
                classify.apply(hdr, meta);
            }
        }
        bool meets_faults = meta.epoch != 0;
#ifdef REORDERS
        // At each return of a waiting packet, its unit compares the number of packets that have passed.
        meets_faults = meets_faults || is_back;
#endif
        if (meets_faults) {
            faults.apply(hdr, meta);
            detain.apply(hdr, meta);
        }
        if (is_back) {
            meta.port = hdr.hold.port;
#ifdef REORDERS
            wait_limit.apply(hdr, meta.now);
            if (hdr.wait.unit != WAIT_NONE) {
                meta.verdict = VERDICT_HOLD;
            } else {
                gate.apply(hdr, meta);
            }
#else
            gate.apply(hdr, meta);
#endif
        }
#ifdef REORDERS
        if (!hdr.hold.isValid()) {
            hdr.wait.setInvalid();
        } else if (!hdr.wait.isValid()) {
            hdr.wait.setValid();
            hdr.wait.unit = WAIT_NONE;
        }
#endif
#ifdef SUMS_ROCE
        roce.apply(hdr, meta);
#endif
        if (meta.verdict == VERDICT_FORWARD) {
            forward.apply(hdr, meta);
#ifdef GUARDS_JOBS
            guard.apply(hdr, meta, (TimestampUint_t) istd.ingress_timestamp);
#endif
#ifdef AGGREGATES
            // After Forward, since a chunk that ascends takes another path.
            aggregate.apply(hdr, meta);
#endif
#ifdef SUMS_ROCE
            roce_kind.apply(hdr, meta);
#endif
            if (meta.way == WAY_UNKNOWN || meta.way == WAY_BACK) {
                meta.verdict = VERDICT_DROP;
            }
        }

        ostd.drop = meta.verdict == VERDICT_DROP;
        if (meta.verdict == VERDICT_HOLD) {
            ostd.egress_port = PSA_PORT_RECIRCULATE;
            if (meta.duplicate == 1) {
                ostd.multicast_group = (MulticastGroup_t)(MulticastGroupUint_t)(bit<32>) meta.multicast_group;
            }
        } else if (meta.way == WAY_GROUP) {
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
    out bridge_t normal_meta,
    inout headers_t hdr,
    in metadata_t meta,
    in psa_ingress_output_metadata_t istd)
{
    FlowDeparser() flow_deparser;
    apply {
#ifdef TRUNCATES
        normal_meta.cut = meta.cut;
#endif
#ifdef SUMS_ROCE
        normal_meta.roce = meta.roce;
#endif
        pkt.emit(hdr.hold);
#ifdef REORDERS
        pkt.emit(hdr.wait);
#endif
        flow_deparser.apply(pkt, hdr);
    }
}

// Packets to the recirculation port pass egress unchanged.
parser EgressParserImpl(
    packet_in pkt,
    out headers_t hdr,
    inout metadata_t meta,
    in psa_egress_parser_input_metadata_t istd,
    in bridge_t normal_meta,
    in empty_t clone_i2e_meta,
    in empty_t clone_e2e_meta)
{
#ifdef EGRESS_FAULTS
    FlowParserShort() flow_parser;
#endif
#ifdef SUMS_ROCE
    FlowParser() whole_parser;
#endif
    state start {
#if defined(TRUNCATES) || defined(SUMS_ROCE)
        transition select(istd.packet_path) {
            PSA_PacketPath_t.CLONE_E2E: cut_already;
            default: bridged;
        }
#else
        transition by_port;
#endif
    }
#if defined(TRUNCATES) || defined(SUMS_ROCE)
    state cut_already {
        meta.cut = 0;
        meta.roce = 0;
        transition by_port;
    }
    state bridged {
#ifdef TRUNCATES
        meta.cut = normal_meta.cut;
#endif
#ifdef SUMS_ROCE
        meta.roce = normal_meta.roce;
        transition select(normal_meta.roce) {
            0: by_port;
            default: whole;
        }
#else
        transition by_port;
#endif
    }
#endif
#ifdef SUMS_ROCE
    state whole {
        whole_parser.apply(pkt, hdr, meta);
        transition accept;
    }
#endif
    state by_port {
#if defined(EGRESS_FAULTS) || defined(SPREADS_COPIES)
        transition select((PortIdUint_t) istd.egress_port) {
#ifdef SPREADS_COPIES
            (PortIdUint_t) PSA_PORT_RECIRCULATE: held;
#else
            (PortIdUint_t) PSA_PORT_RECIRCULATE: accept;
#endif
#ifdef EGRESS_FAULTS
            default: headers;
#else
            default: accept;
#endif
        }
#else
        transition accept;
#endif
    }
#ifdef EGRESS_FAULTS
    state headers {
        flow_parser.apply(pkt, hdr, meta);
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
    in psa_egress_input_metadata_t istd,
    inout psa_egress_output_metadata_t ostd)
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
#ifdef SUMS_ROCE
    RoceOut() roce;
#endif

    apply {
#ifdef SPREADS_COPIES
        if (hdr.hold.isValid()) {
            spread.apply(hdr, (bit<16>)(EgressInstanceUint_t) istd.instance);
        }
#endif
#if defined(EGRESS_FAULTS) || defined(SUMS_ROCE)
        meta.verdict = VERDICT_FORWARD;
        meta.port = (port_t)(PortIdUint_t) istd.egress_port;
#endif
#ifdef SUMS_ROCE
        // Before the faults, since these act on the packets that leave.
        if (meta.roce != ROCE_NONE) {
            roce.apply(hdr, meta, (bit<16>)(EgressInstanceUint_t) istd.instance);
        }
#endif
#ifdef EGRESS_FAULTS
        meta.class = 0;

        if (istd.egress_port != PSA_PORT_RECIRCULATE) {
            timeline.apply(meta);
            lease.apply(meta, (TimestampUint_t) istd.egress_timestamp);
            if (meta.epoch != 0) {
                classify.apply(hdr, meta);
                faults.apply(hdr, meta);
            }
        }
#endif
#if defined(EGRESS_FAULTS) || defined(SUMS_ROCE)
        ostd.drop = meta.verdict == VERDICT_DROP;
#endif
#ifdef TRUNCATES
        // PSA cuts only clones short, so a clone replaces the packet. The number of its session is the number of bytes that
        // remain. The session leads to the recirculation port, as the packet did.
        if (meta.cut != 0) {
            ostd.clone = true;
            ostd.clone_session_id = (CloneSessionId_t)(CloneSessionIdUint_t) meta.cut;
            ostd.drop = true;
        }
#endif
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
#ifdef SPREADS_COPIES
        pkt.emit(hdr.hold);
#endif
        flow_deparser.apply(pkt, hdr);
    }
}

IngressPipeline(IngressParserImpl(), SwitchIngress(), IngressDeparserImpl()) ingress_pipeline;
EgressPipeline(EgressParserImpl(), SwitchEgress(), EgressDeparserImpl()) egress_pipeline;

PSA_Switch(ingress_pipeline, PacketReplicationEngine(), egress_pipeline, BufferingQueueingEngine()) main;

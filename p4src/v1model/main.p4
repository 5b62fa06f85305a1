// weir on v1model, for BMv2's P4Runtime build (simple_switch_grpc): connects common/ with v1model's parser and controls.
// parser-gen writes generated.p4 (headers_t, FlowParser, Classify, FlowDeparser) and engine.p4 (FaultEngine, EgressFaultEngine,
// and macros for the optional parts that the program has).
//
// A held packet recirculates at the end of egress, behind its hold header. simple_switch gives ingress a time only for packets
// that arrive at a port: ingress_global_timestamp of a recirculated packet is 0. So egress tests whether the deadline has
// passed. If it has, egress sets the deadline to HOLD_DUE, which the next ingress reads.

#include <core.p4>
#include <v1model.p4>

#ifndef NUM_SLOTS
#define NUM_SLOTS 1024
#endif
#ifndef NUM_CONTACTS
#define NUM_CONTACTS 1024
#endif

// Wraps after 78 hours.
typedef bit<48> time_ns_t;
const int TIME_SIGN = 47;
// Microseconds, as simple_switch counts them. Wraps after nine years.
typedef bit<48> lease_t;
const int LEASE_SIGN = 47;
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

// The instance_type that simple_switch gives a recirculated packet (BMv2, simple_switch.h).
const bit<32> INSTANCE_RECIRCULATED = 4;
// The nominal port of a held packet, which never leaves there.
const bit<9> HOLD_PORT = 0;
// simple_switch counts microseconds.
const time_ns_t NS_PER_TICK = 1000;
// Replaces a deadline in a hold header that has passed.
const time_ns_t HOLD_DUE = 0;

parser ParserImpl(
    packet_in pkt,
    out headers_t hdr,
    inout metadata_t meta,
    inout standard_metadata_t standard_metadata)
{
    FlowParser() flow_parser;
    state start {
        transition select(standard_metadata.instance_type) {
            INSTANCE_RECIRCULATED: held;
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

control VerifyChecksumImpl(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

control SwitchIngress(
    inout headers_t hdr,
    inout metadata_t meta,
    inout standard_metadata_t standard_metadata)
{
    HoldGate() gate;
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
        meta.now = standard_metadata.ingress_global_timestamp * NS_PER_TICK;
        meta.port = (port_t) standard_metadata.ingress_port;
        meta.class = 0;
        meta.delay_ns = 0;
        meta.duplicate = 0;
        meta.detain = 0;
        meta.way = WAY_UNKNOWN;

        bool is_back = hdr.hold.isValid();
        meta.epoch = 0;
        if (!is_back) {
            timeline.apply(meta);
#ifdef FAULTS
            lease.apply(meta, standard_metadata.ingress_global_timestamp);
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
            // The gate tests only whether now is before the deadline: it must release a packet with HOLD_DUE, and hold others.
            meta.now = hdr.hold.deadline;
            if (hdr.hold.deadline != HOLD_DUE) {
                meta.now = meta.now - 1;
            }
#ifdef REORDERS
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
            guard.apply(hdr, meta, standard_metadata.ingress_global_timestamp);
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

        if (meta.verdict == VERDICT_DROP) {
            mark_to_drop(standard_metadata);
        } else if (meta.verdict == VERDICT_HOLD) {
            standard_metadata.egress_spec = HOLD_PORT;
            if (meta.duplicate == 1) {
                standard_metadata.mcast_grp = meta.multicast_group;
            }
        } else if (meta.way == WAY_GROUP) {
            standard_metadata.mcast_grp = meta.multicast_group;
        } else {
            standard_metadata.egress_spec = (bit<9>) meta.egress_port;
        }
    }
}

control SwitchEgress(
    inout headers_t hdr,
    inout metadata_t meta,
    inout standard_metadata_t standard_metadata)
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
#ifdef REORDERS
    WaitLimit() wait_limit;
#endif
#ifdef SUMS_ROCE
    RoceOut() roce;
#endif

    apply {
        if (hdr.hold.isValid()) {
#ifdef SPREADS_COPIES
            spread.apply(hdr, standard_metadata.egress_rid);
#endif
            time_ns_t late = standard_metadata.egress_global_timestamp * NS_PER_TICK - hdr.hold.deadline;
            if (late[TIME_SIGN:TIME_SIGN] == 0) {
                hdr.hold.deadline = HOLD_DUE;
            }
#ifdef REORDERS
            wait_limit.apply(hdr, standard_metadata.egress_global_timestamp * NS_PER_TICK);
#endif
            recirculate_preserving_field_list(0);
        } else {
#if defined(EGRESS_FAULTS) || defined(SUMS_ROCE)
            meta.verdict = VERDICT_FORWARD;
            meta.port = (port_t) standard_metadata.egress_port;
#endif
#ifdef SUMS_ROCE
            // Before the faults, since these act on the packets that leave.
            if (meta.roce != ROCE_NONE) {
                roce.apply(hdr, meta, standard_metadata.egress_rid);
            }
#endif
#ifdef EGRESS_FAULTS
            meta.class = 0;
            timeline.apply(meta);
            lease.apply(meta, standard_metadata.egress_global_timestamp);
            if (meta.epoch != 0) {
                classify.apply(hdr, meta);
                faults.apply(hdr, meta);
            }
#endif
#if defined(EGRESS_FAULTS) || defined(SUMS_ROCE)
            if (meta.verdict == VERDICT_DROP) {
                mark_to_drop(standard_metadata);
            }
#endif
#ifdef TRUNCATES
            if (meta.cut != 0) {
                truncate((bit<32>) meta.cut);
            }
#endif
        }
    }
}

control ComputeChecksumImpl(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

control DeparserImpl(packet_out pkt, in headers_t hdr) {
    FlowDeparser() flow_deparser;
    apply {
        pkt.emit(hdr.hold);
#ifdef REORDERS
        pkt.emit(hdr.wait);
#endif
        flow_deparser.apply(pkt, hdr);
    }
}

V1Switch(
    ParserImpl(),
    VerifyChecksumImpl(),
    SwitchIngress(),
    SwitchEgress(),
    ComputeChecksumImpl(),
    DeparserImpl()) main;

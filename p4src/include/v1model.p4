// The v1model architecture, as BMv2's simple_switch executes it.
#ifndef _V1_MODEL_P4_
#define _V1_MODEL_P4_

#include <core.p4>

// From version 20200408 on, ports have the type PortId_t, and indexed externs take their index type as a parameter.
#ifndef V1MODEL_VERSION
#define V1MODEL_VERSION 20180101
#endif

#if V1MODEL_VERSION >= 20200408
#define WEIR_V1_PORT PortId_t
#define WEIR_V1_INDEX I
typedef bit<9> PortId_t;
#else
#define WEIR_V1_PORT bit<9>
#define WEIR_V1_INDEX bit<32>
#endif

const bit<32> __v1model_version = V1MODEL_VERSION;

match_kind {
    range,
    optional,
    selector
}

// ---- Metadata

@metadata @name("standard_metadata")
struct standard_metadata_t {
    WEIR_V1_PORT ingress_port;
    WEIR_V1_PORT egress_spec;   // where ingress wants the packet; 511 drops
    WEIR_V1_PORT egress_port;   // read only, in egress
    bit<32> instance_type;      // 0 normal, 1 ingress clone, 2 egress clone, 4 recirculated, 5 replicated, 6 resubmitted
    bit<32> packet_length;      // bytes
    @alias("queueing_metadata.enq_timestamp")
    bit<32> enq_timestamp;      // µs
    @alias("queueing_metadata.enq_qdepth")
    bit<19> enq_qdepth;         // packets
    @alias("queueing_metadata.deq_timedelta")
    bit<32> deq_timedelta;      // µs
    @alias("queueing_metadata.deq_qdepth")
    bit<19> deq_qdepth;         // packets
    @alias("intrinsic_metadata.ingress_global_timestamp")
    bit<48> ingress_global_timestamp;   // µs
    @alias("intrinsic_metadata.egress_global_timestamp")
    bit<48> egress_global_timestamp;    // µs
    @alias("intrinsic_metadata.mcast_grp")
    bit<16> mcast_grp;          // 0: none
    @alias("intrinsic_metadata.egress_rid")
    bit<16> egress_rid;         // instance of the replica
    bit<1> checksum_error;      // 1: a verify_checksum failed
    error parser_error;
    @alias("intrinsic_metadata.priority")
    bit<3> priority;            // queue
}

// ---- Stateful externs

enum CounterType {
    packets,
    bytes,
    packets_and_bytes
}

enum MeterType {
    packets,
    bytes
}

#define V1MODEL_METER_COLOR_GREEN 0
#define V1MODEL_METER_COLOR_YELLOW 1
#define V1MODEL_METER_COLOR_RED 2

#if V1MODEL_VERSION >= 20200408
extern counter<I>
#else
extern counter
#endif
{
    counter(bit<32> size, CounterType type);
    void count(in WEIR_V1_INDEX index);
}

extern direct_counter {
    direct_counter(CounterType type);
    void count();
}

#if V1MODEL_VERSION >= 20200408
extern meter<I>
#else
extern meter
#endif
{
    meter(bit<32> size, MeterType type);
    void execute_meter<T>(in WEIR_V1_INDEX index, out T result);
}

extern direct_meter<T> {
    direct_meter(MeterType type);
    void read(out T result);
}

#if V1MODEL_VERSION >= 20200408
extern register<T, I>
#else
extern register<T>
#endif
{
    register(bit<32> size);
    @noSideEffects
    void read(out T result, in WEIR_V1_INDEX index);
    void write(in WEIR_V1_INDEX index, in T value);
}

extern action_profile {
    action_profile(bit<32> size);
}

// ---- Hashes, checksums, random numbers

enum HashAlgorithm {
    crc32,
    crc32_custom,
    crc16,
    crc16_custom,
    random,
    identity,
    csum16,
    xor16
}

extern action_selector {
    action_selector(HashAlgorithm algorithm, bit<32> size, bit<32> outputWidth);
}

// Uniformly distributed from lo to hi, both included.
extern void random<T>(out T result, in T lo, in T hi);

// base + hash(data) mod max; base if max is 0
@pure
extern void hash<O, T, D, M>(out O result, in HashAlgorithm algo, in T base, in D data, in M max);

extern void verify_checksum<T, O>(in bool condition, in T data, in O checksum, HashAlgorithm algo);
@pure
extern void update_checksum<T, O>(in bool condition, in T data, inout O checksum, HashAlgorithm algo);
extern void verify_checksum_with_payload<T, O>(in bool condition, in T data, in O checksum, HashAlgorithm algo);
@noSideEffects
extern void update_checksum_with_payload<T, O>(in bool condition, in T data, inout O checksum, HashAlgorithm algo);

@deprecated("use verify_checksum and update_checksum")
extern Checksum16 {
    Checksum16();
    bit<16> get<D>(in D data);
}

// ---- Functions that send, copy, drop or truncate the packet

@deprecated("use mark_to_drop(standard_metadata)")
extern void mark_to_drop();
@pure
extern void mark_to_drop(inout standard_metadata_t standard_metadata);

// Sends `data` to the control plane.
extern void digest<T>(in bit<32> receiver, in T data);

enum CloneType {
    I2E,
    E2E
}

// The packet keeps the fields that have the annotation @field_list(index).
extern void clone(in CloneType type, in bit<32> session);
extern void clone_preserving_field_list(in CloneType type, in bit<32> session, bit<8> index);
extern void resubmit_preserving_field_list(bit<8> index);
extern void recirculate_preserving_field_list(bit<8> index);
@deprecated("use clone_preserving_field_list")
extern void clone3<T>(in CloneType type, in bit<32> session, in T data);
@deprecated("use resubmit_preserving_field_list")
extern void resubmit<T>(in T data);
@deprecated("use recirculate_preserving_field_list")
extern void recirculate<T>(in T data);

// Truncates the packet to this number of bytes when it leaves the block.
extern void truncate(in bit<32> length);

// ---- Debugging

extern void assert(in bool check);
extern void assume(in bool check);
extern void log_msg(string msg);
extern void log_msg<T>(string msg, in T data);

// ---- The six blocks

parser Parser<H, M>(
    packet_in b,
    out H parsedHdr,
    inout M meta,
    inout standard_metadata_t standard_metadata);

control VerifyChecksum<H, M>(inout H hdr, inout M meta);

@pipeline
control Ingress<H, M>(inout H hdr, inout M meta, inout standard_metadata_t standard_metadata);

@pipeline
control Egress<H, M>(inout H hdr, inout M meta, inout standard_metadata_t standard_metadata);

control ComputeChecksum<H, M>(inout H hdr, inout M meta);

@deparser
control Deparser<H>(packet_out b, in H hdr);

package V1Switch<H, M>(
    Parser<H, M> p,
    VerifyChecksum<H, M> vr,
    Ingress<H, M> ig,
    Egress<H, M> eg,
    ComputeChecksum<H, M> ck,
    Deparser<H> dep);

#endif

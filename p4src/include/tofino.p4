// The common part of TNA and T2NA. tna.p4 and t2na.p4 include it after they have defined the chip (__TARGET_TOFINO__).
#ifndef WEIR_TOFINO_P4
#define WEIR_TOFINO_P4

#include <core.p4>

// ---- Widths

#define PORT_ID_WIDTH 9
#define MULTICAST_GROUP_ID_WIDTH 16
#define RESUBMIT_TYPE_WIDTH 3
#define DIGEST_TYPE_WIDTH 3
#define REPLICATION_ID_WIDTH 16
#define L1_EXCLUSION_ID_WIDTH 16
#define L2_EXCLUSION_ID_WIDTH 9
#if __TARGET_TOFINO__ == 1
#define QUEUE_ID_WIDTH 5
#define MIRROR_TYPE_WIDTH 3
#define MIRROR_ID_WIDTH 10
#else
#define QUEUE_ID_WIDTH 7
#define MIRROR_TYPE_WIDTH 4
#define MIRROR_ID_WIDTH 8
#endif

typedef bit<PORT_ID_WIDTH> PortId_t;
typedef bit<MULTICAST_GROUP_ID_WIDTH> MulticastGroupId_t;
typedef bit<QUEUE_ID_WIDTH> QueueId_t;
typedef bit<MIRROR_TYPE_WIDTH> MirrorType_t;
typedef bit<MIRROR_ID_WIDTH> MirrorId_t;
typedef bit<RESUBMIT_TYPE_WIDTH> ResubmitType_t;
typedef bit<DIGEST_TYPE_WIDTH> DigestType_t;
typedef bit<REPLICATION_ID_WIDTH> ReplicationId_t;
typedef bit<L1_EXCLUSION_ID_WIDTH> L1ExclusionId_t;
typedef bit<L2_EXCLUSION_ID_WIDTH> L2ExclusionId_t;
typedef error ParserError_t;
#if __TARGET_TOFINO__ != 1
typedef MirrorType_t CloneId_t;
#endif

// Number of bits of port metadata, which follow the ingress intrinsic metadata.
#if __TARGET_TOFINO__ == 1
const bit<32> PORT_METADATA_SIZE = 64;
#else
const bit<32> PORT_METADATA_SIZE = 192;
#endif

// A device port consists of a pipe (2 bits) and a port within it (7 bits).
#define DEVPORT_PIPE_MASK 0x180
#define DEVPORT_PIPE(port) (port)[8:7]
#define DEVPORT_PORT_MASK 0x7f
#define DEVPORT_PORT(port) (port)[6:0]

// ---- Bits of parser_err

const bit<16> PARSER_ERROR_OK = 0x0000;
const bit<16> PARSER_ERROR_NO_MATCH = 0x0001;
const bit<16> PARSER_ERROR_PARTIAL_HDR = 0x0002;
const bit<16> PARSER_ERROR_CTR_RANGE = 0x0004;
const bit<16> PARSER_ERROR_TIMEOUT_USER = 0x0008;
const bit<16> PARSER_ERROR_TIMEOUT_HW = 0x0010;
const bit<16> PARSER_ERROR_SRC_EXT = 0x0020;
#if __TARGET_TOFINO__ == 1
const bit<16> PARSER_ERROR_DST_CONT = 0x0040;
#endif
const bit<16> PARSER_ERROR_PHV_OWNER = 0x0080;
const bit<16> PARSER_ERROR_MULTIWRITE = 0x0100;
const bit<16> PARSER_ERROR_ARAM_MBE = 0x0400;
const bit<16> PARSER_ERROR_FCS = 0x0800;
#if __TARGET_TOFINO__ != 1
const bit<16> PARSER_ERROR_CSUM_MBE = 0x1000;
#endif

error {
    CounterRange,
    Timeout,
    PhvOwner,
    MultiWrite,
    IbufOverflow,
    IbufUnderflow
}

match_kind {
    range,
    selector,
#if __TARGET_TOFINO__ != 1
    dleft_hash,
#endif
    atcam_partition_index
}

// ---- Enums

enum MeterType_t {
    PACKETS,
    BYTES
}

enum bit<8> MeterColor_t {
    GREEN = 0,
    YELLOW = 1,
    RED = 3
}

enum CounterType_t {
    PACKETS,
    BYTES,
    PACKETS_AND_BYTES
}

enum SelectorMode_t {
    FAIR,
    RESILIENT
}

enum HashAlgorithm_t {
    IDENTITY,
    RANDOM,
    XOR8,
    XOR16,
    XOR32,
    CRC8,
    CRC16,
    CRC32,
    CRC64,
    CUSTOM
}

enum MathOp_t {
    MUL,
    SQR,
    SQRT,
    DIV,
    RSQR,
    RSQRT
}

// ---- Intrinsic metadata

// The first 8 bytes that an ingress parser receives.
@__intrinsic_metadata
header ingress_intrinsic_metadata_t {
    bit<1> resubmit_flag;
    @padding bit<1> _pad1;
    bit<2> packet_version;
    @padding bit<(4 - PORT_ID_WIDTH % 8)> _pad2;
    PortId_t ingress_port;
    bit<48> ingress_mac_tstamp;         // ns
}

@__intrinsic_metadata
struct ingress_intrinsic_metadata_from_parser_t {
    bit<48> global_tstamp;              // ns
    bit<32> global_ver;
    bit<16> parser_err;
}

// Metadata for the traffic manager. A field that is never assigned is invalid, not 0.
@__intrinsic_metadata
struct ingress_intrinsic_metadata_for_tm_t {
    PortId_t ucast_egress_port;
    bit<1> bypass_egress;
    bit<1> deflect_on_drop;
    bit<3> ingress_cos;
    QueueId_t qid;
    bit<3> icos_for_copy_to_cpu;
    bit<1> copy_to_cpu;
    bit<2> packet_color;
    bit<1> disable_ucast_cutthru;
    bit<1> enable_mcast_cutthru;
    MulticastGroupId_t mcast_grp_a;
    MulticastGroupId_t mcast_grp_b;
    bit<13> level1_mcast_hash;
    bit<13> level2_mcast_hash;
    L1ExclusionId_t level1_exclusion_id;
    L2ExclusionId_t level2_exclusion_id;
    bit<16> rid;
}

#if __TARGET_TOFINO__ != 1
// On Tofino 2, the packet itself selects where and how its mirrored copy leaves.
#define WEIR_MIRROR_FIELDS \
    bit<1> mirror_io_select; \
    bit<13> mirror_hash; \
    bit<3> mirror_ingress_cos; \
    bit<1> mirror_deflect_on_drop; \
    bit<1> mirror_multicast_ctrl; \
    PortId_t mirror_egress_port; \
    QueueId_t mirror_qid; \
    bit<8> mirror_coalesce_length; \
    bit<32> adv_flow_ctl; \
    bit<14> mtu_trunc_len; \
    bit<1> mtu_trunc_err_f;
#else
#define WEIR_MIRROR_FIELDS
#endif

// Bits of drop_ctl: 0 drops unicast and multicast, 1 the copy to the CPU, 2 the mirrored copy.
@__intrinsic_metadata
struct ingress_intrinsic_metadata_for_deparser_t {
    bit<3> drop_ctl;
    DigestType_t digest_type;
    ResubmitType_t resubmit_type;
    MirrorType_t mirror_type;           // 0: none
    WEIR_MIRROR_FIELDS
#if __TARGET_TOFINO__ != 1
    bit<1> pktgen;
    bit<14> pktgen_address;
    bit<10> pktgen_length;
#endif
}

// The bytes that precede a packet in egress.
@__intrinsic_metadata
header egress_intrinsic_metadata_t {
    @padding bit<(8 - PORT_ID_WIDTH % 8)> _pad0;
    PortId_t egress_port;
    @padding bit<5> _pad1;
    bit<19> enq_qdepth;                 // cells
    @padding bit<6> _pad2;
    bit<2> enq_congest_stat;
#if __TARGET_TOFINO__ == 1
    @padding bit<14> _pad3;
    bit<18> enq_tstamp;                 // ns
#else
    bit<32> enq_tstamp;                 // ns
#endif
    @padding bit<5> _pad4;
    bit<19> deq_qdepth;                 // cells
    @padding bit<6> _pad5;
    bit<2> deq_congest_stat;
    bit<8> app_pool_congest_stat;
#if __TARGET_TOFINO__ == 1
    @padding bit<14> _pad6;
    bit<18> deq_timedelta;              // ns
#else
    bit<32> deq_timedelta;              // ns
#endif
    bit<16> egress_rid;
    @padding bit<7> _pad7;
    bit<1> egress_rid_first;
    @padding bit<(8 - QUEUE_ID_WIDTH % 8)> _pad8;
    QueueId_t egress_qid;
    @padding bit<5> _pad9;
    bit<3> egress_cos;
    @padding bit<7> _pad10;
    bit<1> deflection_flag;
    bit<16> pkt_length;                 // bytes
#if __TARGET_TOFINO__ != 1
    @padding bit<8> _pad11;
#endif
}

@__intrinsic_metadata
struct egress_intrinsic_metadata_from_parser_t {
    bit<48> global_tstamp;              // ns
    bit<32> global_ver;
    bit<16> parser_err;
}

// Bits of drop_ctl: 0 drops the packet, 2 the mirrored copy.
@__intrinsic_metadata
struct egress_intrinsic_metadata_for_deparser_t {
    bit<3> drop_ctl;
    MirrorType_t mirror_type;
    bit<1> coalesce_flush;
    bit<7> coalesce_length;
    WEIR_MIRROR_FIELDS
}

@__intrinsic_metadata
struct egress_intrinsic_metadata_for_output_port_t {
    bit<1> capture_tstamp_on_tx;
    bit<1> update_delay_on_tx;
}

// ---- The packet generator's headers

#if __TARGET_TOFINO__ == 1
#define WEIR_PKTGEN_APP @padding bit<3> _pad1; bit<2> pipe_id; bit<3> app_id;
#else
#define WEIR_PKTGEN_APP @padding bit<2> _pad1; bit<2> pipe_id; bit<4> app_id;
#endif

header pktgen_timer_header_t {
    WEIR_PKTGEN_APP
    @padding bit<8> _pad2;
    bit<16> batch_id;
    bit<16> packet_id;
}

header pktgen_port_down_header_t {
    WEIR_PKTGEN_APP
    @padding bit<(16 - PORT_ID_WIDTH % 8)> _pad2;
    PortId_t port_num;
    bit<16> packet_id;
}

header pktgen_recirc_header_t {
    WEIR_PKTGEN_APP
#if __TARGET_TOFINO__ == 1
    bit<24> key;
#else
    @padding bit<8> _pad2;
    bit<16> batch_id;
#endif
    bit<16> packet_id;
}

#if __TARGET_TOFINO__ != 1
header pktgen_deparser_header_t {
    WEIR_PKTGEN_APP
    @padding bit<8> _pad2;
    bit<16> batch_id;
    bit<16> packet_id;
}

header pktgen_pfc_header_t {
    WEIR_PKTGEN_APP
    @padding bit<40> _pad2;
}
#endif

// For timestamps that the MAC inserts on departure.
header ptp_metadata_t {
    bit<8> udp_cksum_byte_offset;
    bit<8> cf_byte_offset;
    bit<48> updated_cf;
}

// ---- Parser and deparser externs

extern Checksum {
    Checksum();
    void add<T>(in T data);
    void subtract<T>(in T data);
    bool verify();
    bit<16> get();
    void subtract_all_and_deposit<T>(out T residual);
    bit<16> update<T>(in T data, @optional in bool zeros_as_ones);
}

#if __TARGET_TOFINO__ == 1
#define WEIR_COUNTER_MASK bit<3>
#else
#define WEIR_COUNTER_MASK bit<8>
#endif

extern ParserCounter {
    ParserCounter();
    void set<T>(in T value);
    // ((field >> rotate) & mask) + add, rotated in 8 bits; the field is at most max
    void set<T>(in T field, in bit<8> max, in bit<8> rotate, in WEIR_COUNTER_MASK mask, in bit<8> add);
#if __TARGET_TOFINO__ != 1
    void push<T>(in T value, @optional bool update_with_top);
    void push<T>(in T field, in bit<8> max, in bit<8> rotate, in bit<8> mask, in bit<8> add,
                 @optional bool update_with_top);
    void pop();
#endif
    bool is_zero();
    bool is_negative();
    void increment(in bit<8> value);
    void decrement(in bit<8> value);
}

extern ParserPriority {
    ParserPriority();
    void set(in bit<3> prio);
}

extern Mirror {
    @deprecated("give the mirror_type")
    Mirror();
    Mirror(MirrorType_t mirror_type);
    void emit(in MirrorId_t session_id);
    void emit<T>(in MirrorId_t session_id, in T hdr);
}

extern Resubmit {
    @deprecated("give the resubmit_type")
    Resubmit();
    Resubmit(ResubmitType_t resubmit_type);
    void emit();
    void emit<T>(in T hdr);
}

extern Digest<T> {
    @deprecated("give the digest_type")
    Digest();
    Digest(DigestType_t digest_type);
    void pack(in T data);
}

#if __TARGET_TOFINO__ != 1
extern Pktgen {
    Pktgen();
    void emit<T>(in T hdr);
}
#endif

// ---- Hashes and random numbers

extern CRCPolynomial<T> {
    CRCPolynomial(T coeff, bool reversed, bool msb, bool extended, T init, T xor);
}

extern Hash<W> {
    Hash(HashAlgorithm_t algo);
    Hash(HashAlgorithm_t algo, CRCPolynomial<_> poly);
    W get<D>(in D data);
}

// Uniformly distributed over all values of W.
extern Random<W> {
    Random();
    W get();
}

// ---- Functions

extern T max<T>(in T t1, in T t2);
extern T min<T>(in T t1, in T t2);
#if __TARGET_TOFINO__ == 1
extern void funnel_shift_right<T>(inout T dst, in T src1, in T src2, int shift_amount);
#else
extern void funnel_shift_right<T>(out T dst, in T src1, in T src2, int shift_amount);
#endif
extern void invalidate<T>(in T field);
extern bool is_validated<T>(in T field);
extern T port_metadata_unpack<T>(packet_in pkt);
extern bit<32> sizeInBits<H>(in H h);
extern bit<32> sizeInBytes<H>(in H h);

// ---- Counters and meters

#if __TARGET_TOFINO__ == 1
#define WEIR_ACCOUNTING
#else
#define WEIR_ACCOUNTING , @optional bool true_egress_accounting
#endif

@noWarn("unused")
extern Counter<W, I> {
    Counter(bit<32> size, CounterType_t type WEIR_ACCOUNTING);
    void count(in I index, @optional in bit<32> adjust_byte_count);
}

@noWarn("unused")
extern DirectCounter<W> {
    DirectCounter(CounterType_t type WEIR_ACCOUNTING);
    void count(@optional in bit<32> adjust_byte_count);
}

extern Meter<I> {
    Meter(bit<32> size, MeterType_t type WEIR_ACCOUNTING);
    Meter(bit<32> size, MeterType_t type, bit<8> red, bit<8> yellow, bit<8> green WEIR_ACCOUNTING);
    bit<8> execute(in I index, in MeterColor_t color, @optional in bit<32> adjust_byte_count);
    bit<8> execute(in I index, @optional in bit<32> adjust_byte_count);
}

extern DirectMeter {
    DirectMeter(MeterType_t type WEIR_ACCOUNTING);
    DirectMeter(MeterType_t type, bit<8> red, bit<8> yellow, bit<8> green WEIR_ACCOUNTING);
    bit<8> execute(in MeterColor_t color, @optional in bit<32> adjust_byte_count);
    bit<8> execute(@optional in bit<32> adjust_byte_count);
}

// Lpf is a low-pass filter, Wred weighted random early detection.
extern Lpf<T, I> {
    Lpf(bit<32> size);
    T execute(in T val, in I index);
}

extern DirectLpf<T> {
    DirectLpf();
    T execute(in T val);
}

extern Wred<T, I> {
    Wred(bit<32> size, bit<8> drop_value, bit<8> no_drop_value);
    bit<8> execute(in T val, in I index);
}

extern DirectWred<T> {
    DirectWred(bit<8> drop_value, bit<8> no_drop_value);
    bit<8> execute(in T val);
}

// ---- Registers

extern Register<T, I> {
    Register(bit<32> size);
    Register(bit<32> size, T initial_value);
    T read(in I index);
    T write(in I index, in T value);
#if __TARGET_TOFINO__ != 1
    void clear(in T value, @optional in T busy);
#endif
}

extern DirectRegister<T> {
    DirectRegister();
    DirectRegister(T initial_value);
    T read();
    T write(in T value);
#if __TARGET_TOFINO__ != 1
    void clear(in T value, @optional in T busy);
#endif
}

// A constant of a RegisterAction that the control plane can change.
extern RegisterParam<T> {
    RegisterParam(T initial_value);
    T read();
}

// A function of one operand, by a table of 16 entries: op(x) = data[x's leading bits] << …
extern MathUnit<T> {
    MathUnit(bool invert, int<2> shift, int<6> scale,
             tuple<bit<8>, bit<8>, bit<8>, bit<8>, bit<8>, bit<8>, bit<8>, bit<8>,
                   bit<8>, bit<8>, bit<8>, bit<8>, bit<8>, bit<8>, bit<8>, bit<8>> data);
    MathUnit(MathOp_t op, int factor);
    MathUnit(MathOp_t op, int A, int B);
    T execute(in T x);
}

// ---- Objects that tables use

extern ActionProfile {
    ActionProfile(bit<32> size);
}

extern ActionSelector {
    ActionSelector(ActionProfile action_profile, Hash<_> hash, SelectorMode_t mode,
                   bit<32> max_group_size, bit<32> num_groups);
    ActionSelector(ActionProfile action_profile, Hash<_> hash, SelectorMode_t mode,
                   Register<bit<1>, _> reg, bit<32> max_group_size, bit<32> num_groups);
    @deprecated("give an ActionProfile")
    ActionSelector(bit<32> size, Hash<_> hash, SelectorMode_t mode);
    @deprecated("give an ActionProfile")
    ActionSelector(bit<32> size, Hash<_> hash, SelectorMode_t mode, Register<bit<1>, _> reg);
}

// Changes which members of a selector are available.
extern SelectorAction {
    SelectorAction(ActionSelector sel);
    bit<1> execute(@optional in bit<32> index);
    @synchronous(execute)
    abstract void apply(inout bit<1> value, @optional out bit<1> rv);
}

extern Atcam {
    Atcam(@optional bit<32> number_partitions);
}

extern Alpm {
    Alpm(@optional bit<32> number_partitions, @optional bit<32> subtrees_per_partition,
         @optional bit<32> atcam_subset_width, @optional bit<32> shift_granularity);
}

#if __TARGET_TOFINO__ != 1
extern IdleTimeout {
    IdleTimeout();
}
#endif

#endif

// Names and numbers that every architecture shares. Nothing here knows an extern or intrinsic metadata.

typedef bit<48> mac_t;
typedef bit<32> ipv4_t;

// Ports are 32 bits wide here; each main.p4 casts to its architecture's width.
typedef bit<32> port_t;

// Nanoseconds, modulo 2^48 (78 hours): compared by the sign of the difference.
typedef bit<48> time_ns_t;

// Bit i is set if the packet belongs to the i-th declared flow.
typedef bit<32> flow_set_t;

typedef bit<32> chunk_t;

// What becomes of the packet. Every stage may only look at a packet whose verdict is still FORWARD.
typedef bit<8> verdict_t;
const verdict_t VERDICT_FORWARD = 0;
const verdict_t VERDICT_DROP = 1;
const verdict_t VERDICT_HOLD = 2;

// Multicast group whose two members are the recirculation port: how a duplicate is made.
const bit<16> DUPLICATE_GROUP = 1;

// Travels with the packet through one pipeline (ingress or egress).
struct metadata_t {
    // Where it came in (ingress; the original port of a recirculated packet) or goes out (egress).
    port_t port;
    time_ns_t now;
    // Written by FlowParser: why a packet could not be parsed as deep as the filters ask, 0 = it could.
    bit<8> parse_note;
    flow_set_t flows;
    bit<16> epoch;

    verdict_t verdict;
    // Sum of the delays that fired.
    time_ns_t delay_ns;
    bool duplicate;

    // Filled by Forward: a port, or a multicast group if that is not 0.
    port_t egress_port;
    bit<16> multicast_group;
}

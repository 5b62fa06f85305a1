// Names and numbers that every architecture shares. Nothing here knows an extern or intrinsic metadata.

typedef bit<48> mac_t;
typedef bit<32> ipv4_t;

// Ports are 32 bits wide here; each main.p4 casts to its architecture's width.
typedef bit<32> port_t;

// Each main.p4 says before, as wide as its architecture can reckon with: time_ns_t, nanoseconds, compared by the sign of the
// difference (bit TIME_SIGN); lease_t, the clock of leases, and LEASE_SIGN; draw_t, a word by which chance decides; workers_t, a
// bitmap of those whose values are summed.

// A set of declared flows, numbered: those that a packet belongs to. 0 is the empty set.
typedef bit<16> class_t;

typedef bit<32> chunk_t;

// What becomes of the packet. Every stage may only look at a packet whose verdict is still FORWARD.
typedef bit<8> verdict_t;
const verdict_t VERDICT_FORWARD = 0;
const verdict_t VERDICT_DROP = 1;
const verdict_t VERDICT_HOLD = 2;

// What the table of MACs says of the packet's way.
typedef bit<2> way_t;
const way_t WAY_UNKNOWN = 0;
const way_t WAY_PORT = 1;
const way_t WAY_GROUP = 2;
// Where it came from, once it is answered here.
const way_t WAY_BACK = 3;

// Multicast group whose two members are the recirculation port: how a duplicate is made.
const bit<16> DUPLICATE_GROUP = 1;

// Travels with the packet through one pipeline (ingress or egress).
struct metadata_t {
    // Where it came in (ingress; the original port of a recirculated packet) or goes out (egress).
    port_t port;
    time_ns_t now;
    // Written by FlowParser: why a packet could not be parsed as deep as the filters ask, 0 = it could.
    bit<8> parse_note;
    class_t class;
    bit<16> epoch;

    verdict_t verdict;
    // Sum of the delays that fired.
    time_ns_t delay_ns;
    bit<1> duplicate;
    // It is delayed, comes twice or is cut short.
    bit<1> detain;
    // Bytes that are left of the packet when it leaves; 0 if all are. In v1model kept by a packet that recirculates.
    @field_list(0)
    bit<16> cut;

    // Of RoCEv2 that is summed: what ingress tells egress (ROCE_NONE …).
    bit<3> roce;

    // Filled by Forward.
    way_t way;
    port_t egress_port;
    bit<16> multicast_group;
}

// Types and constants that all architectures share. Nothing here uses an extern or intrinsic metadata.

typedef bit<48> mac_t;
typedef bit<32> ipv4_t;

// Ports have 32 bits here; each main.p4 casts them to the width of its architecture.
typedef bit<32> port_t;

// Each main.p4 defines, before this file, types as wide as its architecture can compute with: time_ns_t, nanoseconds, compared
// by the sign of the difference (bit TIME_SIGN); lease_t, ticks of a lease's clock, and LEASE_SIGN; draw_t, a random word of
// the decision function (docs/fault-engine.md); workers_t, a bitmap of the children whose values are summed.

// Number of the set of declared flows to which a packet belongs; 0 is the empty set.
typedef bit<16> class_t;

typedef bit<32> chunk_t;

// Decision about the packet. A control may process only a packet whose verdict is still FORWARD.
typedef bit<8> verdict_t;
const verdict_t VERDICT_FORWARD = 0;
const verdict_t VERDICT_DROP = 1;
const verdict_t VERDICT_HOLD = 2;

// How the packet leaves, by the forwarding table.
typedef bit<2> way_t;
const way_t WAY_UNKNOWN = 0;
const way_t WAY_PORT = 1;
const way_t WAY_GROUP = 2;
// By the port of arrival, if this switch answers the packet.
const way_t WAY_BACK = 3;

// The multicast group that makes a duplicate: both its members are the recirculation port.
const bit<16> DUPLICATE_GROUP = 1;

// Metadata of a packet within one pipeline (ingress or egress).
struct metadata_t {
    // In ingress the port of arrival (of a recirculated packet: the original one), in egress the port of departure.
    port_t port;
    time_ns_t now;
    // Set by FlowParser: why it could not parse as deep as the filters need; 0 = it could.
    bit<8> parse_note;
    class_t class;
    bit<16> epoch;

    verdict_t verdict;
    // Sum of the delays of the faults that fired.
    time_ns_t delay_ns;
    bit<1> duplicate;
    // The packet is delayed, duplicated, reordered or cut short, and so recirculates.
    bit<1> detain;
    // Number of bytes to which the packet is cut when it leaves; 0: not cut. v1model keeps it when a packet recirculates.
    @field_list(0)
    bit<16> cut;

    // Class of RoCEv2 that is summed (ROCE_NONE …). Ingress passes it to egress.
    bit<3> roce;

    // Set by Forward.
    way_t way;
    port_t egress_port;
    bit<16> multicast_group;
}

// Forwarding by destination MAC, or, in a wire, by the port that a packet came in by: it need not have a destination. What the
// table says is a matter of main.p4: Tofino looks it up beside all else.

control Forward(in headers_t hdr, inout metadata_t meta) {
    action unicast(port_t port) {
        meta.egress_port = port;
        meta.way = WAY_PORT;
    }
    action multicast(bit<16> group) {
        meta.multicast_group = group;
        meta.way = WAY_GROUP;
    }
    // Of a frame that asks this switch: Aggregate answers it, or nobody does.
    action back() {
        meta.way = WAY_BACK;
    }
    action unknown() {
        meta.way = WAY_UNKNOWN;
    }
#ifdef WIRE
    table wire {
        key = { meta.port: exact; }
        actions = { unicast; unknown; }
        const default_action = unknown();
        size = 16;
    }
    apply {
        wire.apply();
    }
#elif defined(MULTIPATH)
    // 2^32 over the golden ratio.
    const bit<32> FLOW_FACTOR = 0x9E3779B1;
    // Several ways lead to some hosts, and all packets of a flow take one of them: docs/topologies.md says which.
    FlowHash() flow_hash;

    // Of how many ways, and which list of ports; 0 ways: the port is known.
    bit<16> list = 0;
    bit<16> num_ways = 0;
    // Which bits of the hash decide.
    bit<8> turn = 0;
    bit<16> way = 0;
    // The switch of the sender's host and the receiver's, numbered; 0 is none.
    bit<16> origin = 0;
    bit<16> target = 0;

    // By the switches from here on: `port` is that of frames without a flow.
    action spread(port_t port, bit<16> list_, bit<16> num_ways_, bit<8> turn_) {
        meta.egress_port = port;
        meta.way = WAY_PORT;
        list = list_;
        num_ways = num_ways_;
        turn = turn_;
    }
    // By whole ways between two switches: `port` is that of the shortest.
    action between(port_t port, bit<16> target_) {
        meta.egress_port = port;
        meta.way = WAY_PORT;
        target = target_;
    }
    table mac {
        key = { hdr.ethernet.dst: exact; }
        actions = { unicast; multicast; back; spread; between; unknown; }
        const default_action = unknown();
        size = 1024;
    }
    action from(bit<16> origin_) {
        origin = origin_;
    }
    table origins {
        key = { hdr.ethernet.src: exact; }
        actions = { from; NoAction; }
        const default_action = NoAction();
        size = 1024;
    }
    action among(bit<16> list_, bit<16> num_ways_) {
        list = list_;
        num_ways = num_ways_;
    }
    table pairs {
        key = {
            origin: exact;
            target: exact;
        }
        actions = { among; NoAction; }
        const default_action = NoAction();
        size = 4096;
    }
    // A way that does not lead past here has no entry: then the port stays that of the shortest.
    table next_hops {
        key = {
            list: exact;
            way: exact;
        }
        actions = { unicast; NoAction; }
        const default_action = NoAction();
        size = 16384;
    }
    apply {
        mac.apply();
        if (target != 0) {
            origins.apply();
            pairs.apply();
        }
        if (num_ways != 0) {
            // What is no IPv4 goes the first way; so does all of the aggregation protocol, which switches on that way sum.
            bit<32> hash = 0;
            bit<32> ports = 0;
            bool is_flow = hdr.ethernet.ether_type == ETHERTYPE_IPV4 && hdr.ipv4.isValid();
            if (is_flow && hdr.udp.isValid()) {
                ports = hdr.udp.src_port ++ hdr.udp.dst_port;
                is_flow = hdr.udp.dst_port != AGG_UDP_PORT;
            } else if (is_flow && hdr.tcp.isValid()) {
                ports = hdr.tcp.src_port ++ hdr.tcp.dst_port;
            }
            if (is_flow) {
                flow_hash.apply(hdr.ipv4.src, hdr.ipv4.dst, hdr.ipv4.protocol, ports, hash);
            }
            // A product's upper bits depend on all bits below: as a fraction of 1, times the number of ways.
            bit<64> turned = (hash ++ hash) >> turn;
            bit<32> mixed = turned[31:0] * FLOW_FACTOR;
            bit<32> part = (bit<32>) mixed[31:16] * (bit<32>) num_ways;
            way = part[31:16];
            next_hops.apply();
        }
    }
#else
    table mac {
        key = { hdr.ethernet.dst: exact; }
        actions = { unicast; multicast; back; unknown; }
        const default_action = unknown();
        size = 1024;
    }
    apply {
        mac.apply();
    }
#endif
}

// Selects the output by destination MAC. In a wire, the port of arrival selects it, since a packet there needs no destination.
// main.p4 carries the result out: on Tofino, it looks this table up in parallel with all others.

control Forward(in headers_t hdr, inout metadata_t meta) {
    action unicast(port_t port) {
        meta.egress_port = port;
        meta.way = WAY_PORT;
    }
    action multicast(bit<16> group) {
        meta.multicast_group = group;
        meta.way = WAY_GROUP;
    }
    // For a question to this switch (address 06:…): Aggregate answers it; otherwise main.p4 drops it.
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
    // 2^32 divided by the golden ratio.
    const bit<32> FLOW_FACTOR = 0x9E3779B1;
    // Several paths lead to some hosts. All packets of a flow take one of them: docs/topologies.md describes which.
    FlowHash() flow_hash;

    // The list of next hops, and the number of paths to choose from. With 0 paths, the port is already known.
    bit<16> list = 0;
    bit<16> num_ways = 0;
    // The hash is rotated right by this number of bits, so that switches decide by different bits.
    bit<8> turn = 0;
    bit<16> way = 0;
    // Numbers of the switches at the sender's and at the receiver's host; 0 is none.
    bit<16> origin = 0;
    bit<16> target = 0;

    // Each switch on the path chooses the next hop (`ecmp`). `port` is for frames without a flow.
    action spread(port_t port, bit<16> list_, bit<16> num_ways_, bit<8> turn_) {
        meta.egress_port = port;
        meta.way = WAY_PORT;
        list = list_;
        num_ways = num_ways_;
        turn = turn_;
    }
    // A whole path between two switches is chosen (`k_shortest`). `port` is that of the shortest path.
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
    // A path that does not cross this switch has no entry: the port stays that of the shortest path.
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
            // Packets without IPv4 take the first path, and so do aggregation frames: the switches on that path sum them.
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
            // The upper bits of a product depend on all lower ones. As a fraction of 1, times `num_ways`, they give the path.
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

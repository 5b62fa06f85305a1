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

// Forwarding by destination MAC.

control Forward(in headers_t hdr, inout metadata_t meta) {
    action unicast(port_t port) {
        meta.egress_port = port;
    }
    action multicast(bit<16> group) {
        meta.multicast_group = group;
    }
    action unknown() {
        meta.verdict = VERDICT_DROP;
    }
    table mac {
        key = { hdr.ethernet.dst: exact; }
        actions = { unicast; multicast; unknown; }
        const default_action = unknown();
        size = 1024;
    }
    apply {
        mac.apply();
    }
}

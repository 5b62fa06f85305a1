// Forwarding by destination MAC, and the gate that holds delayed packets.

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

// A packet with a hold header goes round until its deadline, and is then as if it had just come in.
control HoldGate(inout headers_t hdr, inout metadata_t meta) {
    apply {
        // The sign of the difference, so that the clock may wrap.
        time_ns_t late = meta.now - hdr.hold.deadline;
        if (late[47:47] == 1) {
            meta.verdict = VERDICT_HOLD;
        } else {
            hdr.hold.setInvalid();
        }
    }
}

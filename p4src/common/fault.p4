// The parts of the fault engine that every program has: docs/fault-engine.md. parser-gen generates its units (engine.p4).

// Sets the step of the timeline in force; in epoch 0 no fault is active. One write starts all faults of a step together.
control Timeline(inout metadata_t meta) {
    action set_epoch(bit<16> epoch) {
        meta.epoch = epoch;
    }
    table epoch {
        actions = { set_epoch; }
        default_action = set_epoch(0);
        size = 1;
    }
    apply {
        epoch.apply();
    }
}

// Ends all faults at a deadline on the switch's own clock, unless the controller moves it; without a deadline, faults stay
// active. A packet after the deadline meets no fault, and is counted.
control Lease(inout metadata_t meta, in lease_t now) {
    lease_t left = 0;
    action unlimited() { }
    action until(lease_t deadline) {
        left = deadline - now;
    }
    table deadline {
        actions = { unlimited; until; }
        default_action = unlimited();
        size = 1;
    }
    Tally() lapsed;
    apply {
        deadline.apply();
        // The sign of the difference is compared, since the clock may wrap.
        if (meta.epoch != 0 && left[LEASE_SIGN:LEASE_SIGN] == 1) {
            meta.epoch = 0;
            lapsed.apply(0);
        }
    }
}

// Adds a hold header to a packet with `detain`. Both copies of a duplicate recirculate at least once.
control Detain(inout headers_t hdr, inout metadata_t meta) {
    apply {
        if (meta.verdict == VERDICT_FORWARD && meta.detain == 1) {
            hdr.hold.setValid();
            hdr.hold.deadline = meta.now + meta.delay_ns;
            hdr.hold.port = meta.port;
            meta.verdict = VERDICT_HOLD;
        }
    }
}

// Recirculates a packet with a hold header until its deadline. Then the packet continues like one that has just arrived.
control HoldGate(inout headers_t hdr, inout metadata_t meta) {
    time_ns_t late = 0;
    action compare() {
        late = meta.now - hdr.hold.deadline;
    }
    apply {
        compare();
        // The sign of the difference is compared, since the clock may wrap.
        if (late[TIME_SIGN:TIME_SIGN] == 1) {
            meta.verdict = VERDICT_HOLD;
        } else {
            hdr.hold.setInvalid();
        }
    }
}

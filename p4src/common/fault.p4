// What the fault engine has in every program: docs/fault-engine.md. Its units are written by parser-gen (engine.p4).

// Which step of the timeline is in force; 0 = no fault is. One write here starts all faults of a step together.
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

// For how long faults hold without a word from the controller: until a deadline on the switch's own clock, and for ever if it
// has set none. A packet that comes later meets no fault, and is counted.
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
        // The sign of the difference, so that the clock may wrap.
        if (meta.epoch != 0 && left[LEASE_SIGN:LEASE_SIGN] == 1) {
            meta.epoch = 0;
            lapsed.apply(0);
        }
    }
}

// Turns "delay" and "duplicate" into a hold header; both copies of a duplicate go round once.
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

// A packet with a hold header goes round until its deadline, and is then as if it had just come in.
control HoldGate(inout headers_t hdr, inout metadata_t meta) {
    time_ns_t late = 0;
    action compare() {
        late = meta.now - hdr.hold.deadline;
    }
    apply {
        compare();
        // The sign of the difference, so that the clock may wrap.
        if (late[TIME_SIGN:TIME_SIGN] == 1) {
            meta.verdict = VERDICT_HOLD;
        } else {
            hdr.hold.setInvalid();
        }
    }
}

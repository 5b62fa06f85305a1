// Who may speak for a job, until when, and how much: docs/jobs.md. Stands before Aggregate in programs that have it
// (GUARDS_JOBS): what it ends reaches no slot and nobody else.
//
// JobRate, JobTally and StrangerTally are what each architecture defines in its guard.p4. A job's cell is its number modulo
// 256: at one switch no two jobs are equal in that (docs/protocol.md, "Frame").

// Of the IPv4 header (RFC 3168): ranks send ECT(0), and what is near its rate becomes CE.
const bit<2> ECN_CAPABLE = 2;
const bit<2> ECN_CONGESTED = 3;

control JobGuard(inout headers_t hdr, inout metadata_t meta, in lease_t now) {
    JobRate() rate;
    JobTally() outcomes;
    StrangerTally() strangers;

    bit<1> is_guarded = 0;
    bit<1> is_sender = 0;
    // How long the lease lasts yet, modulo the clock. Without one, for ever.
    lease_t left = 0;
    guarded_t outcome = GUARDED_PASSED;
    // More than the rate has come of late, and is let through yet.
    bit<1> is_near = 0;

    action unlimited() {
        is_guarded = 1;
    }
    action until(lease_t deadline) {
        is_guarded = 1;
        left = deadline - now;
    }
    action not_guarded() { }
    // An entry outlives its lease, so that late frames of a job that has ended find no other of its number.
    table leases {
        key = { hdr.agg.job: exact; }
        actions = { unlimited; until; not_guarded; }
        const default_action = not_guarded();
        size = 512;
    }

    action sender() {
        is_sender = 1;
    }
    action stranger() { }
    table senders {
        key = {
            hdr.agg.job: exact;
            meta.port: exact;
        }
        actions = { sender; stranger; }
        const default_action = stranger();
        size = 4096;
    }

    apply {
        if (meta.verdict == VERDICT_FORWARD && hdr.agg.isValid()) {
            leases.apply();
            if (is_guarded == 1) {
                senders.apply();
                // A stranger's frames are not the job's: they take nothing of its rate.
                if (is_sender == 0) {
                    outcome = GUARDED_STRANGER;
                    strangers.apply(meta.port);
                } else if (left[LEASE_SIGN:LEASE_SIGN] == 1) {
                    outcome = GUARDED_LAPSED;
                } else {
                    rate.apply(hdr.agg.job[7:0], outcome, is_near);
                }
                if (outcome != GUARDED_PASSED) {
                    meta.verdict = VERDICT_DROP;
                } else if (is_near == 1 && hdr.ipv4.ecn == ECN_CAPABLE) {
                    hdr.ipv4.ecn = ECN_CONGESTED;
                    // One more in the first word is one less in the checksum, in ones' complement (RFC 1624).
                    if (hdr.ipv4.checksum == 0) {
                        hdr.ipv4.checksum = 0xFFFE;
                    } else {
                        hdr.ipv4.checksum = hdr.ipv4.checksum - 1;
                    }
                }
                outcomes.apply(hdr.agg.job[7:0] ++ outcome);
            }
        }
    }
}

// Drops a job's frames that arrive at other ports than the job's, after its lease, or above its rate: docs/jobs.md. Programs
// with GUARDS_JOBS apply it before Aggregate, so a dropped frame reaches no slot and no receiver.
//
// Each architecture defines JobRate, JobTally and StrangerTally in its guard.p4. A job's cell is its number modulo 256: no two
// jobs of a switch are equal in that (docs/protocol.md, "Frame").

// ECN in the IPv4 header (RFC 3168): ranks send ECT(0), and frames near the job's rate are marked CE.
const bit<2> ECN_CAPABLE = 2;
const bit<2> ECN_CONGESTED = 3;

control JobGuard(inout headers_t hdr, inout metadata_t meta, in lease_t now) {
    JobRate() rate;
    JobTally() outcomes;
    StrangerTally() strangers;

    bit<1> is_guarded = 0;
    bit<1> is_sender = 0;
    // Ticks until the lease ends, modulo the clock. Without a lease it stays 0, so the job never expires.
    lease_t left = 0;
    guarded_t outcome = GUARDED_PASSED;
    // The frame exceeds the rate, but still passes, by the burst of the meter.
    bit<1> is_near = 0;

    action unlimited() {
        is_guarded = 1;
    }
    action until(lease_t deadline) {
        is_guarded = 1;
        left = deadline - now;
    }
    action not_guarded() { }
    // An entry outlives its lease, so that no other job takes the number while late frames of the old one may arrive.
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
                // Strangers' frames do not count toward the job's rate.
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
                    // The first word has grown by 1, so the checksum, a ones' complement sum, shrinks by 1 (RFC 1624).
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

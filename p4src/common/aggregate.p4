// Sums gradients in slots: docs/protocol.md, "What a slot does with an UPDATE".
//
// Each architecture defines cell_t, LOCATE, FIRST_STAGE, SlotOwner, WorkerBitmap, SlotFlags, SlotScale, SlotSum and Tally in
// its slots.p4 and externs.p4. A cell is one version of one slot: one entry of each register.
// engine.p4 defines NUM_VALUES, the number of values in a frame: at most as many as one pass of the target sums.
//
// An architecture defines CLOSES if its cells have space for SlotMarks, a register that jobs with deadlines need. A chunk of
// such a job may be closed before all workers have contributed.
//
// Aggregate processes only packets whose verdict is FORWARD.
//
// Tofino has 12 stages, and 32 sums take 8 of them: the inputs of a sum must be known after three (docs/tofino.md). So the
// three tables that match the header (forms, jobs, members) are applied first, before the verdict is tested; a mask is a
// parameter of an action, and is applied there; and tables match the output of a register unchanged.

#if NUM_VALUES == 32
#include "values32.p4"
#elif NUM_VALUES == 64
#include "values64.p4"
#elif NUM_VALUES == 256
#include "values256.p4"
#elif NUM_VALUES == 2048
#include "values2048.p4"
#else
#error NUM_VALUES is 32, 64, 256 or 2048
#endif

// Processes 32 values of one packet with the 32 sums of one cell. `presence` selects: store, add, or read the sum.
control SumBlock(inout values32_h values, in cell_t cell, in presence_t presence) {
    SlotSum() s0; SlotSum() s1; SlotSum() s2; SlotSum() s3;
    SlotSum() s4; SlotSum() s5; SlotSum() s6; SlotSum() s7;
    SlotSum() s8; SlotSum() s9; SlotSum() s10; SlotSum() s11;
    SlotSum() s12; SlotSum() s13; SlotSum() s14; SlotSum() s15;
    SlotSum() s16; SlotSum() s17; SlotSum() s18; SlotSum() s19;
    SlotSum() s20; SlotSum() s21; SlotSum() s22; SlotSum() s23;
    SlotSum() s24; SlotSum() s25; SlotSum() s26; SlotSum() s27;
    SlotSum() s28; SlotSum() s29; SlotSum() s30; SlotSum() s31;
    apply {
        s0.apply(values.v0, cell, presence);
        s1.apply(values.v1, cell, presence);
        s2.apply(values.v2, cell, presence);
        s3.apply(values.v3, cell, presence);
        s4.apply(values.v4, cell, presence);
        s5.apply(values.v5, cell, presence);
        s6.apply(values.v6, cell, presence);
        s7.apply(values.v7, cell, presence);
        s8.apply(values.v8, cell, presence);
        s9.apply(values.v9, cell, presence);
        s10.apply(values.v10, cell, presence);
        s11.apply(values.v11, cell, presence);
        s12.apply(values.v12, cell, presence);
        s13.apply(values.v13, cell, presence);
        s14.apply(values.v14, cell, presence);
        s15.apply(values.v15, cell, presence);
        s16.apply(values.v16, cell, presence);
        s17.apply(values.v17, cell, presence);
        s18.apply(values.v18, cell, presence);
        s19.apply(values.v19, cell, presence);
        s20.apply(values.v20, cell, presence);
        s21.apply(values.v21, cell, presence);
        s22.apply(values.v22, cell, presence);
        s23.apply(values.v23, cell, presence);
        s24.apply(values.v24, cell, presence);
        s25.apply(values.v25, cell, presence);
        s26.apply(values.v26, cell, presence);
        s27.apply(values.v27, cell, presence);
        s28.apply(values.v28, cell, presence);
        s29.apply(values.v29, cell, presence);
        s30.apply(values.v30, cell, presence);
        s31.apply(values.v31, cell, presence);
    }
}

control Aggregate(inout headers_t hdr, inout metadata_t meta) {
    SlotOwner() owner;
#ifdef CLOSES
    SlotMarks() marks;
#endif
    WorkerBitmap() bitmap;
    SlotFlags() flags;
    SlotScale() scale;
    SUM_BLOCKS
    Tally() outcomes;

    form_t form;
    bit<1> has_job;
    bit<1> is_member;
    workers_t all_workers;
    workers_t worker_bit;
    // 1: a complete chunk goes to the switch above in the tree, to which this switch is child `up_worker`. 0: it becomes a SUM.
    bit<1> ascends;
    port_t up_port;
    bit<10> up_worker;
    // Computed from the chunk number: its slot, and `chunk & window_`, which is 0 if the slot's version must be 0.
    bit<16> slot;
    bit<32> odd_window;
    // The cell of the slot and version that the frame names.
    cell_t cell;
    ahead_t ahead = AHEAD_NOTHING;
    presence_t presence = PRESENT_UNKNOWN;
    workers_t present = 0;
    bit<8> merged = 0;
    bit<8> outcome = OUTCOME_PASSED;
#ifdef CLOSES
    // `closes`: chunks of this job may be closed. `opened`: this cell was opened, and no restart has cleared it since.
    bit<1> closes = 0;
    bit<1> opened = 0;
    mark_t mark = MARK_NONE;
#endif

    action form_is(form_t form_) {
        form = form_;
    }
    FIRST_STAGE table forms {
        key = {
            hdr.agg.isValid(): exact;
            hdr.agg.version: ternary;
            hdr.agg.kind: exact;
            hdr.agg.probe: ternary;
            hdr.agg.scale_only: ternary;
            hdr.agg.count: ternary;
            LAST_BLOCK.isValid(): ternary;
        }
        actions = { form_is; }
        const default_action = form_is(FORM_OTHER);
        const entries = {
            (true, AGG_VERSION, AGG_UPDATE, 1, _, 0, _): form_is(FORM_UPDATE);
            (true, AGG_VERSION, AGG_UPDATE, 0, 1, 0, _): form_is(FORM_UPDATE);
            (true, AGG_VERSION, AGG_UPDATE, 0, 0, VALUES_SUMMED, true): form_is(FORM_UPDATE);
            (true, _, AGG_UPDATE, _, _, _, _): form_is(FORM_BAD_UPDATE);
        }
    }

    // The job has `window_` slots (a power of two, at most 65536; `slot_mask_` is one less), from the pair of cells `base_` on.
    // A chunk is complete when its bitmap equals `all_workers_`.
    action aggregate_job(workers_t all_workers_, bit<16> base_, bit<32> window_, bit<16> slot_mask_) {
        has_job = 1;
        ascends = 0;
        all_workers = all_workers_;
        slot = hdr.agg.chunk[15:0] & slot_mask_;
        odd_window = hdr.agg.chunk & window_;
        LOCATE(cell, base_ + hdr.agg.slot, hdr.agg.slot_version);
    }
    // Like aggregate_job, at a switch of a tree that is not the topmost: a complete chunk leaves by port `up_port_`, as an
    // UPDATE of child `up_worker_`.
    action aggregate_part(workers_t all_workers_, bit<16> base_, bit<32> window_, bit<16> slot_mask_,
                          port_t up_port_, bit<10> up_worker_) {
        has_job = 1;
        ascends = 1;
        all_workers = all_workers_;
        slot = hdr.agg.chunk[15:0] & slot_mask_;
        odd_window = hdr.agg.chunk & window_;
        up_port = up_port_;
        up_worker = up_worker_;
        LOCATE(cell, base_ + hdr.agg.slot, hdr.agg.slot_version);
    }
#ifdef CLOSES
    // Like aggregate_job, for a job with deadlines.
    action aggregate_until(workers_t all_workers_, bit<16> base_, bit<32> window_, bit<16> slot_mask_) {
        has_job = 1;
        ascends = 0;
        closes = 1;
        all_workers = all_workers_;
        slot = hdr.agg.chunk[15:0] & slot_mask_;
        odd_window = hdr.agg.chunk & window_;
        LOCATE(cell, base_ + hdr.agg.slot, hdr.agg.slot_version);
    }
#endif
    // An action sets this: a value set before the table would need an earlier stage.
    action no_job() {
        has_job = 0;
    }
    // A job without an entry is not summed here: its frames are forwarded unchanged, and counted (OUTCOME_PASSED).
    FIRST_STAGE table jobs {
        key = { hdr.agg.job: exact; }
        actions = {
            aggregate_job;
            aggregate_part;
#ifdef CLOSES
            aggregate_until;
#endif
            no_job;
        }
        const default_action = no_job();
        size = 64;
    }

    action member(workers_t worker_bit_) {
        is_member = 1;
        worker_bit = worker_bit_;
    }
    action no_member() {
        is_member = 0;
    }
    // The port is part of the key, so a frame from another port cannot name this port's worker. A probe is an update of no
    // worker: its entry has an empty `worker_bit_`.
    FIRST_STAGE table members {
        key = {
            hdr.agg.job: exact;
            hdr.agg.worker: exact;
            hdr.agg.probe: exact;
            meta.port: exact;
        }
        actions = { member; no_member; }
        const default_action = no_member();
        size = 2048;
    }

    action end(bit<8> outcome_) {
        outcome = outcome_;
        meta.verdict = VERDICT_DROP;
    }
    // The frame continues as a SUM. Its payload has changed, so the UDP checksum becomes 0: none (RFC 768).
    action sum(bit<8> outcome_, bit<1> again) {
        outcome = outcome_;
        hdr.agg.kind = AGG_SUM;
        hdr.agg.contributors = (bit<64>) all_workers;
        hdr.agg.deadline = 0;
        hdr.agg.again = again;
        hdr.udp.checksum = 0;
    }
    // Like `sum`, for an UPDATE to 02:…:5e:57:45:j: the SUM goes to 01:…:5e:57:45:j, and so to all. Switches that do not sum
    // forward the former address up and the latter down (docs/protocol.md, "Addresses").
    action sum_to_all(bit<8> outcome_, bit<1> again) {
        outcome = outcome_;
        hdr.ethernet.dst[47:40] = 0x01;
        hdr.agg.kind = AGG_SUM;
        hdr.agg.contributors = (bit<64>) all_workers;
        hdr.agg.deadline = 0;
        hdr.agg.again = again;
        hdr.udp.checksum = 0;
    }
    // Like `sum`, for a probe or a question: the SUM goes back to the frame's sender.
    action sum_back(bit<8> outcome_, bit<1> again) {
        outcome = outcome_;
        hdr.ethernet.dst = hdr.ethernet.src;
        meta.way = WAY_PORT;
        meta.egress_port = meta.port;
        hdr.agg.kind = AGG_SUM;
        hdr.agg.contributors = (bit<64>) all_workers;
        hdr.agg.deadline = 0;
        hdr.agg.again = again;
        hdr.udp.checksum = 0;
    }
    // The frame continues to the switch above, whatever its destination is. The SUM made there goes to that destination.
    action ascend(bit<8> outcome_, bit<1> again) {
        outcome = outcome_;
        hdr.agg.contributors = (bit<64>) all_workers;
        hdr.agg.deadline = 0;
        hdr.agg.again = again;
        hdr.agg.worker = up_worker;
        hdr.udp.checksum = 0;
        meta.way = WAY_PORT;
        meta.egress_port = up_port;
    }
    // Answers a probe of a chunk that lacks contributions. `again` is 0: with 1, the answer would mean a complete chunk.
    action tell() {
        outcome = OUTCOME_PROBED;
        hdr.ethernet.dst = hdr.ethernet.src;
        meta.way = WAY_PORT;
        meta.egress_port = meta.port;
        hdr.agg.kind = AGG_SUM;
        hdr.agg.contributors = (bit<64>) present;
        hdr.agg.deadline = 0;
        hdr.agg.again = 0;
        hdr.udp.checksum = 0;
    }
    // Answers a probe of a chunk older than its cell's owner: `contributors` is `ahead`. `scale`, unused in a probe, is 1.
    action tell_stale() {
        outcome = OUTCOME_PROBED;
        hdr.ethernet.dst = hdr.ethernet.src;
        meta.way = WAY_PORT;
        meta.egress_port = meta.port;
        hdr.agg.kind = AGG_SUM;
        hdr.agg.contributors = (bit<64>) ahead;
        hdr.agg.deadline = 0;
        hdr.agg.again = 0;
        hdr.agg.scale = 1;
        hdr.udp.checksum = 0;
    }
#ifdef CLOSES
    // Closes the chunk without the missing workers: the SUM of the contributors so far goes to all.
    action close_to_all() {
        outcome = OUTCOME_CLOSED;
        hdr.ethernet.dst[47:40] = 0x01;
        hdr.agg.kind = AGG_SUM;
        hdr.agg.contributors = (bit<64>) present;
        hdr.agg.deadline = 0;
        hdr.agg.again = 0;
        hdr.udp.checksum = 0;
    }
    // Sends the closed chunk's sum to one worker only: the sender of a late UPDATE, a probe or a question.
    action tell_closed(bit<8> outcome_, bit<1> again) {
        outcome = outcome_;
        hdr.ethernet.dst = hdr.ethernet.src;
        meta.way = WAY_PORT;
        meta.egress_port = meta.port;
        hdr.agg.kind = AGG_SUM;
        hdr.agg.contributors = (bit<64>) present;
        hdr.agg.deadline = 0;
        hdr.agg.again = again;
        hdr.udp.checksum = 0;
    }
    table when_closed {
        key = {
            hdr.agg.probe: exact;
            mark: ternary;
            meta.way: ternary;
        }
        actions = { close_to_all; tell_closed; }
        const default_action = tell_closed(OUTCOME_LATE, 1);
        const entries = {
            (1, _, _): tell_closed(OUTCOME_PROBED, 1);
            (0, MARK_CLOSES, WAY_GROUP): close_to_all();
            (0, MARK_CLOSES, _): tell_closed(OUTCOME_CLOSED, 0);
        }
    }
#endif
    table when_complete {
        key = {
            ascends: exact;
            hdr.agg.probe: exact;
            meta.way: ternary;
            presence: ternary;
        }
        actions = { sum; sum_to_all; sum_back; ascend; }
        const default_action = sum(OUTCOME_AGAIN, 1);
        const entries = {
            (0, 1, _, _): sum_back(OUTCOME_PROBED, 1);
            (0, 0, WAY_GROUP, PRESENT_NOBODY): sum_to_all(OUTCOME_COMPLETED, 0);
            (0, 0, WAY_GROUP, PRESENT_OTHERS): sum_to_all(OUTCOME_COMPLETED, 0);
            (0, 0, WAY_GROUP, _): sum_to_all(OUTCOME_AGAIN, 1);
            (0, 0, WAY_BACK, PRESENT_NOBODY): sum_back(OUTCOME_COMPLETED, 0);
            (0, 0, WAY_BACK, PRESENT_OTHERS): sum_back(OUTCOME_COMPLETED, 0);
            (0, 0, WAY_BACK, _): sum_back(OUTCOME_AGAIN, 1);
            (0, 0, _, PRESENT_NOBODY): sum(OUTCOME_COMPLETED, 0);
            (0, 0, _, PRESENT_OTHERS): sum(OUTCOME_COMPLETED, 0);
            (1, 1, _, _): ascend(OUTCOME_PROBED, 1);
            (1, 0, _, PRESENT_NOBODY): ascend(OUTCOME_COMPLETED, 0);
            (1, 0, _, PRESENT_OTHERS): ascend(OUTCOME_COMPLETED, 0);
            (1, 0, _, _): ascend(OUTCOME_AGAIN, 1);
        }
    }
    table when_incomplete {
        key = {
            hdr.agg.probe: exact;
            presence: ternary;
        }
        actions = { end; tell; }
        const default_action = end(OUTCOME_DUPLICATE);
        const entries = {
            (1, _): tell();
            (0, PRESENT_NOBODY): end(OUTCOME_ABSORBED);
            (0, PRESENT_OTHERS): end(OUTCOME_ABSORBED);
        }
    }
    table when_stale {
        key = { hdr.agg.probe: exact; }
        actions = { end; tell_stale; }
        const default_action = end(OUTCOME_STALE);
        const entries = {
            1: tell_stale();
        }
    }
    action take_flags() {
        hdr.agg.non_finite = merged[0:0];
    }

    apply {
        forms.apply();
        jobs.apply();
        members.apply();
        if (meta.verdict == VERDICT_FORWARD && form != FORM_OTHER) {
            if (has_job == 1) {
                // Slot and version follow from the chunk number; a frame with another slot or version is malformed.
                if (form != FORM_UPDATE) {
                    end(OUTCOME_MALFORMED);
                } else if (hdr.agg.slot != slot) {
                    end(OUTCOME_MALFORMED);
                } else if (hdr.agg.slot_version == 1 && odd_window == 0) {
                    end(OUTCOME_MALFORMED);
                } else if (hdr.agg.slot_version == 0 && odd_window != 0) {
                    end(OUTCOME_MALFORMED);
                } else if (is_member == 0) {
                    end(OUTCOME_FOREIGN);
                } else {
                    owner.apply(cell, hdr.agg.chunk, ahead);
#ifdef CLOSES
                    if (closes == 1) {
                        marks.apply(cell, hdr.agg.deadline, hdr.agg.probe, ahead, mark, opened);
                        if (mark == MARK_CLOSED || mark == MARK_FORGOTTEN) {
                            worker_bit = 0;
                        }
                    }
#endif
                    bitmap.apply(cell, worker_bit, ahead, presence, present);
#ifdef CLOSES
                    if (mark == MARK_CLOSED) {
                        presence = PRESENT_ITSELF;
                    } else if (mark == MARK_FORGOTTEN && hdr.agg.probe == 0) {
                        presence = PRESENT_UNKNOWN;
                    }
#endif
                    if (ahead[31:31] == 1) {
                        when_stale.apply();
#ifdef CLOSES
                    } else if (mark == MARK_CLOSED || mark == MARK_CLOSES) {
                        when_closed.apply();
                    } else if (mark == MARK_FORGOTTEN && hdr.agg.probe == 0) {
                        end(OUTCOME_FORGOTTEN);
#endif
                    } else if (present == all_workers) {
                        when_complete.apply();
                    } else {
                        when_incomplete.apply();
                    }
#ifdef CLOSES
                    // The answer to a probe shows by TIMED whether the cell is opened, and so whether the chunk may be closed.
                    if (hdr.agg.probe == 1 && ahead[31:31] == 0) {
                        hdr.agg.deadline = 2w0 ++ opened;
                    }
#endif
                    flags.apply(cell, hdr.agg.non_finite, presence, merged);
                    take_flags();
                    scale.apply(cell, presence, hdr.agg.next_scale);
                    if (hdr.agg.scale_only == 0 && hdr.agg.probe == 0) {
                        APPLY_SUM_BLOCKS
                    }
                }
            }
            outcomes.apply(outcome);
        }
    }
}

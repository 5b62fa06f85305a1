// Sums gradients in slots: docs/protocol.md, "What a slot does with an UPDATE".
//
// SlotOwner, WorkerBitmap, SlotFlags, SlotScale, SlotSum and Tally are small controls that each architecture
// defines in its externs.p4. The same cell of all of them together is one version of one slot.
// values32.p4, values64.p4 and values256.p4 say how many blocks of values are summed; main.p4 includes one of them.
//
// Acts on packets whose verdict is FORWARD, and on no others.
//
// Tofino has 12 stages, and 32 sums take 8 of them: what a sum waits for must be known after three (docs/tofino.md). So
// masks come from the table and are applied in its action, and both tables are looked up at once, before the verdict matters.

// 32 values of one packet against 32 values of one cell.
control SumBlock(inout values32_h values, in cell_index_t cell, in slot_op_t op) {
    SlotSum() s0; SlotSum() s1; SlotSum() s2; SlotSum() s3;
    SlotSum() s4; SlotSum() s5; SlotSum() s6; SlotSum() s7;
    SlotSum() s8; SlotSum() s9; SlotSum() s10; SlotSum() s11;
    SlotSum() s12; SlotSum() s13; SlotSum() s14; SlotSum() s15;
    SlotSum() s16; SlotSum() s17; SlotSum() s18; SlotSum() s19;
    SlotSum() s20; SlotSum() s21; SlotSum() s22; SlotSum() s23;
    SlotSum() s24; SlotSum() s25; SlotSum() s26; SlotSum() s27;
    SlotSum() s28; SlotSum() s29; SlotSum() s30; SlotSum() s31;
    apply {
        s0.apply(values.v0, cell, op);
        s1.apply(values.v1, cell, op);
        s2.apply(values.v2, cell, op);
        s3.apply(values.v3, cell, op);
        s4.apply(values.v4, cell, op);
        s5.apply(values.v5, cell, op);
        s6.apply(values.v6, cell, op);
        s7.apply(values.v7, cell, op);
        s8.apply(values.v8, cell, op);
        s9.apply(values.v9, cell, op);
        s10.apply(values.v10, cell, op);
        s11.apply(values.v11, cell, op);
        s12.apply(values.v12, cell, op);
        s13.apply(values.v13, cell, op);
        s14.apply(values.v14, cell, op);
        s15.apply(values.v15, cell, op);
        s16.apply(values.v16, cell, op);
        s17.apply(values.v17, cell, op);
        s18.apply(values.v18, cell, op);
        s19.apply(values.v19, cell, op);
        s20.apply(values.v20, cell, op);
        s21.apply(values.v21, cell, op);
        s22.apply(values.v22, cell, op);
        s23.apply(values.v23, cell, op);
        s24.apply(values.v24, cell, op);
        s25.apply(values.v25, cell, op);
        s26.apply(values.v26, cell, op);
        s27.apply(values.v27, cell, op);
        s28.apply(values.v28, cell, op);
        s29.apply(values.v29, cell, op);
        s30.apply(values.v30, cell, op);
        s31.apply(values.v31, cell, op);
    }
}

control Aggregate(inout headers_t hdr, inout metadata_t meta) {
    SlotOwner() owner;
    WorkerBitmap() bitmap;
    SlotFlags() flags;
    SlotScale() scale;
    SUM_BLOCKS
    Tally() outcomes;

    bit<32> all_workers = 0;
    bit<32> worker_bit = 0;
    // What the chunk number says of slot and version.
    bit<32> slot = 0;
    bit<32> odd_window = 0;
    // Which pair of cells the frame's slot is.
    bit<32> pair = 0;

    // `window_` slots (a power of two, at most 65536; `slot_mask_` is one less) of this job start at cell `base_` (even: a slot
    // is a pair of cells); a chunk is complete when every bit of `all_workers_` is there.
    action aggregate_job(bit<32> all_workers_, cell_index_t base_, bit<32> window_, bit<32> slot_mask_) {
        all_workers = all_workers_;
        slot = hdr.agg.chunk & slot_mask_;
        odd_window = hdr.agg.chunk & window_;
        pair = (bit<32>) base_[31:1] + (bit<32>) hdr.agg.slot;
    }
    // A job without an entry is not summed here: its frames pass, and are counted.
    table jobs {
        key = { hdr.agg.job: exact; }
        actions = { aggregate_job; NoAction; }
        const default_action = NoAction();
        size = 64;
    }

    action member(bit<32> worker_bit_) {
        worker_bit = worker_bit_;
    }
    // The port is part of the key: nobody can speak for another port's worker.
    table members {
        key = {
            hdr.agg.job: exact;
            hdr.agg.worker: exact;
            meta.port: exact;
        }
        actions = { member; NoAction; }
        const default_action = NoAction();
        size = 1024;
    }

    apply {
        if (hdr.agg.isValid() && hdr.agg.kind == AGG_UPDATE) {
            bool has_job = jobs.apply().hit;
            bool is_member = members.apply().hit;
            bit<8> outcome = OUTCOME_PASSED;
            if (meta.verdict == VERDICT_FORWARD && has_job) {
                // The slot and its version follow from the chunk number; a frame that says otherwise is not ours.
                bool has_version = hdr.agg.flags & AGG_SLOT_VERSION != 0;
                bool scale_only = hdr.agg.flags & AGG_SCALE_ONLY != 0;
                bool well_formed =
                    hdr.agg.version == AGG_VERSION
                    && hdr.agg.slot == (bit<16>) slot
                    && has_version == (odd_window != 0)
                    && ((scale_only && hdr.agg.count == 0)
                        || (!scale_only && hdr.agg.count == VALUES_SUMMED && LAST_BLOCK.isValid()));

                if (!well_formed) {
                    outcome = OUTCOME_MALFORMED;
                } else if (!is_member) {
                    outcome = OUTCOME_FOREIGN;
                } else {
                    cell_index_t cell = pair[30:0] ++ hdr.agg.flags[7:7];
                    age_t age;
                    owner.apply(cell, hdr.agg.chunk, age);
                    if (age == AGE_STALE) {
                        outcome = OUTCOME_STALE;
                    } else {
                        slot_op_t op;
                        bit<32> present;
                        bitmap.apply(cell, worker_bit, age == AGE_NEW, op, present);
                        bool complete = present == all_workers;
                        if (op == SLOT_READ && !complete) {
                            outcome = OUTCOME_DUPLICATE;
                        } else {
                            flags.apply(cell, hdr.agg.flags & AGG_NON_FINITE, op, hdr.agg.flags);
                            scale.apply(cell, op, hdr.agg.next_scale);
                            if (!scale_only) {
                                APPLY_SUM_BLOCKS
                            }
                            outcome = OUTCOME_ABSORBED;
                            if (complete) {
                                outcome = OUTCOME_COMPLETED;
                                if (op == SLOT_READ) {
                                    outcome = OUTCOME_AGAIN;
                                    hdr.agg.flags = hdr.agg.flags | AGG_AGAIN;
                                }
                                if (scale_only) {
                                    hdr.agg.flags = hdr.agg.flags | AGG_SCALE_ONLY;
                                }
                                if (has_version) {
                                    hdr.agg.flags = hdr.agg.flags | AGG_SLOT_VERSION;
                                }
                                hdr.agg.kind = AGG_SUM;
                                hdr.agg.contributors = all_workers;
                                // The payload changed; 0 means that the sender made no checksum (RFC 768).
                                hdr.udp.checksum = 0;
                            }
                        }
                    }
                }
            }
            if (meta.verdict == VERDICT_FORWARD) {
                outcomes.apply(outcome);
                if (outcome != OUTCOME_COMPLETED && outcome != OUTCOME_AGAIN && outcome != OUTCOME_PASSED) {
                    meta.verdict = VERDICT_DROP;
                }
            }
        }
    }
}

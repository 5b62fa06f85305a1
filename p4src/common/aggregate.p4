// Sums gradients in slots: docs/protocol.md, "What a slot does with an UPDATE".
//
// SlotOwner, WorkerBitmap, SlotFlags, SlotScale, SlotSum and Tally are small controls that each architecture
// defines in its externs.p4. The same cell of all of them together is one version of one slot.

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
    SumBlock() sum0; SumBlock() sum1; SumBlock() sum2; SumBlock() sum3;
    SumBlock() sum4; SumBlock() sum5; SumBlock() sum6; SumBlock() sum7;
    Tally() outcomes;

    bit<32> all_workers = 0;
    cell_index_t base = 0;
    bit<32> window = 0;
    bit<32> worker_bit = 0;

    // `window` slots (a power of two) of this job start at cell `base`; the job is complete when every bit of
    // `all_workers` is there.
    action aggregate_job(bit<32> all_workers_, cell_index_t base_, bit<32> window_) {
        all_workers = all_workers_;
        base = base_;
        window = window_;
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
            bit<8> outcome = OUTCOME_PASSED;
            if (jobs.apply().hit) {
                // The slot and its version follow from the chunk number; a frame that says otherwise is not ours.
                bit<32> slot = hdr.agg.chunk & (window - 1);
                bit<32> version = 0;
                if (hdr.agg.chunk & window != 0) {
                    version = 1;
                }
                bool has_version = hdr.agg.flags & AGG_SLOT_VERSION != 0;
                bool scale_only = hdr.agg.flags & AGG_SCALE_ONLY != 0;
                bool well_formed =
                    hdr.agg.version == AGG_VERSION
                    && hdr.agg.slot == (bit<16>) slot
                    && has_version == (version == 1)
                    && ((scale_only && hdr.agg.count == 0)
                        || (!scale_only && hdr.agg.count == AGG_NUM_VALUES && hdr.values7.isValid()));

                if (!well_formed) {
                    outcome = OUTCOME_MALFORMED;
                } else if (!members.apply().hit) {
                    outcome = OUTCOME_FOREIGN;
                } else {
                    cell_index_t cell = base + (slot << 1) + version;
                    age_t age;
                    owner.apply(cell, hdr.agg.chunk, age);
                    if (age == AGE_STALE) {
                        outcome = OUTCOME_STALE;
                    } else {
                        bit<32> before;
                        bitmap.apply(cell, worker_bit, age == AGE_NEW, before);
                        // An empty bitmap is taken over too: what an earlier job left in the cell must not be added to.
                        slot_op_t op = SLOT_MERGE;
                        if (before == 0) {
                            op = SLOT_SET;
                        } else if (before & worker_bit != 0) {
                            op = SLOT_READ;
                        }
                        bool complete = before | worker_bit == all_workers;
                        if (op == SLOT_READ && !complete) {
                            outcome = OUTCOME_DUPLICATE;
                        } else {
                            flags.apply(cell, hdr.agg.flags & AGG_NON_FINITE, op, hdr.agg.flags);
                            scale.apply(cell, op, hdr.agg.next_scale);
                            if (!scale_only) {
                                sum0.apply(hdr.values0, cell, op);
                                sum1.apply(hdr.values1, cell, op);
                                sum2.apply(hdr.values2, cell, op);
                                sum3.apply(hdr.values3, cell, op);
                                sum4.apply(hdr.values4, cell, op);
                                sum5.apply(hdr.values5, cell, op);
                                sum6.apply(hdr.values6, cell, op);
                                sum7.apply(hdr.values7, cell, op);
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
            outcomes.apply(outcome);
            if (outcome != OUTCOME_COMPLETED && outcome != OUTCOME_AGAIN && outcome != OUTCOME_PASSED) {
                meta.verdict = VERDICT_DROP;
            }
        }
    }
}

// What common/ needs of the architecture, in Tofino's externs: one stateful ALU execution per packet and register.

#define NUM_CELLS (2 * NUM_SLOTS)

struct owner_t {
    bit<32> chunk;
    // By how much the last packet was ahead: what comes out of a register must have been written to it.
    bit<32> ahead;
}

control SlotOwner(in cell_index_t cell, in chunk_t chunk, out age_t age) {
    Register<owner_t, cell_index_t>(NUM_CELLS, { 0, 0 }) owners;
    RegisterAction<owner_t, cell_index_t, bit<32>>(owners) take_over = {
        void apply(inout owner_t owner, out bit<32> ahead) {
            owner.ahead = chunk - owner.chunk;
            if ((int<32>) (chunk - owner.chunk) > 0) {
                owner.chunk = chunk;
            }
            ahead = owner.ahead;
        }
    };
    apply {
        bit<32> ahead = take_over.execute(cell);
        if (ahead == 0) {
            age = AGE_SAME;
        } else if (ahead[31:31] == 0) {
            age = AGE_NEW;
        } else {
            age = AGE_STALE;
        }
    }
}

// What the bitmap says of a worker: it is the first, it is new, or (the worker's own bit) it was here before.
const bit<32> SEEN_NOBODY = 0xFFFFFFFF;
const bit<32> SEEN_OTHERS = 0;

struct seen_t {
    bit<32> workers;
    bit<32> verdict;
}

// Two registers hold the same bitmap: one tells the verdict, the other who is present, in the same stage.
control WorkerBitmap(in cell_index_t cell, in bit<32> worker_bit, in bool taken_over,
                     out slot_op_t op, out bit<32> present) {
    Register<seen_t, cell_index_t>(NUM_CELLS, { 0, 0 }) bitmaps;
    RegisterAction<seen_t, cell_index_t, bit<32>>(bitmaps) start = {
        void apply(inout seen_t seen, out bit<32> verdict) {
            seen.verdict = SEEN_NOBODY;
            seen.workers = worker_bit;
            verdict = seen.verdict;
        }
    };
    RegisterAction<seen_t, cell_index_t, bit<32>>(bitmaps) add = {
        void apply(inout seen_t seen, out bit<32> verdict) {
            if (seen.workers == 0) {
                seen.verdict = SEEN_NOBODY;
            } else {
                seen.verdict = seen.workers & worker_bit;
            }
            seen.workers = seen.workers | worker_bit;
            verdict = seen.verdict;
        }
    };
    Register<bit<32>, cell_index_t>(NUM_CELLS, 0) arrivals;
    RegisterAction<bit<32>, cell_index_t, bit<32>>(arrivals) start_arrivals = {
        void apply(inout bit<32> workers, out bit<32> now) {
            workers = worker_bit;
            now = workers;
        }
    };
    RegisterAction<bit<32>, cell_index_t, bit<32>>(arrivals) add_arrival = {
        void apply(inout bit<32> workers, out bit<32> now) {
            workers = workers | worker_bit;
            now = workers;
        }
    };
    apply {
        bit<32> verdict;
        if (taken_over) {
            verdict = start.execute(cell);
            present = start_arrivals.execute(cell);
        } else {
            verdict = add.execute(cell);
            present = add_arrival.execute(cell);
        }
        if (verdict == SEEN_NOBODY) {
            op = SLOT_SET;
        } else if (verdict == SEEN_OTHERS) {
            op = SLOT_MERGE;
        } else {
            op = SLOT_READ;
        }
    }
}

control SlotFlags(in cell_index_t cell, in bit<8> added, in slot_op_t op, out bit<8> merged) {
    Register<bit<8>, cell_index_t>(NUM_CELLS, 0) flags;
    RegisterAction<bit<8>, cell_index_t, bit<8>>(flags) start = {
        void apply(inout bit<8> stored, out bit<8> now) {
            stored = added;
            now = stored;
        }
    };
    RegisterAction<bit<8>, cell_index_t, bit<8>>(flags) add = {
        void apply(inout bit<8> stored, out bit<8> now) {
            stored = stored | added;
            now = stored;
        }
    };
    RegisterAction<bit<8>, cell_index_t, bit<8>>(flags) look = {
        void apply(inout bit<8> stored, out bit<8> now) {
            now = stored;
        }
    };
    apply {
        if (op == SLOT_SET) {
            merged = start.execute(cell);
        } else if (op == SLOT_MERGE) {
            merged = add.execute(cell);
        } else {
            merged = look.execute(cell);
        }
    }
}

control SlotScale(in cell_index_t cell, in slot_op_t op, inout bit<8> scale) {
    Register<bit<8>, cell_index_t>(NUM_CELLS, 0) scales;
    RegisterAction<bit<8>, cell_index_t, bit<8>>(scales) start = {
        void apply(inout bit<8> stored, out bit<8> now) {
            stored = scale;
            now = stored;
        }
    };
    RegisterAction<bit<8>, cell_index_t, bit<8>>(scales) raise = {
        void apply(inout bit<8> stored, out bit<8> now) {
            if (scale > stored) {
                stored = scale;
            }
            now = stored;
        }
    };
    RegisterAction<bit<8>, cell_index_t, bit<8>>(scales) look = {
        void apply(inout bit<8> stored, out bit<8> now) {
            now = stored;
        }
    };
    apply {
        if (op == SLOT_SET) {
            scale = start.execute(cell);
        } else if (op == SLOT_MERGE) {
            scale = raise.execute(cell);
        } else {
            scale = look.execute(cell);
        }
    }
}

control SlotSum(inout bit<32> value, in cell_index_t cell, in slot_op_t op) {
    Register<bit<32>, cell_index_t>(NUM_CELLS, 0) sums;
    RegisterAction<bit<32>, cell_index_t, bit<32>>(sums) start = {
        void apply(inout bit<32> sum, out bit<32> now) {
            sum = value;
            now = sum;
        }
    };
    RegisterAction<bit<32>, cell_index_t, bit<32>>(sums) add = {
        void apply(inout bit<32> sum, out bit<32> now) {
            sum = sum + value;
            now = sum;
        }
    };
    RegisterAction<bit<32>, cell_index_t, bit<32>>(sums) look = {
        void apply(inout bit<32> sum, out bit<32> now) {
            now = sum;
        }
    };
    apply {
        if (op == SLOT_SET) {
            value = start.execute(cell);
        } else if (op == SLOT_MERGE) {
            value = add.execute(cell);
        } else {
            value = look.execute(cell);
        }
    }
}

control Tally(in bit<8> index) {
    Counter<bit<64>, bit<8>>(64, CounterType_t.PACKETS) cells;
    apply {
        cells.count(index);
    }
}

control Ordinal(in bit<8> cell, in bit<32> wrap, out bit<32> ordinal) {
    Register<bit<32>, bit<8>>(16, 0) ordinals;
    RegisterAction<bit<32>, bit<8>, bit<32>>(ordinals) next = {
        void apply(inout bit<32> last, out bit<32> now) {
            // `last` starts again at 1 after `wrap`, so that the number comes out as it is stored.
            if (last == wrap) {
                last = 1;
            } else {
                last = last + 1;
            }
            now = last;
        }
    };
    apply {
        ordinal = next.execute(cell);
    }
}

control ChannelState(in bit<8> cell, in bool to_bad, in bool to_good, out bit<1> bad) {
    // A cell of one bit could be set and cleared, but not flipped.
    Register<bit<8>, bit<8>>(16, 0) states;
    RegisterAction<bit<8>, bit<8>, bit<8>>(states) set = {
        void apply(inout bit<8> state, out bit<8> now) {
            state = 1;
            now = state;
        }
    };
    RegisterAction<bit<8>, bit<8>, bit<8>>(states) clear = {
        void apply(inout bit<8> state, out bit<8> now) {
            state = 0;
            now = state;
        }
    };
    RegisterAction<bit<8>, bit<8>, bit<8>>(states) flip = {
        void apply(inout bit<8> state, out bit<8> now) {
            state = state ^ 1;
            now = state;
        }
    };
    RegisterAction<bit<8>, bit<8>, bit<8>>(states) look = {
        void apply(inout bit<8> state, out bit<8> now) {
            now = state;
        }
    };
    apply {
        bit<8> state;
        if (to_bad && to_good) {
            state = flip.execute(cell);
        } else if (to_bad) {
            state = set.execute(cell);
        } else if (to_good) {
            state = clear.execute(cell);
        } else {
            state = look.execute(cell);
        }
        bad = state[0:0];
    }
}

control Crc32(in bit<32> first, in bit<32> second, out bit<32> crc) {
    Hash<bit<32>>(HashAlgorithm_t.CRC32) hash;
    apply {
        crc = hash.get({ first, second });
    }
}

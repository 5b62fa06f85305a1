// What common/ needs of the architecture, in Tofino's externs: one stateful ALU execution per packet and register.

#define NUM_CELLS (2 * NUM_SLOTS)

control SlotOwner(in cell_index_t cell, in chunk_t chunk, out age_t age) {
    Register<bit<32>, cell_index_t>(NUM_CELLS, 0) owners;
    // The signed difference decides; the owner before is what comes out.
    RegisterAction<bit<32>, cell_index_t, bit<32>>(owners) take_over = {
        void apply(inout bit<32> owner, out bit<32> before) {
            before = owner;
            if ((int<32>) (chunk - owner) > 0) {
                owner = chunk;
            }
        }
    };
    apply {
        bit<32> ahead = chunk - take_over.execute(cell);
        if (ahead == 0) {
            age = AGE_SAME;
        } else if (ahead[31:31] == 0) {
            age = AGE_NEW;
        } else {
            age = AGE_STALE;
        }
    }
}

control WorkerBitmap(in cell_index_t cell, in bit<32> worker_bit, in bool taken_over, out bit<32> before) {
    Register<bit<32>, cell_index_t>(NUM_CELLS, 0) bitmaps;
    RegisterAction<bit<32>, cell_index_t, bit<32>>(bitmaps) start = {
        void apply(inout bit<32> bitmap, out bit<32> was) {
            was = 0;
            bitmap = worker_bit;
        }
    };
    RegisterAction<bit<32>, cell_index_t, bit<32>>(bitmaps) add = {
        void apply(inout bit<32> bitmap, out bit<32> was) {
            was = bitmap;
            bitmap = bitmap | worker_bit;
        }
    };
    apply {
        if (taken_over) {
            before = start.execute(cell);
        } else {
            before = add.execute(cell);
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
    Register<bit<1>, bit<8>>(16, 0) states;
    RegisterAction<bit<1>, bit<8>, bit<1>>(states) set = {
        void apply(inout bit<1> state, out bit<1> now) {
            state = 1;
            now = state;
        }
    };
    RegisterAction<bit<1>, bit<8>, bit<1>>(states) clear = {
        void apply(inout bit<1> state, out bit<1> now) {
            state = 0;
            now = state;
        }
    };
    RegisterAction<bit<1>, bit<8>, bit<1>>(states) flip = {
        void apply(inout bit<1> state, out bit<1> now) {
            state = ~state;
            now = state;
        }
    };
    RegisterAction<bit<1>, bit<8>, bit<1>>(states) look = {
        void apply(inout bit<1> state, out bit<1> now) {
            now = state;
        }
    };
    apply {
        if (to_bad && to_good) {
            bad = flip.execute(cell);
        } else if (to_bad) {
            bad = set.execute(cell);
        } else if (to_good) {
            bad = clear.execute(cell);
        } else {
            bad = look.execute(cell);
        }
    }
}

control Crc32(in bit<32> first, in bit<32> second, out bit<32> crc) {
    Hash<bit<32>>(HashAlgorithm_t.CRC32) hash;
    apply {
        crc = hash.get({ first, second });
    }
}

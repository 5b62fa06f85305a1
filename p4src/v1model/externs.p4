// What common/ needs of the architecture, in v1model's externs. Registers are read and written in @atomic blocks.

#define NUM_CELLS (2 * NUM_SLOTS)

control SlotOwner(in cell_index_t cell, in chunk_t chunk, out age_t age) {
    register<chunk_t>(NUM_CELLS) owners;
    apply {
        @atomic {
            chunk_t owner;
            owners.read(owner, cell);
            bit<32> ahead = chunk - owner;
            if (ahead == 0) {
                age = AGE_SAME;
            } else if (ahead[31:31] == 0) {
                age = AGE_NEW;
                owners.write(cell, chunk);
            } else {
                age = AGE_STALE;
            }
        }
    }
}

control WorkerBitmap(in cell_index_t cell, in bit<32> worker_bit, in bool taken_over,
                     out slot_op_t op, out bit<32> present) {
    register<bit<32>>(NUM_CELLS) bitmaps;
    apply {
        @atomic {
            bit<32> before;
            bitmaps.read(before, cell);
            if (taken_over) {
                before = 0;
            }
            op = SLOT_MERGE;
            if (before == 0) {
                op = SLOT_SET;
            } else if (before & worker_bit != 0) {
                op = SLOT_READ;
            }
            present = before | worker_bit;
            bitmaps.write(cell, present);
        }
    }
}

control SlotFlags(in cell_index_t cell, in bit<8> added, in slot_op_t op, out bit<8> merged) {
    register<bit<8>>(NUM_CELLS) flags;
    apply {
        @atomic {
            flags.read(merged, cell);
            if (op == SLOT_SET) {
                merged = added;
                flags.write(cell, merged);
            } else if (op == SLOT_MERGE) {
                merged = merged | added;
                flags.write(cell, merged);
            }
        }
    }
}

control SlotScale(in cell_index_t cell, in slot_op_t op, inout bit<8> scale) {
    register<bit<8>>(NUM_CELLS) scales;
    apply {
        @atomic {
            bit<8> stored;
            scales.read(stored, cell);
            if (op == SLOT_SET || (op == SLOT_MERGE && scale > stored)) {
                scales.write(cell, scale);
            } else {
                scale = stored;
            }
        }
    }
}

control SlotSum(inout bit<32> value, in cell_index_t cell, in slot_op_t op) {
    register<bit<32>>(NUM_CELLS) sums;
    apply {
        @atomic {
            bit<32> stored;
            if (op == SLOT_MERGE) {
                sums.read(stored, cell);
                value = value + stored;
                sums.write(cell, value);
            } else if (op == SLOT_SET) {
                sums.write(cell, value);
            } else {
                sums.read(value, cell);
            }
        }
    }
}

control Tally(in bit<8> index) {
    counter(64, CounterType.packets) cells;
    apply {
        cells.count((bit<32>) index);
    }
}

control Ordinal(in bit<8> cell, in bit<32> wrap, out bit<32> ordinal) {
    register<bit<32>>(16) ordinals;
    apply {
        @atomic {
            ordinals.read(ordinal, (bit<32>) cell);
            ordinal = ordinal + 1;
            if (ordinal == wrap) {
                ordinals.write((bit<32>) cell, 0);
            } else {
                ordinals.write((bit<32>) cell, ordinal);
            }
        }
    }
}

control ChannelState(in bit<8> cell, in bool to_bad, in bool to_good, out bit<1> bad) {
    register<bit<1>>(16) states;
    apply {
        @atomic {
            states.read(bad, (bit<32>) cell);
            if (bad == 0 && to_bad) {
                bad = 1;
            } else if (bad == 1 && to_good) {
                bad = 0;
            }
            states.write((bit<32>) cell, bad);
        }
    }
}

control Crc32(in bit<32> first, in bit<32> second, out bit<32> crc) {
    apply {
        hash(crc, HashAlgorithm.crc32, (bit<32>) 0, { first, second }, (bit<64>) 0x100000000);
    }
}

// What common/ needs of the architecture, in PSA's externs.

#define NUM_CELLS (2 * NUM_SLOTS)

// Who owns the cell: an older chunk is taken over from, in serial arithmetic (RFC 1982).
control SlotOwner(in cell_index_t cell, in chunk_t chunk, out age_t age) {
    Register<chunk_t, cell_index_t>(NUM_CELLS) owners;
    apply {
        @atomic {
            chunk_t owner = owners.read(cell);
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

// Sets the worker's bit, in an empty bitmap if the cell is taken over. An empty bitmap is taken over too: what an earlier
// job left in the cell must not be added to. Tells what to do with the packet's contents, and who is present now.
control WorkerBitmap(in cell_index_t cell, in bit<32> worker_bit, in bool taken_over,
                     out slot_op_t op, out bit<32> present) {
    Register<bit<32>, cell_index_t>(NUM_CELLS) bitmaps;
    apply {
        @atomic {
            bit<32> before = bitmaps.read(cell);
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

// ORs flags.
control SlotFlags(in cell_index_t cell, in bit<8> added, in slot_op_t op, out bit<8> merged) {
    Register<bit<8>, cell_index_t>(NUM_CELLS) flags;
    apply {
        @atomic {
            merged = flags.read(cell);
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

// Keeps the largest exponent.
control SlotScale(in cell_index_t cell, in slot_op_t op, inout bit<8> scale) {
    Register<bit<8>, cell_index_t>(NUM_CELLS) scales;
    apply {
        @atomic {
            bit<8> stored = scales.read(cell);
            if (op == SLOT_SET || (op == SLOT_MERGE && scale > stored)) {
                scales.write(cell, scale);
            } else {
                scale = stored;
            }
        }
    }
}

// Adds, modulo 2^32; senders keep within bounds so that no sum wraps.
control SlotSum(inout bit<32> value, in cell_index_t cell, in slot_op_t op) {
    Register<bit<32>, cell_index_t>(NUM_CELLS) sums;
    apply {
        @atomic {
            if (op == SLOT_MERGE) {
                value = value + sums.read(cell);
                sums.write(cell, value);
            } else if (op == SLOT_SET) {
                sums.write(cell, value);
            } else {
                value = sums.read(cell);
            }
        }
    }
}

// Counts packets by index.
control Tally(in bit<8> index) {
    Counter<bit<64>, bit<8>>(64, PSA_CounterType_t.PACKETS) cells;
    apply {
        cells.count(index);
    }
}

// The number of this packet in its cell, from 1; starts again after `wrap` unless that is 0.
control Ordinal(in bit<8> cell, in bit<32> wrap, out bit<32> ordinal) {
    Register<bit<32>, bit<8>>(16) ordinals;
    apply {
        @atomic {
            ordinal = ordinals.read(cell) + 1;
            if (ordinal == wrap) {
                ordinals.write(cell, 0);
            } else {
                ordinals.write(cell, ordinal);
            }
        }
    }
}

// A two-state channel: 1 is bad.
control ChannelState(in bit<8> cell, in bool to_bad, in bool to_good, out bit<1> bad) {
    Register<bit<1>, bit<8>>(16) states;
    apply {
        @atomic {
            bad = states.read(cell);
            if (bad == 0 && to_bad) {
                bad = 1;
            } else if (bad == 1 && to_good) {
                bad = 0;
            }
            states.write(cell, bad);
        }
    }
}

// CRC-32 (IEEE 802.3) over two words.
control Crc32(in bit<32> first, in bit<32> second, out bit<32> crc) {
    Hash<bit<32>>(PSA_HashAlgorithm_t.CRC32) hash;
    apply {
        crc = hash.get_hash({ first, second });
    }
}

// The controls of Aggregate's slots, with v1model's registers, accessed in @atomic blocks. A cell is one version of one slot.

#define NUM_CELLS (2 * NUM_SLOTS)

typedef bit<32> cell_t;

// Empty: only Tofino assigns tables to stages.
#define FIRST_STAGE

#define LOCATE(CELL, PAIR, VERSION) CELL = 15w0 ++ (PAIR) ++ (VERSION)

// Compares the chunk with the cell's owner. A newer chunk takes the cell over (rule 2).
control SlotOwner(in cell_t cell, in chunk_t chunk, inout ahead_t ahead) {
    register<chunk_t>(NUM_CELLS) owners;
    apply {
        @atomic {
            chunk_t owner;
            owners.read(owner, cell);
            ahead = chunk - owner;
            if (ahead[31:31] == 0) {
                owners.write(cell, chunk);
            }
        }
    }
}

// These cells have SlotMarks, so chunks of jobs with deadlines may be closed.
#define CLOSES

// Bit 1: the cell is opened. Bit 0: its chunk is closed. A probe with CLOSE opens the cell, whichever chunk owns it.
control SlotMarks(in cell_t cell, in bit<3> deadline, in bit<1> probe, in ahead_t ahead,
                  inout mark_t mark, inout bit<1> opened) {
    register<bit<8>>(NUM_CELLS) marks;
    apply {
        @atomic {
            bit<8> stored;
            marks.read(stored, cell);
            if (probe == 1 && deadline[1:1] == 1) {
                stored = stored | 2;
            }
            if (ahead[31:31] == 0) {
                if (ahead != 0) {
                    stored = stored & 2;
                }
                if (stored[0:0] == 1) {
                    mark = MARK_CLOSED;
                } else if (deadline[0:0] == 1 && stored[1:1] == 0) {
                    mark = MARK_FORGOTTEN;
                } else if (deadline[1:0] == 3 && probe == 0) {
                    mark = MARK_CLOSES;
                    stored = stored | 1;
                }
            }
            opened = stored[1:1];
            marks.write(cell, stored);
        }
    }
}

// Sets the worker's bit. On takeover it starts with an empty bitmap. A cell with an empty bitmap is taken over, too, so that
// nothing is added to the values that an earlier job left there (rule 2).
control WorkerBitmap(in cell_t cell, in workers_t worker_bit, in ahead_t ahead,
                     inout presence_t presence, inout workers_t present) {
    register<workers_t>(NUM_CELLS) bitmaps;
    apply {
        if (ahead[31:31] == 0) {
            @atomic {
                workers_t before;
                bitmaps.read(before, cell);
                if (ahead != 0) {
                    before = 0;
                }
                if (before == 0) {
                    presence = PRESENT_NOBODY;
                } else {
                    presence = before & worker_bit;
                }
                present = before | worker_bit;
                bitmaps.write(cell, present);
            }
        }
    }
}

// ORs NON_FINITE of the contributors.
control SlotFlags(in cell_t cell, in bit<1> added, in presence_t presence, inout bit<8> merged) {
    register<bit<8>>(NUM_CELLS) flags;
    apply {
        if (presence == PRESENT_UNKNOWN) {
            return;
        }
        @atomic {
            flags.read(merged, cell);
            if (presence == PRESENT_NOBODY) {
                merged = 7w0 ++ added;
                flags.write(cell, merged);
            } else if (presence == PRESENT_OTHERS) {
                merged = merged | 7w0 ++ added;
                flags.write(cell, merged);
            }
        }
    }
}

// Keeps the largest exponent of the contributors (`next_scale`).
control SlotScale(in cell_t cell, in presence_t presence, inout bit<8> scale) {
    register<bit<8>>(NUM_CELLS) scales;
    apply {
        if (presence == PRESENT_UNKNOWN) {
            return;
        }
        @atomic {
            bit<8> stored;
            scales.read(stored, cell);
            if (presence == PRESENT_NOBODY || (presence == PRESENT_OTHERS && scale > stored)) {
                scales.write(cell, scale);
            } else {
                scale = stored;
            }
        }
    }
}

// Adds modulo 2^32. Senders limit their values so that no sum wraps.
control SlotSum(inout bit<32> value, in cell_t cell, in presence_t presence) {
    register<bit<32>>(NUM_CELLS) sums;
    apply {
        @atomic {
            if (presence == PRESENT_OTHERS) {
                bit<32> stored;
                sums.read(stored, cell);
                value = value + stored;
                sums.write(cell, value);
            } else if (presence == PRESENT_NOBODY) {
                sums.write(cell, value);
            } else {
                sums.read(value, cell);
            }
        }
    }
}

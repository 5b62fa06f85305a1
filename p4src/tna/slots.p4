// The controls of Aggregate's slots, with Tofino's registers: one stateful ALU execution per packet and register. A cell is one
// version of one slot.
//
// Every control matches a word that a stateful ALU has output, never a value computed from it: a computation takes a stage
// (docs/tofino.md).

#define NUM_CELLS (2 * NUM_SLOTS)

// Two fields: `pair ++ version` as a register's address is wiring, but as a variable it would take a stage.
struct cell_t {
    bit<16> pair;
    bit<1> version;
}
typedef bit<17> cell_index_t;
#define INDEX(CELL) (CELL.pair ++ CELL.version)

#define LOCATE(CELL, PAIR, VERSION) CELL.pair = PAIR; CELL.version = VERSION

// Places a table that waits for no other in the first stage. Without it, bf-p4c for Tofino 2 lets other fields use the
// containers of these tables first, and 64 values leave no stage to spare.
#if __TARGET_TOFINO__ == 2
#define FIRST_STAGE @stage(0)
#else
#define FIRST_STAGE
#endif

struct owner_t {
    bit<32> chunk;
    // How far the last packet's chunk was ahead: a RegisterAction can output only a word that the cell stores.
    bit<32> ahead;
}

// A comparator of a stateful ALU does not wrap: it compares by a difference of 34 bits. So the table selects an action by the
// half of the numbers in which the chunk lies. For each half, the owners that are older than the chunk (in serial arithmetic)
// form an interval that two comparators test in one condition, without an operand that wraps: P4 and the chip agree. At a
// distance of exactly 2^31, undefined in serial arithmetic, `ahead` means older, and the owner stays.
control SlotOwner(in cell_t cell, in chunk_t chunk, inout ahead_t ahead) {
    Register<owner_t, cell_index_t>(NUM_CELLS, { 0, 0 }) owners;
    RegisterAction<owner_t, cell_index_t, bit<32>>(owners) high = {
        void apply(inout owner_t owner, out bit<32> now) {
            owner.ahead = chunk - owner.chunk;
            if (chunk > owner.chunk && chunk - owner.chunk <= 0x7FFFFFFF) {
                owner.chunk = chunk;
            }
            now = owner.ahead;
        }
    };
    RegisterAction<owner_t, cell_index_t, bit<32>>(owners) low = {
        void apply(inout owner_t owner, out bit<32> now) {
            owner.ahead = chunk - owner.chunk;
            if (chunk > owner.chunk || owner.chunk - chunk > 0x80000000) {
                owner.chunk = chunk;
            }
            now = owner.ahead;
        }
    };
    action in_high() { ahead = high.execute(INDEX(cell)); }
    action in_low() { ahead = low.execute(INDEX(cell)); }
    table take_over {
        key = { chunk: ternary; }
        actions = { in_high; in_low; NoAction; }
        const default_action = NoAction();
        const entries = {
            0x80000000 &&& 0x80000000: in_high();
            0 &&& 0x80000000: in_low();
        }
    }
    apply {
        take_over.apply();
    }
}

struct members_t {
    bit<32> workers;
    // A RegisterAction can output only a word that the cell stores.
    bit<32> presence;
}

// Two registers hold the same bitmap: in one stage, `bitmaps` outputs the earlier contributors, `arrivals` the present ones. A
// cell with an empty bitmap is taken over, so that nothing is added to values of an earlier job (rule 2).
control WorkerBitmap(in cell_t cell, in bit<32> worker_bit, in ahead_t ahead,
                     inout presence_t presence, inout bit<32> present) {
    Register<members_t, cell_index_t>(NUM_CELLS, { 0, 0 }) bitmaps;
    RegisterAction<members_t, cell_index_t, bit<32>>(bitmaps) start = {
        void apply(inout members_t cell_, out bit<32> now) {
            cell_.presence = PRESENT_NOBODY;
            cell_.workers = worker_bit;
            now = cell_.presence;
        }
    };
    RegisterAction<members_t, cell_index_t, bit<32>>(bitmaps) add = {
        void apply(inout members_t cell_, out bit<32> now) {
            if (cell_.workers == 0) {
                cell_.presence = PRESENT_NOBODY;
            } else {
                cell_.presence = cell_.workers & worker_bit;
            }
            cell_.workers = cell_.workers | worker_bit;
            now = cell_.presence;
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
    action first() { presence = start.execute(INDEX(cell)); }
    action further() { presence = add.execute(INDEX(cell)); }
    table workers {
        key = { ahead: ternary; }
        actions = { first; further; NoAction; }
        const default_action = NoAction();
        const entries = {
            0x80000000 &&& 0x80000000: NoAction();
            0: further();
            _: first();
        }
    }
    action first_present() { present = start_arrivals.execute(INDEX(cell)); }
    action further_present() { present = add_arrival.execute(INDEX(cell)); }
    table arrived {
        key = { ahead: ternary; }
        actions = { first_present; further_present; NoAction; }
        const default_action = NoAction();
        const entries = {
            0x80000000 &&& 0x80000000: NoAction();
            0: further_present();
            _: first_present();
        }
    }
    apply {
        workers.apply();
        arrived.apply();
    }
}

// Each flag value has its own action, since a stateful ALU cannot take one bit of a header as an operand of a byte.
control SlotFlags(in cell_t cell, in bit<1> added, in presence_t presence, inout bit<8> merged) {
    Register<bit<8>, cell_index_t>(NUM_CELLS, 0) flags;
    RegisterAction<bit<8>, cell_index_t, bit<8>>(flags) put_0 = {
        void apply(inout bit<8> stored, out bit<8> now) {
            stored = 0;
            now = stored;
        }
    };
    RegisterAction<bit<8>, cell_index_t, bit<8>>(flags) put_1 = {
        void apply(inout bit<8> stored, out bit<8> now) {
            stored = 1;
            now = stored;
        }
    };
    RegisterAction<bit<8>, cell_index_t, bit<8>>(flags) look = {
        void apply(inout bit<8> stored, out bit<8> now) {
            now = stored;
        }
    };
    action clear() { merged = put_0.execute(INDEX(cell)); }
    action raise() { merged = put_1.execute(INDEX(cell)); }
    action read() { merged = look.execute(INDEX(cell)); }
    table cells {
        key = {
            presence: ternary;
            added: ternary;
        }
        actions = { clear; raise; read; NoAction; }
        const default_action = NoAction();
        const entries = {
            (PRESENT_NOBODY, 0): clear();
            (PRESENT_NOBODY, 1): raise();
            (PRESENT_OTHERS, 1): raise();
            (PRESENT_UNKNOWN, _): NoAction();
            (_, _): read();
        }
    }
    apply {
        cells.apply();
    }
}

control SlotScale(in cell_t cell, in presence_t presence, inout bit<8> scale) {
    Register<bit<8>, cell_index_t>(NUM_CELLS, 0) scales;
    RegisterAction<bit<8>, cell_index_t, bit<8>>(scales) start = {
        void apply(inout bit<8> stored, out bit<8> now) {
            stored = scale;
            now = stored;
        }
    };
    RegisterAction<bit<8>, cell_index_t, bit<8>>(scales) largest = {
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
    action set() { scale = start.execute(INDEX(cell)); }
    action merge() { scale = largest.execute(INDEX(cell)); }
    action read() { scale = look.execute(INDEX(cell)); }
    table cells {
        key = { presence: ternary; }
        actions = { set; merge; read; NoAction; }
        const default_action = NoAction();
        const entries = {
            PRESENT_NOBODY: set();
            PRESENT_OTHERS: merge();
            PRESENT_UNKNOWN: NoAction();
            _: read();
        }
    }
    apply {
        cells.apply();
    }
}

control SlotSum(inout bit<32> value, in cell_t cell, in presence_t presence) {
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
    action set() { value = start.execute(INDEX(cell)); }
    action merge() { value = add.execute(INDEX(cell)); }
    action read() { value = look.execute(INDEX(cell)); }
    table cells {
        key = { presence: ternary; }
        actions = { set; merge; read; NoAction; }
        const default_action = NoAction();
        const entries = {
            PRESENT_NOBODY: set();
            PRESENT_OTHERS: merge();
            PRESENT_UNKNOWN: NoAction();
            _: read();
        }
    }
    apply {
        cells.apply();
    }
}

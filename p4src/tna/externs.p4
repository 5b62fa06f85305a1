// What common/ needs of the architecture, in Tofino's externs: one stateful ALU execution per packet and register.

control Tally(in bit<8> index) {
    Counter<bit<64>, bit<6>>(64, CounterType_t.PACKETS) cells;
    apply {
        cells.count(index[5:0]);
    }
}

// How many packets came before, and what becomes of this one: what comes out of a register is one of its two words.
struct countdown_t {
    bit<32> index;
    bit<32> verdict;
}

// A count, and the word that it becomes with a unit's key: what comes out of a register is one of its two words.
struct turn_t {
    bit<32> count;
    bit<32> mixed;
}

// Controls and cells that common/ and engine.p4 need, with Tofino's externs: one stateful ALU run per packet and register.

control Tally(in bit<8> index) {
    Counter<bit<64>, bit<6>>(64, CounterType_t.PACKETS) cells;
    apply {
        cells.count(index[5:0]);
    }
}

// The index of the packet, and the verdict on it. A RegisterAction can output only one of the cell's two words.
struct countdown_t {
    bit<32> index;
    bit<32> verdict;
}

// A count, and the count mixed with a unit's key. A RegisterAction can output only one of the cell's two words.
struct turn_t {
    bit<32> count;
    bit<32> mixed;
}

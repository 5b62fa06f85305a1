// The controls that common/ needs from the architecture, with PSA's externs.

// Counts packets by index.
control Tally(in bit<8> index) {
    Counter<bit<64>, bit<8>>(64, PSA_CounterType_t.PACKETS) cells;
    apply {
        cells.count(index);
    }
}

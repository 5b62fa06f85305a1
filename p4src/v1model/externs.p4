// The controls that common/ needs from the architecture, with v1model's externs. Registers are accessed in @atomic blocks.

control Tally(in bit<8> index) {
    counter(64, CounterType.packets) cells;
    apply {
        cells.count((bit<32>) index);
    }
}

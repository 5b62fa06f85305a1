// What common/ needs of the architecture, in v1model's externs. Registers are read and written in @atomic blocks.

control Tally(in bit<8> index) {
    counter(64, CounterType.packets) cells;
    apply {
        cells.count((bit<32>) index);
    }
}

// What JobGuard needs of the architecture, in PSA's externs.

// A job without a rate has a cell without a configuration: all is green.
control JobRate(in bit<8> index, inout guarded_t outcome, out bit<1> is_near) {
    Meter<bit<8>>(256, PSA_MeterType_t.BYTES) meters;
    apply {
        PSA_MeterColor_t color = meters.execute(index);
        is_near = 0;
        if (color == PSA_MeterColor_t.RED) {
            outcome = GUARDED_OVER_RATE;
        } else if (color == PSA_MeterColor_t.YELLOW) {
            is_near = 1;
        }
    }
}

// Frames by job and what became of them.
control JobTally(in bit<10> index) {
    Counter<bit<64>, bit<10>>(1024, PSA_CounterType_t.PACKETS) cells;
    apply {
        cells.count(index);
    }
}

// Frames that spoke for a job of others, by the port that they came by.
control StrangerTally(in bit<32> port) {
    Counter<bit<64>, bit<32>>(1024, PSA_CounterType_t.PACKETS) ports;
    apply {
        ports.count(port);
    }
}

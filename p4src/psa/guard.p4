// The controls that JobGuard needs from the architecture, with PSA's externs.

// The meter cell of a job without a rate has no configuration, so it colors all frames green.
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

// Counts frames by job and by the outcome of JobGuard.
control JobTally(in bit<10> index) {
    Counter<bit<64>, bit<10>>(1024, PSA_CounterType_t.PACKETS) cells;
    apply {
        cells.count(index);
    }
}

// Counts strangers' frames, those that arrive at a port of no rank of their job, by this port.
control StrangerTally(in bit<32> port) {
    Counter<bit<64>, bit<32>>(1024, PSA_CounterType_t.PACKETS) ports;
    apply {
        ports.count(port);
    }
}

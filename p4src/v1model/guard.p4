// The controls that JobGuard needs from the architecture, with v1model's externs.

// The meter cell of a job without a rate has no configuration, so it colors all frames green.
control JobRate(in bit<8> index, inout guarded_t outcome, out bit<1> is_near) {
    meter(256, MeterType.bytes) meters;
    bit<2> color;
    apply {
        meters.execute_meter((bit<32>) index, color);
        is_near = 0;
        if (color == V1MODEL_METER_COLOR_RED) {
            outcome = GUARDED_OVER_RATE;
        } else if (color == V1MODEL_METER_COLOR_YELLOW) {
            is_near = 1;
        }
    }
}

// Counts frames by job and by the outcome of JobGuard.
control JobTally(in bit<10> index) {
    counter(1024, CounterType.packets) cells;
    apply {
        cells.count((bit<32>) index);
    }
}

// Counts strangers' frames, those that arrive at a port of no rank of their job, by this port.
control StrangerTally(in bit<32> port) {
    counter(1024, CounterType.packets) ports;
    apply {
        ports.count(port);
    }
}

// What JobGuard needs of the architecture, in v1model's externs.

// A job without a rate has a cell without a configuration: all is green.
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

// Frames by job and what became of them.
control JobTally(in bit<10> index) {
    counter(1024, CounterType.packets) cells;
    apply {
        cells.count((bit<32>) index);
    }
}

// Frames that spoke for a job of others, by the port that they came by.
control StrangerTally(in bit<32> port) {
    counter(1024, CounterType.packets) ports;
    apply {
        ports.count(port);
    }
}

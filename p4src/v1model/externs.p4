// What common/ needs of the architecture, in v1model's externs. Registers are read and written in @atomic blocks.

control Tally(in bit<8> index) {
    counter(64, CounterType.packets) cells;
    apply {
        cells.count((bit<32>) index);
    }
}

control Ordinal(in bit<8> cell, in bit<32> wrap, out bit<32> ordinal) {
    register<bit<32>>(16) ordinals;
    apply {
        @atomic {
            ordinals.read(ordinal, (bit<32>) cell);
            ordinal = ordinal + 1;
            if (ordinal == wrap) {
                ordinals.write((bit<32>) cell, 0);
            } else {
                ordinals.write((bit<32>) cell, ordinal);
            }
        }
    }
}

control ChannelState(in bit<8> cell, in bool to_bad, in bool to_good, out bit<1> bad) {
    register<bit<1>>(16) states;
    apply {
        @atomic {
            states.read(bad, (bit<32>) cell);
            if (bad == 0 && to_bad) {
                bad = 1;
            } else if (bad == 1 && to_good) {
                bad = 0;
            }
            states.write((bit<32>) cell, bad);
        }
    }
}

control Crc32(in bit<32> first, in bit<32> second, out bit<32> crc) {
    apply {
        hash(crc, HashAlgorithm.crc32, (bit<32>) 0, { first, second }, (bit<64>) 0x100000000);
    }
}

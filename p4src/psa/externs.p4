// What common/ needs of the architecture, in PSA's externs.

// Counts packets by index.
control Tally(in bit<8> index) {
    Counter<bit<64>, bit<8>>(64, PSA_CounterType_t.PACKETS) cells;
    apply {
        cells.count(index);
    }
}

// The number of this packet in its cell, from 1; starts again after `wrap` unless that is 0.
control Ordinal(in bit<8> cell, in bit<32> wrap, out bit<32> ordinal) {
    Register<bit<32>, bit<8>>(16) ordinals;
    apply {
        @atomic {
            ordinal = ordinals.read(cell) + 1;
            if (ordinal == wrap) {
                ordinals.write(cell, 0);
            } else {
                ordinals.write(cell, ordinal);
            }
        }
    }
}

// A two-state channel: 1 is bad.
control ChannelState(in bit<8> cell, in bool to_bad, in bool to_good, out bit<1> bad) {
    Register<bit<1>, bit<8>>(16) states;
    apply {
        @atomic {
            bad = states.read(cell);
            if (bad == 0 && to_bad) {
                bad = 1;
            } else if (bad == 1 && to_good) {
                bad = 0;
            }
            states.write(cell, bad);
        }
    }
}

// CRC-32 (IEEE 802.3) over two words.
control Crc32(in bit<32> first, in bit<32> second, out bit<32> crc) {
    Hash<bit<32>>(PSA_HashAlgorithm_t.CRC32) hash;
    apply {
        crc = hash.get_hash({ first, second });
    }
}

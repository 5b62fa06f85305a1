// What common/ needs of the architecture, in Tofino's externs: one stateful ALU execution per packet and register.

control Tally(in bit<8> index) {
    Counter<bit<64>, bit<8>>(64, CounterType_t.PACKETS) cells;
    apply {
        cells.count(index);
    }
}

control Ordinal(in bit<8> cell, in bit<32> wrap, out bit<32> ordinal) {
    Register<bit<32>, bit<8>>(16, 0) ordinals;
    RegisterAction<bit<32>, bit<8>, bit<32>>(ordinals) next = {
        void apply(inout bit<32> last, out bit<32> now) {
            // `last` starts again at 1 after `wrap`, so that the number comes out as it is stored.
            if (last == wrap) {
                last = 1;
            } else {
                last = last + 1;
            }
            now = last;
        }
    };
    apply {
        ordinal = next.execute(cell);
    }
}

control ChannelState(in bit<8> cell, in bool to_bad, in bool to_good, out bit<1> bad) {
    // A cell of one bit could be set and cleared, but not flipped.
    Register<bit<8>, bit<8>>(16, 0) states;
    RegisterAction<bit<8>, bit<8>, bit<8>>(states) set = {
        void apply(inout bit<8> state, out bit<8> now) {
            state = 1;
            now = state;
        }
    };
    RegisterAction<bit<8>, bit<8>, bit<8>>(states) clear = {
        void apply(inout bit<8> state, out bit<8> now) {
            state = 0;
            now = state;
        }
    };
    RegisterAction<bit<8>, bit<8>, bit<8>>(states) flip = {
        void apply(inout bit<8> state, out bit<8> now) {
            state = state ^ 1;
            now = state;
        }
    };
    RegisterAction<bit<8>, bit<8>, bit<8>>(states) look = {
        void apply(inout bit<8> state, out bit<8> now) {
            now = state;
        }
    };
    apply {
        bit<8> state;
        if (to_bad && to_good) {
            state = flip.execute(cell);
        } else if (to_bad) {
            state = set.execute(cell);
        } else if (to_good) {
            state = clear.execute(cell);
        } else {
            state = look.execute(cell);
        }
        bad = state[0:0];
    }
}

control Crc32(in bit<32> first, in bit<32> second, out bit<32> crc) {
    Hash<bit<32>>(HashAlgorithm_t.CRC32) hash;
    apply {
        crc = hash.get({ first, second });
    }
}

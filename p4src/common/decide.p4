// A uniformly distributed word for one packet of one (fault, flow): docs/fault-engine.md, "The decision function".
// Crc32 is defined by each architecture's externs.p4; scenario::decision is the same in Rust.

const bit<32> DECIDE_ROUND_2 = 0x9E3779B9;
const bit<32> DECIDE_ROUND_3 = 0x7F4A7C15;
const bit<32> DECIDE_ROUND_4 = 0xF39CC060;

control Decide(in bit<32> key, in bit<32> flow_key, in bit<32> ordinal, out bit<32> draw) {
    Crc32() crc1;
    Crc32() crc2;
    Crc32() crc3;
    Crc32() crc4;
    apply {
        // Four Feistel rounds; the additions are the non-linear step.
        bit<32> a = flow_key;
        bit<32> b = ordinal;
        bit<32> mixed;
        crc1.apply(key, b, mixed);
        a = a + mixed;
        crc2.apply(key ^ DECIDE_ROUND_2, a, mixed);
        b = b + mixed;
        crc3.apply(key ^ DECIDE_ROUND_3, b, mixed);
        a = a + mixed;
        crc4.apply(key ^ DECIDE_ROUND_4, a, mixed);
        draw = b + mixed;
    }
}

// The controls that RoceIn and RoceOut need from the architecture, with v1model's externs.

// Computes the ICRC of the packet that the valid headers form. The result has the byte order of the packet: lowest byte first.
control RoceIcrc(in headers_t hdr, out bit<32> icrc) {
    bit<32> computed;
    apply {
        // The maximum of 2^32 keeps all 32 bits of the CRC.
        if (hdr.roce_hello.isValid()) {
            hash(computed, HashAlgorithm.crc32, 32w0, { ROCE_NETWORK, ROCE_REGISTRATION }, 64w0x100000000);
        } else if (hdr.values0.isValid()) {
            hash(computed, HashAlgorithm.crc32, 32w0, { ROCE_NETWORK, ROCE_WRITE, ROCE_VALUES }, 64w0x100000000);
        } else if (hdr.roce_answer.isValid()) {
            hash(computed, HashAlgorithm.crc32, 32w0, { ROCE_NETWORK, ROCE_WRITE, ROCE_ANSWER }, 64w0x100000000);
        } else {
            hash(computed, HashAlgorithm.crc32, 32w0, { ROCE_NETWORK, ROCE_WRITE }, 64w0x100000000);
        }
        icrc = computed[7:0] ++ computed[15:8] ++ computed[23:16] ++ computed[31:24];
    }
}

// With `tells` = 1, stores a worker's registration; otherwise reads it into `kept`, with `qpn` 0 if the worker has none.
// `kept.psn` becomes the PSN of the next packet to the worker. A repeated registration continues at the next PSN.
control RoceContacts(in bit<16> contact, in bit<1> tells, inout roce_contact_t kept) {
    register<bit<32>>(NUM_CONTACTS) qpns;
    register<bit<32>>(NUM_CONTACTS) first_psns;
    register<bit<32>>(NUM_CONTACTS) next_psns;
    register<bit<32>>(NUM_CONTACTS) remote_keys;
    register<bit<64>>(NUM_CONTACTS) bases;
    apply {
        @atomic {
            bit<32> index = 16w0 ++ contact;
            bit<32> next;
            bit<32> qpn;
            bit<32> first;
            next_psns.read(next, index);
            qpns.read(qpn, index);
            first_psns.read(first, index);
            if (tells == 1) {
                if (kept.qpn != qpn || kept.psn != first) {
                    next = kept.psn;
                }
                qpns.write(index, kept.qpn);
                first_psns.write(index, kept.psn);
                remote_keys.write(index, kept.remote_key);
                bases.write(index, kept.base);
            } else {
                kept.qpn = qpn;
                remote_keys.read(kept.remote_key, index);
                bases.read(kept.base, index);
            }
            kept.psn = next;
            next_psns.write(index, 8w0 ++ (next[23:0] + 1));
        }
    }
}

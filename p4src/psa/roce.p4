// The controls that RoceIn and RoceOut need from the architecture, with PSA's externs.

// Computes the ICRC of the packet that the valid headers form. The result has the byte order of the packet: lowest byte first.
control RoceIcrc(in headers_t hdr, out bit<32> icrc) {
    Hash<bit<32>>(PSA_HashAlgorithm_t.CRC32) crc;
    bit<32> computed;
    apply {
        if (hdr.roce_hello.isValid()) {
            computed = crc.get_hash({ ROCE_NETWORK, ROCE_REGISTRATION });
        } else if (hdr.values0.isValid()) {
            computed = crc.get_hash({ ROCE_NETWORK, ROCE_WRITE, ROCE_VALUES });
        } else if (hdr.roce_answer.isValid()) {
            computed = crc.get_hash({ ROCE_NETWORK, ROCE_WRITE, ROCE_ANSWER });
        } else {
            computed = crc.get_hash({ ROCE_NETWORK, ROCE_WRITE });
        }
        icrc = computed[7:0] ++ computed[15:8] ++ computed[23:16] ++ computed[31:24];
    }
}

// With `tells` = 1, stores a worker's registration; otherwise reads it into `kept`, with `qpn` 0 if the worker has none.
// `kept.psn` becomes the PSN of the next packet to the worker. A repeated registration continues at the next PSN.
control RoceContacts(in bit<16> contact, in bit<1> tells, inout roce_contact_t kept) {
    Register<bit<32>, bit<16>>(NUM_CONTACTS) qpns;
    Register<bit<32>, bit<16>>(NUM_CONTACTS) first_psns;
    Register<bit<32>, bit<16>>(NUM_CONTACTS) next_psns;
    Register<bit<32>, bit<16>>(NUM_CONTACTS) remote_keys;
    Register<bit<64>, bit<16>>(NUM_CONTACTS) bases;
    apply {
        @atomic {
            bit<32> next = next_psns.read(contact);
            bit<32> qpn = qpns.read(contact);
            if (tells == 1) {
                if (kept.qpn != qpn || kept.psn != first_psns.read(contact)) {
                    next = kept.psn;
                }
                qpns.write(contact, kept.qpn);
                first_psns.write(contact, kept.psn);
                remote_keys.write(contact, kept.remote_key);
                bases.write(contact, kept.base);
            } else {
                kept.qpn = qpn;
                kept.remote_key = remote_keys.read(contact);
                kept.base = bases.read(contact);
            }
            kept.psn = next;
            next_psns.write(contact, 8w0 ++ (next[23:0] + 1));
        }
    }
}

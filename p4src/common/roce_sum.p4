// Sums RoCEv2: docs/rdma.md, "Sums by the switch". One packet is one message: an RDMA WRITE with immediate of an unreliable
// connection. RoceIn, before Aggregate, converts it into the UDP form of docs/protocol.md, and RoceOut, in egress, converts
// sums back. So slots know the UDP form only.
//
// Each architecture defines RoceIcrc and RoceContacts in its roce.p4.

// Processes RoCEv2 packets to the address of a job that is summed here: converts an UPDATE into its UDP form, returns a
// registration to its sender, and drops all others.
control RoceIn(inout headers_t hdr, inout metadata_t meta) {
    RoceIcrc() icrc;
    Tally() outcomes;

    bit<1> is_summed = 0;
    bit<16> job = 0;
    bit<32> window = 0;
    bit<1> is_worker = 0;
    bit<16> speaks_of = 0;
    bit<10> worker = 0;
    bit<8> outcome = ROCE_MALFORMED;

    action sums(bit<16> job_, bit<32> window_) {
        is_summed = 1;
        job = job_;
        window = window_;
    }
    action passes() { }
    table jobs {
        key = { hdr.ethernet.dst: exact; }
        actions = { sums; passes; }
        const default_action = passes();
        size = 64;
    }

    action speaks(bit<16> job_, bit<10> worker_) {
        is_worker = 1;
        speaks_of = job_;
        worker = worker_;
    }
    action stranger() { }
    // The port is part of the key, so a packet from another port cannot name this port's worker.
    table senders {
        key = {
            hdr.roce.dest_qp: exact;
            meta.port: exact;
        }
        actions = { speaks; stranger; }
        const default_action = stranger();
        size = 1024;
    }

    // Builds the UDP form of an UPDATE. It does not compare slot and version with the chunk: Aggregate does.
    action update() {
        hdr.agg.setValid();
        hdr.agg.version = AGG_VERSION;
        hdr.agg.kind = AGG_UPDATE;
        hdr.agg.slot_version = hdr.reth.remote_key[0:0];
        hdr.agg.deadline = 0;
        hdr.agg.probe = hdr.roce_immediate.flags[1:1];
        hdr.agg.scale_only = hdr.roce_immediate.flags[0:0];
        hdr.agg.again = hdr.roce_immediate.flags[2:2];
        hdr.agg.non_finite = hdr.roce_immediate.flags[3:3];
        hdr.agg.job = job;
        hdr.agg.chunk = hdr.reth.address[41:10];
        hdr.agg.slot = hdr.reth.remote_key[16:1];
        hdr.agg.worker = worker;
        hdr.agg.transmission = hdr.reth.address[55:50];
        hdr.agg.contributors = 0;
        hdr.agg.scale = hdr.reth.address[49:42];
        hdr.agg.next_scale = hdr.roce_immediate.next_scale;
        hdr.agg.count = hdr.reth.length[17:2];
        // The top bit of the address marks a question. Bit 42 of the MAC makes it 06:…: the answer goes to the sender.
        hdr.ethernet.dst[42:42] = hdr.reth.address[63:63];
        hdr.udp.dst_port = AGG_UDP_PORT;
        hdr.udp.length = hdr.udp.length - 12;
        hdr.udp.checksum = 0;
        hdr.ipv4.total_len = hdr.ipv4.total_len - 12;
        // The length has shrunk by 12, so the checksum, a ones' complement sum, grows by 12 (RFC 1624).
        bit<17> mended = (1w0 ++ hdr.ipv4.checksum) + 12;
        hdr.ipv4.checksum = mended[15:0] + (15w0 ++ mended[16:16]);
        hdr.roce.setInvalid();
        hdr.reth.setInvalid();
        hdr.roce_immediate.setInvalid();
        hdr.roce_icrc.setInvalid();
    }

    apply {
        meta.roce = ROCE_NONE;
        // Frames with VLAN tags or IP options never become WRITEs.
        if (meta.verdict == VERDICT_FORWARD && hdr.agg.isValid() && hdr.agg.kind == AGG_UPDATE && hdr.ethernet.ether_type == ETHERTYPE_IPV4
            && hdr.ipv4.isValid() && hdr.ipv4.ihl == 5) {
            meta.roce = ROCE_UPDATE_UDP;
        }
        if (meta.verdict == VERDICT_FORWARD && hdr.udp.isValid() && hdr.udp.dst_port == ROCE_UDP_PORT) {
            jobs.apply();
            if (is_summed == 1) {
                // IPv4 length that the packet must have: with values, as a registration, or as a WRITE without values.
                bit<16> total_len = 0;
                if (LAST_BLOCK.isValid()) {
                    total_len = ROCE_VALUES_TOTAL;
                } else if (hdr.roce_hello.isValid()) {
                    total_len = ROCE_HELLO_TOTAL;
                } else if (hdr.reth.isValid() && hdr.reth.length == 0) {
                    total_len = ROCE_WRITE_TOTAL;
                }
                if (hdr.roce.isValid() && hdr.roce.opcode != UC_SEND_ONLY
                    && hdr.roce.opcode != UC_WRITE_ONLY_WITH_IMMEDIATE) {
                    outcome = ROCE_OTHER;
                } else if (hdr.roce_icrc.isValid() && hdr.ethernet.ether_type == ETHERTYPE_IPV4 && hdr.ipv4.isValid()
                    && hdr.ipv4.version == 4 && hdr.ipv4.ihl == 5 && hdr.ipv4.total_len == total_len
                    && hdr.ipv4.flags[0:0] == 0 && hdr.ipv4.frag_offset == 0 && hdr.udp.length == total_len - 20
                    && hdr.roce.version == 0 && hdr.roce.pad_count == 0 && hdr.roce.partition_key == ROCE_PARTITION) {
                    senders.apply();
                    if (is_worker == 0 || speaks_of != job) {
                        outcome = ROCE_STRANGER;
                    } else {
                        bit<32> expected;
                        icrc.apply(hdr, expected);
                        if (expected != hdr.roce_icrc.value) {
                            outcome = ROCE_WRONG_ICRC;
                        } else if (hdr.roce_hello.isValid()) {
                            if (hdr.roce_hello.magic == ROCE_HELLO_MAGIC && hdr.roce_hello.version == ROCE_HELLO_VERSION
                                && hdr.roce_hello.job == job && 2w0 ++ hdr.roce_hello.worker == worker
                                && hdr.roce_hello.window == window && hdr.roce_hello.qpn[31:24] == 0
                                && hdr.roce_hello.qpn != 0 && hdr.roce_hello.psn[31:24] == 0 && hdr.roce_hello.psn != 0) {
                                outcome = ROCE_REGISTERED;
                            }
                        } else if (hdr.reth.remote_key[31:17] == ROCE_UPDATE_KEY
                            && hdr.reth.address[62:56] == 0 && hdr.reth.address[9:0] == 0
                            && hdr.reth.address[25:10] == hdr.roce_immediate.chunk
                            && hdr.reth.address[45:42] == hdr.roce_immediate.scale
                            // A WRITE without values has SCALE_ONLY or PROBE; one with values has neither.
                            && (hdr.roce_immediate.flags[1:0] == 0) == (hdr.reth.length != 0)
                            // Only a WRITE with values may have NON_FINITE.
                            && (hdr.roce_immediate.flags[3:3] == 0 || hdr.reth.length != 0)) {
                            outcome = ROCE_UPDATED;
                        }
                    }
                }
                if (outcome == ROCE_UPDATED) {
                    update();
                    meta.roce = ROCE_UPDATE;
                } else if (outcome == ROCE_REGISTERED) {
                    meta.roce = ROCE_HELLO;
                } else {
                    meta.verdict = VERDICT_DROP;
                }
                outcomes.apply(outcome);
            }
        }
    }
}

// Runs after Aggregate. Selects the SUMs that become WRITEs, and returns registrations to their senders. A SUM that arrived as
// such is not this switch's; it stays UDP. A request by UDP is answered by UDP, even if its worker has registered.
control RoceKind(inout headers_t hdr, inout metadata_t meta) {
    apply {
        bool is_sum = hdr.agg.isValid() && hdr.agg.kind == AGG_SUM;
        if (meta.roce == ROCE_HELLO) {
            meta.way = WAY_PORT;
            meta.egress_port = meta.port;
        } else if (is_sum && (meta.roce == ROCE_UPDATE || meta.roce == ROCE_UPDATE_UDP && meta.way != WAY_PORT)) {
            meta.roce = ROCE_SUM;
        } else {
            meta.roce = ROCE_NONE;
        }
    }
}

// Converts each copy of a SUM made here, and the answer to a registration, into a WRITE to the worker that receives it. A copy
// for a worker that has not registered stays UDP, and is addressed to that worker.
control RoceOut(inout headers_t hdr, inout metadata_t meta, in bit<16> instance) {
    RoceContacts() contacts;
    RoceIcrc() icrc;

    bit<16> job = 0;
    // The copy's instance in the multicast group, and the destination MAC of the frame.
    bit<16> copy = 0;
    mac_t addressed = 0;
    bit<1> is_known = 0;
    bit<16> contact = 0;
    mac_t mac = 0;
    ipv4_t ip = 0;
    bit<64> all_workers = 0;
    bit<1> tells = 0;
    roce_contact_t to;

    action reaches(bit<16> contact_, mac_t mac_, ipv4_t ip_, bit<64> all_workers_) {
        is_known = 1;
        contact = contact_;
        mac = mac_;
        ip = ip_;
        all_workers = all_workers_;
    }
    action unknown() { }
    // A worker has two entries: one for its copy of a SUM to all, one for a SUM to its own address.
    table workers {
        key = {
            job: exact;
            copy: exact;
            addressed: exact;
            meta.port: exact;
        }
        actions = { reaches; unknown; }
        const default_action = unknown();
        size = 2048;
    }

    action to_region(bit<64> offset, bit<32> length) {
        hdr.reth.setValid();
        hdr.reth.address = to.base + offset;
        hdr.reth.remote_key = to.remote_key;
        hdr.reth.length = length;
        hdr.roce_immediate.setValid();
    }
    // Sets address and immediate of a sum, which is written `behind` bytes after the start of its cell's space.
    action tell_sum(bit<64> behind, bit<32> length) {
        bit<64> cell = 47w0 ++ hdr.agg.slot ++ hdr.agg.slot_version;
        to_region((cell << 10) + (cell << 4) + behind, length);
        hdr.roce_immediate.flags = hdr.agg.non_finite ++ hdr.agg.again ++ hdr.agg.probe ++ hdr.agg.scale_only;
        hdr.roce_immediate.scale = hdr.agg.scale[3:0];
        hdr.roce_immediate.next_scale = hdr.agg.next_scale;
        hdr.roce_immediate.chunk = hdr.agg.chunk[15:0];
    }
    action answer(bit<64> contributors, bit<10> worker, bit<6> transmission) {
        hdr.roce_answer.setValid();
        hdr.roce_answer.contributors = contributors;
        hdr.roce_answer.worker = worker;
        hdr.roce_answer.transmission = transmission;
        hdr.roce_answer.zero = 0;
    }
    // Sets the headers around the payload. `total_len` is the IPv4 packet's length in bytes. The identification counts up with
    // the PSN, so that consecutive packets to a worker can leave the switch as one bundle, whose frames the kernel numbers.
    action carry(bit<16> total_len) {
        hdr.ethernet.src = 40w0x02005e5745 ++ job[7:0];
        hdr.ethernet.dst = mac;
        hdr.ipv4.version = 4;
        hdr.ipv4.ihl = 5;
        hdr.ipv4.total_len = total_len;
        hdr.ipv4.identification = to.psn[15:0];
        hdr.ipv4.flags = 2;
        hdr.ipv4.frag_offset = 0;
        hdr.ipv4.ttl = 64;
        hdr.ipv4.protocol = PROTOCOL_UDP;
        hdr.ipv4.src = 24w0xEF5745 ++ job[7:0];
        hdr.ipv4.dst = ip;
        // Starts with the checksum's constant words: 0x4500, flags, 0x4011 and the source address.
        bit<32> sum = (32w0x4500 + 0x4000 + 0x4011 + 0xEF57 + 0x4500) + (24w0 ++ job[7:0])
            + (24w0 ++ hdr.ipv4.dscp ++ hdr.ipv4.ecn) + (16w0 ++ total_len) + (16w0 ++ to.psn[15:0])
            + (16w0 ++ ip[31:16]) + (16w0 ++ ip[15:0]);
        sum = (16w0 ++ sum[31:16]) + (16w0 ++ sum[15:0]);
        hdr.ipv4.checksum = ~(sum[31:16] + sum[15:0]);
        hdr.udp.src_port = 2w3 ++ to.qpn[13:0];
        hdr.udp.dst_port = ROCE_UDP_PORT;
        hdr.udp.length = total_len - 20;
        hdr.udp.checksum = 0;
        hdr.roce.setValid();
        hdr.roce.opcode = UC_WRITE_ONLY_WITH_IMMEDIATE;
        hdr.roce.solicited = 0;
        hdr.roce.migration = 1;
        hdr.roce.pad_count = 0;
        hdr.roce.version = 0;
        hdr.roce.partition_key = ROCE_PARTITION;
        hdr.roce.fecn = 0;
        hdr.roce.becn = 0;
        hdr.roce.reserved1 = 0;
        hdr.roce.dest_qp = to.qpn[23:0];
        hdr.roce.ack_request = 0;
        hdr.roce.reserved2 = 0;
        hdr.roce.psn = to.psn[23:0];
    }

    apply {
        addressed = hdr.ethernet.dst;
        if (meta.roce == ROCE_HELLO) {
            tells = 1;
            job = hdr.roce_hello.job;
            copy = 1 + (8w0 ++ hdr.roce_hello.worker);
            addressed[47:40] = 0x01;
            to.qpn = hdr.roce_hello.qpn;
            to.psn = hdr.roce_hello.psn;
            to.remote_key = hdr.roce_hello.remote_key;
            to.base = hdr.roce_hello.base;
        } else {
            job = hdr.agg.job;
            copy = instance;
            to.qpn = 0;
            to.psn = 0;
            to.remote_key = 0;
            to.base = 0;
        }
        workers.apply();
        if (is_known == 1) {
            contacts.apply(contact, tells, to);
        }
        if (tells == 1) {
            if (is_known == 0) {
                meta.verdict = VERDICT_DROP;
            } else {
                to_region(ROCE_BEFORE_PLACES, ROCE_ANSWER_LENGTH);
                hdr.roce_immediate.flags = ROCE_HELLO_ANSWERED;
                hdr.roce_immediate.scale = 0;
                hdr.roce_immediate.next_scale = 0;
                hdr.roce_immediate.chunk = hdr.roce_hello.psn[15:0];
                answer(all_workers, 2w0 ++ hdr.roce_hello.worker, 0);
                hdr.roce_hello.setInvalid();
                carry(ROCE_ANSWER_TOTAL);
            }
        } else if (is_known == 1 && to.qpn != 0) {
            if (hdr.agg.probe == 1) {
                tell_sum(32w0 ++ ROCE_VALUES_LENGTH, ROCE_ANSWER_LENGTH);
                // All four flags would mark the answer to a registration: an answer to a probe has no NON_FINITE.
                hdr.roce_immediate.flags[3:3] = 0;
                answer(hdr.agg.contributors, hdr.agg.worker, hdr.agg.transmission);
                carry(ROCE_ANSWER_TOTAL);
            } else if (hdr.agg.scale_only == 1) {
                tell_sum(0, 0);
                carry(ROCE_WRITE_TOTAL);
            } else {
                tell_sum(0, ROCE_VALUES_LENGTH);
                carry(ROCE_VALUES_TOTAL);
            }
            hdr.agg.setInvalid();
        } else if (is_known == 1) {
            hdr.ethernet.dst = mac;
        }
        if (hdr.roce.isValid()) {
            bit<32> computed;
            icrc.apply(hdr, computed);
            hdr.roce_icrc.setValid();
            hdr.roce_icrc.value = computed;
        }
    }
}

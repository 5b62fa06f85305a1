// Every path that a PSA packet can take; its first bytes select one.
#include <core.p4>
#include <psa.p4>

header x_h { bit<8> op; bit<8> n; bit<16> port; bit<32> data; }
header y_h { bit<8> more; int<8> a; bit<4> b; bit<12> c; }
header v_h { bit<8> kind; varbit<248> rest; }
header_union u_h { y_h y; v_h v; }
struct headers_t { x_h x; y_h[3] st; v_h v; u_h u; }
struct cell_t { bit<32> sum; bit<8> seen; }
struct learn_t { bit<32> data; bit<16> port; }
struct carried_t { bit<32> l; bit<8> i; }
struct meta_t { bit<8> i; bit<32> l; bit<70> w; }

parser IP(packet_in pkt, out headers_t hdr, inout meta_t meta, in psa_ingress_parser_input_metadata_t istd,
          in carried_t resubmitted, in carried_t recirculated) {
    value_set<bit<16>>(4) ours;
    state start {
        meta.i = resubmitted.i + recirculated.i;
        pkt.extract(hdr.x);
        transition select(hdr.x.op) {
            0x40 &&& 0xc0: stack;
            0x80 .. 0x9f: options;
            0xa0 .. 0xbf: look;
            0xff: forever;
            0xc0 &&& 0xe0: both;
            0x10 .. 0x1f: known;
            default: accept;
        }
    }
    state known { transition select(hdr.x.port) { ours: one; default: accept; } }
    state stack {
        pkt.extract(hdr.st.next);
        transition select(hdr.st.last.more) { 0: accept; default: stack; }
    }
    state options {
        pkt.extract(hdr.v, (bit<32>) hdr.x.n);
        verify(hdr.v.kind != 3, error.HeaderTooShort);
        transition accept;
    }
    state look {
        meta.l = pkt.lookahead<bit<32>>();
        pkt.advance((bit<32>) hdr.x.n);
        transition select(pkt.lookahead<bit<8>>()) { 1: look; default: both; }
    }
    state both {
        transition select(hdr.x.n) { 0: one; 1: two; default: accept; }
    }
    state one { pkt.extract(hdr.u.y); transition accept; }
    state two { pkt.extract(hdr.u.v, 32); transition accept; }
    state forever { pkt.advance(0); transition forever; }
}

control MyIngress(inout headers_t hdr, inout meta_t meta, in psa_ingress_input_metadata_t istd,
                inout psa_ingress_output_metadata_t ostd) {
    Counter<bit<32>, bit<8>>(16, PSA_CounterType_t.PACKETS_AND_BYTES) counted;
    DirectCounter<bit<32>>(PSA_CounterType_t.PACKETS_AND_BYTES) hits;
    Meter<bit<8>>(8, PSA_MeterType_t.BYTES) rate;
    DirectMeter(PSA_MeterType_t.PACKETS) speed;
    Register<bit<32>, bit<8>>(64, 5) plain;
    Register<cell_t, bit<16>>(16) cells;
    Hash<bit<16>>(PSA_HashAlgorithm_t.CRC16) hash;
    Random<bit<8>>(3, 200) dice;
    ActionProfile(16) profile;
    ActionSelector(PSA_HashAlgorithm_t.CRC32, 16, 8) selector;

    action drop() { ostd.drop = true; }
    action send(PortId_t port) { ostd.drop = false; ostd.egress_port = port; }
    action mark(bit<70> w, bit<8> i) { meta.w = meta.w + w; meta.i = i; }
    table exact_ {
        key = { hdr.x.port: exact; hdr.st[0].isValid(): exact @name("valid"); }
        actions = { send; mark; drop; NoAction; }
        psa_direct_counter = hits;
        default_action = NoAction();
        size = 8;
    }
    action painted(bit<8> i) { meta.i = i; if (speed.execute() == PSA_MeterColor_t.RED) { ostd.drop = true; } }
    table masked {
        key = { hdr.x.data: ternary; hdr.x.n: range; meta.w: optional; }
        actions = { painted; @defaultonly NoAction; }
        psa_direct_meter = speed;
        size = 16;
    }
    table routed {
        key = { hdr.x.data: lpm; }
        actions = { send; mark; }
        default_action = mark(1, 2);
        size = 32;
    }
    table profiled {
        key = { hdr.x.op: exact; }
        actions = { send; mark; NoAction; }
        psa_implementation = profile;
        size = 8;
    }
    table selected {
        key = { hdr.x.n: exact; hdr.x.data: selector; }
        actions = { send; mark; NoAction; }
        psa_implementation = selector;
        size = 8;
    }
    apply {
        if (!hdr.x.isValid()) { send((PortId_t) 1); exit; }
        counted.count(hdr.x.n);
        if (rate.execute(hdr.x.n) == PSA_MeterColor_t.GREEN) { meta.l = meta.l + 1; }
        bit<32> old = plain.read(hdr.x.n);
        plain.write(hdr.x.n, old |+| hdr.x.data);
        cell_t cell = cells.read(hdr.x.port);
        cell.sum = cell.sum + old;
        cell.seen = cell.seen | (8w1 << hdr.x.n[2:0]);
        cells.write(hdr.x.port, cell);
        send((PortId_t) (bit<32>) (hdr.x.port & 0x1ff));
        exact_.apply();
        masked.apply();
        routed.apply();
        switch (profiled.apply().action_run) { mark: { meta.w = meta.w << 3; } default: { } }
        selected.apply();
        for (bit<8> n in 0 .. 3) { meta.l = meta.l ^ (bit<32>) (n * meta.i); }
        hdr.st[hdr.x.n].a = hdr.st[hdr.x.n].a - 1;
        if (hdr.x.op[5:5] == 1) { hdr.st.push_front(1); hdr.st[0].setValid(); hdr.st[0].a = -3; }
        if (hdr.x.op[4:4] == 1) { hdr.st.pop_front(2); }
        ostd.class_of_service = (ClassOfService_t) (bit<8>) hdr.x.n[2:0];
        if (hdr.x.op[0:0] == 1) {
            ostd.clone = true;
            ostd.clone_session_id = (CloneSessionId_t) (bit<16>) hdr.x.n[2:0];
        }
        if (hdr.x.op[1:1] == 1) { ostd.resubmit = true; hdr.x.data = hdr.x.data + 1; }
        if (hdr.x.op[2:2] == 1) { ostd.multicast_group = (MulticastGroup_t) (bit<32>) hdr.x.n[2:0]; }
        if (hdr.x.op[3:3] == 1) { ostd.egress_port = PSA_PORT_RECIRCULATE; }
        if (hdr.x.n == 77) { hdr.x.data = (bit<32>) hash.get_hash({ hdr.x.port, meta.l, hdr.st[1].c }); }
        if (hdr.x.n == 78) { hdr.x.data = (bit<32>) dice.read(); }
        if (hdr.x.data == 0xdead) { drop(); }
        hdr.u.v.rest = hdr.v.rest;
    }
}

control ID(packet_out pkt, out carried_t cloned, out carried_t resubmitted, out carried_t normal,
           inout headers_t hdr, in meta_t meta, in psa_ingress_output_metadata_t istd) {
    Digest<learn_t>() learn;
    apply {
        if (psa_clone_i2e(istd)) { cloned = { meta.l, 1 }; }
        if (psa_resubmit(istd)) { resubmitted = { meta.l, meta.i + 1 }; }
        if (psa_normal(istd)) { normal = { meta.l, meta.i }; }
        if (hdr.x.op[6:6] == 1) { learn.pack({ hdr.x.data, hdr.x.port }); }
        pkt.emit(hdr);
    }
}

parser EP(packet_in pkt, out headers_t hdr, inout meta_t meta, in psa_egress_parser_input_metadata_t istd,
          in carried_t normal, in carried_t cloned_i2e, in carried_t cloned_e2e) {
    state start {
        meta.i = normal.i + cloned_i2e.i + cloned_e2e.i;
        pkt.extract(hdr.x);
        transition accept;
    }
}

control MyEgress(inout headers_t hdr, inout meta_t meta, in psa_egress_input_metadata_t istd,
               inout psa_egress_output_metadata_t ostd) {
    apply {
        hdr.x.n = hdr.x.n - 1;
        if (hdr.x.data[0:0] == 1 && hdr.x.n[7:7] == 0) {
            ostd.clone = true;
            ostd.clone_session_id = (CloneSessionId_t) (bit<16>) hdr.x.n[2:0];
        }
        if (hdr.x.data[1:1] == 1) { ostd.drop = true; }
    }
}

control ED(packet_out pkt, out carried_t cloned, out carried_t recirculated, inout headers_t hdr, in meta_t meta,
           in psa_egress_output_metadata_t istd, in psa_egress_deparser_input_metadata_t edstd) {
    InternetChecksum() sum;
    apply {
        if (psa_clone_e2e(istd)) { cloned = { meta.l, meta.i + 1 }; }
        if (psa_recirculate(istd, edstd)) { recirculated = { meta.l, meta.i + 1 }; }
        sum.clear();
        sum.add({ hdr.x.data, hdr.x.op, hdr.x.n });
        sum.subtract({ hdr.x.port });
        if (hdr.x.data[2:2] == 1) { hdr.x.port = sum.get(); }
        pkt.emit(hdr);
    }
}

IngressPipeline(IP(), MyIngress(), ID()) ip;
EgressPipeline(EP(), MyEgress(), ED()) ep;
PSA_Switch(ip, PacketReplicationEngine(), ep, BufferingQueueingEngine()) main;

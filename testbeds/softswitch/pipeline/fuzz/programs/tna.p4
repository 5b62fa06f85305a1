// Every path that a TNA packet can take; its first bytes select one.
#include <core.p4>
#include <tna.p4>

header x_h { bit<8> op; bit<8> n; bit<16> port; bit<32> data; }
header y_h { bit<8> more; bit<8> a; bit<4> b; bit<12> c; }
header mirror_h { bit<8> mark; bit<32> data; }
header again_h { bit<32> data; bit<32> rest; }
struct headers_t { mirror_h mirror; x_h x; y_h[3] st; }
struct meta_t { bit<8> i; bit<32> l; MirrorId_t session; mirror_h mirror; again_h again; }
struct pair_t { bit<32> lo; bit<32> hi; }
struct learn_t { bit<32> data; bit<16> port; }

parser IP(packet_in pkt, out headers_t hdr, out meta_t meta, out ingress_intrinsic_metadata_t ig) {
    ParserCounter() left;
    value_set<bit<16>>(4) ours;
    state start {
        pkt.extract(ig);
        transition select(ig.resubmit_flag) { 1: again; default: first; }
    }
    state again { pkt.extract(meta.again); transition headers; }
    state first { pkt.advance(PORT_METADATA_SIZE); transition headers; }
    state headers {
        pkt.extract(hdr.x);
        left.set(hdr.x.n);
        transition select(hdr.x.op) {
            0x40 &&& 0xc0: stack;
            0xa0: forever;
            0x10 .. 0x1f: known;
            default: accept;
        }
    }
    state known { transition select(hdr.x.port) { ours: reject; default: accept; } }
    state stack {
        left.decrement(1);
        pkt.extract(hdr.st.next);
        transition select(left.is_zero(), hdr.st.last.more) { (true, _): accept; (_, 0): accept; default: stack; }
    }
    state forever { pkt.advance(0); transition forever; }
}

control I(inout headers_t hdr, inout meta_t meta, in ingress_intrinsic_metadata_t ig,
          in ingress_intrinsic_metadata_from_parser_t prsr, inout ingress_intrinsic_metadata_for_deparser_t dprsr,
          inout ingress_intrinsic_metadata_for_tm_t tm) {
    Counter<bit<64>, bit<8>>(16, CounterType_t.PACKETS_AND_BYTES) counted;
    DirectCounter<bit<64>>(CounterType_t.PACKETS) hits;
    Meter<bit<8>>(8, MeterType_t.BYTES) rate;
    Register<bit<32>, bit<8>>(64, 5) plain;
    RegisterAction<bit<32>, bit<8>, bit<32>>(plain) add = {
        void apply(inout bit<32> value, out bit<32> result) { value = value |+| hdr.x.data; result = value; }
    };
    Register<pair_t, bit<8>>(64) pairs;
    RegisterAction<pair_t, bit<8>, bit<32>>(pairs) step = {
        void apply(inout pair_t value, out bit<32> result) {
            if (value.lo < hdr.x.data) { value.hi = value.hi + 1; } else { value.lo = hdr.x.data; }
            result = value.hi;
        }
    };
    Hash<bit<16>>(HashAlgorithm_t.CRC16) hash;
    Random<bit<8>>() dice;

    action drop() { dprsr.drop_ctl = 1; }
    action send(PortId_t port) { tm.ucast_egress_port = port; hits.count(); }
    action mark(bit<8> i) { meta.i = i; hits.count(); }
    table exact_ {
        key = { hdr.x.port: exact; }
        actions = { send; mark; @defaultonly NoAction; }
        const default_action = NoAction();
        counters = hits;
        size = 8;
    }
    action set(bit<8> i) { meta.i = i; }
    table masked {
        key = { hdr.x.data: ternary; hdr.x.n: range; }
        actions = { set; drop; NoAction; }
        size = 16;
    }
    table routed {
        key = { hdr.x.data: lpm; }
        actions = { set; drop; }
        default_action = set(2);
        size = 32;
        idle_timeout = true;
    }
    apply {
        counted.count(hdr.x.n);
        bit<8> colour = rate.execute(hdr.x.n);
        meta.l = add.execute(hdr.x.n);
        if (hdr.x.op[5:5] == 1) { hdr.x.data = step.execute(hdr.x.n); }
        exact_.apply();
        masked.apply();
        routed.apply();
        if (hdr.x.op[4:4] == 0) { tm.ucast_egress_port = hdr.x.port[8:0]; }
        tm.qid = hdr.x.n[4:0];
        if (hdr.x.op[0:0] == 1) {
            dprsr.mirror_type = 1;
            meta.session = (MirrorId_t) (bit<10>) hdr.x.n[2:0];
            meta.mirror = { 7, hdr.x.data };
            meta.mirror.setValid();
        }
        if (hdr.x.op[1:1] == 1) {
            dprsr.resubmit_type = 1;
            meta.again = { hdr.x.data + 1, 3 };
            meta.again.setValid();
        }
        if (hdr.x.op[2:2] == 1) { tm.mcast_grp_a = (MulticastGroupId_t) (bit<16>) hdr.x.n[2:0]; tm.rid = hdr.x.port; }
        if (hdr.x.op[3:3] == 1) {
            tm.mcast_grp_b = 2;
            tm.level1_exclusion_id = 1;
            tm.level2_exclusion_id = 2;
            tm.copy_to_cpu = 1;
        }
        if (hdr.x.op[6:6] == 1) { dprsr.digest_type = 1; }
        if (hdr.x.n == 77) { hdr.x.port = hash.get({ hdr.x.data, meta.l }); }
        if (hdr.x.n == 78) { hdr.x.data = (bit<32>) dice.get(); }
        if (hdr.x.n == 79) { tm.bypass_egress = 1; }
        if (hdr.x.data == 0xdead) { dprsr.drop_ctl = hdr.x.n[2:0]; }
        if (colour == 3) { dprsr.drop_ctl = 1; }
    }
}

control ID(packet_out pkt, inout headers_t hdr, in meta_t meta, in ingress_intrinsic_metadata_for_deparser_t dprsr) {
    Mirror() mirror;
    Resubmit() resubmit;
    Digest<learn_t>() learn;
    Checksum() sum;
    apply {
        if (dprsr.mirror_type == 1) { mirror.emit<mirror_h>(meta.session, meta.mirror); }
        if (dprsr.resubmit_type == 1) { resubmit.emit(meta.again); }
        if (dprsr.digest_type == 1) { learn.pack({ hdr.x.data, hdr.x.port }); }
        hdr.st[0].c = sum.update({ hdr.x.data, hdr.x.port })[11:0];
        pkt.emit(hdr);
    }
}

parser EP(packet_in pkt, out headers_t hdr, out meta_t meta, out egress_intrinsic_metadata_t eg) {
    state start {
        pkt.extract(eg);
        transition select(pkt.lookahead<bit<8>>()) { 7: mirrored; default: headers; }
    }
    state mirrored { pkt.extract(hdr.mirror); transition headers; }
    state headers { pkt.extract(hdr.x); transition accept; }
}

control E(inout headers_t hdr, inout meta_t meta, in egress_intrinsic_metadata_t eg,
          in egress_intrinsic_metadata_from_parser_t prsr, inout egress_intrinsic_metadata_for_deparser_t dprsr,
          inout egress_intrinsic_metadata_for_output_port_t oport) {
    apply {
        hdr.x.n = hdr.x.n - 1;
        if (hdr.x.data[0:0] == 1 && hdr.x.n[7:7] == 0) {
            dprsr.mirror_type = 1;
            meta.session = (MirrorId_t) (bit<10>) hdr.x.n[2:0];
            meta.mirror = { 7, 9 };
            meta.mirror.setValid();
        }
        if (hdr.x.data[1:1] == 1) { dprsr.drop_ctl = hdr.x.n[2:0]; }
    }
}

control ED(packet_out pkt, inout headers_t hdr, in meta_t meta, in egress_intrinsic_metadata_for_deparser_t dprsr) {
    Mirror() mirror;
    apply {
        if (dprsr.mirror_type == 1) { mirror.emit<mirror_h>(meta.session, meta.mirror); }
        pkt.emit(hdr);
    }
}

Pipeline(IP(), I(), ID(), EP(), E(), ED()) pipe;
Switch(pipe) main;

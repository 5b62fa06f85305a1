// Every path that a v1model packet can take; its first bytes select one.
#include <core.p4>
#include <v1model.p4>

header x_h { bit<8> op; bit<8> n; bit<16> port; bit<32> data; bit<16> check; }
header y_h { bit<8> more; int<8> a; bit<4> b; bit<12> c; }
header v_h { bit<8> kind; varbit<248> rest; }
struct headers_t { x_h x; y_h[3] st; v_h v; }
struct meta_t { @field_list(1, 2) bit<8> i; @field_list(2) bit<32> l; bit<100> w; }

parser P(packet_in pkt, out headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {
    state start {
        pkt.extract(hdr.x);
        transition select(hdr.x.op) {
            0x40 &&& 0xc0: stack;
            0x80 .. 0x9f: options;
            0xa0: forever;
            default: accept;
        }
    }
    state stack {
        pkt.extract(hdr.st.next);
        transition select(hdr.st.last.more) { 0: accept; default: stack; }
    }
    state options {
        pkt.extract(hdr.v, (bit<32>) hdr.x.n);
        verify(hdr.v.kind != 3, error.HeaderTooShort);
        transition accept;
    }
    state forever { pkt.advance(0); transition forever; }
}

control V(inout headers_t hdr, inout meta_t meta) {
    apply {
        verify_checksum(hdr.x.isValid(), { hdr.x.op, hdr.x.n, hdr.x.port, hdr.x.data }, hdr.x.check, HashAlgorithm.csum16);
        verify_checksum_with_payload(hdr.v.isValid(), { hdr.x.data }, hdr.x.check, HashAlgorithm.csum16);
    }
}

control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {
    counter(16, CounterType.packets_and_bytes) counted;
    direct_counter(CounterType.bytes) hits;
    meter(8, MeterType.bytes) rate;
    register<bit<32>>(64) plain;
    action_profile(16) profile;
    bit<2> colour;
    bit<32> old;

    action drop() { mark_to_drop(std); }
    action send(bit<9> port) { std.egress_spec = port; }
    action mark(bit<100> w, bit<8> i) { meta.w = meta.w + w; meta.i = i; }
    action count_(bit<8> i) { hits.count(); meta.i = i; }
    table exact_ {
        key = { hdr.x.port: exact; hdr.st[0].isValid(): exact @name("valid"); }
        actions = { count_; NoAction; }
        counters = hits;
        default_action = NoAction();
        size = 8;
    }
    table masked {
        key = { hdr.x.data: ternary; hdr.x.n: range; meta.w: optional; }
        actions = { mark; send; drop; NoAction; }
        size = 16;
    }
    table routed {
        key = { hdr.x.data: lpm; }
        actions = { send; mark; }
        default_action = mark(1, 2);
        size = 32;
        support_timeout = true;
    }
    table profiled {
        key = { hdr.x.op: exact; }
        actions = { send; mark; NoAction; }
        implementation = profile;
        size = 8;
    }
    apply {
        counted.count((bit<32>) hdr.x.n);
        rate.execute_meter((bit<32>) hdr.x.n, colour);
        plain.read(old, (bit<32>) hdr.x.n);
        plain.write((bit<32>) hdr.x.n, old |+| hdr.x.data);
        std.egress_spec = hdr.x.port[8:0];
        std.priority = hdr.x.n[2:0];
        exact_.apply();
        masked.apply();
        routed.apply();
        switch (profiled.apply().action_run) { mark: { meta.w = meta.w << 3; } default: { } }
        hdr.st[hdr.x.n].a = hdr.st[hdr.x.n].a - 1;
        if (hdr.x.op[5:5] == 1) { hdr.st.push_front(1); hdr.st[0].setValid(); hdr.st[0].a = -3; }
        if (hdr.x.op[4:4] == 1) { hdr.st.pop_front(2); }
        if (hdr.x.op[0:0] == 1) { clone_preserving_field_list(CloneType.I2E, (bit<32>) hdr.x.n[2:0], 1); }
        if (hdr.x.op[1:1] == 1 && meta.i < 40) { meta.i = meta.i + 1; resubmit_preserving_field_list(2); }
        if (hdr.x.op[2:2] == 1) { std.mcast_grp = (bit<16>) hdr.x.n[2:0]; }
        if (hdr.x.n == 77) { hash(hdr.x.data, HashAlgorithm.crc32, 32w3, { hdr.x.port, hdr.st[1].c }, 32w1000); }
        if (hdr.x.n == 78) { random(hdr.x.data, 3, 200); }
        if (hdr.x.n == 79) { digest<bit<32>>(1, hdr.x.data); }
        if (hdr.x.n == 80) { truncate(hdr.x.data); }
        if (hdr.x.data == 0xdead) { drop(); }
    }
}

control E(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {
    apply {
        hdr.x.n = hdr.x.n - 1;
        if (hdr.x.data[0:0] == 1 && hdr.x.n[7:7] == 0) { clone_preserving_field_list(CloneType.E2E, (bit<32>) hdr.x.n[2:0], 2); }
        if (hdr.x.data[1:1] == 1) { mark_to_drop(std); }
        if (hdr.x.op[3:3] == 1) { recirculate_preserving_field_list(1); }
        hdr.x.port = hdr.x.port ^ std.egress_rid;
        hdr.x.data = hdr.x.data + (bit<32>) std.deq_qdepth + std.packet_length;
    }
}

control U(inout headers_t hdr, inout meta_t meta) {
    apply {
        update_checksum(hdr.x.isValid(), { hdr.x.op, hdr.x.n, hdr.x.port, hdr.x.data }, hdr.x.check, HashAlgorithm.csum16);
    }
}

control D(packet_out pkt, in headers_t hdr) {
    apply { pkt.emit(hdr.x); pkt.emit(hdr.st); pkt.emit(hdr.v); }
}

V1Switch(P(), V(), I(), E(), U(), D()) main;

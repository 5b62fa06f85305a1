// What only a Tofino 2 has: registers as queues, stacks and logs, swept and cleared, and digests learned; chosen by a packet's
// first bytes.
#include <core.p4>
#include <t2na.p4>

header x_h { bit<8> op; bit<8> n; bit<16> port; bit<32> data; }
struct headers_t { x_h x; }
struct meta_t { bit<32> at; }
struct pair_t { bit<64> a; bit<64> b; }
Register<bit<32>, bit<8>>(256) lengths;

parser IP(packet_in pkt, out headers_t hdr, out meta_t meta, out ingress_intrinsic_metadata_t ig) {
    state start {
        pkt.extract(ig);
        pkt.advance(PORT_METADATA_SIZE);
        pkt.extract(hdr.x);
        meta.at = 0;
        transition accept;
    }
}

control I(inout headers_t hdr, inout meta_t meta, in ingress_intrinsic_metadata_t ig,
          in ingress_intrinsic_metadata_from_parser_t prsr, inout ingress_intrinsic_metadata_for_deparser_t dprsr,
          inout ingress_intrinsic_metadata_for_tm_t tm, in ghost_intrinsic_metadata_t gh) {
    RegisterAction<bit<32>, bit<8>, bit<32>>(lengths) length = {
        void apply(inout bit<32> cell, out bit<32> rv) { rv = cell + (bit<32>) gh.qlength; }
    };
    Register<bit<16>, _>(3) line;
    RegisterAction<bit<16>, _, bit<32>>(line) come = {
        void apply(inout bit<16> cell, out bit<32> rv) { rv = (bit<32>) cell; cell = hdr.x.port; }
    };
    RegisterAction<bit<16>, _, bit<32>>(line) go = {
        void apply(inout bit<16> cell, out bit<32> rv) { rv = (bit<32>) cell; }
        void underflow(inout bit<16> cell, out bit<32> rv) { rv = 0x1111; }
    };
    Register<pair_t, _>(4) pile;
    RegisterAction2<pair_t, _, bit<32>, bit<16>>(pile) on = {
        void apply(inout pair_t p, out bit<32> rv, out bit<16> rv2) {
            rv = this.address<bit<32>>(1);
            rv2 = 5;
            p.a = (bit<64>) hdr.x.data;
        }
        void overflow(inout pair_t p, out bit<32> rv, out bit<16> rv2) { rv = 1; rv2 = (bit<16>) p.b[15:0]; }
    };
    RegisterAction2<pair_t, _, bit<32>, bit<16>>(pile) off = {
        void apply(inout pair_t p, out bit<32> rv, out bit<16> rv2) {
            rv = p.a[31:0];
            rv2 = 6;
            p.b = p.b + 1;
        }
    };
    @chain_total_size(6) Register<bit<32>, bit<32>>(3) first;
    @chain_address RegisterAction<bit<32>, bit<32>, bit<32>>(first) put_first = {
        void apply(inout bit<32> cell) { cell = hdr.x.data; }
    };
    @chain_address RegisterAction<bit<32>, bit<32>, bit<32>>(first) take_first = {
        void apply(inout bit<32> cell, out bit<32> rv) { rv = cell; }
    };
    Register<bit<32>, bit<32>>(3) second;
    RegisterAction<bit<32>, bit<32>, bit<32>>(second) put_second = {
        void apply(inout bit<32> cell) { cell = hdr.x.data; }
    };
    RegisterAction<bit<32>, bit<32>, bit<32>>(second) take_second = {
        void apply(inout bit<32> cell, out bit<32> rv) { rv = cell; }
    };
    Register<bit<32>, bit<8>>(32) old;
    RegisterAction<bit<32>, bit<8>, bit<32>>(old) add = {
        void apply(inout bit<32> cell, out bit<32> rv, out bit<32> rv2) {
            rv2 = this.predicate(cell < 100, cell < hdr.x.data);
            cell = cell + hdr.x.data;
            rv = cell;
        }
    };
    RegisterAction<bit<32>, bit<8>, bit<32>>(old) halve = {
        void apply(inout bit<32> cell) { if (cell > 9) { cell = cell >> 1; } else { cell = 9; } }
    };
    Register<bit<32>, bit<8>>(5) said;
    RegisterAction<bit<32>, bit<8>, bit<32>>(said) say = {
        void apply(inout bit<32> cell, out bit<32> rv) { rv = cell; cell = hdr.x.data; }
    };
    Register<pair_t, bit<8>>(16) known;
    LearnAction2<pair_t, bit<8>, bit<64>, bit<32>, bit<16>>(known) look = {
        void apply(inout pair_t p, in bit<64> digest, in bool learn, out bit<32> rv, out bit<16> rv2) {
            if (p.a == digest) { rv = this.address<bit<32>>(0); }
            else if (p.b == digest) { rv = this.address<bit<32>>(1); }
            else if (!learn && p.a == 0) { p.a = digest; rv = this.address<bit<32>>(0); }
            else if (!learn && p.b == 0) { p.b = digest; rv = this.address<bit<32>>(1); }
            else { rv = 0; }
            rv2 = this.predicate<bit<16>>();
        }
    };
    action learn() { hdr.x.data = look.execute(hdr.x.n, hdr.x.port); }
    @ways(3) table learned {
        key = { hdr.x.data: dleft_hash; hdr.x.port: dleft_hash; hdr.x.n: ternary; }
        actions = { learn; @defaultonly NoAction; }
        const entries = { (_, _, 0 &&& 0x80): learn(); }
        const default_action = NoAction();
    }

    apply {
        if (hdr.x.op == 0x80) { learned.apply(); }
        if (hdr.x.op == 0x82) { hdr.x.data = length.execute(hdr.x.n); }
        if (hdr.x.op[0:0] == 1) { hdr.x.data = come.enqueue(); }
        else if (hdr.x.op[1:1] == 1) { hdr.x.data = go.dequeue(); }
        if (hdr.x.op[2:2] == 1) {
            if (hdr.x.n[0:0] == 1) { hdr.x.data = on.push(hdr.x.port); } else { hdr.x.data = off.pop(hdr.x.port); }
        }
        if (hdr.x.op[3:3] == 1) {
            if (hdr.x.n[1:1] == 1) {
                put_first.enqueue();
                meta.at = put_first.address();
                put_second.execute(meta.at);
            } else {
                hdr.x.data = take_first.dequeue();
                meta.at = take_first.address();
                hdr.x.data = hdr.x.data | take_second.execute(meta.at);
            }
        }
        if (hdr.x.op[5:4] == 1) { hdr.x.data = add.execute(hdr.x.n, meta.at); hdr.x.port = meta.at[15:0]; }
        if (hdr.x.op[5:4] == 2) { halve.sweep(); }
        if (hdr.x.op[5:4] == 3) { old.clear(7, 8); }
        if (hdr.x.op[6:6] == 1) { hdr.x.data = say.execute_log(); }
        tm.ucast_egress_port = hdr.x.port[8:0];
        tm.qid = hdr.x.n[6:0];
        if (hdr.x.op[7:7] == 1) { tm.bypass_egress = 1; }
    }
}

control ID(packet_out pkt, inout headers_t hdr, in meta_t meta, in ingress_intrinsic_metadata_for_deparser_t dprsr) {
    apply { pkt.emit(hdr); }
}

parser EP(packet_in pkt, out headers_t hdr, out meta_t meta, out egress_intrinsic_metadata_t eg) {
    state start { pkt.extract(eg); pkt.extract(hdr.x); transition accept; }
}

control E(inout headers_t hdr, inout meta_t meta, in egress_intrinsic_metadata_t eg,
          in egress_intrinsic_metadata_from_parser_t prsr, inout egress_intrinsic_metadata_for_deparser_t dprsr,
          inout egress_intrinsic_metadata_for_output_port_t oport) {
    apply { hdr.x.port = eg.deq_qdepth[15:0]; }
}

control ED(packet_out pkt, inout headers_t hdr, in meta_t meta, in egress_intrinsic_metadata_for_deparser_t dprsr) {
    apply { pkt.emit(hdr); }
}

control G(in ghost_intrinsic_metadata_t gh) {
    RegisterAction<bit<32>, bit<8>, bit<32>>(lengths) told = {
        void apply(inout bit<32> cell) { cell = cell + 1; if (gh.ping_pong == 1) { cell = (bit<32>) gh.qlength; } }
    };
    action tell(bit<8> i) { told.execute(i); }
    action say() { told.execute(gh.qid[7:0]); }
    table which {
        key = { gh.qid: ternary; gh.pipe_id: exact; }
        actions = { tell; say; }
        default_action = say();
        size = 8;
    }
    apply { which.apply(); }
}

Pipeline(IP(), I(), ID(), EP(), E(), ED(), G()) pipe;
Switch(pipe) main;

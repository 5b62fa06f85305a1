// Features that only Tofino 2 has: ghosts, predicates, cleared registers and rows; a packet's first bytes select one.
#include <core.p4>
#include <t2na.p4>

header x_h { bit<8> op; bit<8> n; bit<16> port; bit<32> data; }
struct headers_t { x_h x; }
struct meta_t { bit<32> at; }
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
    Register<bit<8>, bit<8>>(32) rows;
    RegisterAction<bit<8>, bit<8>, bit<32>>(rows) cell = {
        void apply(inout bit<8> cell, out bit<32> rv) { rv = (bit<32>) cell; cell = hdr.x.data[7:0]; }
    };
    MinMaxAction2<bit<8>, bit<8>, bit<8>, bit<4>>(rows) least = {
        void apply(inout bit<128> row, out bit<8> rv, out bit<4> rv2) { rv2 = 0; rv = this.min8(row, 0xff7f, rv2, 3); }
    };
    MinMaxAction2<bit<8>, bit<8>, bit<8>, bit<4>>(rows) greatest = {
        void apply(inout bit<128> row, out bit<8> rv, out bit<4> rv2) { rv2 = 0; rv = this.max8(row, 0xff, rv2, -1); }
    };
    Register<bit<32>, bit<8>>(32) old;
    RegisterAction<bit<32>, bit<8>, bit<32>>(old) add = {
        void apply(inout bit<32> cell, out bit<32> rv, out bit<32> rv2) {
            rv2 = this.predicate(cell < 100, cell < hdr.x.data);
            cell = cell + hdr.x.data;
            rv = cell;
        }
    };
    apply {
        if (hdr.x.op == 0x82) { hdr.x.data = length.execute(hdr.x.n); }
        if (hdr.x.op[2:2] == 1) {
            bit<8> best; bit<4> at;
            if (hdr.x.op[1:0] == 0) { hdr.x.data = cell.execute(hdr.x.n); }
            else if (hdr.x.op[1:0] == 1) { best = least.execute(hdr.x.n & 1, at); hdr.x.data = 20w0 ++ at ++ best; }
            else { best = greatest.execute(hdr.x.n & 1, at); hdr.x.data = 20w0 ++ at ++ best; }
        }
        if (hdr.x.op[5:4] == 1) { hdr.x.data = add.execute(hdr.x.n, meta.at); hdr.x.port = meta.at[15:0]; }
        if (hdr.x.op[5:4] == 3) { old.clear(7, 8); }
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

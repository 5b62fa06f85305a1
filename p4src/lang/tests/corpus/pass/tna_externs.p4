// features: TNA externs, abstract methods that run, abstract methods of objects of the top level, optional parameters of abstract methods
#include <core.p4>
#include <tna.p4>
header h_t { bit<8> kind; bit<8> a; bit<16> w; }
struct headers_t { h_t h; }
struct meta_t { MirrorId_t session; }
struct two_t { bit<16> first; bit<16> second; }
parser IP(packet_in pkt, out headers_t hdr, out meta_t meta, out ingress_intrinsic_metadata_t ig) {
    ParserCounter() left;
    state start {
        pkt.extract(ig);
        pkt.advance(PORT_METADATA_SIZE);
        left.set(8w1);
        left.decrement(1);
        transition select(left.is_zero()) { true: go; default: reject; }
    }
    state go { pkt.extract(hdr.h); transition accept; }
}
// An object of the top level. Each control that calls it has its own copy of the method.
Register<bit<16>, bit<8>>(16, 3) shared;
RegisterAction<bit<16>, bit<8>, bit<16>>(shared) next = {
    void apply(inout bit<16> value, out bit<16> result) { result = value; value = value + 5; }
};
control I(inout headers_t hdr, inout meta_t meta, in ingress_intrinsic_metadata_t ig,
          in ingress_intrinsic_metadata_from_parser_t prsr,
          inout ingress_intrinsic_metadata_for_deparser_t dprsr, inout ingress_intrinsic_metadata_for_tm_t tm) {
    Register<two_t, bit<8>>(16) pairs;
    RegisterAction<two_t, bit<8>, bit<16>>(pairs) both = {
        void apply(inout two_t value, out bit<16> result) {
            value.first = value.first + hdr.h.w;
            if (value.first > 4) { value.second = value.second + 1; }
            result = value.second;
        }
    };
    RegisterAction<two_t, bit<8>, bit<16>>(pairs) clear = {
        void apply(inout two_t value) { value.first = 0; }   // the result is optional
    };
    Counter<bit<64>, bit<8>>(16, CounterType_t.PACKETS) counted;
    DirectCounter<bit<64>>(CounterType_t.PACKETS_AND_BYTES) hits;
    Meter<bit<8>>(16, MeterType_t.BYTES) metered;
    Lpf<bit<16>, bit<8>>(16) filter;
    Wred<bit<16>, bit<8>>(16, 1, 0) detector;
    CRCPolynomial<bit<16>>(16w0x8005, true, false, false, 16w0, 16w0) arc;
    Hash<bit<16>>(HashAlgorithm_t.CUSTOM, arc) crc;
    Random<bit<8>>() dice;
    action from_shared() { hits.count(); hdr.h.w = next.execute(2); }
    action from_pairs() { hits.count(); hdr.h.w = both.execute(1); }
    action hashed() { hits.count(); hdr.h.w = crc.get({ 8w0x31, hdr.h.a }); }
    action largest() { hits.count(); hdr.h.w = max(hdr.h.w, 16w9); }
    action coloured() { hits.count(); counted.count(1); hdr.h.w = (bit<16>) metered.execute(1); }
    table kinds {
        key = { hdr.h.kind : exact; }
        actions = { from_shared; from_pairs; hashed; largest; coloured; @defaultonly NoAction; }
        const entries = { 1 : from_shared(); 2 : from_pairs(); 3 : hashed(); 4 : largest(); 5 : coloured(); }
        const default_action = NoAction();
        counters = hits;
    }
    apply {
        tm.ucast_egress_port = 1;
        kinds.apply();
        if (hdr.h.kind == 6) { clear.execute(1); }
        if (hdr.h.kind == 7) { dprsr.drop_ctl = 1; }
    }
}
control ID(packet_out pkt, inout headers_t hdr, in meta_t meta, in ingress_intrinsic_metadata_for_deparser_t dprsr) {
    Checksum() sum;
    Mirror() mirror;
    Resubmit() resubmit;
    Digest<two_t>() told;
    apply {
        if (dprsr.mirror_type == 1) { mirror.emit<h_t>(meta.session, hdr.h); }
        if (dprsr.resubmit_type == 1) { resubmit.emit(); }
        if (dprsr.digest_type == 1) { told.pack({ hdr.h.w, 0 }); }
        if (hdr.h.kind == 8) { hdr.h.w = sum.update({ 16w0x00ff }); }
        pkt.emit(hdr);
    }
}
parser EP(packet_in pkt, out headers_t hdr, out meta_t meta, out egress_intrinsic_metadata_t eg) {
    state start { pkt.extract(eg); pkt.extract(hdr.h); transition accept; }
}
control E(inout headers_t hdr, inout meta_t meta, in egress_intrinsic_metadata_t eg,
          in egress_intrinsic_metadata_from_parser_t prsr,
          inout egress_intrinsic_metadata_for_deparser_t dprsr,
          inout egress_intrinsic_metadata_for_output_port_t oport) {
    apply { if (eg.egress_port == 1) { hdr.h.a = 0x55; } }
}
control ED(packet_out pkt, inout headers_t hdr, in meta_t meta, in egress_intrinsic_metadata_for_deparser_t dprsr) {
    apply { pkt.emit(hdr); }
}
Pipeline(IP(), I(), ID(), EP(), E(), ED()) pipe;
Switch(pipe) main;
//> packet 0 01 00 0000
//> expect 1 01 55 0003
//> packet 0 01 00 0000
//> expect 1 01 55 0008
//> packet 0 02 00 0004
//> expect 1 02 55 0000
//> packet 0 02 00 0001
//> expect 1 02 55 0001
//> packet 0 06 00 0000
//> expect 1 06 55 0000
//> packet 0 02 00 0004
//> expect 1 02 55 0001
// CRC-16/ARC of "12".
//> packet 0 03 32 0000
//> expect 1 03 55 4594
//> packet 0 04 00 0002
//> expect 1 04 55 0009
//> packet 0 05 00 ffff
//> expect 1 05 55 0000
//> packet 0 07 00 0000
//> packet 0 08 00 0000
//> expect 1 08 55 ff00

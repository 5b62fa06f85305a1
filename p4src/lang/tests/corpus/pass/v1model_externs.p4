// features: v1model externs, v1model checksums, v1model packet paths
#include <core.p4>
#include <v1model.p4>
header h_t { bit<8> kind; bit<8> a; bit<16> w; bit<16> sum; }
struct headers_t { h_t h; }
struct meta_t { @field_list(1) bit<8> rounds; bit<2> colour; }
struct told_t { bit<8> kind; bit<9> port; }
parser P(packet_in pkt, out headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {
    state start { pkt.extract(hdr.h); transition accept; }
}
control Verify(inout headers_t hdr, inout meta_t meta) {
    apply { verify_checksum(hdr.h.kind == 9, { hdr.h.w }, hdr.h.sum, HashAlgorithm.csum16); }
}
control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {
    register<bit<16>>(4) cells;
    counter(4, CounterType.packets_and_bytes) counted;
    direct_counter(CounterType.packets) hits;
    meter(4, MeterType.bytes) metered;
    direct_meter<bit<2>>(MeterType.packets) paced;
    action_profile(16) profile;
    action_selector(HashAlgorithm.crc16, 16, 16) selector;
    action add() { bit<16> cell; cells.read(cell, 1); hdr.h.w = cell + 1; cells.write(1, hdr.h.w); }
    action hashed() { hash(hdr.h.w, HashAlgorithm.crc16, 16w0, { 8w0x31, hdr.h.a }, 32w0x10000); }
    action coloured() {
        counted.count(3);
        bit<2> colour;
        metered.execute_meter(2, colour);                 // without rates: green
        hdr.h.w = (bit<16>) (colour ++ 4w1);
    }
    action dice() { random(hdr.h.w, 7, 7); }
    action tell() { digest<told_t>(1, { hdr.h.kind, std.ingress_port }); }
    action drop() { mark_to_drop(std); }
    action again() { if (meta.rounds < 2) { meta.rounds = meta.rounds + 1; resubmit_preserving_field_list(1); } }
    table kinds {
        key = { hdr.h.kind : exact; }
        actions = { add; hashed; coloured; dice; tell; drop; again; @defaultonly NoAction; }
        const entries = { 1 : add(); 2 : hashed(); 3 : coloured(); 4 : dice(); 5 : tell(); 6 : drop(); 7 : again(); }
        const default_action = NoAction();
        counters = hits;
        meters = paced;
    }
    table profiled { key = { hdr.h.kind : exact; } actions = { NoAction; } implementation = profile; support_timeout = true; }
    table selected {
        key = { hdr.h.kind : exact; hdr.h.a : selector; }
        actions = { NoAction; }
        implementation = selector;
    }
    apply {
        std.egress_spec = 1;
        if (std.instance_type == 6) { hdr.h.w = 6; }
        kinds.apply();
        profiled.apply();
        selected.apply();
        assert(hdr.h.isValid());
        if (std.checksum_error == 1) { hdr.h.w = 0xdead; }
    }
}
control E(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {
    apply {
        hdr.h.a = 0x50 + meta.rounds;
        if (hdr.h.kind == 8) { truncate(4); }
    }
}
control Compute(inout headers_t hdr, inout meta_t meta) {
    apply {
        update_checksum(hdr.h.kind == 10, { hdr.h.w, 16w1 }, hdr.h.sum, HashAlgorithm.csum16);
        update_checksum_with_payload(hdr.h.kind == 11, { hdr.h.w }, hdr.h.sum, HashAlgorithm.csum16);
    }
}
control D(packet_out pkt, in headers_t hdr) { apply { pkt.emit(hdr); } }
V1Switch(P(), Verify(), I(), E(), Compute(), D()) main;
//> packet 0 01 00 0000 0000
//> expect 1 01 50 0001 0000
//> packet 0 01 00 0000 0000
//> expect 1 01 50 0002 0000
// CRC-16/ARC of "12".
//> packet 0 02 32 0000 0000
//> expect 1 02 50 4594 0000
//> packet 0 03 00 0000 0000
//> expect 1 03 50 0001 0000
//> packet 0 04 00 0000 0000
//> expect 1 04 50 0007 0000
//> packet 0 05 00 0000 0000
//> expect 1 05 50 0000 0000
//> packet 0 06 00 0000 0000
// The packet is resubmitted twice.
//> packet 0 07 00 0000 0000
//> expect 1 07 52 0006 0000
//> packet 0 08 00 1234 5678 9a
//> expect 1 08 50 1234
// A correct checksum and a wrong one.
//> packet 0 09 00 00ff ff00
//> expect 1 09 50 00ff ff00
//> packet 0 09 00 00ff ff01
//> expect 1 09 50 dead ff01
//> packet 0 0a 00 00fe 0000
//> expect 1 0a 50 00fe ff00
//> packet 0 0b 00 00fe 0000 0001
//> expect 1 0b 50 00fe ff00 0001

// features: PSA externs, PSA packet paths
#include <core.p4>
#include <psa.p4>
header h_t { bit<8> kind; bit<8> a; bit<16> w; }
struct headers_t { h_t h; }
struct none_t { }
struct told_t { bit<8> kind; PortId_t port; }
parser IP(packet_in pkt, out headers_t hdr, inout none_t meta, in psa_ingress_parser_input_metadata_t istd,
          in none_t resubmitted, in none_t recirculated) {
    state start { pkt.extract(hdr.h); transition accept; }
}
control I(inout headers_t hdr, inout none_t meta, in psa_ingress_input_metadata_t istd,
          inout psa_ingress_output_metadata_t ostd) {
    Register<bit<16>, bit<4>>(16, 7) cells;
    Counter<bit<64>, bit<4>>(16, PSA_CounterType_t.PACKETS_AND_BYTES) counted;
    DirectCounter<bit<64>>(PSA_CounterType_t.PACKETS) hits;
    Meter<bit<4>>(16, PSA_MeterType_t.BYTES) metered;
    DirectMeter(PSA_MeterType_t.PACKETS) paced;
    Hash<bit<16>>(PSA_HashAlgorithm_t.CRC16) crc;
    Random<bit<8>>(9, 9) dice;
    ActionSelector(PSA_HashAlgorithm_t.CRC32, 16, 16) selector;
    ActionProfile(16) profile;
    action add() {
        hits.count();
        bit<16> cell = cells.read(1);
        cells.write(1, cell + 1);
        hdr.h.w = cell;
    }
    action hashed() { hits.count(); hdr.h.w = crc.get_hash({ hdr.h.a, 8w0x32 }); }
    action within() { hits.count(); hdr.h.w = crc.get_hash(16w0x100, { 8w0x31 }, 16w1); }
    action coloured() {
        hits.count();
        counted.count(3);
        // Neither meter has a rate, so all packets are green.
        if (metered.execute(2) == PSA_MeterColor_t.GREEN && paced.execute() == PSA_MeterColor_t.GREEN) { hdr.h.w = 2; }
    }
    action random() { hits.count(); hdr.h.w = (bit<16>) dice.read(); }
    table kinds {
        key = { hdr.h.kind : exact; }
        actions = { add; hashed; within; coloured; random; @defaultonly NoAction; }
        const entries = { 1 : add(); 2 : hashed(); 3 : within(); 4 : coloured(); 5 : random(); }
        const default_action = NoAction();
        psa_direct_counter = hits;
        psa_direct_meter = paced;
    }
    table selected {
        key = { hdr.h.kind : exact; hdr.h.a : selector; }
        actions = { NoAction; }
        psa_implementation = selector;
    }
    table profiled {
        key = { hdr.h.kind : exact; }
        actions = { NoAction; }
        psa_implementation = profile;
        psa_idle_timeout = PSA_IdleTimeout_t.NOTIFY_CONTROL;
    }
    apply {
        send_to_port(ostd, (PortId_t) 1);
        kinds.apply();
        selected.apply();
        profiled.apply();
        if (hdr.h.kind == 0xff) { ingress_drop(ostd); }
    }
}
control ID(packet_out pkt, out none_t cloned, out none_t resubmitted, out none_t normal, inout headers_t hdr,
           in none_t meta, in psa_ingress_output_metadata_t istd) {
    Digest<told_t>() told;
    InternetChecksum() sum;
    Checksum<bit<16>>(PSA_HashAlgorithm_t.ONES_COMPLEMENT16) other;
    apply {
        if (hdr.h.kind == 6) { told.pack({ hdr.h.kind, istd.egress_port }); }
        if (hdr.h.kind == 7) {
            sum.clear();
            sum.add({ 16w0x1234, 16w0xff00 });
            sum.subtract({ 16w0x1234 });
            hdr.h.w = sum.get();
        }
        if (hdr.h.kind == 8) {
            other.clear();
            other.update({ 16w0x00ff });
            hdr.h.w = other.get();
        }
        pkt.emit(hdr);
    }
}
parser EP(packet_in pkt, out headers_t hdr, inout none_t meta, in psa_egress_parser_input_metadata_t istd,
          in none_t normal, in none_t cloned_i2e, in none_t cloned_e2e) {
    state start { pkt.extract(hdr.h); transition accept; }
}
control E(inout headers_t hdr, inout none_t meta, in psa_egress_input_metadata_t istd,
          inout psa_egress_output_metadata_t ostd) {
    apply { if (istd.packet_path == PSA_PacketPath_t.NORMAL_UNICAST) { hdr.h.a = 0x55; } }
}
control ED(packet_out pkt, out none_t cloned, out none_t recirculated, inout headers_t hdr, in none_t meta,
           in psa_egress_output_metadata_t istd, in psa_egress_deparser_input_metadata_t edstd) {
    apply { pkt.emit(hdr); }
}
IngressPipeline(IP(), I(), ID()) ip;
EgressPipeline(EP(), E(), ED()) ep;
PSA_Switch(ip, PacketReplicationEngine(), ep, BufferingQueueingEngine()) main;
// The register starts at 7.
//> packet 0 01 00 0000
//> expect 1 01 55 0007
//> packet 0 01 00 0000
//> expect 1 01 55 0008
// CRC-16/ARC of "12".
//> packet 0 02 31 0000
//> expect 1 02 55 4594
//> packet 0 03 00 0000
//> expect 1 03 55 0100
//> packet 0 04 00 0000
//> expect 1 04 55 0002
//> packet 0 05 00 0000
//> expect 1 05 55 0009
//> packet 0 06 00 0000
//> expect 1 06 55 0000
//> packet 0 07 00 0000
//> expect 1 07 55 00ff
//> packet 0 08 00 0000
//> expect 1 08 55 ff00
//> packet 0 ff 00 0000

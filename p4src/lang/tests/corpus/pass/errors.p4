// features: error declarations, verify, parser errors, error as a type
#include <core.p4>
#include <v1model.p4>
error { BadVersion, TooOld }
header h_t { bit<4> version; bit<4> age; bit<8> code; }
struct headers_t { h_t h; }
struct meta_t { error first; }
parser P(packet_in pkt, out headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {
    state start {
        pkt.extract(hdr.h);
        meta.first = error.NoError;
        verify(hdr.h.version == 4, error.BadVersion);
        meta.first = error.TooOld;
        verify(hdr.h.age < 8, error.TooOld);
        transition select(hdr.h.age) { 0: accept; 1 .. 6: accept; }   // 7: NoMatch
    }
}
control C(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {
    apply {
        std.egress_spec = 1;
        switch (std.parser_error) {
            error.NoError: { hdr.h.code = 0; }
            error.BadVersion: { hdr.h.code = 1; }
            error.NoMatch: { hdr.h.code = 3; }
            error.PacketTooShort: { std.egress_spec = 2; }
            default: { hdr.h.code = 2; }
        }
        if (std.parser_error != error.BadVersion && meta.first == error.TooOld) {
            hdr.h.code = hdr.h.code | 0x80;
        }
    }
}
#include "shell/v1model.p4"
//> packet 0 40 ff
//> expect 1 40 80
//> packet 0 60 ff
//> expect 1 60 01
//> packet 0 49 ff
//> expect 1 49 82
//> packet 0 47 ff
//> expect 1 47 83
//> packet 0 47
//> expect 2 47

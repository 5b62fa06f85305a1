// Programs that do not match what their architecture declares.
#include <core.p4>
#include <v1model.p4>
struct headers_t { }
struct meta_t { }
parser P(packet_in b, out headers_t hdr, inout meta_t meta, inout standard_metadata_t std) { state start { transition accept; } }
parser NoStart(packet_in b, out headers_t hdr, inout meta_t meta, inout standard_metadata_t std) { state begin { transition accept; } }
control V(inout headers_t hdr, inout meta_t meta) { apply { } }
control I(inout headers_t hdr, inout meta_t meta) { apply { } }
control E(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t std) { apply { } }
control D(packet_out b, in headers_t hdr) { apply { } }
V1Switch(P(), V(), I(), E(), V(), D()) main;

// Completes a v1model program for a parser `P` and a control `C`, over `headers_t` and `meta_t`.
control NoVerify(inout headers_t hdr, inout meta_t meta) { apply { } }
control NoEgress(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t std) { apply { } }
control NoCompute(inout headers_t hdr, inout meta_t meta) { apply { } }
control Emit(packet_out pkt, in headers_t hdr) { apply { pkt.emit(hdr); } }
V1Switch(P(), NoVerify(), C(), NoEgress(), NoCompute(), Emit()) main;

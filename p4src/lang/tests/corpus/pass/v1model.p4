// features: v1model externs
#include <core.p4>
#include <v1model.p4>
struct meta_t { bit<32> x; }
struct headers_t { }
parser p(packet_in b, out headers_t h, inout meta_t m, inout standard_metadata_t s) { state start { transition accept; } }
control v(inout headers_t h, inout meta_t m) { apply { } }
control ig(inout headers_t h, inout meta_t m, inout standard_metadata_t s) {
    register<bit<32>>(16) cells;
    counter(4, CounterType.packets) hits;
    action drop() { mark_to_drop(s); }
    table t { key = { s.ingress_port : exact; } actions = { drop; } }
    apply {
        cells.read(m.x, 0);
        hits.count(1);
        hash(m.x, HashAlgorithm.crc32, 32w0, { s.ingress_port }, 32w16);
        random(m.x, 0, 9);
        clone_preserving_field_list(CloneType.I2E, 5, 1);
        digest<meta_t>(1, m);
        log_msg("x = {}", { m.x });
        s.egress_spec = 1;
        t.apply();
    }
}
control eg(inout headers_t h, inout meta_t m, inout standard_metadata_t s) { apply { truncate(64); } }
control k(inout headers_t h, inout meta_t m) { apply { } }
control d(packet_out b, in headers_t h) { apply { b.emit(h); } }
V1Switch(p(), v(), ig(), eg(), k(), d()) main;

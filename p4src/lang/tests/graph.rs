//! Graphs in DOT.

use p4lang::{Files, Options};

#[test]
fn parsers_and_controls_as_dot() {
    let text = "#include <core.p4>
header h_t { bit<16> kind; }
struct headers_t { h_t h; }
parser P(packet_in pkt, out headers_t hdr) {
    state start { pkt.extract(hdr.h); transition select(hdr.h.kind) { 0x0800: more; default: accept; } }
    state more { transition reject; }
}
control C(inout headers_t hdr) {
    action a() { } table t { key = { hdr.h.kind: exact; } actions = { a; } }
    table u { actions = { a; } }
    apply { if (hdr.h.kind == 1) { t.apply(); } else { u.apply(); } }
}
parser PT<H>(packet_in pkt, out H hdr); control CT<H>(inout H hdr);
package Top<H>(PT<H> p, CT<H> c);
Top(P(), C()) main;
";
    let files = Files::new().with("t.p4", text);
    let compiled = p4lang::compile(&files, "t.p4", &Options::default())
        .unwrap_or_else(|errors| panic!("{errors}"));
    insta::assert_snapshot!(p4lang::graph::dot(&compiled.program));
}

//! Small v1model programs, so that a test only contains its subject.

use pipeline::{Config, Switch};

/// The parts of a v1model program, which parses and emits a header of two bytes, `hdr.x.a` and `hdr.x.b`.
pub struct V1<'a> {
    pub before: &'a str,
    pub decls: &'a str,
    pub meta: &'a str,
    pub parser: &'a str,
    pub verify: &'a str,
    pub locals: &'a str,
    pub ingress: &'a str,
    pub egress_locals: &'a str,
    pub egress: &'a str,
    pub compute: &'a str,
    pub deparser: &'a str,
}

impl Default for V1<'_> {
    fn default() -> Self {
        V1 {
            before: "",
            decls: "",
            meta: "",
            parser: "state start { pkt.extract(hdr.x); transition accept; }",
            verify: "",
            locals: "",
            ingress: "s.egress_spec = 1;",
            egress_locals: "",
            egress: "",
            compute: "",
            deparser: "pkt.emit(hdr);",
        }
    }
}

impl V1<'_> {
    pub fn text(&self) -> String {
        let V1 {
            before,
            decls,
            meta,
            parser,
            verify,
            locals,
            ingress,
            ..
        } = self;
        let V1 {
            egress_locals,
            egress,
            compute,
            deparser,
            ..
        } = self;
        format!(
            "{before}
#include <core.p4>
#include <v1model.p4>
header x_h {{ bit<8> a; bit<8> b; }}
{decls}
struct headers_t {{ x_h x; }}
struct meta_t {{ {meta} }}
parser P(packet_in pkt, out headers_t hdr, inout meta_t meta, inout standard_metadata_t s) {{
    {parser}
}}
control V(inout headers_t hdr, inout meta_t meta) {{ apply {{ {verify} }} }}
control ingress(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t s) {{
    {locals}
    apply {{ {ingress} }}
}}
control egress(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t s) {{
    {egress_locals}
    apply {{ {egress} }}
}}
control U(inout headers_t hdr, inout meta_t meta) {{ apply {{ {compute} }} }}
control D(packet_out pkt, in headers_t hdr) {{ apply {{ {deparser} }} }}
V1Switch(P(), V(), ingress(), egress(), U(), D()) main;
"
        )
    }

    pub fn load(&self) -> Switch {
        self.load_with(Config::default())
    }

    pub fn load_with(&self, config: Config) -> Switch {
        super::load(&self.text(), config)
    }
}

//! The parts of a TNA program. The default sends every packet to port 1 unchanged.

use super::{Config, LoadError, Switch, compile};

pub struct Tna<'a> {
    pub include: &'a str,
    pub decls: &'a str,
    pub headers: &'a str,
    pub meta: &'a str,
    pub parser_locals: &'a str,
    /// The parser after the port's metadata.
    pub parser: &'a str,
    /// Replaces `pkt.advance(PORT_METADATA_SIZE)`.
    pub port_metadata: &'a str,
    pub locals: &'a str,
    pub ingress: &'a str,
    pub deparser_locals: &'a str,
    pub deparser: &'a str,
    pub egress_parser: &'a str,
    pub egress_locals: &'a str,
    pub egress: &'a str,
    pub egress_deparser_locals: &'a str,
    pub egress_deparser: &'a str,
}

/// The default parts.
pub const TNA: Tna<'static> = Tna {
    include: "tna.p4",
    decls: "",
    headers: "byte_h b;",
    meta: "bit<8> unused;",
    parser_locals: "",
    parser: "state go { transition accept; }",
    port_metadata: "pkt.advance(PORT_METADATA_SIZE);",
    locals: "",
    ingress: "tm.ucast_egress_port = 1;",
    deparser_locals: "",
    deparser: "pkt.emit(hdr);",
    egress_parser: "state go { transition accept; }",
    egress_locals: "",
    egress: "",
    egress_deparser_locals: "",
    egress_deparser: "pkt.emit(hdr);",
};

impl Default for Tna<'_> {
    fn default() -> Self {
        TNA
    }
}

impl Tna<'_> {
    pub fn text(&self) -> String {
        let Tna {
            include,
            decls,
            headers,
            meta,
            parser_locals,
            parser,
            port_metadata,
            locals,
            ingress,
            deparser_locals,
            deparser,
            egress_parser,
            egress_locals,
            egress,
            egress_deparser_locals,
            egress_deparser,
        } = self;
        format!(
            "#include <core.p4>
#include <{include}>
header byte_h {{ bit<8> v; }}
{decls}
struct headers_t {{ {headers} }}
struct meta_t {{ {meta} }}
parser IP(packet_in pkt, out headers_t hdr, out meta_t meta, out ingress_intrinsic_metadata_t ig) {{
    {parser_locals}
    state start {{ pkt.extract(ig); {port_metadata} transition go; }}
    {parser}
}}
control I(inout headers_t hdr, inout meta_t meta, in ingress_intrinsic_metadata_t ig,
          in ingress_intrinsic_metadata_from_parser_t prsr,
          inout ingress_intrinsic_metadata_for_deparser_t dprsr,
          inout ingress_intrinsic_metadata_for_tm_t tm) {{
    {locals}
    apply {{ {ingress} }}
}}
control ID(packet_out pkt, inout headers_t hdr, in meta_t meta,
           in ingress_intrinsic_metadata_for_deparser_t dprsr) {{
    {deparser_locals}
    apply {{ {deparser} }}
}}
parser EP(packet_in pkt, out headers_t hdr, out meta_t meta, out egress_intrinsic_metadata_t eg) {{
    state start {{ pkt.extract(eg); transition go; }}
    {egress_parser}
}}
control E(inout headers_t hdr, inout meta_t meta, in egress_intrinsic_metadata_t eg,
          in egress_intrinsic_metadata_from_parser_t prsr,
          inout egress_intrinsic_metadata_for_deparser_t dprsr,
          inout egress_intrinsic_metadata_for_output_port_t oport) {{
    {egress_locals}
    apply {{ {egress} }}
}}
control ED(packet_out pkt, inout headers_t hdr, in meta_t meta,
           in egress_intrinsic_metadata_for_deparser_t dprsr) {{
    {egress_deparser_locals}
    apply {{ {egress_deparser} }}
}}
Pipeline(IP(), I(), ID(), EP(), E(), ED()) pipe;
Switch(pipe) main;
"
        )
    }

    pub fn load(&self) -> Switch {
        self.load_with(Config::default())
    }

    pub fn load_with(&self, config: Config) -> Switch {
        super::load(&self.text(), config)
    }

    /// A program with these objects, whose packets leave by port 1.
    pub fn running(&self, locals: &str, ingress: &str) -> Switch {
        let ingress = format!("{ingress} tm.ucast_egress_port = 1;");
        let ingress = &ingress;
        let program = Tna {
            locals,
            ingress,
            ..*self
        };
        program.load()
    }

    pub fn refused(&self) -> LoadError {
        Switch::new(compile(&self.text()), Config::default())
            .expect_err("the program should be refused")
    }
}

/// The first two words of a packet.
pub fn words(packet: &[u8]) -> (u32, u32) {
    let word = |at: usize| u32::from_be_bytes(packet[at..at + 4].try_into().expect("four bytes"));
    (word(0), word(4))
}

/// All packets that are sent until none waits any more.
pub fn settled(switch: &mut Switch) -> Vec<(u32, Vec<u8>)> {
    let mut all = super::sent(switch);
    for _ in 0..100 {
        let Some(due) = switch.poll_timeout() else {
            break;
        };
        switch.handle_timeout(due);
        all.extend(super::sent(switch));
    }
    all
}

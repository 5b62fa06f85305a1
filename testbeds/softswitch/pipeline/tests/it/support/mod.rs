//! Small programs, so that a test only contains its subject. Those for PSA are here, those for v1model in their own file.

pub mod aggregate;
pub mod program;
pub mod tna;
pub mod v1model;

pub use p4lang::runtime::{call, entry};
use pipeline::{Config, Executor, LoadError, Switch};
use std::sync::Arc;

/// The parts of a PSA program. The default forwards every packet to port 1 unchanged.
pub struct Psa<'a> {
    pub decls: &'a str,
    pub headers: &'a str,
    pub meta: &'a str,
    pub parser: &'a str,
    pub parser_locals: &'a str,
    pub locals: &'a str,
    pub ingress: &'a str,
    pub deparser_locals: &'a str,
    pub deparser: &'a str,
    pub egress_parser: &'a str,
    pub egress_locals: &'a str,
    pub egress: &'a str,
    pub egress_deparser: &'a str,
    pub carried: &'a str,
}

impl Default for Psa<'_> {
    fn default() -> Self {
        Psa {
            decls: "",
            headers: "",
            meta: "bit<8> unused;",
            parser: "state start { transition accept; }",
            parser_locals: "",
            locals: "",
            ingress: "send_to_port(ostd, (PortId_t) 1);",
            deparser_locals: "",
            deparser: "pkt.emit(hdr);",
            egress_parser: "state start { transition accept; }",
            egress_locals: "",
            egress: "",
            egress_deparser: "pkt.emit(hdr);",
            carried: "",
        }
    }
}

impl Psa<'_> {
    pub fn text(&self) -> String {
        let Psa {
            decls,
            headers,
            meta,
            parser,
            parser_locals,
            locals,
            ingress,
            ..
        } = self;
        let Psa {
            deparser_locals,
            deparser,
            egress_parser,
            egress_locals,
            egress,
            egress_deparser,
            carried,
            ..
        } = self;
        format!(
            "#include <core.p4>
#include <psa.p4>
struct carried_t {{ {carried} }}
{decls}
struct headers_t {{ {headers} }}
struct meta_t {{ {meta} }}
parser IP(packet_in pkt, out headers_t hdr, inout meta_t meta, in psa_ingress_parser_input_metadata_t istd,
          in carried_t resubmitted, in carried_t recirculated) {{
    {parser_locals}
    {parser}
}}
control ingress(inout headers_t hdr, inout meta_t meta, in psa_ingress_input_metadata_t istd,
           inout psa_ingress_output_metadata_t ostd) {{
    {locals}
    apply {{ {ingress} }}
}}
control ID(packet_out pkt, out carried_t cloned, out carried_t resubmitted, out carried_t normal,
           inout headers_t hdr, in meta_t meta, in psa_ingress_output_metadata_t istd) {{
    {deparser_locals}
    apply {{ {deparser} }}
}}
parser EP(packet_in pkt, out headers_t hdr, inout meta_t meta, in psa_egress_parser_input_metadata_t istd,
          in carried_t normal, in carried_t cloned_i2e, in carried_t cloned_e2e) {{
    {egress_parser}
}}
control egress(inout headers_t hdr, inout meta_t meta, in psa_egress_input_metadata_t istd,
           inout psa_egress_output_metadata_t ostd) {{
    {egress_locals}
    apply {{ {egress} }}
}}
control ED(packet_out pkt, out carried_t cloned, out carried_t recirculated, inout headers_t hdr, in meta_t meta,
           in psa_egress_output_metadata_t istd, in psa_egress_deparser_input_metadata_t edstd) {{
    apply {{ {egress_deparser} }}
}}
IngressPipeline(IP(), ingress(), ID()) ip;
EgressPipeline(EP(), egress(), ED()) ep;
PSA_Switch(ip, PacketReplicationEngine(), ep, BufferingQueueingEngine()) main;
"
        )
    }

    pub fn load(&self) -> Switch {
        self.load_with(Config::default())
    }

    pub fn load_with(&self, config: Config) -> Switch {
        load(&self.text(), config)
    }

    pub fn refused(&self) -> LoadError {
        match Switch::new(compile(&self.text()), Config::default()) {
            Ok(_) => panic!("the program should be refused"),
            Err(error) => error,
        }
    }
}

pub fn compile(text: &str) -> Arc<p4lang::ir::Program> {
    let files = p4lang::Files::new().with("test.p4", text);
    match p4lang::compile(&files, "test.p4", &p4lang::Options::default()) {
        Ok(compiled) => Arc::new(compiled.program),
        Err(diagnostics) => panic!("{diagnostics}"),
    }
}

/// Loads a program whose blocks run in both executors.
pub fn load(text: &str, config: Config) -> Switch {
    let executor = Executor::Both;
    let config = Config { executor, ..config };
    Switch::new(compile(text), config).unwrap_or_else(|e| panic!("{e}"))
}

/// All packets that wait to be sent. Checks that the executors agree so far.
pub fn sent(switch: &mut Switch) -> Vec<(u32, Vec<u8>)> {
    let differences = switch.take_differences();
    assert!(differences.is_empty(), "{}", differences.join("\n"));
    std::iter::from_fn(|| switch.poll_transmit())
        .map(|t| (t.port, t.bytes))
        .collect()
}

/// The packets that leave for a packet at port 0.
pub fn through(switch: &mut Switch, packet: &[u8]) -> Vec<(u32, Vec<u8>)> {
    switch.handle_packet(0, 0, packet);
    sent(switch)
}

/// The only packet that leaves.
pub fn one(switch: &mut Switch, packet: &[u8]) -> Vec<u8> {
    let mut packets = through(switch, packet);
    assert_eq!(packets.len(), 1, "{packets:?}");
    packets.remove(0).1
}

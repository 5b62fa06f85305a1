//! Programs that exceed limits, sent as device configs: they must be refused with the position and the limit, and the
//! switch must continue as before.

use crate::support::items::*;
use crate::support::*;
use p4rt::client::*;
use p4rt::p4info::to_proto;
use p4rt::rpc::Code;

/// A P4Info as its compiler would generate it, and the text.
fn config(locals: &str) -> (p4rt::config::P4Info, String) {
    let text = format!(
        "#include <core.p4>
#include <v1model.p4>
struct headers_t {{ }}
struct meta_t {{ bit<32> a; }}
parser P(packet_in pkt, out headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {{
    state start {{ transition accept; }}
}}
control V(inout headers_t hdr, inout meta_t meta) {{ apply {{ }} }}
control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {{
    {locals}
    apply {{ std.egress_spec = 2; }}
}}
control E(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {{ apply {{ }} }}
control U(inout headers_t hdr, inout meta_t meta) {{ apply {{ }} }}
control D(packet_out pkt, in headers_t hdr) {{ apply {{ }} }}
V1Switch(P(), V(), I(), E(), U(), D()) main;
"
    );
    let files = p4lang::Files::new().with("a.p4", text);
    let compiled = p4lang::compile(&files, "a.p4", &p4lang::Options::default());
    let compiled = compiled.unwrap_or_else(|errors| panic!("{errors}"));
    (to_proto(&compiled.p4info), compiled.preprocessed)
}

#[tokio::test]
async fn a_switch_keeps_its_program() {
    let (instance, one, two) = switch(None);
    let (mut client, _events) = primary(&instance).await;
    client
        .apply(&[(UpdateType::Insert, forward(2, 2))])
        .await
        .unwrap();
    let tables: String = (0..5000)
        .map(|n| format!("table t{n} {{ actions = {{ NoAction; }} }}\n"))
        .collect();
    let cases = [
        ("register<bit<32>>(0xffffffff) r;", "134217728 bytes"),
        (
            "counter(32w1 << 31, CounterType.packets) c;",
            "134217728 bytes",
        ),
        ("meter(32w1 << 31, MeterType.bytes) m;", "134217728 bytes"),
        (
            "table t { key = { meta.a: exact; } actions = { NoAction; } size = 1 << 31; }",
            "16777216 entries",
        ),
        (
            "action_selector(HashAlgorithm.crc16, 32w0xffffffff, 32w16) p; table t { key = { meta.a: selector; } actions = { NoAction; } implementation = p; }",
            "1048576 members",
        ),
        (&tables, "4096 tables"),
    ];
    for (locals, limit) in cases {
        let (p4info, text) = config(locals);
        for action in [
            PipelineAction::VerifyAndSave,
            PipelineAction::VerifyAndCommit,
        ] {
            let set = client.set_pipeline(action, p4info.clone(), text.clone().into(), 43);
            let error = set.await.unwrap_err();
            let ClientError::Rpc { code, message, .. } = &error else {
                panic!("{error}");
            };
            assert_eq!(*code, Code::InvalidArgument, "{message}");
            assert!(message.contains(limit), "{message}");
            // The position, in the format of the compiler's own errors.
            assert!(message.contains("a.p4:"), "{message}");
        }
        assert!(one.send(&frame(2)));
        assert_eq!(two.receive(TIMEOUT), Some(frame(2)), "after {limit}");
    }
}

#[tokio::test]
async fn large_but_legal_requests_are_accepted() {
    let (instance, one, two) = switch(None);
    let (mut client, _events) = primary(&instance).await;
    let (p4info, text) = config("register<bit<64>>(32w1 << 24) r;");
    client
        .set_pipeline(PipelineAction::VerifyAndCommit, p4info, text.into(), 43)
        .await
        .unwrap();
    assert!(one.send(&frame(7)));
    assert_eq!(two.receive(TIMEOUT).map(|frame| frame.len()), Some(60));
}

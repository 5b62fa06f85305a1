//! The whole switch with a real program: loads P4 text over P4Runtime and sends frames through it.

use p4lang::runtime::*;
use p4rt::client::*;
use p4rt::p4info::to_proto;
use p4rt::translate::{CounterValue, Item};
use softswitch::dataplane::Loader;
use softswitch::instance::{Config, start};
use softswitch::p4::P4Loader;
use softswitch::ports::Frames;
use softswitch::ports::memory::link;
use std::sync::Arc;
use std::time::Duration;

const TIMEOUT: Duration = Duration::from_secs(10);

/// Forwards by destination, counts, and stores the last source by EtherType parity.
const PROGRAM: &str = r#"
#include <core.p4>
#include <psa.p4>

header ethernet_h { bit<48> dst; bit<48> src; bit<16> ether_type; }
struct headers_t { ethernet_h ethernet; }
struct empty_t {}

parser MyIngressParser(packet_in pkt, out headers_t hdr, inout empty_t meta, in psa_ingress_parser_input_metadata_t istd,
                     in empty_t resubmitted, in empty_t recirculated) {
    state start { pkt.extract(hdr.ethernet); transition accept; }
}

control MyIngress(inout headers_t hdr, inout empty_t meta, in psa_ingress_input_metadata_t istd,
                inout psa_ingress_output_metadata_t ostd) {
    Counter<bit<32>, bit<8>>(16, PSA_CounterType_t.PACKETS_AND_BYTES) forwarded;
    Register<bit<48>, bit<8>>(4) last_source;

    action send(PortId_t port, bit<8> cell) {
        send_to_port(ostd, port);
        forwarded.count(cell);
    }
    action flood(MulticastGroup_t group) { multicast(ostd, group); }
    action drop() { ingress_drop(ostd); }
    table forward {
        key = { hdr.ethernet.dst : exact; }
        actions = { send; flood; drop; }
        default_action = drop();
        size = 4;
    }
    apply {
        if (hdr.ethernet.isValid()) {
            last_source.write((bit<8>) hdr.ethernet.ether_type[0:0], hdr.ethernet.src);
            forward.apply();
        }
    }
}

control MyIngressDeparser(packet_out pkt, out empty_t clone_meta, out empty_t resubmit_meta, out empty_t normal_meta,
                        inout headers_t hdr, in empty_t meta, in psa_ingress_output_metadata_t istd) {
    apply { pkt.emit(hdr.ethernet); }
}

parser MyEgressParser(packet_in pkt, out headers_t hdr, inout empty_t meta, in psa_egress_parser_input_metadata_t istd,
                    in empty_t normal_meta, in empty_t clone_i2e, in empty_t clone_e2e) {
    state start { transition accept; }
}

control MyEgress(inout headers_t hdr, inout empty_t meta, in psa_egress_input_metadata_t istd,
               inout psa_egress_output_metadata_t ostd) {
    apply {}
}

control MyEgressDeparser(packet_out pkt, out empty_t clone_meta, out empty_t recirculate_meta, inout headers_t hdr,
                       in empty_t meta, in psa_egress_output_metadata_t istd,
                       in psa_egress_deparser_input_metadata_t edstd) {
    apply {}
}

IngressPipeline(MyIngressParser(), MyIngress(), MyIngressDeparser()) ip;
EgressPipeline(MyEgressParser(), MyEgress(), MyEgressDeparser()) ep;
PSA_Switch(ip, PacketReplicationEngine(), ep, BufferingQueueingEngine()) main;
"#;

fn frame(dst: u8) -> Vec<u8> {
    let mut frame = vec![0; 64];
    frame[..14].copy_from_slice(&[0, 0, 0, 0, 0, dst, 2, 0, 0, 0, 0, 9, 0x88, 0xb5]);
    frame
}

fn entry(dst: u128, action: &str, params: &[(&str, u128)]) -> Item {
    let key = vec![FieldMatch {
        field: "hdr.ethernet.dst".into(),
        value: Match::exact(dst),
    }];
    let params = params
        .iter()
        .map(|&(name, value)| (name.to_owned(), value.into()))
        .collect();
    let action = ActionCall {
        name: format!("MyIngress.{action}"),
        params,
    };
    Item::TableEntry(TableEntry {
        table: "MyIngress.forward".into(),
        key,
        priority: 0,
        action,
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_program_is_sent_and_forwards() {
    let (port1, one) = link("one").unwrap();
    let (port2, two) = link("two").unwrap();
    let ports: Vec<(u32, Box<dyn Frames>)> = vec![(1, Box::new(port1)), (2, Box::new(port2))];
    let loader = P4Loader::default();
    let p4info = to_proto(
        &loader
            .load(PROGRAM.as_bytes())
            .unwrap_or_else(|error| panic!("{error}"))
            .p4info,
    );
    let config = Config {
        device_id: 1,
        cpu_port: pipeline::CPU_PORT,
        ports,
        loader: Arc::new(loader),
        program: None,
        grpc: "127.0.0.1:0".parse().unwrap(),
    };
    let instance = start(config).unwrap();
    let mut client = Client::connect(&instance.address().to_string(), 1, TIMEOUT)
        .await
        .unwrap();
    let mut events = client.become_primary(1).await.unwrap();
    let commit = PipelineAction::VerifyAndCommit;
    client
        .set_pipeline(commit, p4info.clone(), PROGRAM.into(), 1)
        .await
        .unwrap();
    let replicas = vec![
        Replica {
            port: 1,
            instance: 1,
        },
        Replica {
            port: 2,
            instance: 2,
        },
    ];
    client
        .apply(&[
            (
                UpdateType::Insert,
                entry(2, "send", &[("port", 2), ("cell", 3)]),
            ),
            (UpdateType::Insert, entry(3, "flood", &[("group", 7)])),
            (
                UpdateType::Insert,
                entry(
                    4,
                    "send",
                    &[("port", pipeline::CPU_PORT.into()), ("cell", 0)],
                ),
            ),
            (
                UpdateType::Insert,
                Item::MulticastGroup(MulticastGroup { id: 7, replicas }),
            ),
        ])
        .await
        .unwrap();
    for garbage in [&[][..], &[1, 2, 3], &[0xff; 13], &[0xff; 1500]] {
        assert!(one.send(garbage));
    }
    assert!(one.send(&frame(2)) && one.send(&frame(9)) && one.send(&frame(3)));
    assert_eq!(two.receive(TIMEOUT), Some(frame(2)));
    assert_eq!(
        (one.receive(TIMEOUT), two.receive(TIMEOUT)),
        (Some(frame(3)), Some(frame(3)))
    );
    assert!(one.send(&frame(4)));
    let Some(Event::Packet(packet)) = events.next().await.unwrap() else {
        panic!("a packet")
    };
    assert_eq!(packet.payload, frame(4));
    client.send_packet(frame(2), &[]).await.unwrap();
    assert_eq!(two.receive(TIMEOUT), Some(frame(2)));

    let read = async |query| client.read(&[query]).await.unwrap();
    let value = Some(CounterValue {
        packets: 2,
        bytes: 128,
    });
    let counted = Item::Counter {
        name: "MyIngress.forwarded".into(),
        index: Some(3),
        value,
    };
    assert_eq!(
        read(Query::Counter {
            name: "forwarded".into(),
            index: Some(3)
        })
        .await,
        [counted]
    );
    let seen = Item::Register {
        name: "MyIngress.last_source".into(),
        index: Some(1),
        fields: vec![0x0200_0000_0009.into()],
    };
    assert_eq!(
        read(Query::Register {
            name: "last_source".into(),
            index: Some(1)
        })
        .await,
        [seen]
    );

    // All updates or none, in the actual tables.
    let batch = [
        (UpdateType::Delete, entry(2, "drop", &[])),
        (UpdateType::Insert, entry(5, "drop", &[])),
        (UpdateType::Insert, entry(6, "drop", &[])),
        (UpdateType::Insert, entry(6, "drop", &[])),
    ];
    let before = read(Query::Entries { table: None }).await;
    let results = client
        .write(&batch, Atomicity::DataplaneAtomic)
        .await
        .unwrap();
    assert!(results.iter().all(Result::is_err), "{results:?}");
    assert_eq!(read(Query::Entries { table: None }).await, before);
    let full: Vec<_> = (20..24)
        .map(|dst| (UpdateType::Insert, entry(dst, "drop", &[])))
        .collect();
    let results = client
        .write(&full, Atomicity::ContinueOnError)
        .await
        .unwrap();
    assert_eq!(
        results.iter().filter(|result| result.is_ok()).count(),
        1,
        "size = 4: {results:?}"
    );

    let broken = PROGRAM.replace("default_action = drop();", "default_action = dorp();");
    let error = client
        .set_pipeline(commit, p4info, broken.into_bytes(), 2)
        .await
        .unwrap_err()
        .to_string();
    assert!(error.contains("dorp"), "{error}");
    instance.stop().unwrap();
}

//! Writes and reads by name, through our own client and in-memory ports.

use crate::support::items::*;
use crate::support::*;
use p4lang::runtime::*;
use p4rt::client::*;
use p4rt::rpc::Code;
use p4rt::translate::{CounterValue, Item};

#[tokio::test]
async fn a_frame_follows_the_entries() {
    let (instance, one, two) = switch(None);
    assert!(one.send(&frame(2)));
    let (client, _events) = primary(&instance).await;
    assert_eq!(two.receive(NEVER), None, "there was no program yet");
    client
        .apply(&[
            (UpdateType::Insert, forward(2, 2)),
            (UpdateType::Insert, group(1, &[1, 2])),
            (UpdateType::Insert, flood(0xffff_ffff_ffff, 1)),
        ])
        .await
        .unwrap();
    assert!(one.send(&frame(2)));
    assert_eq!(two.receive(TIMEOUT), Some(frame(2)));
    assert!(one.send(&[0xff; 60]));
    assert_eq!(
        (one.receive(TIMEOUT), two.receive(TIMEOUT)),
        (Some(vec![0xff; 60]), Some(vec![0xff; 60]))
    );
    // Frames that are too short for the program, that go nowhere, and that are larger than the limit.
    client
        .apply(&[(UpdateType::Modify, forward(2, 300))])
        .await
        .unwrap();
    for bad in [vec![], vec![1], frame(2), vec![0; 10_000]] {
        assert!(two.send(&bad));
    }
    // Once this frame comes out, all others have been processed; only then may the entry change.
    assert!(two.send(&[0xff; 60]));
    assert_eq!(
        (one.receive(TIMEOUT), two.receive(TIMEOUT)),
        (Some(vec![0xff; 60]), Some(vec![0xff; 60]))
    );
    client
        .apply(&[(UpdateType::Modify, forward(2, 1))])
        .await
        .unwrap();
    assert!(two.send(&frame(2)));
    assert_eq!(one.receive(TIMEOUT), Some(frame(2)));

    let address = instance.address().to_string();
    let mut extension = softswitch::server::connect_extension(&address, TIMEOUT)
        .await
        .unwrap();
    let ports = extension
        .port_counters(softswitch::server::weir::PortCountersRequest {})
        .await
        .unwrap()
        .into_inner()
        .ports;
    let figures: Vec<_> = ports
        .iter()
        .map(|p| {
            (
                p.port,
                p.name.as_str(),
                p.rx_frames,
                p.tx_frames,
                p.rx_errors,
            )
        })
        .collect();
    assert_eq!(figures[0], (1, "one", 3, 3, 0));
    assert_eq!((figures[1].2, figures[1].4), (5, 1));
    assert_eq!((ports[0].rx_bytes, ports[0].tx_bytes), (180, 180));
    let statistics = extension
        .statistics(softswitch::server::weir::StatisticsRequest {})
        .await
        .unwrap()
        .into_inner();
    let drops: Vec<_> = statistics
        .drops
        .iter()
        .map(|drop| (drop.reason.as_str(), drop.frames))
        .collect();
    assert!(
        drops.contains(&("no pipeline", 1)) && drops.contains(&("no such port", 1)),
        "{drops:?}"
    );
    extension
        .shutdown(softswitch::server::weir::ShutdownRequest {})
        .await
        .unwrap();
    instance.wait().unwrap();
}

#[tokio::test]
async fn written_values_are_read_back() {
    let (instance, ..) = switch(None);
    let (client, _events) = primary(&instance).await;
    let acl = |src, priority| {
        let key = vec![FieldMatch {
            field: "src".into(),
            value: Match::ternary(src, 0xff),
        }];
        Item::TableEntry(TableEntry {
            table: "MyIngress.acl".into(),
            key,
            priority,
            action: send(1),
        })
    };
    let session = Item::CloneSession(CloneSession {
        id: 5,
        replicas: vec![Replica {
            port: CPU_PORT,
            instance: 0,
        }],
        class_of_service: 1,
        packet_length_bytes: 64,
    });
    let written = [
        forward(1, 1),
        forward(2, 2),
        acl(1, 10),
        acl(1, 20),
        group(1, &[1, 2]),
        group(9, &[2]),
        session.clone(),
    ];
    let inserts: Vec<_> = written
        .iter()
        .map(|item| (UpdateType::Insert, item.clone()))
        .collect();
    client.apply(&inserts).await.unwrap();
    let counter = |value| Item::Counter {
        name: "MyIngress.fired".into(),
        index: Some(3),
        value,
    };
    let value = Some(CounterValue {
        packets: 7,
        bytes: 420,
    });
    client
        .apply(&[
            (UpdateType::Modify, counter(value)),
            (UpdateType::Modify, counter(None)),
        ])
        .await
        .unwrap();
    client
        .apply(&[
            (UpdateType::Modify, cell(None, 5, 1)),
            (UpdateType::Modify, cell(Some(2), 6, 255)),
        ])
        .await
        .unwrap();

    assert_eq!(entries(&client).await, written[..4]);
    let read = async |query| client.read(&[query]).await.unwrap();
    assert_eq!(
        read(Query::Entries {
            table: Some("acl".into())
        })
        .await,
        written[2..4]
    );
    assert_eq!(
        read(Query::MulticastGroups { id: None }).await,
        written[4..6]
    );
    assert_eq!(
        read(Query::MulticastGroups { id: Some(9) }).await,
        written[5..6]
    );
    assert_eq!(read(Query::CloneSessions { id: None }).await, [session]);
    assert_eq!(
        read(Query::Counter {
            name: "fired".into(),
            index: Some(3)
        })
        .await,
        [counter(value)]
    );
    assert_eq!(
        read(Query::Counter {
            name: "fired".into(),
            index: None
        })
        .await
        .len(),
        4
    );
    assert_eq!(
        read(Query::Register {
            name: "cells".into(),
            index: None
        })
        .await,
        [
            cell(Some(0), 5, 1),
            cell(Some(1), 5, 1),
            cell(Some(2), 6, 255),
            cell(Some(3), 5, 1)
        ]
    );
    let default = |action| Item::DefaultAction {
        table: "MyIngress.forward".into(),
        action,
    };
    let table = || Query::DefaultAction {
        table: "forward".into(),
    };
    client
        .apply(&[(UpdateType::Modify, default(Some(send(3))))])
        .await
        .unwrap();
    assert_eq!(read(table()).await, [default(Some(send(3)))]);
    client
        .apply(&[(UpdateType::Modify, default(None))])
        .await
        .unwrap();
    assert_eq!(
        read(table()).await,
        [default(Some(ActionCall {
            name: "MyIngress.drop".into(),
            params: vec![]
        }))]
    );

    let error = client
        .read(&[Query::MulticastGroups { id: Some(3) }])
        .await
        .unwrap_err();
    assert!(
        matches!(
            error,
            ClientError::Rpc {
                code: Code::Unknown,
                ..
            }
        ),
        "{error}"
    );
}

#[tokio::test]
async fn each_update_has_its_own_error() {
    use Code::*;
    use UpdateType::{Delete, Insert, Modify};
    let (instance, ..) = switch(None);
    let (client, _events) = primary(&instance).await;
    let default = Item::DefaultAction {
        table: "forward".into(),
        action: Some(send(1)),
    };
    let batch = [
        (Insert, forward(1, 1)),
        (Insert, forward(1, 2)),
        (Modify, forward(2, 1)),
        (Delete, forward(3, 1)),
        (Insert, default.clone()),
        (Modify, default),
        (Insert, cell(Some(0), 1, 1)),
        (Delete, group(4, &[])),
        (Insert, group(4, &[1])),
        (Insert, group(4, &[2])),
        (Insert, forward(5, 1)),
    ];
    let results = client
        .write(&batch, Atomicity::ContinueOnError)
        .await
        .unwrap();
    assert_eq!(
        codes(&results),
        [
            None,
            Some(AlreadyExists),
            Some(NotFound),
            Some(NotFound),
            Some(InvalidArgument),
            None,
            Some(InvalidArgument),
            Some(NotFound),
            None,
            Some(AlreadyExists),
            None,
        ]
    );
    assert_eq!(entries(&client).await, [forward(1, 1), forward(5, 1)]);
    let error = client.apply(&batch[..2]).await.unwrap_err();
    assert!(
        matches!(&error, ClientError::Update { position: 0, source, .. } if source.code == AlreadyExists),
        "{error}"
    );

    let many: Vec<_> = (10..20).map(|dst| (Insert, forward(dst, 1))).collect();
    let results = client
        .write(&many, Atomicity::ContinueOnError)
        .await
        .unwrap();
    assert_eq!(codes(&results[6..]), [Some(ResourceExhausted); 4]);
    assert_eq!(codes(&results[..6]), [None; 6]);
}

#[tokio::test]
async fn an_atomic_batch_is_applied_whole_or_not_at_all() {
    use UpdateType::{Delete, Insert, Modify};
    let (instance, ..) = switch(None);
    let (client, _events) = primary(&instance).await;
    let counter = |packets| {
        let value = Some(CounterValue { packets, bytes: 0 });
        Item::Counter {
            name: "fired".into(),
            index: Some(1),
            value,
        }
    };
    client
        .apply(&[
            (Insert, forward(1, 1)),
            (Insert, forward(2, 1)),
            (Insert, group(1, &[1])),
            (Modify, cell(Some(1), 9, 9)),
            (Modify, counter(9)),
        ])
        .await
        .unwrap();
    let everything = async || {
        let queries = [
            Query::Entries { table: None },
            Query::DefaultAction {
                table: "forward".into(),
            },
            Query::MulticastGroups { id: None },
            Query::CloneSessions { id: None },
            Query::Register {
                name: "cells".into(),
                index: None,
            },
            Query::Counter {
                name: "fired".into(),
                index: None,
            },
        ];
        let mut items = client.read(&queries).await.unwrap();
        items.sort_by_key(|item| format!("{item:?}"));
        items
    };
    let before = everything().await;
    let session = CloneSession {
        id: 1,
        replicas: vec![],
        class_of_service: 0,
        packet_length_bytes: 0,
    };
    let good = [
        (Delete, forward(1, 1)),
        (Modify, forward(2, 2)),
        (Insert, forward(3, 3)),
        (
            Modify,
            Item::DefaultAction {
                table: "forward".into(),
                action: Some(send(3)),
            },
        ),
        (Modify, group(1, &[1, 2])),
        (Insert, group(2, &[1])),
        (Insert, Item::CloneSession(session)),
        (Modify, cell(None, 1, 1)),
        (Modify, counter(1)),
        (Delete, group(1, &[])),
    ];
    let mut bad = good.to_vec();
    bad.push((Insert, forward(3, 4)));
    bad.push((Insert, forward(4, 4)));
    for atomicity in [Atomicity::RollbackOnError, Atomicity::DataplaneAtomic] {
        let results = client.write(&bad, atomicity).await.unwrap();
        let mut expected = vec![Some(Code::Aborted); bad.len()];
        expected[good.len()] = Some(Code::AlreadyExists);
        assert_eq!(codes(&results), expected);
        assert_eq!(everything().await, before);
    }
    let results = client
        .write(&good, Atomicity::DataplaneAtomic)
        .await
        .unwrap();
    assert_eq!(codes(&results), vec![None; good.len()]);
    assert_ne!(everything().await, before);
}

//! Our client, with names: every kind of item must be read back as it was written.

use crate::support::items::{frame, send};
use crate::support::*;
use p4lang::runtime::*;
use p4rt::client::*;
use p4rt::translate::{
    Choice, CounterValue, DigestConfig, EntryAt, GroupMember, Item, MeterConfig, WeightedAction,
};

const SLOW: MeterConfig = MeterConfig {
    cir: 1,
    cburst: 1,
    pir: 2,
    pburst: 2,
};

fn exact(field: &str, value: u128) -> FieldMatch {
    FieldMatch {
        field: field.into(),
        value: Match::exact(value),
    }
}

fn balanced(ether_type: u128, choice: Choice) -> Item {
    Item::IndirectEntry {
        at: EntryAt::Key {
            table: "MyIngress.balanced".into(),
            key: vec![exact("type", ether_type)],
            priority: 0,
        },
        choice,
    }
}

fn member(id: u32, port: u128) -> Item {
    Item::Member {
        profile: "MyIngress.balance".into(),
        id,
        action: Some(send(port)),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn members_groups_and_their_users() {
    let (instance, one, two) = switch(None);
    let (client, _events) = primary(&instance).await;
    let profile = || "MyIngress.balance".to_owned();
    let group = |max_size, members: &[(u32, Option<u32>)]| Item::Group {
        profile: profile(),
        id: 1,
        max_size,
        members: members
            .iter()
            .map(|(member, watch_port)| GroupMember {
                member: *member,
                weight: 1,
                watch_port: *watch_port,
            })
            .collect(),
    };
    let written = [
        member(1, 1),
        member(2, 2),
        group(2, &[(2, Some(2))]),
        balanced(0, Choice::Group(1)),
        balanced(1, Choice::Member(1)),
    ];
    let inserts = written.clone().map(|item| (UpdateType::Insert, item));
    client.apply(&inserts).await.unwrap();
    let members = Query::Members {
        profile: profile(),
        id: None,
    };
    let groups = Query::Groups {
        profile: profile(),
        id: Some(1),
    };
    let entries = Query::Entries {
        table: Some("MyIngress.balanced".into()),
    };
    let read = client.read(&[members, groups, entries]).await.unwrap();
    assert_eq!(read, written);
    assert!(one.send(&frame(9)));
    assert_eq!(two.receive(TIMEOUT), Some(frame(9)), "by group and member");

    // Entries must be deleted before the members that they refer to.
    let deleted = written.into_iter().rev();
    let deletes: Vec<_> = deleted.map(|item| (UpdateType::Delete, item)).collect();
    client.apply(&deletes).await.unwrap();
    let weighted = |port, weight| WeightedAction {
        action: send(port),
        weight,
        watch_port: None,
    };
    let own = balanced(0, Choice::Actions(vec![weighted(1, 1), weighted(2, 3)]));
    client
        .apply(&[(UpdateType::Insert, own.clone())])
        .await
        .unwrap();
    let entries = Query::Entries {
        table: Some("MyIngress.balanced".into()),
    };
    assert_eq!(client.read(&[entries]).await.unwrap(), [own]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn meters_counters_and_value_sets() {
    let (instance, ..) = switch(None);
    let (client, _events) = primary(&instance).await;
    let at = EntryAt::Key {
        table: "MyIngress.watched".into(),
        key: vec![exact("src", 9)],
        priority: 0,
    };
    let entry = Item::TableEntry(TableEntry {
        table: "MyIngress.watched".into(),
        key: vec![exact("src", 9)],
        priority: 0,
        action: ActionCall {
            name: "MyIngress.count_and_send".into(),
            params: vec![("port".into(), 2.into())],
        },
    });
    let written = [
        Item::DirectCounter {
            at: at.clone(),
            value: Some(CounterValue {
                packets: 3,
                bytes: 300,
            }),
        },
        Item::DirectMeter {
            at: at.clone(),
            config: Some(SLOW),
        },
        Item::Meter {
            name: "MyIngress.rate".into(),
            index: Some(2),
            config: Some(SLOW),
        },
        Item::ValueSet {
            name: "P.tagged".into(),
            members: vec![vec![exact("", 7)], vec![exact("", 8)]],
        },
    ];
    client.apply(&[(UpdateType::Insert, entry)]).await.unwrap();
    let changes = written.clone().map(|item| (UpdateType::Modify, item));
    client.apply(&changes).await.unwrap();
    let table = || "MyIngress.watched".to_owned();
    let queries = [
        Query::DirectCounters {
            table: table(),
            at: None,
        },
        Query::DirectMeters {
            table: table(),
            at: Some(at),
        },
        Query::Meter {
            name: "rate".into(),
            index: Some(2),
        },
        Query::ValueSet {
            name: "P.tagged".into(),
        },
    ];
    assert_eq!(client.read(&queries).await.unwrap(), written);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn digests_are_read_and_acknowledged() {
    let (instance, one, _two) = switch(None);
    let (client, mut events) = primary(&instance).await;
    let name = "learn_t".to_owned();
    let digest = Item::Digest {
        name: name.clone(),
        config: Some(DigestConfig {
            max_timeout_ns: 3_600_000_000_000,
            max_list_size: 1,
            ack_timeout_ns: 3_600_000_000_000,
        }),
    };
    let query = [Query::Digest { name }];
    client
        .apply(&[(UpdateType::Insert, digest.clone())])
        .await
        .unwrap();
    assert_eq!(client.read(&query).await.unwrap(), [digest]);
    let source = 0xd100_0000_0005u128;
    let mut frame = frame(0);
    frame[6..12].copy_from_slice(&source.to_be_bytes()[10..]);
    for _ in 0..2 {
        assert!(one.send(&frame));
        let Some(Event::Digest(list)) = events.next().await.unwrap() else {
            panic!("a list")
        };
        let (name, messages) = client.digest_messages(&list).unwrap();
        assert_eq!(
            (name, messages),
            ("learn_t", vec![vec![source.into(), 1.into()]])
        );
        // An equal message comes again only after this.
        client.acknowledge(&list).await.unwrap();
        // Answered only after earlier messages have been processed.
        client
            .send_packet(Vec::new(), &[0.into()])
            .await
            .unwrap_err();
        client
            .send_packet(frame.clone(), &[1.into(), 0.into()])
            .await
            .unwrap();
        assert_eq!(one.receive(TIMEOUT), Some(frame.clone()));
    }
}

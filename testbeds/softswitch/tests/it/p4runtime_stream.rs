//! The stream: digests, idle entries, roles, and a client that does not read.

use crate::support;
use crate::support::raw::*;
use crate::support::*;
use p4rt::rpc::Code;
use p4rt::v1;
use p4rt::v1::entity::Entity as Kind;
use p4rt::v1::stream_message_request::Update as Say;
use p4rt::v1::stream_message_response::Update as Response;
use softswitch::dataplane::Loader as _;

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn digests_are_listed_and_acknowledged() {
    let (instance, one, _two) = switch(Some(program()));
    let mut raw = Raw::primary(&instance).await;
    let digest_id = id(&raw.index.digests, "learn_t");
    let digest = |max_list_size| {
        let config = v1::digest_entry::Config {
            max_timeout_ns: 3_600_000_000_000,
            max_list_size,
            ack_timeout_ns: 3_600_000_000_000,
        };
        Kind::DigestEntry(v1::DigestEntry {
            digest_id,
            config: Some(config),
        })
    };
    let batch = vec![
        (Modify, digest(1)),
        (Insert, digest(2)),
        (Insert, digest(2)),
    ];
    assert_eq!(
        raw.write(batch).await,
        [Code::NotFound, Code::Ok, Code::AlreadyExists]
    );
    let all = Kind::DigestEntry(v1::DigestEntry::default());
    assert_eq!(raw.read(all).await, [digest(2)]);

    let source = |last| [0xd1, 0, 0, 0, 0, last];
    let learn = |last| assert!(one.send(&frame_from(source(last), 0)));
    let data = |last: u8| {
        use v1::p4_data::Data;
        let bits = |value: &[u8]| v1::P4Data {
            data: Some(Data::Bitstring(value.to_vec())),
        };
        let members = vec![bits(&source(last)), bits(&[1])];
        v1::P4Data {
            data: Some(Data::Struct(v1::P4StructLike { members })),
        }
    };
    async fn list(raw: &mut Raw) -> v1::DigestList {
        match raw.next().await {
            Response::Digest(list) => list,
            other => panic!("{other:?}"),
        }
    }
    for last in [1, 1, 2, 1] {
        learn(last);
    }
    let first = list(&mut raw).await;
    assert_eq!(first.digest_id, digest_id);
    assert_eq!(first.data, [data(1), data(2)], "each once");
    learn(2);
    learn(3);
    learn(4);
    let second = list(&mut raw).await;
    assert_eq!(second.data, [data(3), data(4)], "2 is not acknowledged");
    let list_id = first.list_id;
    raw.say(Say::DigestAck(v1::DigestListAck { digest_id, list_id }))
        .await;
    // Only a wrong acknowledgement is answered; the answer proves that the right one has been processed.
    let wrong = v1::DigestListAck {
        digest_id: 1,
        list_id,
    };
    raw.say(Say::DigestAck(wrong)).await;
    let Response::Error(error) = raw.next().await else {
        panic!("an error")
    };
    assert_eq!(error.canonical_code, Code::InvalidArgument as i32);
    learn(2);
    learn(1);
    assert_eq!(list(&mut raw).await.data, [data(2), data(1)]);
    raw.put(Delete, digest(0)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn digests_keep_their_settings_by_name() {
    let (instance, ..) = switch(Some(program()));
    let mut raw = Raw::primary(&instance).await;
    let setting = |digest_id| {
        let config = v1::digest_entry::Config {
            max_timeout_ns: 0,
            max_list_size: 7,
            ack_timeout_ns: 0,
        };
        Kind::DigestEntry(v1::DigestEntry {
            digest_id,
            config: Some(config),
        })
    };
    let before = id(&raw.index.digests, "learn_t");
    raw.put(Insert, setting(before)).await;
    let text = std::str::from_utf8(PROGRAM).unwrap();
    let call = "digest<learn_t>(1, { hdr.ethernet.src, std.ingress_port });";
    assert!(text.contains(call));
    let loaded = |text: &str| {
        loader()
            .load(text.as_bytes())
            .unwrap_or_else(|e| panic!("{e}"))
    };
    let reconcile = async |raw: &mut Raw, text: &str, info: &p4lang::p4info::P4Info| {
        let config = v1::ForwardingPipelineConfig {
            p4info: Some(p4rt::p4info::to_proto(info)),
            p4_device_config: text.as_bytes().to_vec(),
            cookie: None,
        };
        let request = v1::SetForwardingPipelineConfigRequest {
            device_id: DEVICE,
            election_id: Some(v1::Uint128 { high: 0, low: 1 }),
            action: v1::set_forwarding_pipeline_config_request::Action::ReconcileAndCommit.into(),
            config: Some(config),
            ..Default::default()
        };
        let set = raw.grpc.set_forwarding_pipeline_config(request).await;
        set.map(drop).map_err(|status| status.message().to_owned())
    };
    let all = Kind::DigestEntry(v1::DigestEntry::default());
    let without = text.replace(call, "");
    let refused = reconcile(&mut raw, &without, &loaded(&without).p4info).await;
    let message = "the forwarding state cannot be kept: there is no digest learn_t";
    assert_eq!(refused, Err(message.to_owned()));
    assert_eq!(raw.read(all.clone()).await, [setting(before)]);

    assert_eq!(reconcile(&mut raw, text, &program().p4info).await, Ok(()));
    assert_eq!(raw.read(all).await, [setting(before)]);
}

/// An entry of `watched` that no packet matches for longer than a test lasts.
fn timed() -> pipeline::EntryWrite {
    use pipeline::{Bound, EntryAction, EntryWrite, FieldKey};
    EntryWrite {
        key: vec![FieldKey::Masked {
            value: 9.into(),
            mask: ((1_u128 << 48) - 1).into(),
        }],
        priority: 0,
        action: EntryAction::Own(Bound {
            index: Some(0),
            params: [2].into(),
        }),
        meter: None,
        clear_meter_counts: false,
        counter: None,
        idle_timeout_ns: 1 << 60,
        note: None,
    }
}

/// Timers of existing entries must continue.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn idle_timeouts_go_on_when_a_program_takes_over() {
    let (instance, ..) = switch(None);
    let due = |core: &mut softswitch::driver::Core| {
        core.save(program().dataplane);
        core.commit();
        let (_, switch) = core.running().unwrap();
        let table = switch.table_position("MyIngress.watched").unwrap();
        switch.insert_whole(0, table, timed()).unwrap();
        let before = core.running().unwrap().1.poll_timeout();
        core.reconcile(program().dataplane).unwrap();
        (before, core.running().unwrap().1.poll_timeout())
    };
    let (before, behind) = instance.handle().run(due).await.unwrap();
    assert_eq!(before, behind);
    assert!(before.is_some_and(|due| due >= 1 << 60));
}

/// No packet can match an entry of a program that is only saved.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn idle_timeouts_of_a_saved_program_begin_with_its_commit() {
    let (instance, ..) = switch(None);
    let timed_from = |core: &mut softswitch::driver::Core| {
        core.save(program().dataplane);
        let (saved_ns, switch) = core.control().unwrap();
        let table = switch.table_position("MyIngress.watched").unwrap();
        switch.insert_whole(0, table, timed()).unwrap();
        core.commit();
        let due = core.running().unwrap().1.poll_timeout();
        (saved_ns, due.unwrap() - (1 << 60))
    };
    let (saved_ns, from) = instance.handle().run(timed_from).await.unwrap();
    assert!(from >= saved_ns, "from {from}, saved at {saved_ns}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn an_idle_entry_is_reported() {
    let (instance, ..) = switch(Some(program()));
    let mut raw = Raw::primary(&instance).await;
    let entry = v1::TableEntry {
        idle_timeout_ns: 2_000_000,
        metadata: b"why".to_vec(),
        ..raw.entry("watched", &[9], "count_and_send", &[2])
    };
    raw.put(Insert, Kind::TableEntry(entry.clone())).await;
    for _ in 0..2 {
        let Response::IdleTimeoutNotification(told) = raw.next().await else {
            panic!("a notification")
        };
        // On a busy machine more than one period may have passed.
        assert!(!told.table_entry.is_empty());
        assert!(told.table_entry.iter().all(|told| *told == entry));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_role_writes_and_reads_its_own_entities() {
    use prost::Message as _;
    let (instance, ..) = switch(Some(program()));
    let mut all = Raw::primary(&instance).await;
    let forward = id(&all.index.tables, "forward");
    // stratum.P4RoleConfig by hand: exclusive_p4_ids = [forward].
    #[derive(prost::Message)]
    struct Config {
        #[prost(uint32, repeated, tag = "1")]
        exclusive: Vec<u32>,
    }
    let config = Config {
        exclusive: vec![forward],
    };
    let role = v1::Role {
        name: "routing".into(),
        config: Some(prost_types::Any {
            type_url: "type.googleapis.com/stratum.P4RoleConfig".into(),
            value: config.encode_to_vec(),
        }),
        ..Default::default()
    };
    let mut routing = Raw::with_role(&instance, Some(role)).await;
    let mine = Kind::TableEntry(all.entry("forward", &[1], "send", &[1]));
    let other = Kind::TableEntry(all.entry("watched", &[1], "count_and_send", &[1]));
    let both = vec![(Insert, mine.clone()), (Insert, other.clone())];
    assert_eq!(
        all.write(both.clone()).await,
        [Code::PermissionDenied, Code::Ok]
    );
    assert_eq!(
        routing.write(both).await,
        [Code::Ok, Code::PermissionDenied]
    );
    let entries = Kind::TableEntry(v1::TableEntry::default());
    assert_eq!(routing.read(entries.clone()).await, [mine]);
    assert_eq!(all.read(entries).await.len(), 3, "with the constant one");
    let nobody = v1::ReadRequest {
        device_id: DEVICE,
        role: "unknown".into(),
        entities: vec![v1::Entity {
            entity: Some(Kind::TableEntry(v1::TableEntry::default())),
        }],
    };
    let mut found = all.grpc.read(nobody).await.unwrap().into_inner();
    while let Some(response) = found.message().await.unwrap() {
        assert_eq!(response.entities, [], "nothing belongs to such a role");
    }
    let request = v1::SetForwardingPipelineConfigRequest {
        device_id: DEVICE,
        role: "routing".into(),
        election_id: Some(v1::Uint128 { high: 0, low: 1 }),
        action: v1::set_forwarding_pipeline_config_request::Action::Commit.into(),
        ..Default::default()
    };
    let refused = routing.grpc.set_forwarding_pipeline_config(request).await;
    assert_eq!(refused.unwrap_err().code(), tonic::Code::PermissionDenied);
}

/// More than the socket's buffers, HTTP/2's window and the client's backlog hold together.
const FLOOD: usize = 12_000;

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_client_that_reads_nothing_delays_no_other() {
    let (instance, one, two) = switch(Some(program()));
    // A primary, which therefore receives every packet for the controller, and never reads its stream.
    let mut deaf = Raw::primary(&instance).await;
    let to_cpu = Kind::TableEntry(deaf.entry("forward", &[7], "send", &[0x01, 0xfe]));
    let to_two = Kind::TableEntry(deaf.entry("forward", &[8], "send", &[2]));
    deaf.put(Insert, to_cpu).await;
    deaf.put(Insert, to_two).await;
    let to = |last: u8, size: usize| {
        let mut frame = vec![0; size];
        frame[5] = last;
        frame
    };
    for sent in 1..=FLOOD {
        assert!(one.send(&to(7, 1500)));
        if sent % 64 == 0 {
            // Frames still move, and the link in memory has space again.
            assert!(one.send(&to(8, 60)));
            assert_eq!(two.receive(TIMEOUT), Some(to(8, 60)));
        }
    }
    // Other clients are served meanwhile.
    let mut client = connect(&instance).await;
    client.fetch_pipeline().await.unwrap();
    let query = p4rt::client::Query::Entries { table: None };
    assert_eq!(client.read(&[query]).await.unwrap().len(), 3);

    let address = instance.address().to_string();
    let extension = softswitch::server::connect_extension(&address, TIMEOUT).await;
    let statistics = extension
        .unwrap()
        .statistics(softswitch::server::weir::StatisticsRequest {})
        .await
        .unwrap()
        .into_inner();
    let slow = ["client too slow", "control plane too slow"];
    let lost = statistics
        .drops
        .iter()
        .filter(|d| slow.contains(&d.reason.as_str()));
    assert!(lost.map(|d| d.frames).sum::<u64>() > 0, "{statistics:?}");
}

/// A proxy between a client and the switch that stops passing data when `hold` is set: both connections stay open, as
/// when a cable is pulled.
async fn cable(to: std::net::SocketAddr, hold: tokio::sync::watch::Receiver<bool>) -> String {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    tokio::spawn(async move {
        let (client, _) = listener.accept().await.unwrap();
        let switch = tokio::net::TcpStream::connect(to).await.unwrap();
        let (from_client, to_client) = client.into_split();
        let (from_switch, to_switch) = switch.into_split();
        let carry = |mut from: tokio::net::tcp::OwnedReadHalf,
                     mut to: tokio::net::tcp::OwnedWriteHalf| {
            let mut hold = hold.clone();
            tokio::spawn(async move {
                let mut bytes = vec![0; 1 << 16];
                loop {
                    let read = tokio::select! {
                        biased;
                        _ = hold.wait_for(|hold| *hold) => break,
                        read = from.read(&mut bytes) => read,
                    };
                    let Ok(read @ 1..) = read else { break };
                    if to.write_all(&bytes[..read]).await.is_err() {
                        break;
                    }
                }
                // Open for the rest of the test.
                std::future::pending::<()>().await;
                drop((from, to));
            })
        };
        carry(from_client, to_switch);
        carry(from_switch, to_client);
    });
    address
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_client_behind_a_pulled_cable_delays_no_other() {
    let (instance, one, two) = switch(Some(program()));
    let (pull, held) = tokio::sync::watch::channel(false);
    let mut gone = Raw::at(&cable(instance.address(), held).await, None).await;
    let to_cpu = Kind::TableEntry(gone.entry("forward", &[7], "send", &[0x01, 0xfe]));
    let to_two = Kind::TableEntry(gone.entry("forward", &[8], "send", &[2]));
    gone.put(Insert, to_cpu).await;
    gone.put(Insert, to_two.clone()).await;
    pull.send_replace(true);
    let to = |last: u8, size: usize| {
        let mut frame = vec![0; size];
        frame[5] = last;
        frame
    };
    // More messages than its socket holds are for the disconnected client; other frames pass meanwhile.
    for sent in 1..=FLOOD {
        assert!(one.send(&to(7, 1500)));
        if sent % 64 == 0 {
            assert!(one.send(&to(8, 60)));
            assert_eq!(two.receive(TIMEOUT), Some(to(8, 60)));
        }
    }
    // The next controller takes over, writes and reads.
    let mut next = connect(&instance).await;
    let _events = next.become_primary(2).await.unwrap();
    next.fetch_pipeline().await.unwrap();
    let entry = support::items::forward(9, 2);
    next.apply(&[(p4rt::client::UpdateType::Insert, entry)])
        .await
        .unwrap();
    assert!(one.send(&to(9, 60)));
    assert_eq!(two.receive(TIMEOUT), Some(to(9, 60)));
}

//! Sessions: write access, loading of programs, packets from and to the controller.

use crate::support::items::*;
use crate::support::*;
use p4rt::client::*;
use p4rt::p4info::to_proto;
use p4rt::rpc::Code;
use p4rt::translate::Item;

#[tokio::test]
async fn only_the_primary_writes() {
    let (instance, ..) = switch(None);
    let (old, mut old_events) = primary(&instance).await;
    old.apply(&[(UpdateType::Insert, forward(1, 1))])
        .await
        .unwrap();

    let mut backup = connect(&instance).await;
    let error = backup.become_primary(0).await.unwrap_err();
    assert!(
        matches!(
            error,
            ClientError::NotPrimary {
                highest: Some(1),
                ..
            }
        ),
        "{error}"
    );
    let mut twin = connect(&instance).await;
    let error = twin.become_primary(1).await.unwrap_err();
    assert!(
        matches!(
            error,
            ClientError::Rpc {
                code: Code::InvalidArgument,
                ..
            }
        ),
        "{error}"
    );
    let mut stranger = Client::connect(&instance.address().to_string(), 99, TIMEOUT)
        .await
        .unwrap();
    let error = stranger.become_primary(1).await.unwrap_err();
    assert!(
        matches!(
            error,
            ClientError::Rpc {
                code: Code::NotFound,
                ..
            }
        ),
        "{error}"
    );

    let mut new = connect(&instance).await;
    let _new_events = new.become_primary(2).await.unwrap();
    assert_eq!(
        old_events.next().await.unwrap(),
        Some(Event::Arbitration {
            primary: false,
            election_id: Some(2)
        })
    );
    let error = old
        .apply(&[(UpdateType::Insert, forward(2, 1))])
        .await
        .unwrap_err();
    assert!(
        matches!(
            error,
            ClientError::Rpc {
                code: Code::PermissionDenied,
                ..
            }
        ),
        "{error}"
    );
    let config = new.fetch_pipeline().await.unwrap();
    assert_eq!(config.cookie.map(|cookie| cookie.cookie), Some(42));
    assert_eq!(config.p4_device_config, PROGRAM);
    new.apply(&[(UpdateType::Insert, forward(2, 1))])
        .await
        .unwrap();
    assert_eq!(entries(&old).await.len(), 2, "reading needs no election id");
}

#[tokio::test]
async fn pipelines_are_verified_saved_and_committed() {
    use PipelineAction::*;
    let (instance, one, two) = switch(None);
    let mut client = connect(&instance).await;
    let _events = client.become_primary(1).await.unwrap();
    let info = || to_proto(&p4info());
    let code = |result: Result<(), ClientError>| match result {
        Err(ClientError::Rpc { code, message, .. }) => (code, message),
        other => panic!("{other:?}"),
    };
    let no_pipeline = client.fetch_pipeline().await.unwrap_err();
    assert!(
        matches!(no_pipeline, ClientError::NoPipeline { .. }),
        "{no_pipeline}"
    );

    let result = client
        .set_pipeline(VerifyAndCommit, info(), b"nonsense".to_vec(), 0)
        .await;
    let (refused, message) = code(result);
    assert_eq!(refused, Code::InvalidArgument);
    assert!(message.contains("expected"), "{message}");
    let mut other = p4info();
    let mut actions = other.actions.iter_mut();
    let sending = actions.find(|a| a.preamble.name == "MyIngress.send");
    sending.unwrap().params[0].bitwidth = 16;
    let (refused, message) = code(
        client
            .set_pipeline(Verify, to_proto(&other), PROGRAM.to_vec(), 0)
            .await,
    );
    assert_eq!(refused, Code::InvalidArgument);
    assert!(message.contains("action `MyIngress.send`"), "{message}");
    other = p4info();
    other
        .tables
        .retain(|t| t.preamble.name != "MyIngress.fixed");
    let (_, message) = code(
        client
            .set_pipeline(Verify, to_proto(&other), PROGRAM.to_vec(), 0)
            .await,
    );
    assert!(message.contains("table `MyIngress.fixed`"), "{message}");
    assert_eq!(
        code(client.set_pipeline(Commit, info(), vec![], 0).await).0,
        Code::NotFound
    );

    client
        .set_pipeline(Verify, info(), PROGRAM.to_vec(), 0)
        .await
        .unwrap();
    assert!(
        client.fetch_pipeline().await.is_err(),
        "verified is not loaded"
    );
    client
        .set_pipeline(VerifyAndSave, info(), PROGRAM.to_vec(), 1)
        .await
        .unwrap();
    client
        .apply(&[(UpdateType::Insert, forward(2, 2))])
        .await
        .unwrap();
    assert!(one.send(&frame(2)));
    assert_eq!(two.receive(NEVER), None, "saved is not running");
    client
        .set_pipeline(Commit, info(), vec![], 0)
        .await
        .unwrap();
    assert!(one.send(&frame(2)));
    assert_eq!(
        two.receive(TIMEOUT),
        Some(frame(2)),
        "what was written since the save is in force"
    );

    let acl_default = Item::DefaultAction {
        table: "MyIngress.acl".into(),
        action: Some(send(4)),
    };
    client
        .apply(&[
            (UpdateType::Modify, acl_default.clone()),
            (UpdateType::Modify, cell(Some(1), 3, 4)),
        ])
        .await
        .unwrap();
    // Discarding a saved program must not affect the running one.
    client
        .set_pipeline(VerifyAndSave, info(), PROGRAM.to_vec(), 2)
        .await
        .unwrap();
    client
        .set_pipeline(ReconcileAndCommit, info(), PROGRAM.to_vec(), 2)
        .await
        .unwrap();
    assert_eq!(entries(&client).await, [forward(2, 2)]);
    let kept = [
        Query::DefaultAction {
            table: "acl".into(),
        },
        Query::Register {
            name: "cells".into(),
            index: Some(1),
        },
    ];
    assert_eq!(
        client.read(&kept).await.unwrap(),
        [acl_default, cell(Some(1), 3, 4)]
    );
    assert_eq!(
        client
            .fetch_pipeline()
            .await
            .unwrap()
            .cookie
            .unwrap()
            .cookie,
        2
    );

    client
        .set_pipeline(VerifyAndCommit, info(), PROGRAM.to_vec(), 3)
        .await
        .unwrap();
    assert_eq!(entries(&client).await, [], "a new commit starts empty");
}

// The stream has its own thread while this one waits for the frame.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn packets_go_to_and_come_from_the_controller() {
    let (instance, one, two) = switch(None);
    let (client, mut events) = primary(&instance).await;
    client
        .send_packet(frame(9), &[2.into(), 0.into()])
        .await
        .unwrap();
    assert_eq!(two.receive(TIMEOUT), Some(frame(9)));

    client
        .apply(&[(UpdateType::Insert, forward(7, CPU_PORT.into()))])
        .await
        .unwrap();
    assert!(one.send(&frame(7)));
    let Some(Event::Packet(packet)) = events.next().await.unwrap() else {
        panic!("a packet")
    };
    let header = client.packet_in_header().unwrap().unwrap();
    assert_eq!(
        p4rt::translate::packet_fields(header, &packet.metadata),
        Ok(vec![1.into(), 0.into()])
    );
    assert_eq!(packet.payload, frame(7));

    let statistics = instance.statistics().unwrap();
    assert_eq!((statistics.packets_in, statistics.packets_out), (1, 1));
}

#[tokio::test]
async fn a_program_may_run_from_the_start() {
    let (instance, ..) = switch(Some(program()));
    let mut client = connect(&instance).await;
    let config = client.fetch_pipeline().await.unwrap();
    assert_eq!(
        (config.p4info, config.cookie),
        (Some(to_proto(&p4info())), None)
    );
    assert_eq!(client.api_version().await.unwrap(), p4rt::API_VERSION);
}

#[tokio::test]
async fn a_switch_ends_while_clients_are_connected() {
    let (instance, ..) = switch(None);
    let (client, mut events) = primary(&instance).await;
    instance.stop().unwrap();
    assert!(
        !matches!(events.next().await, Ok(Some(_))),
        "the stream has ended"
    );
    assert!(
        client
            .read(&[Query::Entries { table: None }])
            .await
            .is_err()
    );
}

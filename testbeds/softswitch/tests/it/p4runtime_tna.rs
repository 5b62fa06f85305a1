//! A controller's access to a Tofino's fixed functions: mirror sessions and multicast trees through P4Runtime, the packet
//! generator through the service beside it.

use crate::support::*;
use p4lang::runtime::{CloneSession, MulticastGroup, Replica};
use p4rt::client::{PipelineAction, Query, UpdateType};
use p4rt::p4info::to_proto;
use p4rt::translate::Item;
use softswitch::dataplane::Loader;
use softswitch::server::{connect_extension, weir};
use weir::generator_app::Trigger;

const TOFINO: &[u8] = include_bytes!("../support/mirror_tna.p4");

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn sessions_and_groups() {
    let (instance, one, two) = switch_running(TOFINO);
    let mut client = connect(&instance).await;
    let _events = client.become_primary(1).await.unwrap();
    client.fetch_pipeline().await.unwrap();
    let replica = |port| Replica { port, instance: 3 };
    let written = [
        Item::CloneSession(CloneSession {
            id: 5,
            replicas: vec![replica(2)],
            class_of_service: 0,
            packet_length_bytes: 4,
        }),
        Item::MulticastGroup(MulticastGroup {
            id: 7,
            replicas: vec![replica(1), replica(2)],
        }),
    ];
    let inserts = written.clone().map(|item| (UpdateType::Insert, item));
    client.apply(&inserts).await.unwrap();
    let queries = [
        Query::CloneSessions { id: None },
        Query::MulticastGroups { id: None },
    ];
    assert_eq!(client.read(&queries).await.unwrap(), written);
    assert!(one.send(&[5, 1, 2, 3]));
    let mirrored = vec![0xab, 0xcd, 5, 1];
    assert_eq!(two.receive(TIMEOUT), Some(mirrored), "its header counted");
    assert!(one.send(&[0x87, 9]));
    assert_eq!(one.receive(TIMEOUT), Some(vec![0x87, 9]));
    assert_eq!(two.receive(TIMEOUT), Some(vec![0x87, 9]));
}

/// A Tofino has 1024 mirror sessions, and group numbers of 16 bits.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn numbers_that_a_tofino_has_not() {
    let (instance, ..) = switch_running(TOFINO);
    let mut client = connect(&instance).await;
    let _events = client.become_primary(1).await.unwrap();
    client.fetch_pipeline().await.unwrap();
    let session = |id| {
        Item::CloneSession(CloneSession {
            id,
            replicas: Vec::new(),
            class_of_service: 0,
            packet_length_bytes: 0,
        })
    };
    let group = |id| {
        Item::MulticastGroup(MulticastGroup {
            id,
            replicas: Vec::new(),
        })
    };
    let apply = async |item| client.apply(&[(UpdateType::Insert, item)]).await;
    assert!(apply(session(1023)).await.is_ok());
    assert!(apply(group(65_535)).await.is_ok());
    let told = apply(session(1024)).await.unwrap_err().to_string();
    assert!(
        told.contains("clone session 1024; the program's ids have 10 bits"),
        "{told}"
    );
    let told = apply(group(65_536)).await.unwrap_err().to_string();
    assert!(
        told.contains("multicast group 65536; the program's ids have 16 bits"),
        "{told}"
    );
}

fn request(trigger: Option<Trigger>) -> weir::SetGeneratorRequest {
    weir::SetGeneratorRequest {
        pipe: 0,
        buffer_offset: 16,
        buffer: vec![0xaa, 0xbb],
        app: 3,
        config: Some(weir::GeneratorApp {
            trigger,
            offset: 16,
            length: 2,
            batches: 1,
            packets: 2,
            batch_gap_ns: 0,
            packet_gap_ns: 0,
            port: 68,
        }),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn the_packet_generator() {
    let (instance, one, _two) = switch_running(TOFINO);
    let address = instance.address().to_string();
    let mut service = connect_extension(&address, TIMEOUT).await.unwrap();
    let once = request(Some(Trigger::OneShotAfterNs(1)));
    service.set_generator(once).await.unwrap();
    for packet in 0..2 {
        let made = vec![3, 0, 0, 0, 0, packet, 0xaa, 0xbb];
        assert_eq!(one.receive(TIMEOUT), Some(made));
    }
    let down = |ports: &[u32]| {
        let ports = ports.to_vec();
        request(Some(Trigger::PortDown(weir::PortDown { ports })))
    };
    service.set_generator(down(&[2])).await.unwrap();
    let fails = |core: &mut softswitch::driver::Core| {
        let (now, switch) = core.running().unwrap();
        switch.port_down(now, 2);
    };
    instance.handle().run(fails).await.unwrap();
    for packet in 0..2 {
        let made = vec![3, 0, 0, 2, 0, packet, 0xaa, 0xbb];
        assert_eq!(one.receive(TIMEOUT), Some(made), "port 2 is down");
    }
    // A refused request changes nothing.
    service.set_generator(down(&[1])).await.unwrap();
    let otherwise = |trigger| weir::SetGeneratorRequest {
        buffer: vec![1, 2],
        ..request(trigger)
    };
    let refused = [
        (otherwise(None), "the application has no trigger"),
        (
            otherwise(Some(Trigger::PeriodNs(0))),
            "the period is 0 ns; use 1 or more",
        ),
        (
            otherwise(down(&[1, 130]).config.unwrap().trigger),
            "port 130 does not belong to pipe 0",
        ),
        (
            weir::SetGeneratorRequest {
                app: 256 + 3,
                ..otherwise(Some(Trigger::PeriodNs(1)))
            },
            "application 259 does not exist; a pipe has 8, from 0",
        ),
        (
            weir::SetGeneratorRequest {
                app: 4,
                config: None,
                ..otherwise(None)
            },
            "pipe 0: application 4 is not set",
        ),
        (
            weir::SetGeneratorRequest {
                buffer_offset: 16_383,
                ..otherwise(Some(Trigger::OneShotAfterNs(1)))
            },
            "2 bytes at offset 16383; the buffer has 16384",
        ),
    ];
    for (request, message) in refused {
        let error = service.set_generator(request).await.unwrap_err();
        assert_eq!(
            (error.code(), error.message()),
            (tonic::Code::InvalidArgument, message)
        );
    }
    let fails = |core: &mut softswitch::driver::Core| {
        let (now, switch) = core.running().unwrap();
        switch.port_down(now, 1);
    };
    instance.handle().run(fails).await.unwrap();
    for packet in 0..2 {
        let made = vec![3, 0, 0, 1, 0, packet, 0xaa, 0xbb];
        assert_eq!(one.receive(TIMEOUT), Some(made), "port 1 is down");
    }
    let (instance, ..) = switch(Some(program()));
    let address = instance.address().to_string();
    let mut service = connect_extension(&address, TIMEOUT).await.unwrap();
    let once = request(Some(Trigger::OneShotAfterNs(1)));
    let error = service.set_generator(once).await.unwrap_err();
    assert_eq!(error.code(), tonic::Code::FailedPrecondition, "{error}");
}

/// The generator belongs to the running program, whatever is saved meanwhile.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn the_packet_generator_beside_a_saved_program() {
    use PipelineAction::*;
    let (instance, one, _two) = switch_running(TOFINO);
    let mut client = connect(&instance).await;
    let _events = client.become_primary(1).await.unwrap();
    let p4info = to_proto(&loader().load(TOFINO).unwrap().p4info);
    let mut set_pipeline = async |action, text: &[u8]| {
        let set = client.set_pipeline(action, p4info.clone(), text.to_vec(), 0);
        set.await.unwrap();
    };
    let address = instance.address().to_string();
    let mut service = connect_extension(&address, TIMEOUT).await.unwrap();
    let made = |packet| vec![3, 0, 0, 0, 0, packet, 0xaa, 0xbb];
    let again = request(Some(Trigger::PeriodNs(1_000_000)));
    service.set_generator(again.clone()).await.unwrap();
    set_pipeline(VerifyAndSave, TOFINO).await;
    let stop = weir::SetGeneratorRequest {
        config: None,
        ..again.clone()
    };
    service.set_generator(stop).await.unwrap();
    while one.try_receive().is_some() {}
    assert_eq!(one.receive(NEVER), None, "it has stopped");
    service.set_generator(again.clone()).await.unwrap();
    for packet in 0..2 {
        assert_eq!(one.receive(TIMEOUT), Some(made(packet)));
    }
    set_pipeline(Commit, &[]).await;
    while one.try_receive().is_some() {}
    assert_eq!(one.receive(NEVER), None, "a new program begins without");

    // It continues when another program takes over.
    service.set_generator(again).await.unwrap();
    set_pipeline(ReconcileAndCommit, TOFINO).await;
    while one.try_receive().is_some() {}
    assert!(one.receive(TIMEOUT).is_some());
}

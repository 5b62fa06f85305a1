//! What of a Tofino's fixed functions a controller reaches: mirror sessions and multicast trees through P4Runtime, the
//! packet generator through the service beside it.

mod support;

use p4lang::runtime::{CloneSession, MulticastGroup, Replica};
use p4rt::client::{Query, UpdateType};
use p4rt::translate::Item;
use softswitch::server::{connect_extension, weir};
use support::*;
use weir::generator_app::Trigger;

const TOFINO: &[u8] = include_bytes!("support/mirror_tna.p4");

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
        told.contains("clone session 1024: the program's have 10 bits"),
        "{told}"
    );
    let told = apply(group(65_536)).await.unwrap_err().to_string();
    assert!(
        told.contains("multicast group 65536: the program's have 16 bits"),
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
        let (now, switch) = core.control().unwrap();
        switch.port_down(now, 2);
    };
    instance.handle().run(fails).await.unwrap();
    for packet in 0..2 {
        let made = vec![3, 0, 0, 2, 0, packet, 0xaa, 0xbb];
        assert_eq!(one.receive(TIMEOUT), Some(made), "port 2 is down");
    }
    let refused = [
        request(None),
        request(Some(Trigger::PeriodNs(0))),
        weir::SetGeneratorRequest {
            app: 8,
            ..request(Some(Trigger::PeriodNs(1)))
        },
    ];
    for request in refused {
        let error = service.set_generator(request).await.unwrap_err();
        assert_eq!(error.code(), tonic::Code::InvalidArgument, "{error}");
    }
    let (instance, ..) = switch(Some(program()));
    let address = instance.address().to_string();
    let mut service = connect_extension(&address, TIMEOUT).await.unwrap();
    let once = request(Some(Trigger::OneShotAfterNs(1)));
    let error = service.set_generator(once).await.unwrap_err();
    assert_eq!(error.code(), tonic::Code::FailedPrecondition, "{error}");
}

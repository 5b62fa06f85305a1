//! Bundles that `frames` sends by an interface: how long they are, and to whom they go.

use super::packet::{Bundle, Transport};
use super::socket::{PacketSocket, Received};
use super::*;
use frames::{Frames, Io, Options, open, receive_within};
use std::process::Command;
use test_support::namespace::{in_namespace, ip};
use test_support::skip;

/// Opens one end of a new link by `io`, and the other for packets with their virtio headers.
fn opened(
    one: &str,
    other: &str,
    io: Io,
    prepare: impl FnOnce(),
) -> (Box<dyn Frames>, PacketSocket) {
    let (near, far) = super::link(one, other, true);
    drop(near);
    prepare();
    let options = Options {
        io,
        ..Options::default()
    };
    (open(one, options).unwrap().frames, far)
}

/// Sends a bundle's frames; returns the numbers of frames in the packets that arrive, and checks that all do.
fn pass(port: &mut dyn Frames, far: &PacketSocket, bundle: &Bundle) -> Vec<usize> {
    let sent = bundle.frames();
    for frame in &sent {
        port.send(frame).unwrap();
    }
    assert_eq!(port.flush().unwrap(), 0, "lost frames");
    let (mut arrived, mut counts) = (Vec::new(), Vec::new());
    while arrived.len() < sent.len() {
        let packet: Received = far.receive(Duration::from_secs(5)).expect("a packet");
        let frames = super::frames(&packet);
        counts.push(frames.len());
        arrived.extend(frames);
    }
    assert!(arrived == sent, "frames differ");
    counts
}

/// 40 frames of 1,042 bytes, each with a checksum.
fn datagrams() -> Bundle {
    Bundle {
        payload: 40_000,
        ..Bundle::default()
    }
}

#[test]
fn a_bundle_passes_a_token_bucket_whole() {
    if !in_namespace("a_bundle_passes_a_token_bucket_whole") {
        return;
    }
    let mut has_tbf = true;
    let (mut port, far) = opened("shaped", "shaped1", Io::Bundles, || {
        let bucket = "qdisc add dev shaped root tbf rate 200mbit burst 10000 limit 1000000";
        let status = Command::new("tc").args(bucket.split(' ')).status();
        has_tbf = status.is_ok_and(|status| status.success());
    });
    if !has_tbf {
        skip(
            "a_bundle_passes_a_token_bucket_whole",
            "needs tc and sch_tbf",
        );
        return;
    }
    // A longer bundle would arrive as single frames: the kernel cuts it.
    assert_eq!(pass(&mut *port, &far, &datagrams()), [9, 9, 9, 9, 4]);
}

#[test]
fn a_bundle_is_no_longer_than_the_interface_allows() {
    if !in_namespace("a_bundle_is_no_longer_than_the_interface_allows") {
        return;
    }
    let (mut port, far) = opened("small", "small1", Io::Bundles, || {
        ip("link set small gso_max_size 8043");
    });
    // The kernel would cut one of 8,043 bytes.
    assert_eq!(pass(&mut *port, &far, &datagrams()), [8, 8, 8, 8, 8]);
    let (mut port, far) = opened("less", "less1", Io::Bundles, || {
        ip("link set less gso_max_size 8042");
    });
    assert_eq!(pass(&mut *port, &far, &datagrams()), [7, 7, 7, 7, 7, 5]);
}

/// One direction of a connection has data, the other acknowledgements alone, of which there are no bundles.
#[test]
fn an_unfinished_segment_shows_that_a_host_takes_bundles_of_tcp() {
    if !in_namespace("an_unfinished_segment_shows_that_a_host_takes_bundles_of_tcp") {
        return;
    }
    let (mut port, far) = opened("port", "host", Io::Auto, || {});
    let [datagrams, segments] = [Transport::Udp, Transport::Tcp].map(|transport| Bundle {
        transport,
        payload: 3000,
        ..Bundle::default()
    });
    let singles = [1; 3];
    let is_told = |port: &mut dyn Frames, of: Transport, is_unfinished| {
        let one = Bundle {
            transport: of,
            payload: 1000,
            ..Bundle::default()
        };
        let (offload, packet) = one.build();
        let plain = Offload {
            kind: Offload::PLAIN,
            segment: 0,
            ..offload
        };
        match is_unfinished {
            true => far.send(plain, &packet),
            false => far.send(Offload::NONE, &one.frames()[0]),
        }
        let mut came = 0;
        while came == 0 {
            receive_within(port, Duration::from_secs(5), 1, &mut |_: &[u8]| came += 1).unwrap();
        }
    };
    is_told(&mut *port, Transport::Tcp, false);
    is_told(&mut *port, Transport::Udp, true);
    assert_eq!(pass(&mut *port, &far, &segments), singles);
    is_told(&mut *port, Transport::Tcp, true);
    assert_eq!(pass(&mut *port, &far, &segments), [3]);
    assert_eq!(pass(&mut *port, &far, &datagrams), singles);
}

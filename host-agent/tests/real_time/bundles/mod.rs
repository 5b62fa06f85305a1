//! Bundles that this kernel cuts or makes, beside the frames that [`Cut`] makes of them, in the test's own namespaces.

#[path = "../../../frames/tests/support/packet.rs"]
mod packet;
mod senders;
mod socket;
mod sockets;

use frames::bundle::{Checksums, Cut, Joins, Offload, Run};
use packet::{Bundle, Transport};
use socket::{PacketSocket, Received, finish_frames};
use std::time::{Duration, Instant};
use test_support::namespace::{in_namespace, veth};

const LONGEST: usize = 9230;
const BOTH: Joins = Joins {
    udp: true,
    tcp: true,
};

/// A new link whose frames leave `from` whole, or finished by the kernel; its ends, after the first frame has passed.
fn link(from: &str, to: &str, is_whole: bool) -> (PacketSocket, PacketSocket) {
    veth(from, to);
    if !is_whole {
        finish_frames(from);
    }
    let ends = (
        PacketSocket::open(from, true),
        PacketSocket::open(to, is_whole),
    );
    // The kernel discards frames until it has noticed that the link is up.
    let begun = Instant::now();
    let first = [0x02; 60];
    while ends.1.receive(Duration::from_millis(1)).is_none() {
        assert!(begun.elapsed() < Duration::from_secs(10), "no frame passes");
        ends.0.send(Offload::NONE, &first);
    }
    while ends.1.receive(Duration::from_millis(20)).is_some() {}
    ends
}

/// All frames of a received packet.
fn frames(received: &Received) -> Vec<Vec<u8>> {
    cut(received.offload, &received.packet, received.inserted)
}

fn cut(offload: Offload, packet: &[u8], inserted: usize) -> Vec<Vec<u8>> {
    let cut = Cut::new(offload, packet, inserted, Checksums::Finish, LONGEST);
    let mut cut = cut.unwrap_or_else(|error| panic!("{error}: {offload:?}"));
    let (mut packet, mut frames) = (packet.to_vec(), Vec::new());
    while let Some(frame) = cut.next(&mut packet) {
        frames.push(frame.to_vec());
    }
    frames
}

/// Every kind of bundle, with tags, lengths, options and flags that are rare.
fn bundles() -> Vec<Bundle> {
    let mut all = Vec::new();
    for transport in [Transport::Udp, Transport::Tcp] {
        for ipv6 in [false, true] {
            for tags in [
                &[][..],
                &[0x81, 0, 0x20, 7],
                &[0x88, 0xa8, 0, 1, 0x81, 0, 0x60, 2],
            ] {
                for (segment, payload) in
                    [(1000, 16_000), (333, 2000), (1048, 1049), (8, 64), (7, 50)]
                {
                    all.push(Bundle {
                        transport,
                        ipv6,
                        tags: tags.to_vec(),
                        segment,
                        payload,
                        ..Bundle::default()
                    });
                }
            }
        }
    }
    let two = |transport, ipv6| Bundle {
        transport,
        ipv6,
        ..Bundle::default()
    };
    for ipv6 in [false, true] {
        all.push(two(Transport::Udp, ipv6).with_checksum_of_zero());
        all.push(two(Transport::Tcp, ipv6).with_checksum_of_zero());
        // FIN, PSH; CWR, ECE; all of them with URG; with each number of bytes of options.
        for (flags, options) in [(0x19, 0), (0xd0, 12), (0xf9, 40), (0x18, 4)] {
            all.push(Bundle {
                transport: Transport::Tcp,
                ipv6,
                segment: 501,
                payload: 2500,
                flags,
                options,
                sequence: u32::MAX - 1200,
                identification: u16::MAX - 1,
                ..Bundle::default()
            });
        }
    }
    all
}

#[test]
fn frames_of_a_bundle_equal_those_of_the_kernel() {
    if !in_namespace("frames_of_a_bundle_equal_those_of_the_kernel") {
        return;
    }
    let whole = link("whole", "whole1", true);
    let segmented = link("cut", "cut1", false);
    for bundle in bundles() {
        let (offload, packet) = bundle.build();
        segmented.0.send(offload, &packet);
        let count = bundle.count();
        let expected: Vec<_> = segmented.1.receive_all(count);
        let expected: Vec<_> = expected.into_iter().map(|frame| frame.packet).collect();
        assert_eq!(expected.len(), count, "{bundle:?}");
        // The builder makes the kernel's frames, too, for tests without a kernel.
        assert_eq!(bundle.frames(), expected, "{bundle:?}");
        let ours = cut(offload, &packet, 0);
        assert_eq!(ours, expected, "{bundle:?}");

        // The kernel's own header, written without the tag that it removed.
        whole.0.send(offload, &packet);
        let received = whole.1.receive(Duration::from_secs(2)).expect("the bundle");
        assert_eq!(received.packet, packet, "{bundle:?}");
        assert_eq!(received.inserted, bundle.tags.len().min(4), "{bundle:?}");
        assert_eq!(frames(&received), expected, "{bundle:?}");

        // The frames join to the same bundle, unless their flags end the run.
        let mut run = Run::new();
        if expected.iter().all(|frame| run.add(frame, BOTH)) {
            assert_eq!(run.finish(), (offload, &packet[..]), "{bundle:?}");
        } else {
            assert!(bundle.flags & 0x20 != 0, "{bundle:?}");
        }
    }
}

#[test]
fn single_checksums_equal_those_of_the_kernel() {
    if !in_namespace("single_checksums_equal_those_of_the_kernel") {
        return;
    }
    let (from, to) = link("cut", "cut1", false);
    let mut all = bundles();
    for transport in [Transport::Udp, Transport::Tcp] {
        let bundle = Bundle {
            transport,
            segment: 99,
            payload: 99,
            ..Bundle::default()
        };
        all.push(bundle.with_checksum_of_zero());
    }
    for bundle in all {
        let (offload, packet) = bundle.build();
        let plain = Offload {
            kind: Offload::PLAIN,
            segment: 0,
            ..offload
        };
        if packet.len() <= LONGEST {
            from.send(plain, &packet);
            let frame = to.receive(Duration::from_secs(2)).expect("the frame");
            assert_eq!(cut(plain, &packet, 0), [frame.packet], "{bundle:?}");
        }
    }
}

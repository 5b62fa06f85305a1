//! Cutting and joining are each other's inverse.

use crate::packet::{Bundle, Transport, sum_by_words};
use crate::*;
use proptest::prelude::*;

const TAGS: [&[u8]; 3] = [
    &[],
    &[0x81, 0, 0x20, 7],
    &[0x88, 0xa8, 0, 1, 0x81, 0, 0x60, 2],
];

prop_compose! {
    fn bundle()(
        tcp in any::<bool>(),
        ipv6 in any::<bool>(),
        tags in 0usize..3,
        (segment, count) in prop_oneof![(1usize..1100, 1usize..20), (1usize..40, 60usize..65)],
        missing in any::<prop::sample::Index>(),
        // FIN, PSH, ACK, ECE, CWR.
        flags in any::<u8>().prop_map(|flags| flags & 0xd9),
        options in 0usize..11,
        sequence in any::<u32>(),
        identification in any::<u16>(),
    ) -> Bundle {
        Bundle {
            transport: if tcp { Transport::Tcp } else { Transport::Udp },
            ipv6,
            tags: TAGS[tags].to_vec(),
            segment,
            payload: segment * count - if count > 1 { missing.index(segment) } else { 0 },
            flags: if tcp { flags } else { 0 },
            options: options * 4,
            sequence,
            identification,
            ..Bundle::default()
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(test_support::cases(2560)))]

    #[test]
    fn a_bundle_is_cut_into_its_frames(bundle in bundle()) {
        let (offload, packet) = bundle.build();
        prop_assert_eq!(cut(offload, &packet), bundle.frames());
        // With the tag in the frame that the kernel had removed.
        let inserted = bundle.tags.len().min(4);
        let removed = Offload { checksum_start: offload.checksum_start - inserted as u16, ..offload };
        let frames = try_cut(removed, &packet, inserted, Checksums::Finish).unwrap();
        prop_assert_eq!(frames, bundle.frames());
    }

    #[test]
    fn frames_join_to_their_bundle(bundle in bundle()) {
        let packets = join(&bundle.frames(), BOTH);
        prop_assert_eq!(packets.len(), 1);
        if bundle.count() > 1 {
            prop_assert_eq!(&packets[0], &bundle.build());
        } else {
            prop_assert_eq!(&packets[0], &(Offload::NONE, bundle.frames().remove(0)));
        }
    }

    /// A run ends where the frames' headers say, and only there.
    #[test]
    fn runs_are_as_long_as_possible(mut bundles in prop::collection::vec(bundle(), 1..5)) {
        // Neighbors differ.
        let tags = TAGS.iter().cycle();
        bundles.iter_mut().zip(tags).for_each(|(bundle, tags)| bundle.tags = tags.to_vec());
        let frames: Vec<_> = bundles.iter().flat_map(Bundle::frames).collect();
        let packets = join(&frames, BOTH);
        prop_assert_eq!(packets.len(), bundles.len());
        prop_assert_eq!(cut_all(&packets), frames);
    }

    /// With any one bit of a frame inverted, the same frames leave.
    #[test]
    fn a_damaged_frame_leaves_as_it_came(
        bundle in bundle(),
        k in any::<prop::sample::Index>(),
        bit in any::<prop::sample::Index>(),
        swapped in any::<(prop::sample::Index, prop::sample::Index)>(),
    ) {
        let mut frames = bundle.frames();
        let damaged = k.index(frames.len());
        let bit = bit.index(frames[damaged].len() * 8);
        frames[damaged][bit / 8] ^= 1 << (bit % 8);
        let (one, other) = (swapped.0.index(frames.len()), swapped.1.index(frames.len()));
        frames.swap(one, other);
        let packets = join(&frames, BOTH);
        prop_assert_eq!(cut_all(&packets), frames);
    }

    #[test]
    fn a_missing_udp_checksum_is_filled_in_or_omitted(bundle in bundle(), missing in any::<u64>()) {
        let bundle = Bundle { transport: Transport::Udp, ipv6: false, ..bundle };
        let (field, right) = (bundle.tags.len() + 40, bundle.frames());
        let mut frames = right.clone();
        for (k, frame) in frames.iter_mut().enumerate() {
            if missing >> k & 1 == 1 {
                frame[field..field + 2].fill(0);
            }
        }
        let packets = join(&frames, BOTH);
        prop_assert_eq!(packets.len(), 1);
        let expected = if frames.len() > 1 { right } else { frames.clone() };
        prop_assert_eq!(cut_all(&packets), expected);
        if frames.len() > 1 {
            let (offload, packet) = &packets[0];
            frames.iter_mut().for_each(|frame| frame[field..field + 2].fill(0));
            prop_assert_eq!(try_cut(*offload, packet, 0, Checksums::Omit).unwrap(), frames);
        }
    }
}

/// Finishes all checksums of a frame anew.
fn repair(frame: &mut [u8], bundle: &Bundle) {
    let network = 14 + bundle.tags.len();
    let (transport, addresses) = match bundle.ipv6 {
        false => (network + 20, network + 12..network + 20),
        true => (network + 40, network + 8..network + 40),
    };
    if !bundle.ipv6 {
        frame[network + 10..network + 12].fill(0);
        let sum = !sum_by_words(&frame[network..transport]);
        frame[network + 10..network + 12].copy_from_slice(&sum.to_be_bytes());
    }
    let (protocol, field) = match bundle.transport {
        Transport::Udp => (17, transport + 6),
        Transport::Tcp => (6, transport + 16),
    };
    frame[field..field + 2].fill(0);
    let length = ((frame.len() - transport) as u16).to_be_bytes();
    let all = [
        &frame[addresses],
        &[0, protocol],
        &length,
        &frame[transport..],
    ]
    .concat();
    let sum = !sum_by_words(&all);
    frame[field..field + 2].copy_from_slice(&sum.to_be_bytes());
}

/// Three frames with each bit of each header inverted in turn, and finished again or not: they do not stay one bundle.
#[test]
fn each_bit_of_the_headers_breaks_the_run() {
    for (transport, ipv6, tags) in [
        (Transport::Udp, false, 1),
        (Transport::Udp, true, 0),
        (Transport::Tcp, false, 0),
        (Transport::Tcp, true, 2),
    ] {
        let bundle = Bundle {
            transport,
            ipv6,
            tags: TAGS[tags].to_vec(),
            segment: 10,
            payload: 30,
            options: 8,
            flags: if transport == Transport::Tcp { 0x10 } else { 0 },
            ..Bundle::default()
        };
        let headers = bundle.build().1.len() - 30;
        assert_eq!(join(&bundle.frames(), BOTH).len(), 1);
        for (k, bit) in (0..3).flat_map(|k| (0..headers * 8).map(move |bit| (k, bit))) {
            for repaired in [false, true] {
                let mut frames = bundle.frames();
                frames[k][bit / 8] ^= 1 << (bit % 8);
                if repaired {
                    repair(&mut frames[k], &bundle);
                }
                let unchanged = frames == bundle.frames();
                // TCP's flags: CWR may stand in the first frame; PSH and FIN in the last.
                let flags = bit / 8 == headers - 8 - 20 + 13 && transport == Transport::Tcp;
                let allowed = flags
                    && repaired
                    && (k == 0 && bit % 8 == 7 || k == 2 && [0, 3].contains(&(bit % 8)));
                let packets = join(&frames, BOTH);
                let what = (transport, ipv6, k, bit / 8, bit % 8, repaired);
                assert_eq!(packets.len() == 1, unchanged || allowed, "{what:?}");
                assert_eq!(cut_all(&packets), frames, "{what:?}");
            }
        }
    }
}

/// 0 means no checksum in UDP, which writes 0xffff instead. TCP has both; Linux writes 0 when it cuts.
#[test]
fn a_checksum_of_zero() {
    for transport in [Transport::Udp, Transport::Tcp] {
        for ipv6 in [false, true] {
            let bundle = Bundle {
                transport,
                ipv6,
                ..Bundle::default()
            };
            let bundle = bundle.with_checksum_of_zero();
            let (offload, packet) = bundle.build();
            let mut frames = cut(offload, &packet);
            assert_eq!(frames, bundle.frames());
            let field = usize::from(offload.checksum_start + offload.checksum_offset);
            let (zero, other) = match transport {
                Transport::Udp => (0xff, 0),
                Transport::Tcp => (0, 0xff),
            };
            assert_eq!(frames[0][field..field + 2], [zero; 2]);
            assert_eq!(join(&frames, BOTH).len(), 1);
            // Written in the other way, it comes back in this one; or it does not join.
            frames[0][field..field + 2].fill(other);
            let joins = transport == Transport::Udp && !ipv6;
            let count = if joins { 1 } else { 2 };
            assert_eq!(join(&frames, BOTH).len(), count, "{transport:?} {ipv6}");
        }
    }
}

/// As for TCP: an IPv4 header whose checksum is written as 0xffff would come back with 0.
#[test]
fn a_header_checksum_of_zero() {
    let bundle = Bundle::default();
    let header = |identification| {
        let bundle = Bundle {
            identification,
            ..bundle.clone()
        };
        bundle.frames()[0][24..26].to_vec()
    };
    let checksum = header(0);
    let identification = u16::from_be_bytes([checksum[0], checksum[1]]);
    let bundle = Bundle {
        identification,
        ..bundle.clone()
    };
    let mut frames = bundle.frames();
    assert_eq!(frames[0][24..26], [0, 0]);
    assert_eq!(join(&frames, BOTH).len(), 1);
    frames[0][24..26].fill(0xff);
    assert_eq!(join(&frames, BOTH).len(), 2);
    assert_eq!(cut_all(&join(&frames, BOTH)), frames);
}

/// A kernel's UDP socket may send more segments than a run has frames; a TCP socket with a small MTU does.
#[test]
fn as_many_segments_as_the_kernel_sends() {
    for (transport, segment, most) in [(Transport::Udp, 100, 128), (Transport::Tcp, 40, 1365)] {
        let bundle = |count| Bundle {
            transport,
            segment,
            payload: segment * count,
            flags: if transport == Transport::Tcp { 0x10 } else { 0 },
            ..Bundle::default()
        };
        let (offload, packet) = bundle(most).build();
        assert_eq!(cut(offload, &packet), bundle(most).frames());
        let (offload, packet) = bundle(most + 1).build();
        let refused = try_cut(offload, &packet, 0, Checksums::Finish);
        assert_eq!(refused, Err(Malformed::ManySegments));
    }
}

/// Extension headers are copied; their routing header does not change the sum that the sender has put in.
#[test]
fn extension_headers_of_ipv6_are_copied() {
    let bundle = Bundle {
        ipv6: true,
        segment: 100,
        payload: 250,
        ..Bundle::default()
    };
    let extend = |frame: &mut Vec<u8>| {
        // Hop-by-hop, destination options, routing: 8, 16 and 8 bytes.
        let mut headers = vec![0u8; 32];
        (headers[0], headers[8], headers[9], headers[24]) = (60, 43, 1, 17);
        frame.splice(54..54, headers);
        frame[20] = 0;
        let length = u16::from_be_bytes([frame[18], frame[19]]) + 32;
        frame[18..20].copy_from_slice(&length.to_be_bytes());
    };
    let (mut offload, mut packet) = bundle.build();
    let mut frames = bundle.frames();
    extend(&mut packet);
    frames.iter_mut().for_each(extend);
    offload.checksum_start += 32;
    assert_eq!(cut(offload, &packet), frames);
    // They do not join again: a receiver reads each.
    assert_eq!(join(&frames, BOTH).len(), 3);
}

/// The kernel has verified a bundle of a card, so its checksum is the finished one of something else.
#[test]
fn a_verified_bundle_gets_new_checksums() {
    for transport in [Transport::Udp, Transport::Tcp] {
        for ipv6 in [false, true] {
            let bundle = Bundle {
                transport,
                ipv6,
                ..Bundle::default()
            };
            let (offload, mut packet) = bundle.build();
            let field = usize::from(offload.checksum_start + offload.checksum_offset);
            packet[field..field + 2].fill(0x77);
            let verified = Offload {
                flags: Offload::DATA_VALID,
                checksum_start: 0,
                checksum_offset: 0,
                ..offload
            };
            assert_eq!(cut(verified, &packet), bundle.frames());
            // Only UDP over IPv4 can omit it.
            let frames = try_cut(verified, &packet, 0, Checksums::Omit).unwrap();
            let omits = transport == Transport::Udp && !ipv6;
            for (frame, finished) in frames.iter().zip(bundle.frames()) {
                assert_eq!(*frame != finished, omits);
                assert!(!omits || frame[field..field + 2] == [0, 0]);
            }
        }
    }
}

/// Measures both directions: `cargo test --release -p frames --test it -- --ignored --nocapture`.
#[test]
#[ignore = "it measures: run it in release"]
fn cost_of_a_frame() {
    use std::hint::black_box;
    use std::time::Instant;
    // Short enough that most batches pass without another program on the core.
    const ROUNDS: u32 = 100;
    const BATCHES: u32 = 300;
    let bundle = Bundle {
        segment: 1056,
        payload: 60 * 1056,
        ..Bundle::default()
    };
    let (offload, packet) = bundle.build();
    let frames = bundle.frames();
    assert_eq!((frames.len(), frames[0].len()), (60, 1098));
    let mut bare = frames.clone();
    bare.iter_mut().for_each(|frame| frame[40..42].fill(0));
    let measure = |what: &str, round: &mut dyn FnMut()| {
        let per_frame = |_| {
            let begun = Instant::now();
            (0..ROUNDS).for_each(|_| round());
            begun.elapsed().as_nanos() as f64 / f64::from(ROUNDS * 60)
        };
        let least = (0..BATCHES).map(per_frame).fold(f64::INFINITY, f64::min);
        println!("{what:40} {least:6.1} ns a frame");
    };
    let mut buffer = packet.clone();
    let mut cut_all = |checksums| {
        let headers = buffer.len() - bundle.payload;
        buffer[..headers].copy_from_slice(&packet[..headers]);
        let mut cut = Cut::new(offload, &buffer, 0, checksums, LONGEST).unwrap();
        while let Some(frame) = cut.next(&mut buffer) {
            black_box(frame);
        }
    };
    measure("cut, checksums finished", &mut || {
        cut_all(Checksums::Finish)
    });
    measure("cut, checksums omitted", &mut || cut_all(Checksums::Omit));
    let mut run = Run::new();
    let mut join_all = |frames: &[Vec<u8>]| {
        run.clear();
        assert!(frames.iter().all(|frame| run.add(frame, BOTH)));
        black_box(run.finish());
    };
    measure("join, checksums verified", &mut || join_all(&frames));
    measure("join, without checksums", &mut || join_all(&bare));
    let (mut run, mut unfit) = (Run::new(), Vec::new());
    measure("join, payloads written in place", &mut || {
        run.clear();
        for frame in &bare {
            run.room(frame.len()).copy_from_slice(frame);
            assert!(run.written(frame.len(), BOTH, &mut unfit));
        }
        black_box(run.finish());
    });
    let plain = Offload::NONE;
    measure("a plain frame", &mut || {
        for frame in &mut bare {
            let mut cut = Cut::new(plain, frame, 0, Checksums::Finish, LONGEST).unwrap();
            black_box(cut.next(frame));
        }
    });
    let mut whole = Run::new();
    measure("a frame that joins nothing", &mut || {
        for frame in &bare {
            whole.clear();
            whole.add(frame, BOTH);
            black_box(whole.finish());
        }
    });
    let kilobyte = vec![0x5a; 1024];
    measure("60 sums of 1,024 bytes, each", &mut || {
        for _ in 0..60 {
            black_box(frames::bundle::sum(black_box(&kilobyte)));
        }
    });
}

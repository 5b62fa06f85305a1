//! Round trips between header bytes and values.

use proptest::prelude::*;
use wire::{Error, Flags, HEADER_LEN, Kind, Packet, Repr};

fn repr() -> impl Strategy<Value = Repr> {
    let head = (
        prop::sample::select(vec![
            Kind::Update,
            Kind::Sum,
            Kind::Result,
            Kind::Ask,
            Kind::Here,
            Kind::Give,
            Kind::Given,
            Kind::Differ,
        ]),
        any::<u8>(),
        any::<u16>(),
        any::<u32>(),
        any::<u16>(),
    );
    let tail = (
        0..=wire::ALL_WORKERS,
        0..=wire::MAX_TRANSMISSION,
        any::<u64>(),
        any::<u8>(),
        any::<u8>(),
        0..=300u16,
    );
    (head, tail).prop_map(|((kind, flags, job, chunk, slot), tail)| {
        let (worker, transmission, contributors, scale, next_scale, count) = tail;
        let flags = Flags::from_bits(flags);
        Repr {
            kind,
            flags,
            job,
            chunk,
            slot,
            worker,
            transmission,
            contributors,
            scale,
            next_scale,
            count,
        }
    })
}

/// The table of docs/protocol.md byte by byte: a field that moves fails here.
#[test]
fn every_field_has_its_documented_position() {
    let bytes = [
        0x22,
        0x83, // version 2, SUM; VERSION | AGAIN | NON_FINITE
        0x01,
        0x02, // job
        0x03,
        0x04,
        0x05,
        0x06, // chunk
        0x07,
        0x08, // slot
        0b1000_0010,
        0b01_001010, // worker, transmission
        0x0B,
        0x0C,
        0x0D,
        0x0E,
        0x0F,
        0x10,
        0x11,
        0x12, // contributors
        0x13, // scale
        0x14, // next_scale
        0x00,
        0x01, // count
        0xFF,
        0xFF,
        0xFF,
        0xFE, // -2
        0x00, // padding
    ];
    let packet = Packet::new_checked(&bytes[..]).unwrap();
    let repr = Repr {
        kind: Kind::Sum,
        flags: Flags::VERSION | Flags::AGAIN | Flags::NON_FINITE,
        job: 0x0102,
        chunk: 0x0304_0506,
        slot: 0x0708,
        worker: 0b10_0000_1001,
        transmission: 10,
        contributors: 0x0B0C_0D0E_0F10_1112,
        scale: 19,
        next_scale: 20,
        count: 1,
    };
    assert_eq!(Repr::parse(&packet), repr);
    assert_eq!(packet.values_i32().collect::<Vec<_>>(), [-2]);
    assert_eq!(packet.values_u32().collect::<Vec<_>>(), [0xFFFF_FFFE]);

    let mut emitted = vec![0xAA; repr.buffer_len()];
    let mut view = Packet::new_unchecked(&mut emitted[..]);
    repr.emit(&mut view);
    // Values past the count are not written.
    view.write_i32([-2, 7]);
    assert_eq!(emitted, bytes[..28]);
}

#[test]
fn the_frame_sizes_are_the_documented_ones() {
    let ethernet_ip_udp = 14 + 20 + 8;
    assert_eq!(ethernet_ip_udp + wire::FULL_LEN, 1090);
    assert_eq!(ethernet_ip_udp + HEADER_LEN, 66);
    assert_eq!(wire::UDP_PORT.to_be_bytes(), *b"WE");
}

#[test]
fn bad_bytes_are_named() {
    assert_eq!(
        Packet::new_checked([0x21; 23]).unwrap_err(),
        Error::Truncated { have: 23, need: 24 }
    );
    let mut bytes = [0; 28];
    bytes[0] = 0x11;
    assert_eq!(Packet::new_checked(bytes).unwrap_err(), Error::Version(1));
    bytes[0] = 0x29;
    assert_eq!(Packet::new_checked(bytes).unwrap_err(), Error::Kind(9));
    bytes[0] = 0x20;
    assert_eq!(Packet::new_checked(bytes).unwrap_err(), Error::Kind(0));
    bytes[0] = 0x21;
    bytes[23] = 2;
    assert_eq!(
        Packet::new_checked(bytes).unwrap_err(),
        Error::Truncated { have: 28, need: 32 }
    );
}

#[test]
fn flags_read_as_names() {
    let flags = Flags::AGAIN | Flags::VERSION | Flags::from_bits(0x40);
    assert_eq!(format!("{flags:?}"), "Flags(AGAIN | KEPT | VERSION)");
    assert!(!flags.with(Flags::AGAIN, false).contains(Flags::AGAIN));
}

proptest! {
    #[test]
    fn a_header_and_its_values_survive_the_wire(repr in repr(), seed in any::<i32>()) {
        let values: Vec<i32> = (0..i32::from(repr.count)).map(|i| seed.wrapping_mul(i + 1)).collect();
        let mut bytes = vec![0; repr.buffer_len()];
        let mut packet = Packet::new_unchecked(&mut bytes[..]);
        repr.emit(&mut packet);
        packet.write_i32(values.iter().copied());

        let packet = Packet::new_checked(&bytes[..]).unwrap();
        prop_assert_eq!(Repr::parse(&packet), repr);
        prop_assert!(packet.values_i32().eq(values.iter().copied()));
        prop_assert!(packet.values_u32().eq(values.iter().map(|v| *v as u32)));
    }

    #[test]
    fn a_truncated_packet_is_refused(repr in repr(), cut in 1..64usize) {
        let mut bytes = vec![0; repr.buffer_len()];
        repr.emit(&mut Packet::new_unchecked(&mut bytes[..]));
        let keep = bytes.len().saturating_sub(cut);
        let refused = matches!(
            Packet::new_checked(&bytes[..keep]),
            Err(Error::Truncated { have, need }) if have == keep && need > keep
        );
        prop_assert!(refused);
    }

    #[test]
    fn garbage_never_panics(mut bytes in prop::collection::vec(any::<u8>(), 0..200), steer in any::<bool>()) {
        // Random bytes rarely get past the first byte.
        if steer && !bytes.is_empty() {
            bytes[0] = 0x20 | (bytes[0] % 6);
        }
        if steer && bytes.len() > 23 {
            bytes[22] = 0;
        }
        if let Ok(packet) = Packet::new_checked(&bytes[..]) {
            let repr = Repr::parse(&packet);
            let mut emitted = vec![0; repr.buffer_len()];
            let mut copy = Packet::new_unchecked(&mut emitted[..]);
            repr.emit(&mut copy);
            copy.write_u32(packet.values_u32());
            prop_assert_eq!(&emitted[..], &bytes[..packet.total_len()]);
        }
    }
}

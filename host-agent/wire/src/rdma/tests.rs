//! Round trips of RDMA frames, and frames that are refused.

use proptest::prelude::*;

use super::*;
use crate::{Flags, Kind, MAX_TRANSMISSION, Repr};

const WINDOWS: [u32; 5] = [1, 4, 64, 1024, MAX_WINDOW];

/// A frame of a chunk, with the window of its job.
fn repr(kind: Kind) -> impl Strategy<Value = (Repr, u32)> {
    let of_chunk = (
        any::<u16>(),
        any::<u32>(),
        prop::sample::select(&WINDOWS[..]),
    );
    let said = (
        0u16..64,
        0..=MAX_TRANSMISSION,
        any::<u64>(),
        any::<[u8; 2]>(),
    );
    (of_chunk, said, any::<[bool; 4]>()).prop_map(move |((job, chunk, window), said, flags)| {
        let (worker, transmission, contributors, [scale, next_scale]) = said;
        let [non_finite, again, probe, scale_only] = flags;
        let repr = Repr {
            kind,
            flags: Flags::NONE
                .with(Flags::NON_FINITE, non_finite && !scale_only)
                .with(Flags::AGAIN, again)
                .with(Flags::PROBE, probe)
                .with(Flags::SCALE_ONLY, scale_only)
                .with(Flags::VERSION, chunk & window != 0),
            job,
            chunk,
            slot: (chunk & (window - 1)) as u16,
            worker,
            transmission,
            contributors,
            scale,
            next_scale,
            count: if probe || scale_only { 0 } else { 256 },
        };
        (repr, window)
    })
}

fn update() -> Repr {
    Repr {
        kind: Kind::Update,
        flags: Flags::VERSION | Flags::AGAIN,
        job: 0x0102,
        chunk: 0x0304_0506,
        slot: 0x0506 & 255,
        worker: 9,
        transmission: 10,
        contributors: 1 << 9,
        scale: 0x7F,
        next_scale: 0x80,
        count: 256,
    }
}

/// Every field bit by bit: a field that moves fails here.
#[test]
fn every_field_of_an_update_has_its_documented_position() {
    let header = update();
    let write = Update {
        header,
        is_question: true,
    };
    let write = write.write().unwrap();
    assert_eq!(write.qpn, 0x80_0000 | 0x0102 << 6 | 9);
    assert_eq!(write.rkey, 0x2BA2 << 17 | 6 << 1 | 1);
    let address = 1 << 63 | 10 << 50 | 0x7F << 42 | 0x0304_0506_u64 << 10;
    assert_eq!((write.address, write.len), (address, 1024));
    assert_eq!(write.immediate.bytes(), [0x4F, 0x80, 0x05, 0x06]);
}

#[test]
fn every_field_of_a_sum_has_its_documented_position() {
    let target = Target {
        qpn: 0x11_2233,
        rkey: 0x4455_6677,
        base: 0x1_0000_0000,
    };
    let sum = Repr {
        kind: Kind::Sum,
        ..update()
    };
    let write = target.sum(&sum).unwrap();
    assert_eq!((write.qpn, write.rkey), (target.qpn, target.rkey));
    // Slot 6, version 1.
    assert_eq!((write.address, write.len), (target.base + 13 * 1040, 1024));
    let probe = Repr {
        flags: Flags::PROBE | Flags::VERSION,
        count: 0,
        ..sum
    };
    let write = target.sum(&probe).unwrap();
    assert_eq!(
        (write.address, write.len),
        (target.base + 13 * 1040 + 1024, 16)
    );
    assert_eq!(write.immediate.bytes(), [0x2F, 0x80, 0x05, 0x06]);
    let answer = [0, 0, 0, 0, 0, 0, 2, 0, 0x02, 0x4A, 0, 0, 0, 0, 0, 0];
    assert_eq!(Sum::answer(&probe), answer);
    let write = target.registered(0xAB_CDEF);
    assert_eq!((write.address, write.len), (target.base - 16, 16));
    assert_eq!(write.immediate.bytes(), [0xF0, 0, 0xCD, 0xEF]);
}

#[test]
fn every_field_of_a_registration_has_its_documented_position() {
    let registration = Registration {
        job: 0x0102,
        child: 3,
        target: Target {
            qpn: 0x04_0506,
            rkey: 0x1112_1314,
            base: 0x090A_0B0C_0D0E_0F10,
        },
        psn: 0x07_0809,
        window: 0x400,
    };
    let bytes = [
        b'W', b'E', b'I', b'R', 1, 3, 1, 2, 0, 4, 5, 6, 0, 7, 8, 9, 9, 10, 11, 12, 13, 14, 15, 16,
        0x11, 0x12, 0x13, 0x14, 0, 0, 4, 0,
    ];
    assert_eq!(registration.bytes(), bytes);
    assert_eq!(Registration::parse(&bytes), Ok(registration));
    for wrong in [0, 4] {
        let mut other = bytes;
        other[wrong] ^= 1;
        assert_eq!(Registration::parse(&other), Err(Malformed::Registration));
    }
    assert_eq!(
        Registration::parse(&bytes[1..]),
        Err(Malformed::Registration)
    );
}

#[test]
fn only_updates_of_256_values_have_an_rdma_form() {
    let not = |header| {
        Update {
            header,
            is_question: false,
        }
        .write()
        .unwrap_err()
    };
    let header = update();
    let sum = Repr {
        kind: Kind::Sum,
        ..header
    };
    assert_eq!(not(sum), NotCarried::Kind(Kind::Sum));
    assert_eq!(
        not(Repr {
            worker: 64,
            ..header
        }),
        NotCarried::Worker(64)
    );
    assert_eq!(
        not(Repr {
            count: 64,
            ..header
        }),
        NotCarried::Values(64)
    );
    for flag in [Flags::TIMED, Flags::CLOSE, Flags::KEPT] {
        let flags = header.flags | flag;
        assert_eq!(not(Repr { flags, ..header }), NotCarried::Deadlines);
    }
}

proptest! {
    #[test]
    fn an_update_survives_a_round_trip((header, _) in repr(Kind::Update), is_question: bool) {
        let update = Update { header, is_question };
        let write = update.write().unwrap();
        prop_assert!(write.qpn >> 24 == 0 && write.qpn != 0xFF_FFFF);
        let carried = Repr { contributors: 0, ..header };
        prop_assert_eq!(Update::parse(&write), Ok(Update { header: carried, is_question }));
    }

    /// Every WRITE that parses as an UPDATE encodes back to the same WRITE.
    #[test]
    fn only_writes_of_an_update_parse(
        (header, _) in repr(Kind::Update),
        flips in prop::collection::vec(0u32..24 + 32 + 64 + 32 + 32, 1..4),
    ) {
        let mut write = Update { header, is_question: false }.write().unwrap();
        let mut immediate = u32::from_be_bytes(write.immediate.bytes());
        for bit in flips {
            match bit {
                0..24 => write.qpn ^= 1 << bit,
                24..56 => write.rkey ^= 1 << (bit - 24),
                56..120 => write.address ^= 1 << (bit - 56),
                120..152 => write.len ^= 1 << (bit - 120),
                _ => immediate ^= 1 << (bit - 152),
            }
        }
        write.immediate = Immediate::from_bytes(immediate.to_be_bytes());
        if let Ok(update) = Update::parse(&write) {
            prop_assert_eq!(update.write(), Ok(write));
        }
    }

    /// A rank at a chunk near the SUM's rebuilds the switch's header, except for the fields that it fills in itself.
    #[test]
    fn a_sum_survives_a_round_trip(
        (header, window) in repr(Kind::Sum),
        away in -32_767i32..=32_768,
        high in any::<u8>(),
    ) {
        let header = Repr { scale: if header.flags.contains(Flags::PROBE) { header.scale & 1 } else { header.scale }, ..header };
        let target = Target { qpn: 5, rkey: 6, base: 1 << 40 };
        let write = target.sum(&header).unwrap();
        let receiver = Receiver { job: header.job, window, child: header.worker, everyone: 0b1011 };
        let place = receiver.place(write.immediate);
        let offset = write.address - target.base + FIRST_PLACE as u64;
        prop_assert!(offset as usize + write.len as usize <= receiver.region_len());
        let within = if write.len as usize == ANSWER_LEN { VALUES_LEN } else { 0 };
        prop_assert_eq!(offset as usize, place + within);
        let own = header.chunk.wrapping_add_signed(away);
        // The rank's own exponent, or one that differs only in the bits that the immediate leaves out.
        let scale = header.scale ^ high & 0xF0;
        let seen = receiver.header(write.immediate, write.len, (own, scale), &Sum::answer(&header)).unwrap();
        let expected = match header.flags.contains(Flags::PROBE) {
            true => header,
            false => Repr { contributors: 0b1011, transmission: 0, scale, ..header },
        };
        prop_assert_eq!(seen, expected);
        // The rank notices an exponent that differs in the bits that the immediate carries.
        let other = Immediate::new(header.flags, header.scale ^ 1, header.next_scale, header.chunk);
        let seen = receiver.header(other, write.len, (own, header.scale), &[0; ANSWER_LEN]).unwrap();
        prop_assert_ne!(seen.scale, header.scale);
    }

    #[test]
    fn no_completion_panics(bytes: [u8; 4], len: u32, chunk: u32, scale: u8, answer: [u8; ANSWER_LEN]) {
        for window in WINDOWS {
            let receiver = Receiver { job: 1, window, child: 0, everyone: 3 };
            let immediate = Immediate::from_bytes(bytes);
            prop_assert_eq!(immediate.bytes(), bytes);
            prop_assert!(receiver.place(immediate) + PLACE_LEN <= receiver.region_len());
            for len in [len, 0, ANSWER_LEN as u32, VALUES_LEN as u32] {
                if let Ok(header) = receiver.header(immediate, len, (chunk, scale), &answer) {
                    prop_assert_eq!(header.chunk as u16, immediate.low());
                }
            }
        }
    }

    #[test]
    fn a_registration_survives_a_round_trip(job: u16, child in 0u8..64, qpn in 0u32..1 << 24, rkey: u32, base: u64, psn in 1u32..1 << 24, everyone: u64) {
        let target = Target { qpn, rkey, base };
        let registration = Registration { job, child, target, psn, window: 64 };
        prop_assert_eq!(Registration::parse(&registration.bytes()), Ok(registration));
        let answer = Sum::answer_of(everyone, u16::from(child) << 6);
        let write = target.registered(psn);
        let read = |psn, len| Registered::parse(write.immediate, len, psn, &answer);
        prop_assert_eq!(read(psn, write.len), Some(Registered { everyone }));
        prop_assert_eq!(read(psn ^ 1, write.len), None);
        prop_assert_eq!(read(psn, 0), None);
    }
}

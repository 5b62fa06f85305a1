//! Encoding and decoding: packets of other implementations, and round trips.

use std::convert::Infallible;

use proptest::prelude::*;

use super::*;
use crate::Qpn;
use crate::psn::Psn;

fn bytes(hex: &str) -> Vec<u8> {
    let digits: Vec<u8> = hex
        .chars()
        .filter_map(|c| c.to_digit(16))
        .map(|d| d as u8)
        .collect();
    digits
        .chunks(2)
        .map(|pair| pair[0] << 4 | pair[1])
        .collect()
}

/// Captured from a ConnectX-4 Lx; this packet and the next one are in scapy's tests (test/contrib/roce.uts).
const CNP_OF_CONNECTX_4: &str = "
    e41d2dab2bc2 7cfe90643b32 0800 45c2003c718c400040119161 0a001101 0a001201 000012b700280000
    8100ffff 40000118 00000000 00000000000000000000000000000000 82fd002a";

/// UC SEND ONLY of 18 bytes, with a UDP checksum.
const UC_SEND_OF_MLX5: &str = "
    248a07a8fa22 248a07a8fa22 0800 4501004004784000 4011b4d5 c0a80007 c0a80007 c00012b7002caca2
    2460ffff 000000d3 00cf1710 4630818be28935d90e9a95505401be885e500000 78f353f3";

#[test]
fn packets_of_hardware_have_the_computed_icrc() {
    let frame = bytes(CNP_OF_CONNECTX_4);
    let packet = Packet::parse(&frame).unwrap();
    assert_eq!(packet.header().opcode, Opcode::Cnp);
    assert_eq!(packet.header().destination, Qpn::new(0x118));
    assert!(packet.header().becn && !packet.header().fecn);
    assert_eq!(packet.route().dscp, 48);
    assert_eq!(packet.route().ecn, Ecn::Capable);

    let frame = bytes(UC_SEND_OF_MLX5);
    let packet = Packet::parse(&frame).unwrap();
    let header = Header::new(
        Opcode::Data {
            service: Service::Unreliable,
            operation: Operation::Send,
            position: Position::Only,
            immediate: false,
        },
        0xFFFF,
        Qpn::new(211),
        Psn::new(13_571_856),
    );
    assert_eq!(*packet.header(), header);
    assert_eq!(packet.payload().len(), 18);
    assert_eq!(packet.route().ecn, Ecn::Capable1);
    assert_eq!(packet.route().source_port, 49152);
}

fn route() -> Route {
    let address = |last: u8| Address {
        mac: [2, 0, 0, 0, 0, last],
        ip: [10, 0, 0, last].into(),
    };
    Route {
        from: address(1),
        to: address(2),
        source_port: 0xC123,
        dscp: 0,
        ecn: Ecn::Capable,
    }
}

fn emitted(header: &Header, payload: &[u8]) -> Vec<u8> {
    let mut buffer = [0xAA; MAX_FRAME_LEN];
    let Ok(len) = emit(&mut buffer, &route(), header, payload.len(), |space| {
        space.copy_from_slice(payload);
        Ok::<(), Infallible>(())
    });
    buffer[..len].to_vec()
}

/// The frames equal those that scapy 2.6 (scapy.contrib.roce, with its own ICRC) builds from the same values.
/// The IP identification is the low 16 bits of the PSN.
#[test]
fn frames_equal_those_of_scapy() {
    let reth = Reth {
        address: 0x1122_3344_5566_7788,
        rkey: 0xDEAD_BEEF,
        len: 7,
    };
    let header = |opcode| Header::new(opcode, 0xFFFF, Qpn::new(0x123456), Psn::new(0xABCDEF));
    let write = Header {
        ack_request: true,
        reth: Some(reth),
        immediate: Some([1, 2, 3, 4]),
        ..header(Opcode::from_bits(0x0B).unwrap())
    };
    let scapys =
        "020000000002020000000001080045020048cdef4000401158b10a0000010a000002c12312b7003400000b50
        ffff0012345680abcdef1122334455667788deadbeef0000000701020304776569722e2e2e00dd0b5f91";
    assert_eq!(emitted(&write, b"weir..."), bytes(scapys));

    let ack = Header {
        aeth: Some(Aeth {
            syndrome: Syndrome::Ack {
                credits: Syndrome::NO_CREDITS,
            },
            msn: 7,
        }),
        ..header(Opcode::Acknowledge)
    };
    let scapys =
        "020000000002020000000001080045020030cdef4000401158c90a0000010a000002c12312b7001c00001140
        ffff0012345600abcdef1f000007d2c39ee7";
    assert_eq!(emitted(&ack, b""), bytes(scapys));

    let read = Header {
        ack_request: true,
        reth: Some(Reth {
            len: 1 << 20,
            ..reth
        }),
        ..header(Opcode::ReadRequest)
    };
    let scapys =
        "02000000000202000000000108004502003ccdef4000401158bd0a0000010a000002c12312b7002800000c40
        ffff0012345680abcdef1122334455667788deadbeef0010000016870f1b";
    assert_eq!(emitted(&read, b""), bytes(scapys));
}

/// IBA table 46: from 10 µs to 655.36 ms.
#[test]
fn rnr_timers_grow_with_their_code_but_for_zero() {
    assert_eq!(RnrTimer::new(0).ns(), 655_360_000);
    assert_eq!(RnrTimer::new(1).ns(), 10_000);
    assert_eq!(RnrTimer::new(12).ns(), 640_000);
    assert_eq!(RnrTimer::new(31).ns(), 491_520_000);
    assert!((1..31).all(|code| RnrTimer::new(code).ns() < RnrTimer::new(code + 1).ns()));
}

#[test]
fn no_prefix_and_no_flipped_bit_is_a_packet_unseen() {
    let good = bytes(CNP_OF_CONNECTX_4);
    for end in 0..good.len() {
        assert!(Packet::parse(&good[..end]).is_err(), "{end}");
    }
    // Ethernet addresses may change.
    for bit in 12 * 8..good.len() * 8 {
        let mut bad = good.clone();
        bad[bit / 8] ^= 1 << (bit % 8);
        let parsed = Packet::parse(&bad);
        // The annex excludes FECN, BECN and the six bits beside them.
        let masked = bit / 8 == NETWORK_LEN + 4;
        assert_eq!(parsed.is_ok(), masked, "bit {bit}");
    }
    let mut padded = good.clone();
    padded.extend([0x55; 7]);
    assert!(Packet::parse(&padded).is_ok(), "Ethernet pads");
}

fn headers() -> impl Strategy<Value = Header> {
    let opcodes: Vec<u8> = (0..=0x11).chain(0x20..=0x2B).chain([0x81]).collect();
    let syndrome = prop_oneof![
        (0u8..32).prop_map(|credits| Syndrome::Ack { credits }),
        (0u8..32).prop_map(|code| Syndrome::RnrNak(RnrTimer::new(code))),
        prop_oneof![
            Just(NakCode::PsnSequence),
            Just(NakCode::InvalidRequest),
            Just(NakCode::RemoteAccess),
            Just(NakCode::RemoteOperation)
        ]
        .prop_map(Syndrome::Nak),
    ];
    let bth = (
        prop::sample::select(opcodes),
        any::<[bool; 4]>(),
        any::<u16>(),
        any::<u32>(),
        any::<u32>(),
    );
    let extended = (
        any::<(u64, u32, u32)>(),
        syndrome,
        any::<u32>(),
        any::<[u8; 4]>(),
    );
    (bth, extended).prop_map(|(bth, extended)| {
        let (opcode, [solicited, fecn, becn, ack_request], pkey, destination, psn) = bth;
        let ((address, rkey, len), syndrome, msn, immediate) = extended;
        let opcode = Opcode::from_bits(opcode).unwrap();
        let reth = Reth { address, rkey, len };
        let msn = msn & 0xFF_FFFF;
        Header {
            solicited,
            fecn,
            becn,
            ack_request,
            reth: opcode.has_reth().then_some(reth),
            aeth: opcode.has_aeth().then_some(Aeth { syndrome, msn }),
            immediate: opcode.has_immediate().then_some(immediate),
            ..Header::new(opcode, pkey, Qpn::new(destination), Psn::new(psn))
        }
    })
}

proptest! {
    #[test]
    fn packets_survive_a_round_trip(header in headers(), payload in prop::collection::vec(any::<u8>(), 0..300)) {
        let payload = if header.opcode.has_payload() { &payload[..] } else { &[] };
        let frame = emitted(&header, payload);
        let packet = Packet::parse(&frame).unwrap();
        prop_assert_eq!(packet.header(), &header);
        prop_assert_eq!(packet.payload(), payload);
        prop_assert_eq!(packet.route(), &route());
        prop_assert_eq!(frame.len() % 4, 2, "padded, behind Ethernet's 14 bytes");
    }

    #[test]
    fn no_bytes_panic(frame in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = Packet::parse(&frame);
        let _ = Packet::parse_unchecked(&frame);
    }

    /// With valid network headers in front, so that the fuzzing reaches the transport headers.
    #[test]
    fn no_bytes_behind_udp_panic(transport in prop::collection::vec(any::<u8>(), 0..80)) {
        let mut frame = vec![0; NETWORK_LEN];
        frame.extend(transport);
        rebuild_network_headers(&mut frame, &route());
        let _ = Packet::parse(&frame);
        let _ = Packet::parse_unchecked(&frame);
    }
}

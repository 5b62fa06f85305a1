//! The aggregation header exists three times: in P4, in crate `wire`, in the Wireshark dissector. Here they are held together.

use std::collections::BTreeMap;

use p4lang::ast::{DeclKind, ExprKind};
use p4lang::ir::Type;
use parser_gen::{Arch, Library, Options};
use wire::{Flags, Kind, Packet, Repr};

/// The whole PSA program, with no flow.
fn files() -> p4lang::Files {
    let generated =
        parser_gen::generate(&Library::builtin(), &[], &Options::aggregating(true)).unwrap();
    let mut files = p4lang::Files::new();
    for (path, text) in parser_gen::program(Arch::Psa, &generated) {
        files.insert(&path, text);
    }
    files
}

/// Name and width of each field of a header, in order.
fn header(name: &str) -> Vec<(String, u32)> {
    let compiled = p4lang::compile(
        &files(),
        &Arch::Psa.main_path(),
        &p4lang::Options::default(),
    )
    .unwrap_or_else(|errors| panic!("{errors}"));
    let found = compiled
        .program
        .types
        .iter()
        .find(|declared| declared.name == name)
        .unwrap();
    let width = |ty: &Type| match ty {
        Type::Bit(width) => *width,
        other => panic!("{name}: {other:?}"),
    };
    found
        .fields
        .iter()
        .map(|field| (field.name.clone(), width(&field.ty)))
        .collect()
}

/// Constants of the P4 text that are literals.
fn constants() -> BTreeMap<String, u64> {
    let parsed = p4lang::parse(
        &files(),
        &Arch::Psa.main_path(),
        &p4lang::Options::default(),
    )
    .unwrap_or_else(|errors| panic!("{errors}"));
    let value = |kind: &DeclKind| match kind {
        DeclKind::Const { name, init, .. } => match &init.kind {
            ExprKind::Int { value, .. } => {
                Some((name.name.clone(), u64::try_from(value.clone()).ok()?))
            }
            _ => None,
        },
        _ => None,
    };
    parsed
        .program
        .decls
        .iter()
        .filter_map(|decl| value(&decl.kind))
        .collect()
}

const ZERO: Repr = Repr {
    kind: Kind::Update,
    flags: Flags::NONE,
    job: 0,
    chunk: 0,
    slot: 0,
    worker: 0,
    transmission: 0,
    contributors: 0,
    scale: 0,
    next_scale: 0,
    count: 0,
};

fn bytes(repr: Repr) -> [u8; wire::HEADER_LEN] {
    let mut bytes = [0; wire::HEADER_LEN];
    repr.emit(&mut Packet::new_unchecked(&mut bytes[..]));
    bytes
}

/// The bits, counted from the first, that differ from a header of zeros.
fn changed(repr: Repr) -> Vec<usize> {
    let (changed, zero) = (bytes(repr), bytes(ZERO));
    (0..wire::HEADER_LEN * 8)
        .filter(|bit| (changed[bit / 8] ^ zero[bit / 8]) >> (7 - bit % 8) & 1 == 1)
        .collect()
}

/// A frame with these flags alone.
fn with_flags(bits: u8) -> Repr {
    Repr {
        flags: Flags::from_bits(bits),
        ..ZERO
    }
}

#[test]
fn fields_have_the_same_order_and_width_in_p4_and_in_rust() {
    let all_ones = [
        ("slot_version", with_flags(Flags::VERSION.bits())),
        (
            "deadline",
            with_flags((Flags::TIMED | Flags::CLOSE | Flags::KEPT).bits()),
        ),
        ("probe", with_flags(Flags::PROBE.bits())),
        ("scale_only", with_flags(Flags::SCALE_ONLY.bits())),
        ("again", with_flags(Flags::AGAIN.bits())),
        ("non_finite", with_flags(Flags::NON_FINITE.bits())),
        (
            "job",
            Repr {
                job: u16::MAX,
                ..ZERO
            },
        ),
        (
            "chunk",
            Repr {
                chunk: u32::MAX,
                ..ZERO
            },
        ),
        (
            "slot",
            Repr {
                slot: u16::MAX,
                ..ZERO
            },
        ),
        (
            "worker",
            Repr {
                worker: wire::ALL_WORKERS,
                ..ZERO
            },
        ),
        (
            "transmission",
            Repr {
                transmission: wire::MAX_TRANSMISSION,
                ..ZERO
            },
        ),
        (
            "contributors",
            Repr {
                contributors: u64::MAX,
                ..ZERO
            },
        ),
        (
            "scale",
            Repr {
                scale: u8::MAX,
                ..ZERO
            },
        ),
        (
            "next_scale",
            Repr {
                next_scale: u8::MAX,
                ..ZERO
            },
        ),
        (
            "count",
            Repr {
                count: u16::MAX,
                ..ZERO
            },
        ),
    ];
    let mut at = 0;
    let mut rest = all_ones.iter();
    for (name, width) in header("agg_h") {
        let place: Vec<usize> = (at..at + width as usize).collect();
        match name.as_str() {
            "version" => {
                assert_eq!(place, [0, 1, 2, 3]);
                assert_eq!(bytes(ZERO)[0] >> 4, wire::PROTOCOL_VERSION);
            }
            "kind" => {
                assert_eq!(place, [4, 5, 6, 7]);
                // 1 → 2 changes the two lowest bits of the field.
                assert_eq!(
                    changed(Repr {
                        kind: Kind::Sum,
                        ..ZERO
                    }),
                    [6, 7]
                );
            }
            _ => {
                let (field, repr) = rest
                    .next()
                    .unwrap_or_else(|| panic!("`{name}` is in P4 alone"));
                assert_eq!(name, *field);
                assert_eq!(changed(*repr), place, "{name}");
            }
        }
        at += width as usize;
    }
    assert!(rest.next().is_none(), "in Rust alone");
    assert_eq!(at, wire::HEADER_LEN * 8);
}

#[test]
fn constants_are_the_same_in_p4_and_in_rust() {
    let constants = constants();
    let expected = [
        ("AGG_UDP_PORT", u64::from(wire::UDP_PORT)),
        ("AGG_VERSION", wire::PROTOCOL_VERSION.into()),
        ("AGG_UPDATE", Kind::Update as u64),
        ("AGG_SUM", Kind::Sum as u64),
        ("AGG_RESULT", Kind::Result as u64),
    ];
    let declared: BTreeMap<&str, u64> = constants
        .iter()
        .filter(|(name, _)| name.starts_with("AGG_"))
        .map(|(name, value)| (name.as_str(), *value))
        .collect();
    assert_eq!(declared, expected.into());
}

#[test]
fn eight_blocks_of_values_make_a_packet() {
    let block = header("values32_h");
    let names: Vec<_> = (0..32).map(|index| format!("v{index}")).collect();
    assert_eq!(
        block
            .iter()
            .map(|(name, _)| name.clone())
            .collect::<Vec<_>>(),
        names
    );
    assert!(
        block
            .iter()
            .all(|(_, width)| *width as usize == wire::VALUE_LEN * 8)
    );
    assert_eq!(block.len() * 8, wire::VALUES_PER_PACKET);
    // What a frame's values have before them, of an IP packet.
    assert_eq!(
        scenario::model::job::HEADERS as usize,
        20 + 8 + wire::HEADER_LEN
    );
}

#[test]
fn the_dissector_has_the_same_numbers() {
    let text = include_str!("../../../testbeds/weir.lua");
    let line = |start: &str| {
        text.lines()
            .find_map(|line| line.strip_prefix(start))
            .unwrap_or_else(|| panic!("{start}"))
    };
    let number = |name: &str| line(&format!("local {name} = ")).to_owned();
    assert_eq!(number("UDP_PORT"), wire::UDP_PORT.to_string());
    assert_eq!(number("HEADER_LEN"), wire::HEADER_LEN.to_string());
    assert_eq!(
        number("PROTOCOL_VERSION"),
        wire::PROTOCOL_VERSION.to_string()
    );
    assert_eq!(number("ALL_WORKERS"), format!("{:#x}", wire::ALL_WORKERS));
    let kinds: Vec<String> = (1..)
        .map_while(Kind::from_bits)
        .map(|kind| (kind as u8).to_string())
        .collect();
    let names = "KIND_UPDATE, KIND_SUM, KIND_RESULT, KIND_ASK, KIND_HERE, KIND_GIVE, KIND_GIVEN, KIND_DIFFER";
    assert_eq!(number(names), kinds.join(", "));
    for (field, flag) in [
        ("slot_version", Flags::VERSION),
        ("probe", Flags::PROBE),
        ("scale_only", Flags::SCALE_ONLY),
        ("again", Flags::AGAIN),
        ("non_finite", Flags::NON_FINITE),
    ] {
        let declared = line(&format!("f.{field} = "));
        assert!(
            declared.ends_with(&format!(", {:#04x})", flag.bits())),
            "{field}: {declared}"
        );
    }
}

//! Values beyond 128 bits in the control plane and in packets: keys of every kind, parameters, registers, digests, value
//! sets. Under PSA and v1model, each packet in both executors.

use crate::support::{Psa, call, entry, load, one};
use num_bigint::BigUint;
use p4lang::runtime::{Match, TableEntry, Value};
use pipeline::{Config, ExternError, Switch, TableError};

const TEXT: &str = include_str!("../../../tests/support/wide.p4");

/// Widths of the header's fields, which are followed by a byte.
const WIDTHS: [u32; 5] = [256, 200, 160, 192, 136];
/// Positions of the fields.
const A: usize = 0;
const T: usize = 1;
const L: usize = 2;
const R: usize = 3;
const O: usize = 4;

fn switches() -> impl Iterator<Item = Switch> {
    let texts = ["#define PSA\n", ""].map(|arch| format!("{arch}{TEXT}"));
    texts.into_iter().map(|text| load(&text, Config::default()))
}

fn bit(n: u32) -> BigUint {
    BigUint::from(1u8) << n
}

fn bytes(value: &BigUint, width: u32) -> Vec<u8> {
    let digits = value.to_bytes_be();
    let missing = (width as usize / 8)
        .checked_sub(digits.len())
        .expect("it fits");
    [vec![0; missing], digits].concat()
}

/// A packet in which only these fields are not 0.
fn packet(fields: &[(usize, &BigUint)]) -> Vec<u8> {
    let mut packet = Vec::new();
    for (at, width) in WIDTHS.into_iter().enumerate() {
        let given = fields.iter().find(|(field, _)| *field == at);
        let value = given.map_or(BigUint::ZERO, |(_, value)| (*value).clone());
        packet.extend(bytes(&value, width));
    }
    packet.push(0);
    packet
}

/// The marks that the tables set in the packet.
fn marks(switch: &mut Switch, fields: &[(usize, &BigUint)]) -> u8 {
    *one(switch, &packet(fields)).last().expect("a packet")
}

/// An entry that marks the packet.
fn marking(table: &str, field: &str, value: Match, mark: u128) -> TableEntry {
    let priority = i32::from(table != "by_prefix");
    let table = format!("MyIngress.{table}");
    entry(
        &table,
        &[(field, value)],
        priority,
        "MyIngress.mark",
        &[("m", mark)],
    )
}

#[test]
fn exact_keys_and_parameters() {
    for mut switch in switches() {
        let (key, set) = (bit(255) + 1u8, bit(255) + bit(128) + 7u8);
        let mut e = entry(
            "MyIngress.by_exact",
            &[("a", Match::exact(&key))],
            0,
            "",
            &[],
        );
        e.action = call("MyIngress.set", &[("m", 1)]);
        e.action.params.insert(0, ("v".into(), Value::from(&set)));
        switch.insert_entry(&e).unwrap();
        assert_eq!(switch.entries("MyIngress.by_exact").unwrap(), [e.clone()]);
        let left = one(&mut switch, &packet(&[(A, &key)]));
        assert_eq!((&left[..32], left[118]), (&bytes(&set, 256)[..], 1));
        for other in [bit(255), bit(0), bit(255) + 2u8, &key - bit(254)] {
            assert_eq!(marks(&mut switch, &[(A, &other)]), 0, "{other:x}");
        }
        // Also for packets with the default action.
        e.action.params[0].1 = Value::ones(256);
        let default = switch.set_default_action("MyIngress.by_exact", Some(&e.action));
        default.unwrap();
        assert_eq!(
            switch.default_action("MyIngress.by_exact").unwrap(),
            e.action
        );
        let left = one(&mut switch, &packet(&[]));
        assert_eq!((&left[..32], left[118]), (&[0xff; 32][..], 1));

        e.action.params[0].1 = Value::ones(257);
        let refused = switch.insert_entry(&e);
        assert_eq!(refused, Err(TableError::ValueTooWide("v".into(), 256)));
        e.key[0].value = Match::Exact(Value::ones(257));
        let refused = switch.insert_entry(&e);
        assert_eq!(refused, Err(TableError::ValueTooWide("a".into(), 256)));
    }
}

#[test]
fn masks() {
    for mut switch in switches() {
        let (value, mask) = (bit(199) + bit(64), bit(199) + bit(130) + bit(64) + bit(1));
        let e = marking("by_ternary", "t", Match::ternary(&value, &mask), 2);
        switch.insert_entry(&e).unwrap();
        assert_eq!(switch.entries("MyIngress.by_ternary").unwrap(), [e]);
        for free in [bit(198), bit(129), bit(63), bit(0)] {
            assert_eq!(marks(&mut switch, &[(T, &(&value + free))]), 2);
        }
        for fixed in [bit(130), bit(1)] {
            assert_eq!(marks(&mut switch, &[(T, &(&value + fixed))]), 0);
        }
        assert_eq!(marks(&mut switch, &[(T, &bit(64))]), 0);
        let outside = Match::ternary(&bit(3), &mask);
        let refused = switch.insert_entry(&marking("by_ternary", "t", outside, 2));
        let bits = "the value has bits outside its mask";
        assert_eq!(refused, Err(TableError::BadMatch("t".into(), bits)));
        // Enough entries for bit vectors, and then for hash tables.
        for n in 1..=5000u32 {
            let value = (BigUint::from(n) << 150u32) + 1u8;
            let mask = (BigUint::from(0xffffu32) << 150u32) + 1u8;
            let e = marking("by_ternary", "t", Match::ternary(&value, &mask), 8);
            match switch.insert_entry(&e) {
                Ok(()) => {}
                Err(TableError::Full(1024)) => break,
                Err(error) => panic!("{error}"),
            }
            if n % 100 == 1 {
                assert_eq!(marks(&mut switch, &[(T, &(&value + 2u8))]), 8);
                assert_eq!(marks(&mut switch, &[(T, &(&value + 1u8))]), 0);
            }
        }
    }
}

#[test]
fn prefixes() {
    for mut switch in switches() {
        let long = bit(159) + bit(40) + bit(10);
        let lpm = |len: u32| Match::lpm(&(&long >> (160 - len) << (160 - len)), len);
        for (len, mark) in [(10, 1), (155, 4), (130, 2)] {
            let e = marking("by_prefix", "l", lpm(len), mark);
            switch.insert_entry(&e).unwrap();
            assert!(switch.entries("MyIngress.by_prefix").unwrap().contains(&e));
        }
        assert_eq!(marks(&mut switch, &[(L, &long)]), 4);
        assert_eq!(marks(&mut switch, &[(L, &(&long + 31u8))]), 4);
        assert_eq!(marks(&mut switch, &[(L, &(&long + 32u8))]), 2);
        assert_eq!(marks(&mut switch, &[(L, &(&long + bit(149)))]), 1);
        assert_eq!(marks(&mut switch, &[(L, &(&long + bit(150)))]), 0);
        let beyond = Match::lpm(&long, 130);
        let refused = switch.insert_entry(&marking("by_prefix", "l", beyond, 1));
        let behind = "the value has bits after its prefix";
        assert_eq!(refused, Err(TableError::BadMatch("l".into(), behind)));
        let too_long = Match::lpm(&long, 161);
        let refused = switch.insert_entry(&marking("by_prefix", "l", too_long, 1));
        let longer = "the prefix is longer than the field";
        assert_eq!(refused, Err(TableError::BadMatch("l".into(), longer)));
    }
}

#[test]
fn ranges_and_optional_values() {
    for mut switch in switches() {
        let (low, high) = (bit(191) + bit(64), bit(191) + bit(130));
        let e = marking("by_range", "r", Match::range(&low, &high), 1);
        switch.insert_entry(&e).unwrap();
        assert_eq!(switch.entries("MyIngress.by_range").unwrap(), [e]);
        for (value, mark) in [
            (&low - 1u8, 0),
            (low.clone(), 1),
            (&low + bit(129), 1),
            (high.clone(), 1),
            (&high + 1u8, 0),
            (&low - bit(191), 0),
        ] {
            assert_eq!(marks(&mut switch, &[(R, &value)]), mark, "{value:x}");
        }
        let backwards = marking("by_range", "r", Match::range(&high, &low), 1);
        let refused = switch.insert_entry(&backwards);
        let empty = "the range is empty";
        assert_eq!(refused, Err(TableError::BadMatch("r".into(), empty)));

        let value = bit(135) + 1u8;
        let e = marking("by_value", "o", Match::optional(&value), 2);
        switch.insert_entry(&e).unwrap();
        assert_eq!(marks(&mut switch, &[(O, &value)]), 2);
        assert_eq!(marks(&mut switch, &[(O, &bit(135))]), 0);
        assert_eq!(marks(&mut switch, &[(O, &bit(0))]), 0);
    }
}

#[test]
fn entries_of_the_source_and_value_sets() {
    for mut switch in switches() {
        let (t, l, r) = (bit(199) + bit(197) + 9u8, bit(159) + 3u8, bit(191) + 3u8);
        let fields = [(T, &t), (L, &l), (R, &r)];
        assert_eq!(marks(&mut switch, &fields), 0x40);
        for (at, changed) in [
            (0, &t + bit(198)),
            (1, &l + bit(158)),
            (2, &r + 1u8),
            (2, bit(130) - 1u8),
        ] {
            let mut fields = fields;
            fields[at].1 = &changed;
            assert_eq!(marks(&mut switch, &fields), 0, "{changed:x}");
        }
        let listed = switch.entries("MyIngress.constant").unwrap();
        let values: Vec<&Match> = listed[0].key.iter().map(|field| &field.value).collect();
        let expected = [
            Match::ternary(&(bit(199) + bit(197)), &(BigUint::from(7u8) << 197u32)),
            Match::lpm(&bit(159), 2),
            Match::range(&bit(130), &(bit(191) + 3u8)),
        ];
        assert_eq!(values, expected.iter().collect::<Vec<_>>());

        let known = bit(159) + bit(70);
        let member = [Match::exact(&known)];
        switch.value_set_insert("P.known", &member).unwrap();
        assert_eq!(marks(&mut switch, &[(L, &known)]), 0x80);
        assert_eq!(marks(&mut switch, &[(L, &bit(159))]), 0);
        assert_eq!(marks(&mut switch, &[(L, &bit(70))]), 0);
    }
}

#[test]
fn registers_and_digests() {
    for mut switch in switches() {
        let (kept, a, t) = (
            bit(255) + bit(100),
            bit(255) + bit(140) + 5u8,
            bit(199) + 6u8,
        );
        let cells = "MyIngress.cells";
        switch
            .register_write(cells, 0, &[Value::from(&kept)])
            .unwrap();
        let left = one(&mut switch, &packet(&[(A, &a), (T, &t)]));
        assert_eq!(left[..32], bytes(&(&a ^ &kept), 256));
        assert_eq!(switch.register_read(cells, 1), Ok(vec![Value::from(&a)]));
        assert_eq!(switch.register_read(cells, 0), Ok(vec![Value::from(&kept)]));
        let refused = switch.register_write(cells, 0, &[Value::ones(257)]);
        assert_eq!(refused, Err(ExternError::ValueTooWide));
        let message = switch.poll_digest().expect("a message");
        assert!(message.name.ends_with("learn_t"), "{}", message.name);
        assert_eq!(message.fields, [Value::from(&t), Value::ZERO]);
    }
}

#[test]
fn too_wide_operations_are_refused_with_their_position() {
    let program = Psa {
        decls: "header x_h { bit<2048> a; bit<2048> b; bit<8> c; }",
        headers: "x_h x;",
        parser: "state start { pkt.extract(hdr.x); transition accept; }",
        locals: "table t { key = { hdr.x.a: exact; hdr.x.b: exact; hdr.x.c: exact; } actions = { NoAction; } }",
        ingress: "t.apply(); send_to_port(ostd, (PortId_t) 1);",
        ..Psa::default()
    };
    let refused = program.refused().to_string();
    assert!(
        refused.contains("a key of more than 4096 bits"),
        "{refused}"
    );
}

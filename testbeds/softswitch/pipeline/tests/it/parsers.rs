//! Parsers: extraction, selection, errors.

use crate::support;
use crate::support::{Psa, one, through};
use p4lang::runtime::Match;
use pipeline::{Config, LoadError};

const NOTE: &str = "header note_h { bit<8> v; }
    header byte_h { bit<8> v; }
    header word_h { bit<16> v; }
    bit<8> number(error e) {
        if (e == error.NoError) { return 0; }
        if (e == error.PacketTooShort) { return 1; }
        if (e == error.NoMatch) { return 2; }
        if (e == error.StackOutOfBounds) { return 3; }
        if (e == error.HeaderTooShort) { return 4; }
        if (e == error.ParserTimeout) { return 5; }
        if (e == error.ParserInvalidArgument) { return 7; }
        return 6;
    }";

/// A program that sends the parser error in front of the parsed headers.
fn with_error<'a>(decls: &'a str, headers: &'a str, parser: &'a str) -> Psa<'a> {
    Psa {
        decls,
        headers,
        parser,
        ingress: "
            hdr.note.setValid();
            hdr.note.v = number(istd.parser_error);
            send_to_port(ostd, (PortId_t) 1);",
        ..Psa::default()
    }
}

#[test]
fn a_short_packet_extracts_nothing_of_the_header() {
    let headers = "note_h note; byte_h a; word_h b;";
    let parser = "state start { pkt.extract(hdr.a); pkt.extract(hdr.b); transition accept; }";
    let mut switch = with_error(NOTE, headers, parser).load();
    assert_eq!(one(&mut switch, &[9, 8, 7, 6]), [0, 9, 8, 7, 6]);
    assert_eq!(
        one(&mut switch, &[9, 8]),
        [1, 9, 8],
        "a is kept, the rest is payload"
    );
    assert_eq!(one(&mut switch, &[]), [1]);
}

#[test]
fn select_by_value_mask_range_and_default() {
    let headers = "note_h note; byte_h a;";
    let parser = "
        state start {
            pkt.extract(hdr.a);
            transition select(hdr.a.v, hdr.a.v[0:0]) {
                (5, _): by_value;
                (0x40 &&& 0xf0, 1): by_mask;
                (0x40 &&& 0xf0, 0): by_mask_even;
                (0x80 .. 0x8f, _): by_range;
            }
        }
        state by_value { meta.got = 1; transition accept; }
        state by_mask { meta.got = 2; transition accept; }
        state by_mask_even { meta.got = 3; transition accept; }
        state by_range { meta.got = 4; transition reject; }";
    let mut switch = Psa {
        meta: "bit<8> got;",
        ingress: "
            hdr.note.setValid();
            hdr.note.v = number(istd.parser_error) * 16 + meta.got;
            hdr.a.setInvalid();
            send_to_port(ostd, (PortId_t) 1);",
        ..with_error(NOTE, headers, parser)
    }
    .load();
    let cases = [
        (5, 1),
        (0x41, 2),
        (0x4f, 2),
        (0x44, 3),
        (0x80, 4),
        (0x8f, 4),
        (0x90, 0x20),
        (0x7f, 0x20),
    ];
    for (value, expected) in cases {
        assert_eq!(one(&mut switch, &[value]), [expected], "{value:#x}");
    }
}

#[test]
fn select_on_wide_keys() {
    let parser = "
        state start {
            pkt.extract(hdr.a);
            transition select(hdr.a.v) {
                128w0x01020304_05060708_090a0b0c_0d0e0f10: exact_;
                0x20010db8_00000000_00000000_00000000 &&& 0xffffffff_00000000_00000000_00000000: prefix;
                default: accept;
            }
        }
        state exact_ { meta.got = 1; transition accept; }
        state prefix { meta.got = 2; transition accept; }";
    let mut switch = Psa {
        decls: "header wide_h { bit<128> v; } header byte_h { bit<8> v; }",
        headers: "wide_h a; byte_h b;",
        meta: "bit<8> got;",
        parser,
        ingress: "
            hdr.a.setInvalid();
            hdr.b.setValid();
            hdr.b.v = meta.got;
            send_to_port(ostd, (PortId_t) 1);",
        ..Psa::default()
    }
    .load();
    let exact: Vec<u8> = (1..=16).collect();
    let mut prefix = [0x77; 16];
    prefix[..4].copy_from_slice(&[0x20, 0x01, 0x0d, 0xb8]);
    assert_eq!(one(&mut switch, &exact), [1]);
    assert_eq!(one(&mut switch, &prefix), [2]);
    assert_eq!(one(&mut switch, &[0; 16]), [0]);
}

#[test]
fn lookahead_advance_and_length() {
    let parser = "
        state start {
            bit<8> skip = pkt.lookahead<bit<8>>();
            meta.length = (bit<8>) pkt.length();
            pkt.advance((bit<32>) skip << 3);
            pkt.extract(hdr.a);
            transition accept;
        }";
    let mut switch = Psa {
        meta: "bit<8> length;",
        ingress: "
            hdr.note.setValid();
            hdr.note.v = number(istd.parser_error) * 16 + meta.length;
            send_to_port(ostd, (PortId_t) 1);",
        ..with_error(NOTE, "note_h note; byte_h a;", parser)
    }
    .load();
    assert_eq!(
        one(&mut switch, &[2, 3, 4, 5]),
        [4, 4, 5],
        "what is skipped is gone"
    );
    assert_eq!(one(&mut switch, &[0, 3]), [2, 0, 3]);
    assert_eq!(one(&mut switch, &[2, 3]), [0x12], "nothing left to extract");
    assert_eq!(
        one(&mut switch, &[3, 3]),
        [0x12, 3, 3],
        "advance too far moves nowhere"
    );
    assert_eq!(one(&mut switch, &[]), [0x10], "nothing to look at");
}

#[test]
fn odd_bits_are_read_across_bytes() {
    let mut switch = Psa {
        decls: "header odd_h { bit<3> a; bit<13> b; bit<1> c; bit<47> d; }",
        headers: "odd_h x;",
        parser: "state start { pkt.extract(hdr.x); transition accept; }",
        ingress: "
            bit<47> d = hdr.x.d;
            hdr.x.d = d + 1;
            hdr.x.b = hdr.x.b + 1;
            send_to_port(ostd, (PortId_t) 1);",
        ..Psa::default()
    }
    .load();
    let packet = 0xbfff_8000_0000_00ffu64.to_be_bytes();
    // a=5, b=0x1fff wraps to 0, c=1, d=0xff.
    assert_eq!(
        one(&mut switch, &packet),
        0xa000_8000_0000_0100u64.to_be_bytes()
    );
}

#[test]
fn stacks_next_last_and_bounds() {
    let parser = "
        state start {
            pkt.extract(hdr.s.next);
            transition select(hdr.s.last.v) { 0: accept; default: start; }
        }";
    let mut switch = Psa {
        ingress: "
            hdr.note.setValid();
            hdr.note.v = number(istd.parser_error);
            hdr.s[0].v = hdr.s[0].v + 1;
            send_to_port(ostd, (PortId_t) 1);",
        ..with_error(NOTE, "note_h note; byte_h[3] s;", parser)
    }
    .load();
    assert_eq!(one(&mut switch, &[1, 2, 0, 9]), [0, 2, 2, 0, 9]);
    assert_eq!(one(&mut switch, &[0, 9]), [0, 1, 9]);
    assert_eq!(
        one(&mut switch, &[1, 2, 3, 4]),
        [3, 2, 2, 3, 4],
        "a fourth does not fit"
    );
}

#[test]
fn last_of_an_empty_stack_is_an_error() {
    let parser = "state start { transition select(hdr.s.last.v) { 0: accept; default: accept; } }";
    let mut switch = with_error(NOTE, "note_h note; byte_h[3] s;", parser).load();
    assert_eq!(one(&mut switch, &[1]), [3, 1]);
}

#[test]
fn verify_names_its_error() {
    let decls = format!("error {{ Odd }} {NOTE}");
    let parser = "state start {
            pkt.extract(hdr.a);
            verify(hdr.a.v[0:0] == 0, error.Odd);
            pkt.extract(hdr.b);
            transition accept;
        }";
    let mut switch = with_error(&decls, "note_h note; byte_h a; byte_h b;", parser).load();
    assert_eq!(one(&mut switch, &[2, 7]), [0, 2, 7]);
    assert_eq!(one(&mut switch, &[3]), [6, 3], "b was not tried");
}

#[test]
fn an_endless_parser_times_out() {
    let parser = "state start { transition again; }
        state again { transition select(pkt.length()) { 0: accept; default: start; } }";
    let mut switch = with_error(NOTE, "note_h note;", parser).load_with(Config {
        max_steps: 50,
        ..Config::default()
    });
    assert_eq!(one(&mut switch, &[1]), [5, 1]);
    assert_eq!(switch.stats().out_of_steps, 1);
}

#[test]
fn varbit_of_any_length() {
    let decls = format!("header var_h {{ bit<8> len; varbit<96> opt; bit<8> end; }} {NOTE}");
    let parser = "state start {
            bit<8> len = pkt.lookahead<bit<8>>();
            pkt.extract(hdr.x, (bit<32>) len);
            transition accept;
        }";
    let mut switch = Psa {
        ingress: "
            hdr.note.setValid();
            hdr.note.v = number(istd.parser_error);
            var_h copy = hdr.x;
            hdr.x.setInvalid();
            hdr.x = copy;
            if (hdr.x.isValid()) { hdr.x.end = hdr.x.end + 1; }
            send_to_port(ostd, (PortId_t) 1);",
        ..with_error(&decls, "note_h note; var_h x;", parser)
    }
    .load();
    assert_eq!(one(&mut switch, &[0, 5, 6]), [0, 0, 6, 6]);
    assert_eq!(
        one(&mut switch, &[24, 1, 2, 3, 5, 6]),
        [0, 24, 1, 2, 3, 6, 6]
    );
    let long: Vec<u8> = [96, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 5].into();
    let mut expected = [vec![0], long.clone()].concat();
    expected[14] = 6;
    assert_eq!(one(&mut switch, &long), expected);
    let longer = [vec![104], vec![0; 14]].concat();
    assert_eq!(
        one(&mut switch, &longer),
        [vec![4], longer].concat(),
        "longer than the field"
    );
    assert_eq!(
        one(&mut switch, &[104, 0, 0]),
        [1, 104, 0, 0],
        "longer than the field and the packet (P4_16 13.8.2)"
    );
    assert_eq!(
        one(&mut switch, &[12, 0, 0]),
        [7, 12, 0, 0],
        "not whole bytes"
    );
    assert_eq!(
        one(&mut switch, &[96, 0, 0]),
        [1, 96, 0, 0],
        "longer than the packet"
    );
}

#[test]
fn subparsers_copy_in_and_out_and_reject_for_all() {
    let decls = format!(
        "{NOTE}
        parser Sub(packet_in pkt, out byte_h h, inout bit<8> count) {{
            state start {{
                pkt.extract(h);
                count = count + 1;
                transition select(h.v) {{ 9: reject; default: accept; }}
            }}
        }}"
    );
    let mut switch = Psa {
        meta: "bit<8> n;",
        parser_locals: "Sub() sub;",
        ingress: "
            hdr.note.setValid();
            hdr.note.v = number(istd.parser_error) * 16 + meta.n;
            send_to_port(ostd, (PortId_t) 1);",
        ..with_error(
            &decls,
            "note_h note; byte_h a; byte_h b;",
            "state start {
                meta.n = 3;
                sub.apply(pkt, hdr.a, meta.n);
                sub.apply(pkt, hdr.b, meta.n);
                meta.n = meta.n + 10;
                transition accept;
            }",
        )
    }
    .load();
    assert_eq!(one(&mut switch, &[1, 2, 3]), [15, 1, 2, 3]);
    let rejected = one(&mut switch, &[9, 2, 3]);
    assert!(
        rejected[0] < 10,
        "the outer parser stopped too: {rejected:?}"
    );
}

#[test]
fn value_sets() {
    let mut switch = Psa {
        decls: NOTE,
        headers: "byte_h a;",
        parser_locals: "@name(\"known\") value_set<bit<8>>(2) known;",
        parser: "state start { pkt.extract(hdr.a); transition select(hdr.a.v) { known: yes; default: accept; } }
                 state yes { hdr.a.v = 0xff; transition accept; }",
        ..Psa::default()
    }
    .load();
    assert_eq!(one(&mut switch, &[4]), [4]);
    switch
        .value_set_insert("IP.known", &[Match::exact(4)])
        .unwrap();
    assert_eq!(one(&mut switch, &[4]), [0xff]);
    assert_eq!(
        switch.value_set_insert("IP.known", &[Match::exact(4)]),
        Err(pipeline::ExternError::Duplicate)
    );
    switch
        .value_set_insert("IP.known", &[Match::exact(5)])
        .unwrap();
    assert_eq!(
        switch.value_set_insert("IP.known", &[Match::exact(6)]),
        Err(pipeline::ExternError::Full)
    );
    switch
        .value_set_delete("IP.known", &[Match::exact(4)])
        .unwrap();
    assert_eq!(one(&mut switch, &[4]), [4]);
    assert_eq!(one(&mut switch, &[5]), [0xff]);
}

/// Bounds are two's complement, in the order of signed numbers: in value sets and in a state's own cases.
#[test]
fn ranges_of_signed_numbers() {
    let mut switch = Psa {
        decls: "header n_h { int<8> n; int<70> wide; bit<2> set; bit<2> own; bit<6> pad; }
                struct member_t { @match(range) int<8> n; @match(range) int<70> wide; }",
        headers: "n_h a;",
        parser_locals: "@name(\"known\") value_set<member_t>(4) known;",
        parser: "state start {
                pkt.extract(hdr.a);
                transition select(hdr.a.n, hdr.a.wide) { known: yes; default: own; }
            }
            state yes { hdr.a.set = 1; transition own; }
            state own {
                transition select(hdr.a.n, hdr.a.wide) {
                    (-5 .. 3, -70s3 .. 70s1): both;
                    (-128 .. -6, _): below;
                    default: accept;
                }
            }
            state both { hdr.a.own = 1; transition accept; }
            state below { hdr.a.own = 2; transition accept; }",
        ..Psa::default()
    }
    .load();
    let wide = |n: i128| n.cast_unsigned() & ((1 << 70) - 1);
    let crossing = [
        Match::range(0xfb_u128, 3_u128),
        Match::range(wide(-3), wide(1)),
    ];
    switch.value_set_insert("IP.known", &crossing).unwrap();
    assert_eq!(
        switch.value_set_delete("IP.known", &[Match::range(3, 0xfb), crossing[1].clone()]),
        Err(pipeline::ExternError::ValueTooWide),
        "empty"
    );
    let cases = [
        (-5, -3, 0b0101),
        (-6, -3, 0b0010),
        (3, 1, 0b0101),
        (4, 1, 0),
        (0, 0, 0b0101),
        (0, -4, 0),
        (0, 2, 0),
        (127, 0, 0),
        (-128, 0, 0b0010),
    ];
    for (n, w, expected) in cases {
        let bits = u128::from(i8::cast_unsigned(n)) << 80 | wide(w) << 10;
        let mut packet = bits.to_be_bytes()[5..].to_vec();
        let last = packet.len() - 1;
        let sent = one(&mut switch, &packet);
        let found = u16::from_be_bytes([packet[last - 1], packet[last]]) | expected << 6;
        packet[last - 1..].copy_from_slice(&found.to_be_bytes());
        assert_eq!(sent, packet, "{n} {w}");
    }
}

#[test]
fn unions_hold_one_member() {
    let decls =
        "header a_h { bit<8> v; } header b_h { bit<16> v; } header_union u_t { a_h a; b_h b; }";
    let mut switch = Psa {
        decls,
        headers: "u_t u; a_h flags;",
        parser: "state start {
            transition select(pkt.lookahead<bit<8>>()) { 1: as_a; 2: as_b; 3: both; default: accept; }
        }
        state as_a { pkt.extract(hdr.u.a); transition accept; }
        state as_b { pkt.extract(hdr.u.b); transition accept; }
        state both { pkt.extract(hdr.u.a); pkt.extract(hdr.u.b); transition accept; }",
        ingress: "
            bit<8> f = 0;
            if (hdr.u.isValid()) { f = f | 1; }
            if (hdr.u.a.isValid()) { f = f | 2; }
            if (hdr.u.b.isValid()) { f = f | 4; }
            if (hdr.u.b.isValid() && hdr.u.b.v == 0x0207) {
                a_h other;
                other.setValid();
                other.v = 0x66;
                hdr.u.a = other;
                if (!hdr.u.b.isValid()) { f = f | 8; }
                hdr.u.b.setValid();
                if (!hdr.u.a.isValid()) { f = f | 16; }
                hdr.u.a.setValid();
                hdr.u.a.v = 0x67;
            }
            hdr.flags.setValid();
            hdr.flags.v = f;
            send_to_port(ostd, (PortId_t) 1);",
        ..Psa::default()
    }
    .load();
    assert_eq!(one(&mut switch, &[1, 5]), [1, 3, 5]);
    assert_eq!(one(&mut switch, &[2, 5]), [2, 5, 5]);
    assert_eq!(
        one(&mut switch, &[3, 4, 5]),
        [4, 5, 5],
        "the last extracted counts"
    );
    assert_eq!(one(&mut switch, &[0]), [0, 0]);
    assert_eq!(one(&mut switch, &[2, 7]), [0x67, 5 | 8 | 16]);
}

#[test]
fn headers_of_odd_size_are_refused() {
    let error = Psa {
        decls: "header odd_h { bit<7> v; }",
        headers: "odd_h h;",
        parser: "state start { pkt.extract(hdr.h); transition accept; }",
        ..Psa::default()
    }
    .refused();
    assert!(matches!(error, LoadError::Unsupported { .. }), "{error:?}");
    assert!(error.span().is_some_and(|s| s.end > s.start));
}

#[test]
fn garbage_on_any_port_is_just_a_packet() {
    let switch = with_error(
        NOTE,
        "note_h note; byte_h[3] s; word_h w;",
        "state start { pkt.extract(hdr.s.next); transition select(hdr.s.last.v) { 0..127: start; default: more; } }
         state more { pkt.advance(5); pkt.extract(hdr.w); transition accept; }",
    )
    .load();
    let switch = std::cell::RefCell::new(switch);
    proptest::proptest!(|(port: u32, packet in proptest::collection::vec(proptest::num::u8::ANY, 0..40))| {
        let mut switch = switch.borrow_mut();
        switch.handle_packet(0, port, &packet);
        proptest::prop_assert_eq!(support::sent(&mut switch).len(), 1);
    });
    assert_eq!(through(&mut switch.borrow_mut(), &[]).len(), 1);
}

//! Values of several parts: stacks, arrays and structs from lists or lookahead, unions.

use crate::support::tna::Tna;
use crate::support::v1model::V1;
use crate::support::{Psa, one, through};

const DECLS: &str = "
    header b_t { bit<8> x; bit<8> y; }
    struct in_t { b_t[2] s; bit<8> k; }
    const bit<8>[3] ARRAY = { 7, 8, 9 };
    const b_t[2] STACK = { { 0x10, 0x11 }, { 0x12, 0x13 } };
    const in_t STRUCT = { { { 0x20, 0x21 }, { 0x22, 0x23 } }, 0x24 };
    b_t[2] made(in bit<8> n) { return { { n, n + 1 }, {#} }; }
    b_t[2] same(in b_t[2] s) { return s; }";

/// A program that sends the stack after the two received bytes.
fn stack<'a>(ingress: &'a str) -> Psa<'a> {
    Psa {
        decls: DECLS,
        headers: "b_t h; b_t[2] s;",
        parser: "state start { pkt.extract(hdr.h); transition accept; }",
        ingress,
        ..Psa::default()
    }
}

#[test]
fn a_stack_is_made_from_a_list() {
    let cases: [(&str, &[u8]); 8] = [
        ("hdr.s = (b_t[2]) { { 2, 3 }, { 4, 5 } };", &[2, 3, 4, 5]),
        (
            "hdr.s = { { hdr.h.x, 3 }, { 4, hdr.h.y } };",
            &[0xa, 3, 4, 0xb],
        ),
        ("hdr.s = { { 2, 3 }, ... };", &[2, 3]),
        ("hdr.s = { (b_t) {#}, { 4, 5 } };", &[4, 5]),
        (
            "hdr.s = { { 2, 3 }, { 4, 5 } }; hdr.s = { hdr.s[1], hdr.s[0] };",
            &[4, 5, 2, 3],
        ),
        ("hdr.s = STACK;", &[0x10, 0x11, 0x12, 0x13]),
        ("hdr.s = made(hdr.h.x);", &[0xa, 0xb]),
        ("hdr.s = same({ { 2, 3 }, { 4, 5 } });", &[2, 3, 4, 5]),
    ];
    for (statement, expected) in cases {
        let ingress = format!("{statement} send_to_port(ostd, (PortId_t) 1);");
        let mut switch = stack(&ingress).load();
        let sent = one(&mut switch, &[0xa, 0xb]);
        assert_eq!(sent[..2], [0xa, 0xb], "{statement}");
        assert_eq!(&sent[2..], expected, "{statement}");
    }
}

#[test]
fn structs_hold_stacks_made_from_lists() {
    let mut switch = stack(
        "in_t x = { { { 2, hdr.h.x }, {#} }, hdr.h.y };
         in_t c = STRUCT;
         tuple<b_t[2], bit<8>> t = { { { 6, 7 }, { 8, 9 } }, 0x30 };
         hdr.h.x = x.k + c.k + t[1];
         hdr.h.y = (x.s[0].isValid() ? 8w1 : 0) + (x.s[1].isValid() ? 8w2 : 0) + (x == c ? 8w4 : 0);
         hdr.s[0] = { x.s[0].y, c.s[0].y };
         hdr.s[1] = { c.s[1].x, t[0][1].x };
         send_to_port(ostd, (PortId_t) 1);",
    )
    .load();
    let k = 0xb + 0x24 + 0x30;
    assert_eq!(one(&mut switch, &[0xa, 0xb]), [k, 1, 0xa, 0x21, 0x22, 8]);
}

#[test]
fn arrays_are_made_from_lists() {
    let mut switch = V1 {
        decls: DECLS,
        ingress: "
            s.egress_spec = 1;
            bit<8>[3] a = { 1, hdr.x.a, 3 };
            bit<8>[3] b = { 4, ... };
            bit<8> at = hdr.x.b;
            hdr.x.b = a[at] + b[0] + b[1] + ARRAY[at];
            a = { a[2], a[1], a[0] };
            hdr.x.a = a[at];",
        ..V1::default()
    }
    .load();
    assert_eq!(one(&mut switch, &[0x40, 0]), [3, 1 + 4 + 7]);
    assert_eq!(one(&mut switch, &[0x40, 1]), [0x40, 0x40 + 4 + 8]);
    assert_eq!(one(&mut switch, &[0x40, 2]), [1, 3 + 4 + 9]);
}

/// P4_16 8.20: an assignment copies `nextIndex`; that of a new stack is 0.
#[test]
fn the_next_index_of_a_list_is_0() {
    let mut switch = Psa {
        parser: "state start {
            pkt.extract(hdr.s.next);
            hdr.s = { { 2, 3 }, {#} };
            pkt.extract(hdr.s.next);
            pkt.extract(hdr.s.next);
            transition accept;
        }",
        ..stack("send_to_port(ostd, (PortId_t) 1);")
    }
    .load();
    assert_eq!(
        through(&mut switch, &[4, 5, 6, 7, 8, 9, 0xee]),
        [(1, vec![6, 7, 8, 9, 0xee])]
    );
}

/// P4_16 8.21: the whole union becomes invalid by `u.h.setInvalid()` and by `u.h = e` with an invalid `e`, whichever
/// member was valid.
#[test]
fn an_invalid_member_makes_its_union_invalid() {
    let decls = "
        header p_t { bit<8> x; } header q_t { bit<8> y; }
        header_union u_t { p_t p; q_t q; }
        void keep(inout q_t q) { }
        bit<8> shape(in u_t u) {
            return (u.isValid() ? 8w1 : 0) + (u.p.isValid() ? 8w2 : 0) + (u.q.isValid() ? 8w4 : 0);
        }";
    let cases = [
        ("u.p = { 5 }; u.q.setInvalid();", 0),
        ("u.q = { 5 }; u.q.setInvalid();", 0),
        ("u.p = { 5 }; u.q = (q_t) {#};", 0),
        ("u.q = { 5 }; p_t none; u.p = none;", 0),
        ("u.p = { 5 }; u.q.y = 6;", 3),
        ("u.p = { 5 }; u.p = { 6 };", 3),
        ("u.p = { 5 }; u.q = { 6 };", 5),
        ("u.p = { 5 }; u.q.setValid();", 5),
        ("u_t w; w.q = { 5 }; u = w;", 5),
        ("u.p = { 5 }; u = (u_t) {#};", 0),
        // Copied in and out: an assignment (6.8).
        ("u.p = { 5 }; keep(u.q);", 0),
        ("t[i].p = { 5 }; t[i].q.setInvalid(); u = t[i];", 0),
        ("t[i].p = { 5 }; t[1 - i].q.setInvalid(); u = t[i];", 3),
    ];
    for (statements, expected) in cases {
        let ingress = format!(
            "u_t u; u_t[2] t; bit<8> i = hdr.x.b; {statements}
             hdr.x.a = shape(u); s.egress_spec = 1;"
        );
        let mut switch = V1 {
            decls,
            ingress: &ingress,
            ..V1::default()
        }
        .load();
        assert_eq!(one(&mut switch, &[0xff, 1]), [expected, 1], "{statements}");
    }
}

/// P4_16 13.8.3: headers in the result of `lookahead` are valid.
#[test]
fn headers_in_a_value_looked_ahead_are_valid() {
    let cases = [
        ("st_t", "v.a.isValid()", "v.x ++ v.a.n"),
        ("tuple<a_t, bit<8>>", "v[0].isValid()", "v[0].n ++ v[1]"),
        (
            "a_t[2]",
            "(v[0].isValid() && v[1].isValid())",
            "v[0].n ++ v[1].n",
        ),
        ("in_t", "v.st.a.isValid()", "v.st.x ++ v.st.a.n"),
        ("b_t", "v.isValid()", "v.x ++ v.y"),
        ("two_t", "true", "v.x ++ v.y"),
    ];
    for (ty, valid, bytes) in cases {
        let parser = format!(
            "state start {{
                {ty} v = pkt.lookahead<{ty}>();
                meta.valid = {valid} ? 8w1 : 2;
                meta.bytes = {bytes};
                transition accept;
            }}"
        );
        let mut switch = Psa {
            decls: "
                header a_t { bit<8> n; }
                header b_t { bit<8> x; bit<8> y; }
                struct two_t { bit<8> x; bit<8> y; }
                struct st_t { bit<8> x; a_t a; }
                struct in_t { st_t st; }
                header o_t { bit<8> valid; bit<16> bytes; }",
            headers: "o_t o;",
            meta: "bit<8> valid; bit<16> bytes;",
            parser: &parser,
            ingress: "hdr.o = { meta.valid, meta.bytes }; send_to_port(ostd, (PortId_t) 1);",
            ..Psa::default()
        }
        .load();
        let sent = one(&mut switch, &[0xa5, 0xc3]);
        assert_eq!(sent, [1, 0xa5, 0xc3, 0xa5, 0xc3], "{ty}");
    }
}

/// P4_16 8.17: a write to a field of an invalid header changes nothing, even if the field is an array's element.
#[test]
fn a_header_has_arrays_that_are_indexed_at_run_time() {
    let cases: [(&str, [u8; 6]); 9] = [
        ("hdr.a.v[hdr.h.y] = 0x77;", [1, 2, 0x77, 4, 5, 6]),
        (
            "hdr.a.v[hdr.h.y] = hdr.a.v[hdr.h.y] + 1;",
            [1, 2, 4, 4, 5, 6],
        ),
        ("hdr.a.v[hdr.h.y][3:0] = 9;", [1, 2, 9, 4, 5, 6]),
        ("change(hdr.a.v[hdr.h.y]);", [1, 2, 0x13, 4, 5, 6]),
        ("hdr.a.v[hdr.h.y + 7] = 0x77;", [1, 2, 3, 4, 5, 6]),
        ("hdr.a.s[hdr.h.y - 1].k = 0x77;", [1, 2, 3, 4, 5, 0x77]),
        (
            "a_t other = hdr.a; other.v[hdr.h.y] = 0x77; hdr.a = other;",
            [1, 2, 0x77, 4, 5, 6],
        ),
        (
            "hdr.a.setInvalid(); hdr.a.v[hdr.h.y] = 0x77; hdr.a.s[hdr.h.y - 1].k = 8;
             bit<8> v = hdr.a.v[hdr.h.y]; hdr.a.setValid();
             hdr.a.v = { v, v, v, v }; hdr.a.s[0].k = v; hdr.a.s[1].k = v;",
            [0; 6],
        ),
        (
            "hdr.a.setInvalid(); bit<8> v = hdr.a.v[1]; bit<8> k = hdr.a.s[0].k; hdr.a.setValid();
             hdr.a.v = { v, v, v, v }; hdr.a.s[0].k = k; hdr.a.s[1].k = k;",
            [0; 6],
        ),
    ];
    for (statements, expected) in cases {
        let ingress = format!("{statements} send_to_port(ostd, (PortId_t) 1);");
        let mut switch = Psa {
            decls: "
                struct k_t { bit<8> k; }
                header a_t { bit<8>[4] v; k_t[2] s; }
                header b_t { bit<8> x; bit<8> y; }
                void change(inout bit<8> v) { v = v + 0x10; }",
            headers: "b_t h; a_t a;",
            parser: "state start { pkt.extract(hdr.h); pkt.extract(hdr.a); transition accept; }",
            ingress: &ingress,
            ..Psa::default()
        }
        .load();
        let sent = one(&mut switch, &[0, 2, 1, 2, 3, 4, 5, 6]);
        assert_eq!(sent[2..], expected, "{statements}");
    }
}

#[test]
fn indices_known_only_at_run_time_stand_within_each_other() {
    // x is 0, y is 1.
    let cases: [(&str, [u8; 8]); 13] = [
        ("hdr.s[hdr.h.y].v[hdr.h.x] = 0x77;", [1, 2, 3, 4, 0x77, 6, 7, 8]),
        ("hdr.s[hdr.h.y].v[1] = 0x77;", [1, 2, 3, 4, 5, 0x77, 7, 8]),
        ("hdr.s[0].v[hdr.h.y] = 0x77;", [1, 0x77, 3, 4, 5, 6, 7, 8]),
        ("hdr.s[hdr.h.x].k[hdr.h.y].v = hdr.s[hdr.h.y].v[hdr.h.x];", [1, 2, 3, 5, 5, 6, 7, 8]),
        ("hdr.s[hdr.h.y].v[hdr.h.x][3:0] = 9;", [1, 2, 3, 4, 9, 6, 7, 8]),
        ("hdr.s[hdr.h.y].v[hdr.h.x] += 1;", [1, 2, 3, 4, 6, 6, 7, 8]),
        ("change(hdr.s[hdr.h.y].k[hdr.h.x].v);", [1, 2, 3, 4, 5, 6, 0x17, 8]),
        ("both(hdr.s[hdr.h.y].v[hdr.h.x], hdr.s[hdr.h.y].v[hdr.h.y]);", [1, 2, 3, 4, 6, 5, 7, 8]),
        // The place is evaluated before the call.
        ("next(hdr.h.x, hdr.s[hdr.h.y].v[hdr.h.x]);", [1, 2, 3, 4, 0x77, 6, 7, 8]),
        ("hdr.s[hdr.h.y].v[hdr.h.x + 2] = 0x77;", [1, 2, 3, 4, 5, 6, 7, 8]),
        ("hdr.s[hdr.h.y + 1].v[hdr.h.x] = 0x77;", [1, 2, 3, 4, 5, 6, 7, 8]),
        (
            "hdr.s[1].setInvalid(); hdr.s[hdr.h.y].v[hdr.h.x] = 0x77; hdr.s[hdr.h.y].k[hdr.h.x].v = 0x77;
             hdr.s[1].setValid(); bit<8> z = hdr.s[1].v[0] | hdr.s[1].k[0].v; bool is = z == 0x77;
             hdr.s[1] = { { is ? 8w1 : 0, 0 }, { { 0 }, { 0 } } };",
            [1, 2, 3, 4, 0, 0, 0, 0],
        ),
        (
            "pair_t[2] p = { { { 1, 2 } }, { { 3, 4 } } }; p[hdr.h.y].v[hdr.h.x] = 9;
             hdr.s[0].v = { p[hdr.h.y].v[hdr.h.x], p[hdr.h.x].v[hdr.h.y] };",
            [9, 2, 3, 4, 5, 6, 7, 8],
        ),
    ];
    for (statements, expected) in cases {
        let ingress = format!("{statements} send_to_port(ostd, (PortId_t) 1);");
        let mut switch = Psa {
            decls: "
                struct k_t { bit<8> v; }
                struct pair_t { bit<8>[2] v; }
                header a_t { bit<8>[2] v; k_t[2] k; }
                header b_t { bit<8> x; bit<8> y; }
                void change(inout bit<8> v) { v = v + 0x10; }
                void both(inout bit<8> v, inout bit<8> w) { bit<8> t = v; v = w; w = t; }
                void next(inout bit<8> i, out bit<8> v) { i = i + 1; v = 0x77; }",
            headers: "b_t h; a_t[2] s;",
            parser: "state start {
                pkt.extract(hdr.h); pkt.extract(hdr.s.next); pkt.extract(hdr.s.next);
                transition accept;
            }",
            ingress: &ingress,
            ..Psa::default()
        }
        .load();
        let sent = one(&mut switch, &[0, 1, 1, 2, 3, 4, 5, 6, 7, 8]);
        assert_eq!(sent[2..], expected, "{statements}");
    }
}

#[test]
fn loops_run_over_arrays_that_are_values() {
    let cases = [
        ("(bit<8>[3]) { 1, hdr.h.x, 3 }", [1, 0xa, 3]),
        ("ARRAY", [7, 8, 9]),
        (
            "hdr.h.x == 0xa ? (bit<8>[3]) { 1, 2, 3 } : ARRAY",
            [1, 2, 3],
        ),
        (
            "hdr.h.x != 0xa ? (bit<8>[3]) { 1, 2, 3 } : ARRAY",
            [7, 8, 9],
        ),
    ];
    for (array, [a, b, c]) in cases {
        // The loop changes the values from which the list was made, but not the list.
        let ingress = format!(
            "hdr.s[0].setValid();
            for (bit<8> e in {array}) {{ hdr.s[0].x = hdr.s[0].x * 4 + e; hdr.h.x = 0xff; }}
            for (b_t e in (b_t[2]) {{ {{ 1, 2 }}, {{ 3, hdr.h.y }} }}) {{ hdr.s[0].y = hdr.s[0].y * 4 + e.y; }}
            send_to_port(ostd, (PortId_t) 1);"
        );
        let mut switch = stack(&ingress).load();
        let sent = one(&mut switch, &[0xa, 0xb]);
        assert_eq!(
            sent,
            [0xff, 0xb, a * 16 + b * 4 + c, 2 * 4 + 0xb],
            "{array}"
        );
    }
}

/// TNA's intrinsic metadata from lists and copies: fields with their own validity become valid by a list, and keep their
/// validity in a copy.
#[test]
fn intrinsic_metadata_are_made_from_lists() {
    let all = "{ 5, 1, 0, 6, 7, 3, 0, 2, 0, 0, 0, 0, 8, 9, 10, 11, 12 }";
    let seen = "hdr.b.v = 1w0 ++ (bit<4>) tm.qid ++ (bit<3>) tm.ingress_cos;";
    let cases = [
        (format!("tm = {all};"), Some(5)),
        (
            "tm = { ucast_egress_port = 5, ingress_cos = 6, qid = 7, bypass_egress = 1, ... };"
                .into(),
            Some(5),
        ),
        ("tm = ALL;".into(), Some(5)),
        ("tm = made(5);".into(), Some(5)),
        (format!("tm_t x = {all}; tm = x;"), Some(5)),
        (
            "tm_t x = hdr.b.v == 1 ? ALL : made(6); tm = x;".into(),
            Some(6),
        ),
        (
            format!("both_t x = {{ {all}, {{ 0, 0, 0, 0 }} }}; tm = x.tm;"),
            Some(5),
        ),
        (
            format!("tuple<bit<8>, tm_t> x = {{ 1, {all} }}; tm = x[1];"),
            Some(5),
        ),
        // Invalid fields stay invalid in a copy.
        (format!("tm_t x = tm; tm = {all}; tm = x;"), None),
        (
            format!("tm = {all}; tm_t x = tm; tm.ucast_egress_port = 9; tm = x;"),
            Some(5),
        ),
        (
            format!(
                "tm_t x = {all}; tm_t y = ALL; tm = x; if (x != y) {{ tm.ucast_egress_port = 9; }}"
            ),
            Some(5),
        ),
    ];
    for (statements, port) in cases {
        let mut switch = Tna {
            decls: &format!(
                "typedef ingress_intrinsic_metadata_for_tm_t tm_t;
                 struct both_t {{ tm_t tm; ingress_intrinsic_metadata_for_deparser_t dprsr; }}
                 const tm_t ALL = {all};
                 tm_t made(in bit<9> port) {{ return {}; }}",
                all.replacen('5', "port", 1)
            ),
            parser: "state go { pkt.extract(hdr.b); transition accept; }",
            ingress: &format!("{statements} {seen} tm.bypass_egress = 1;"),
            ..Tna::default()
        }
        .load();
        let sent = through(&mut switch, &[0, 0xee]);
        let expected = port.map(|port| (port, vec![7 << 3 | 6, 0xee]));
        assert_eq!(sent, Vec::from_iter(expected), "{statements}");
    }
}

/// A list makes each type valid, even if it is zero: the deparser's gates open.
#[test]
fn a_list_opens_the_gates_of_a_deparser() {
    for (statement, resubmits) in [
        ("dprsr = { 0, 0, 0, 0 };", true),
        ("dprsr = { drop_ctl = 0, ... };", true),
        ("dprsr.drop_ctl = 0;", false),
    ] {
        let mut switch = Tna {
            headers: "byte_h b;",
            port_metadata: "transition select(ig.resubmit_flag) { 1: again; default: first; } }
                state again { pkt.advance(64); hdr.b.setValid(); hdr.b.v = 0x77; transition accept; }
                state first { pkt.advance(PORT_METADATA_SIZE);",
            ingress: &format!("tm.ucast_egress_port = 1; if (ig.resubmit_flag == 0) {{ {statement} }}"),
            deparser_locals: "Resubmit() resubmit;",
            deparser: "if (dprsr.resubmit_type == 0) { resubmit.emit(); } pkt.emit(hdr);",
            ..Tna::default()
        }
        .load();
        let expected = if resubmits {
            vec![0x77, 0xee]
        } else {
            vec![0xee]
        };
        assert_eq!(one(&mut switch, &[0xee]), expected, "{statement}");
    }
}

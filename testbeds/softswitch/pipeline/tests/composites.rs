//! Values of several parts: stacks, arrays and structs made from lists.

mod support;

use support::v1model::V1;
use support::{Psa, one, through};

const DECLS: &str = "
    header b_t { bit<8> x; bit<8> y; }
    struct in_t { b_t[2] s; bit<8> k; }
    const bit<8>[3] ARRAY = { 7, 8, 9 };
    const b_t[2] STACK = { { 0x10, 0x11 }, { 0x12, 0x13 } };
    const in_t STRUCT = { { { 0x20, 0x21 }, { 0x22, 0x23 } }, 0x24 };
    b_t[2] made(in bit<8> n) { return { { n, n + 1 }, {#} }; }
    b_t[2] same(in b_t[2] s) { return s; }";

/// Sends the stack after the two bytes that came.
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
    assert_eq!(
        one(&mut switch, &[0xa, 0xb]),
        [k, 1, 0xa, 0x21, 0x22, 8]
    );
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

/// P4_16 8.20: an assignment copies `nextIndex`, and a new stack's is 0.
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

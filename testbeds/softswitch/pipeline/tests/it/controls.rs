//! Statements of controls: calls and copies, headers, stacks, control flow, tables.

use crate::support::{Psa, call, entry, one, through};
use p4lang::runtime::Match;
use pipeline::{Config, Mark};

/// Programs over four bytes.
const BYTES: &str =
    "header bytes_h { bit<8> a; bit<8> b; bit<8> c; bit<8> d; } header byte_h { bit<8> v; }";

fn bytes<'a>(decls: &'a str, locals: &'a str, ingress: &'a str) -> Psa<'a> {
    Psa {
        decls,
        headers: "bytes_h x; byte_h y; byte_h[3] s;",
        parser: "state start { pkt.extract(hdr.x); transition accept; }",
        locals,
        ingress,
        ..Psa::default()
    }
}

#[test]
fn invalid_headers_read_zero_and_are_not_written() {
    let mut switch = bytes(
        BYTES,
        "",
        "
        hdr.y.v = 7;
        hdr.x.a = hdr.y.v;
        hdr.y.setValid();
        hdr.x.b = hdr.y.v;
        hdr.y.v = 9;
        hdr.y.setInvalid();
        hdr.x.c = hdr.y.v;
        hdr.y.setValid();
        hdr.x.d = hdr.y.v;
        hdr.y.v = 5;
        hdr.y.setValid();
        send_to_port(ostd, (PortId_t) 1);",
    )
    .load();
    assert_eq!(
        one(&mut switch, &[1, 1, 1, 1, 0xee]),
        [0, 0, 0, 0, 5, 0xee],
        "a second setValid changes nothing"
    );
}

/// P4_16 1.2.5, section 6.8: from left to right in the order of the call, also on `exit`.
#[test]
fn named_arguments_are_copied_out_in_the_order_of_the_call() {
    let decls = format!(
        "{BYTES}
        void both(out bit<8> first, out bit<8> second) {{ first = 1; second = 2; }}
        control Both(out bytes_h all, out bit<8> part) {{
            apply {{ all.setValid(); all = {{ 5, 6, 7, 8 }}; part = 9; if (part == 9) {{ exit; }} }}
        }}"
    );
    let locals = "action act(out bit<8> first, out bit<8> second) { first = 3; second = 4; }
        Both() inner;";
    let mut switch = bytes(
        &decls,
        locals,
        "both(second = hdr.x.a, first = hdr.x.a);
         both(first = hdr.x.b, second = hdr.x.b);
         act(second = hdr.x.c, first = hdr.x.c);
         send_to_port(ostd, (PortId_t) 1);",
    )
    .load();
    assert_eq!(one(&mut switch, &[0, 0, 0, 0])[..3], [1, 2, 3]);
    let copied = |call: &str| {
        let ingress = format!("send_to_port(ostd, (PortId_t) 1); {call}");
        one(&mut bytes(&decls, locals, &ingress).load(), &[0, 0, 0, 0])
    };
    assert_eq!(
        copied("inner.apply(all = hdr.x, part = hdr.x.b);"),
        [5, 9, 7, 8]
    );
    assert_eq!(
        copied("inner.apply(part = hdr.x.b, all = hdr.x);"),
        [5, 6, 7, 8]
    );
}

#[test]
fn headers_are_compared_and_copied_with_validity() {
    let mut switch = bytes(
        BYTES,
        "",
        "
        byte_h p;
        byte_h q;
        hdr.x.a = 0;
        if (p == q) { hdr.x.a = hdr.x.a | 1; }
        p.setValid();
        p.v = 0;
        if (p != q) { hdr.x.a = hdr.x.a | 2; }
        q = p;
        if (p == q) { hdr.x.a = hdr.x.a | 4; }
        q.v = 1;
        if (p != q) { hdr.x.a = hdr.x.a | 8; }
        hdr.y = q;
        q = hdr.s[1];
        if (!q.isValid()) { hdr.x.a = hdr.x.a | 16; }
        send_to_port(ostd, (PortId_t) 1);",
    )
    .load();
    assert_eq!(one(&mut switch, &[0, 2, 3, 4]), [31, 2, 3, 4, 1]);
}

#[test]
fn stacks_are_indexed_pushed_and_popped() {
    let mut switch = Psa {
        parser: "state start {
            pkt.extract(hdr.x);
            pkt.extract(hdr.s.next);
            pkt.extract(hdr.s.next);
            pkt.extract(hdr.s.next);
            transition accept;
        }",
        ..bytes(
            BYTES,
            "",
            "
            hdr.x.b = hdr.s[hdr.x.a].v;
            hdr.s[hdr.x.a].v = 0x99;
            if (hdr.x.c == 1) { hdr.s.push_front(1); hdr.s[0].setValid(); hdr.s[0].v = 0x11; }
            if (hdr.x.c == 2) { hdr.s.pop_front(2); }
            if (hdr.x.c == 3) { hdr.s[hdr.x.a].setInvalid(); }
            if (hdr.x.c == 4) { hdr.s.push_front(2); }
            send_to_port(ostd, (PortId_t) 1);",
        )
    }
    .load();
    let mut run = |index, what| one(&mut switch, &[index, 0, what, 0, 5, 6, 7]);
    assert_eq!(run(1, 0), [1, 6, 0, 0, 5, 0x99, 7]);
    assert_eq!(
        run(9, 0),
        [9, 0, 0, 0, 5, 6, 7],
        "out of range: reads 0, writes nothing"
    );
    assert_eq!(run(0, 1), [0, 5, 1, 0, 0x11, 0x99, 6]);
    assert_eq!(run(2, 2), [2, 7, 2, 0, 0x99]);
    assert_eq!(run(1, 3), [1, 6, 3, 0, 5, 7]);
    assert_eq!(run(2, 4), [2, 7, 4, 0, 5]);
}

#[test]
fn arguments_are_copied_in_and_out() {
    let decls = format!(
        "{BYTES}
        struct pair_t {{ bit<8> p; bit<8> q; }}
        control Both(inout bit<8> a, inout bit<8> b, in bit<8> c) {{
            apply {{ a = a + 1; b = b + 10; b = b + c; }}
        }}
        control Whole(inout pair_t pair, in bit<8> q) {{
            apply {{ pair.q = 0; pair.p = q; }}
        }}
        control Out(out bit<8> v, inout pair_t pair) {{
            apply {{ pair.p = v; v = 3; }}
        }}"
    );
    let mut switch = bytes(
        &decls,
        "Both() both; Whole() whole; Out() out_;
         bit<8> seen = 0;
         action twice(inout bit<8> v) { v = v + 1; seen = hdr.x.a; v = v * 2; }",
        "
        // A variable is passed for several parameters: the last one that is copied out wins.
        bit<8> t = 1;
        both.apply(t, t, t);
        hdr.x.b = t;
        // An `in` argument within an `inout` one keeps its value.
        pair_t pair = { 1, 7 };
        whole.apply(pair, pair.q);
        hdr.x.c = pair.p;
        // `out` starts undefined, 0 here.
        bit<8> o = 9;
        out_.apply(o, pair);
        hdr.x.d = o + pair.p;
        // An action's parameter is a copy: what it changes is not seen before it ends.
        twice(hdr.x.a);
        hdr.y.setValid();
        hdr.y.v = seen;
        send_to_port(ostd, (PortId_t) 1);",
    )
    .load();
    assert_eq!(one(&mut switch, &[5, 0, 0, 0]), [12, 12, 7, 3, 5]);
}

#[test]
fn a_callee_may_compute_with_an_argument_of_an_invalid_header() {
    let decls = format!(
        "{BYTES} control Inc(inout bit<8> v, out bit<8> seen) {{ apply {{ v = v + 5; seen = v; }} }}"
    );
    let mut switch = bytes(
        &decls,
        "Inc() inc;",
        "bit<8> seen; inc.apply(hdr.y.v, seen); hdr.x.a = seen; hdr.x.b = hdr.y.v; send_to_port(ostd, (PortId_t) 1);",
    )
    .load();
    assert_eq!(one(&mut switch, &[1, 1, 1, 1]), [5, 0, 1, 1]);
}

#[test]
fn exit_leaves_everything_but_copies_out() {
    let decls = format!(
        "{BYTES}
        control Inner(inout bit<8> v) {{
            action leave() {{ v = v + 1; exit; }}
            apply {{ if (v < 100) {{ leave(); }} v = v + 2; }}
        }}"
    );
    let mut switch = bytes(
        &decls,
        "Inner() inner;",
        "send_to_port(ostd, (PortId_t) 1); inner.apply(hdr.x.a); hdr.x.b = 0xff;",
    )
    .load();
    assert_eq!(one(&mut switch, &[5, 0, 0, 0]), [6, 0, 0, 0]);
    assert_eq!(one(&mut switch, &[100, 0, 0, 0]), [102, 0xff, 0, 0]);
}

#[test]
fn return_leaves_the_innermost_body() {
    let decls = format!(
        "{BYTES}
        bit<8> pick(in bit<8> v) {{ if (v == 1) {{ return 10; }} return v + 1; }}
        control Inner(inout bit<8> v) {{ apply {{ if (v == 2) {{ return; }} v = 0; }} }}"
    );
    let mut switch = bytes(
        &decls,
        "Inner() inner; action act() { if (hdr.x.c == 3) { return; } hdr.x.c = 0; }",
        "hdr.x.a = pick(hdr.x.a); inner.apply(hdr.x.b); act(); hdr.x.d = pick(pick(hdr.x.d));
         send_to_port(ostd, (PortId_t) 1);",
    )
    .load();
    assert_eq!(one(&mut switch, &[1, 2, 3, 1]), [10, 2, 3, 11]);
    assert_eq!(one(&mut switch, &[2, 3, 4, 2]), [3, 0, 0, 4]);
}

#[test]
fn switch_on_values_and_on_the_action_run() {
    let mut switch = bytes(
        BYTES,
        "action one_() { hdr.x.b = 1; }
         action two(bit<8> v) { hdr.x.b = v; }
         table t {
             key = { hdr.x.a: exact; }
             actions = { one_; two; NoAction; }
             const entries = { 1: one_(); 2: two(7); }
             default_action = NoAction();
         }",
        "
        switch (t.apply().action_run) {
            one_: { hdr.x.c = 11; }
            two: { hdr.x.c = 22; }
            default: { hdr.x.c = 33; }
        }
        switch (hdr.x.d) {
            1:
            2: { hdr.x.d = 0x12; }
            3: { hdr.x.d = 0x03; }
            default: { hdr.x.d = 0xff; }
        }
        send_to_port(ostd, (PortId_t) 1);",
    )
    .load();
    assert_eq!(one(&mut switch, &[1, 0, 0, 1]), [1, 1, 11, 0x12]);
    assert_eq!(one(&mut switch, &[2, 0, 0, 2]), [2, 7, 22, 0x12]);
    assert_eq!(one(&mut switch, &[3, 0, 0, 3]), [3, 0, 33, 3]);
    assert_eq!(one(&mut switch, &[3, 0, 0, 4]), [3, 0, 33, 0xff]);
}

#[test]
fn loops_break_continue_and_end() {
    let mut switch = bytes(
        BYTES,
        "",
        "
        for (bit<8> i = 0; i < hdr.x.a; i = i + 1) {
            if (i == 2) { continue; }
            if (i == 6) { break; }
            hdr.x.b = hdr.x.b + i;
        }
        if (hdr.x.c == 1) { for (bit<8> i = 0; i < 2; i = i + 0) { hdr.x.d = hdr.x.d + 1; } }
        send_to_port(ostd, (PortId_t) 1);",
    )
    .load_with(Config {
        max_steps: 100,
        ..Config::default()
    });
    assert_eq!(one(&mut switch, &[5, 0, 0, 0]), [5, 1 + 3 + 4, 0, 0]);
    assert_eq!(
        one(&mut switch, &[200, 0, 0, 0]),
        [200, 1 + 3 + 4 + 5, 0, 0]
    );
    assert_eq!(switch.stats().out_of_steps, 0);
    assert!(
        through(&mut switch, &[0, 0, 1, 0]).is_empty(),
        "the block ended; drop was never cleared"
    );
    assert_eq!(switch.stats().out_of_steps, 1);
}

const TABLES: &str = "
    action set(bit<8> value, bit<128> wide) { hdr.x.b = value; hdr.x.c = (bit<8>) wide[127:120]; }
    action other(inout bit<8> v, bit<8> value) { v = v + value; }
    table t {
        key = { hdr.x.a: exact @name(\"first\"); }
        actions = { set; other(hdr.x.d); NoAction; }
        default_action = other(hdr.x.d, 5);
        size = 3;
    }";

fn tables() -> Psa<'static> {
    bytes(
        BYTES,
        TABLES,
        "if (t.apply().hit) { hdr.y.setValid(); } send_to_port(ostd, (PortId_t) 1);",
    )
}

#[test]
fn tables_run_entries_of_the_control_plane() {
    let mut switch = tables().load();
    assert_eq!(
        one(&mut switch, &[1, 0, 0, 1]),
        [1, 0, 0, 6],
        "the default action with a bound argument"
    );
    let wide = 0xabu128 << 120;
    let key = [("first", Match::exact(1))];
    let e = entry(
        "ingress.t",
        &key,
        0,
        "ingress.set",
        &[("wide", wide), ("value", 9)],
    );
    switch.insert_entry(&e).unwrap();
    assert_eq!(one(&mut switch, &[1, 0, 0, 1]), [1, 9, 0xab, 1, 0]);
    let listed = switch.entries("ingress.t").unwrap();
    assert_eq!(
        listed[0].action,
        call("ingress.set", &[("value", 9), ("wide", wide)]),
        "parameters in order"
    );
    let e = entry("ingress.t", &key, 0, "ingress.other", &[("value", 2)]);
    switch.modify_entry(&e).unwrap();
    assert_eq!(one(&mut switch, &[1, 0, 0, 1]), [1, 0, 0, 3, 0]);
    switch.delete_entry(&e).unwrap();
    switch
        .set_default_action("ingress.t", Some(&call("NoAction", &[])))
        .unwrap();
    assert_eq!(one(&mut switch, &[1, 0, 0, 1]), [1, 0, 0, 1]);
    switch.set_default_action("ingress.t", None).unwrap();
    assert_eq!(
        switch.default_action("ingress.t").unwrap(),
        call("ingress.other", &[("value", 5)])
    );
}

#[test]
fn entries_of_the_source_in_order_of_priority() {
    let mut switch = bytes(
        BYTES,
        "action set(bit<8> v) { hdr.x.d = v; }
         table t {
             key = { hdr.x.a: ternary; hdr.x.b: range; hdr.x.c: lpm; }
             actions = { set; }
             default_action = set(0);
             const entries = {
                 (0x10 &&& 0xf0, 5..9, _): set(1);
                 (0x10 &&& 0x10, _, 0x80 &&& 0x80): set(2);
                 (_, _, 0xf0 &&& 0xf0): set(3);
             }
         }",
        "t.apply(); send_to_port(ostd, (PortId_t) 1);",
    )
    .load();
    let mut run = |a, b, c| one(&mut switch, &[a, b, c, 0xff])[3];
    assert_eq!(run(0x1f, 7, 0xff), 1, "the first wins");
    assert_eq!(run(0x1f, 4, 0xff), 2);
    assert_eq!(run(0x0f, 7, 0xff), 3);
    assert_eq!(run(0x0f, 7, 0x0f), 0);
    let key = [("hdr.x.a", Match::ternary(1, 1))];
    let write = entry("ingress.t", &key, 1, "ingress.set", &[("v", 1)]);
    assert_eq!(
        switch.insert_entry(&write),
        Err(pipeline::TableError::ConstTable)
    );
    assert_eq!(switch.entries("ingress.t").unwrap().len(), 3);
}

/// Bounds are two's complement, in the order of signed numbers (P4_16 8.15.4: `..` compares with `<=`).
#[test]
fn ranges_of_signed_keys() {
    let (locals, ingress) = (
        "int<8> n = (int<8>) hdr.x.a;
         action set(bit<8> v) { hdr.x.b = v; }
         table t {
             key = { n: range; }
             actions = { set; NoAction; }
             entries = {
                 const -5 .. 3: set(1);
                 const -5 .. 20: set(2);
                 const 100: set(3);
             }
             default_action = set(9);
         }",
        "t.apply(); send_to_port(ostd, (PortId_t) 1);",
    );
    let mut switch = bytes(BYTES, locals, ingress).load();
    let mut run = |n: i8| one(&mut switch, &[n.cast_unsigned(), 0, 0, 0])[1];
    let found = [-128, -6, -5, -1, 0, 3, 4, 20, 21, 100, 127].map(&mut run);
    assert_eq!(found, [9, 9, 1, 1, 1, 1, 2, 2, 9, 3, 9]);
    // The control plane must read what it wrote.
    let range = |low: i8, high: i8| {
        let bound = |n: i8| u128::from(n.cast_unsigned());
        [("n", Match::range(bound(low), bound(high)))]
    };
    let write = entry(
        "ingress.t",
        &range(-128, -100),
        1,
        "ingress.set",
        &[("v", 4)],
    );
    switch.insert_entry(&write).unwrap();
    assert!(switch.entries("ingress.t").unwrap().contains(&write));
    for n in [-128, -100] {
        assert_eq!(one(&mut switch, &[i8::cast_unsigned(n), 0, 0, 0])[1], 4);
    }
    assert_eq!(one(&mut switch, &[0x9d, 0, 0, 0])[1], 9, "-99");
    let backwards = entry("ingress.t", &range(3, -5), 1, "ingress.set", &[("v", 4)]);
    let error = switch.insert_entry(&backwards).unwrap_err().to_string();
    assert!(error.contains("the range is empty"), "{error}");
    let error = bytes(BYTES, &locals.replace("-5 .. 3", "3 .. -5"), ingress).refused();
    assert!(error.to_string().contains("the range is empty"), "{error}");
    // Exact and ternary values are bit patterns.
    let mut switch = bytes(
        BYTES,
        &locals
            .replace("n: range", "n: ternary")
            .replace("-5 .. 3", "-8s5 &&& -8s1")
            .replace("-5 .. 20", "20"),
        ingress,
    )
    .load();
    assert_eq!(one(&mut switch, &[0xfb, 0, 0, 0]), [0xfb, 1, 0, 0]);
    assert_eq!(one(&mut switch, &[0xfa, 0, 0, 0]), [0xfa, 9, 0, 0]);
}

#[test]
fn keys_are_expressions() {
    let mut switch = bytes(
        BYTES,
        "action set(bit<8> v) { hdr.x.d = v; }
         table t {
             key = { hdr.x.a[3:0]: exact @name(\"low\"); hdr.y.isValid(): exact @name(\"valid\"); hdr.x.b + 1: exact @name(\"sum\"); }
             actions = { set; NoAction; }
         }",
        "t.apply(); send_to_port(ostd, (PortId_t) 1);",
    )
    .load();
    let key = [
        ("low", Match::exact(5)),
        ("valid", Match::exact(0)),
        ("sum", Match::exact(0)),
    ];
    switch
        .insert_entry(&entry("ingress.t", &key, 0, "ingress.set", &[("v", 8)]))
        .unwrap();
    assert_eq!(one(&mut switch, &[0xf5, 0xff, 0, 0])[3], 8);
    assert_eq!(one(&mut switch, &[0xf4, 0xff, 0, 0])[3], 0);
}

#[test]
fn the_trace_names_states_tables_and_actions() {
    let mut switch = tables().load_with(Config {
        trace: true,
        ..Config::default()
    });
    one(&mut switch, &[1, 0, 0, 1]);
    let met = switch.take_trace();
    assert!(
        met.contains(&Mark::State("IP".into(), "start".into())),
        "{met:?}"
    );
    let table = met
        .iter()
        .position(|m| *m == Mark::Table("ingress.t".into()))
        .unwrap();
    assert_eq!(met[table + 1], Mark::Action("ingress.other".into()));
    assert!(switch.take_trace().is_empty());
}

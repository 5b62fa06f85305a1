//! Lowering of statements and expressions: each snapshot is the IR of a control's or parser's body.

use crate::check_support::{
    Text, body, control, control_errors, lower, named, parser, show_parser,
};
use insta::assert_snapshot;

const REGISTER: &str = "Register<bit<8>, bit<8>>(16) r;";

#[test]
fn arithmetic_and_casts() {
    assert_snapshot!(body(
        "",
        "meta.a = meta.b + 3;
         meta.a = 2 * 3 + meta.a;
         meta.w = meta.a ++ meta.b;
         meta.s = -meta.s |+| 5;
         meta.s = (int<8>) meta.a;
         meta.w = (bit<16>) meta.a << 2;
         meta.w = meta.w >> meta.a;
         meta.a += 1;
         meta.f = (bool) meta.a[0:0];
         meta.a = meta.f ? 8w1 : 2;
         meta.a = 8w255 + 8w1;
         meta.a = 10 |-| meta.a;
         meta.a = (bit<8>) hdr.eth.minSizeInBytes();"
    ));
}

#[test]
fn slices_are_places() {
    assert_snapshot!(body(
        "",
        "meta.a[3:0] = meta.b[7:4];
         meta.a = (bit<8>) meta.w[15:2][8:1];
         hdr.eth.dst[47:40][3:0] = 5;
         meta.a = (meta.w + 1)[7:0];"
    ));
}

#[test]
fn slices_by_width() {
    assert_snapshot!(body(
        REGISTER,
        "meta.a = meta.w[4 +: 8];
         meta.a = meta.w[11 -: 8];
         meta.w[8 +: 4] = 4w1;
         meta.a = meta.w[meta.b +: 8];
         meta.a = meta.w[meta.b -: 8];
         meta.a = meta.w[r.read(1) +: 8];
         meta.a = (0x1234[4 +: 8]);"
    ));
    let faults = control_errors(
        "",
        "meta.a = meta.w[12 +: 8]; meta.a = meta.w[3 -: 8]; meta.a = meta.b[meta.a +: 9]; meta.a[meta.b +: 1] = 1w0; meta.a = meta.w[meta.s +: 8];",
    );
    assert_eq!(faults.len(), 5, "{faults:?}");
}

/// In the IR, an element that is no struct is wrapped in a struct of one field.
#[test]
fn arrays_hold_more_than_headers() {
    assert_snapshot!(body(
        "bit<8>[4] cells; bit<8>[2][3] grid; eth_t[2] hs; bit<8>[0] none;",
        "cells[1] = meta.a;
         meta.b = cells[meta.a];
         cells = { 1, 2, ... };
         cells = ...;
         grid[meta.a][1] = cells[0];
         grid[2] = { 5, 6 };
         meta.f = cells == { 1, 2, 3, 4 };"
    ));
}

#[test]
fn calls_leave_expressions_in_order() {
    assert_snapshot!(body(
        REGISTER,
        "meta.a = meta.b + r.read(meta.a) + r.read(meta.b);
         r.write(3, r.read(2) << 2);
         r.write(r.read(1), r.read(2));
         meta.w = checksum({ hdr.eth.dst, r.read(1), meta.a });
         hdr.tags[r.read(4)].id = 7;"
    ));
}

/// The lowering copies a value only before a call that may change it: the last four calls need no copy.
#[test]
fn arguments_and_places_keep_what_they_were() {
    let text = control(
        "Register<bit<8>, bit<8>>(16) r;",
        "taken(meta.a, given(meta.a));
         changed(meta.a, given(meta.a));
         wide(hdr.tags[meta.a].id, given(meta.a));
         hdr.tags[meta.a].id = (bit<16>) given(meta.a);
         wide(hdr.tags[meta.a].id, given(meta.b));
         changed(meta.a, r.read(1));
         hdr.tags[meta.a].id = (bit<16>) r.read(1);
         changed(meta.a, meta.a);",
    )
    .replace(
        "control C(",
        "extern void taken(inout bit<8> x, in bit<8> y);
         bit<8> given(inout bit<8> x) { x = x + 1; return x; }
         void changed(inout bit<8> x, in bit<8> y) { x = y; }
         void wide(inout bit<16> x, in bit<8> y) { x = (bit<16>) y; }
         control C(",
    );
    let p = lower(&text);
    assert_snapshot!(Text::of(&p, &named(&p, "C").vars).block(&named(&p, "C").body));
}

#[test]
fn right_sides_that_call_run_only_when_needed() {
    assert_snapshot!(body(
        REGISTER,
        "meta.f = meta.a == 1 && r.read(0) == 2;
         meta.f = meta.a == 1 || r.read(0) == 2 || meta.b == 3;
         meta.a = meta.f ? r.read(1) : 7;
         meta.f = false && r.read(3) == 1;
         if (meta.f && meta.a == 1) { meta.b = 2; }"
    ));
}

#[test]
fn aggregates() {
    assert_snapshot!(body(
        "",
        "hdr.eth = { 1, 2, 3 };
         hdr.eth = { src = 1, dst = 2, ... };
         hdr.eth = {#};
         hdr.tags[1].setValid();
         hdr.tags[meta.a].id = 3;
         hdr.tags.push_front(1);
         hdr.tags.pop_front(2);
         eth_t local = { kind = 5, ... };
         tuple<bit<8>, bool> pair = { meta.a, true };
         meta.a = pair[0];
         hdr.eth = local;"
    ));
}

#[test]
fn equality_of_aggregates() {
    assert_snapshot!(body(
        "",
        "meta.f = hdr.tags[0] == hdr.tags[1];
         meta.f = hdr.eth == { 1, 2, 3 };
         meta.f = hdr.eth != {#};
         tuple<bit<8>, bool> pair = { meta.a, true };
         meta.f = pair != { 1, false };"
    ));
}

#[test]
fn blocks_scopes_and_loops() {
    assert_snapshot!(body(
        "bit<8> z; const bit<8> K = 2 + 3;",
        "z = K;
         { bit<8> z; z = 2; }
         @atomic { meta.a = z; }
         for (bit<8> i in 1 .. 5) { z = z + i; if (i == 3) continue; }
         for (bit<8> i = 0; i < 3; i = i + 1) { meta.a = i; break; }
         for (tag_t t in hdr.tags) { meta.w = t.id; }
         if (K == 5) { z = 1; } else { z = 2; }
         exit;"
    ));
}

#[test]
fn switches() {
    assert_snapshot!(body(
        "action a() {} action b() {} action c() {}
         table t { key = { meta.a : exact; } actions = { a; b; c; NoAction; } }",
        "switch (t.apply().action_run) { a: b: { meta.a = 1; } c: { meta.a = 2; } default: { meta.a = 3; } }
         switch (meta.a) { 1: 2: { meta.b = 1; } 3: { } default: { meta.b = 2; } }
         switch (meta.b) { 4: default: { meta.b = 3; } }"
    ));
}

#[test]
fn tables_in_conditions() {
    assert_snapshot!(body(
        "action a(bit<8> x) { meta.a = x; if (x == 3) return; meta.b = 1; }
         action b(inout bit<8> q) { q = 1; }
         table t { key = { meta.a : exact; } actions = { a; b(meta.b); NoAction; } default_action = a(7); }",
        "if (t.apply().hit) { meta.a = 1; }
         if (!t.apply().miss && meta.f) { b(meta.a); a(3); }
         t.apply();"
    ));
}

#[test]
fn a_keys_calls_run_before_each_lookup() {
    assert_snapshot!(body(
        "Register<bit<8>, bit<8>>(16) r;
         table t { key = { r.read(meta.a) : exact @name(\"cell\"); } actions = { NoAction; } }",
        "t.apply(); if (t.apply().hit) { t.apply(); }"
    ));
}

#[test]
fn functions() {
    let text = control("", "meta.a = twice(meta.a) + same(meta.b); same(meta.w);").replace(
        "control C(",
        "T same<T>(in T x) { return x; }
         bit<8> twice(in bit<8> x) { if (x > 100) { return 200; } bit<8> y = x; return y + same(x); }
         control C(",
    );
    let p = lower(&text);
    let mut out = Text::of(&p, &named(&p, "C").vars).block(&named(&p, "C").body);
    for f in &p.functions {
        out.push_str(&format!("function {}\n", f.name));
        out.push_str(&Text::of(&p, &f.vars).block(&f.body));
    }
    assert_snapshot!(out);
}

#[test]
fn overloads_named_and_default_arguments() {
    let text = control(
        "",
        "meta.a = pick(1); meta.a = pick(1, 2); meta.a = pick(hi = meta.b, lo = 3); meta.a = deflt(y = 2);",
    )
    .replace(
        "control C(",
        "bit<8> pick(in bit<8> x) { return x; }
         bit<8> pick(in bit<8> lo, in bit<8> hi) { return hi; }
         bit<8> deflt(in bit<8> x = 9, in bit<8> y) { return x + y; }
         control C(",
    );
    let p = lower(&text);
    let c = named(&p, "C");
    assert_snapshot!(Text::of(&p, &c.vars).block(&c.body));
}

#[test]
fn parser_states() {
    let p = lower(&parser(
        "value_set<bit<16>>(4) vs;
         bit<8> n = 3;
         state start {
             pkt.extract(hdr.eth);
             n = n + 1;
             transition select(hdr.eth.kind) { 0x800: opts; 0x8100 &&& 0xff00: tags; 1 .. 5: accept; vs: reject; default: pair; }
         }
         state pair {
             transition select(hdr.eth.kind, meta.a) { (0x800, 1): accept; (_, 2): accept; _: reject; }
         }
         state tags {
             pkt.extract(hdr.tags.next);
             meta.a = (bit<8>) hdr.tags.lastIndex;
             verify(hdr.tags.last.id != 0, error.NoMatch);
             transition select(pkt.lookahead<bit<16>>()) { 1: tags; }
         }
         state opts {
             pkt.extract(hdr.opts, (bit<32>) meta.a * 8);
             pkt.advance(16);
             pkt.extract<tag_t>(_);
             meta.w = (bit<16>) pkt.length();
             if (meta.a == 2) { meta.a = 3; }
         }",
    ));
    assert_eq!(p.parsers[0].states[0].name, "start");
    assert_eq!(p.parsers[0].value_sets[0].name, "P.vs");
    assert_eq!(p.parsers[0].value_sets[0].size, 4);
    assert_snapshot!(show_parser(&p, &p.parsers[0]));
}

#[test]
fn subparsers() {
    let text = parser(
        "Sub(16w7) sub;
         state start { sub.apply(pkt, hdr.eth, meta.w); transition next; }
         state next { Plain.apply(pkt, hdr.eth); transition accept; }",
    )
    .replace(
        "parser P(",
        "parser Sub(packet_in pkt, out eth_t eth, inout bit<16> w)(bit<16> k) {
             state start { pkt.extract(eth); transition select(eth.kind) { k: more; default: accept; } }
             state more { w = k; transition accept; }
         }
         parser Plain(packet_in pkt, inout eth_t eth) { state start { transition accept; } }
         parser P(",
    );
    let p = lower(&text);
    let names: Vec<&str> = p.parsers.iter().map(|x| x.name.as_str()).collect();
    assert_eq!(names, ["P", "P.sub", "P.Plain"]);
    let shown: Vec<String> = p.parsers.iter().map(|x| show_parser(&p, x)).collect();
    assert_snapshot!(shown.join("----\n"));
}

#[test]
fn keysets_that_call_wait_for_the_cases_before_them() {
    let text = parser(
        "state start {
             pkt.extract(hdr.eth);
             transition select(hdr.eth.kind[7:0], meta.a) {
                 (1, _): accept;
                 (f(2), f(3) &&& 0xf): reject;
                 (f(4), 5): start;
                 (6, 7): accept;
             }
         }",
    );
    let p = lower(&text.replace("parser P(", "bit<8> f(in bit<8> v) { return v; } parser P("));
    assert_snapshot!(show_parser(&p, &p.parsers[0]));
}

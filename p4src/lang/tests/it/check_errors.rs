//! Diagnostics: their source lines and messages.

use crate::check_support::{TINY, compile, control, control_errors, errors, parser};
use insta::assert_snapshot;

#[test]
fn all_faults_are_reported_at_once() {
    assert_snapshot!(
        control_errors(
            "",
            "meta.a = meta.w;
             meta.a = metb.w;
             meta.q = 1;
             meta.a = hdr.ethh.dst;
             meta.a = meta.b << meta.s;
             meta.f = meta.a;
             meta.a = ~3;
             meta.a[8:0] = 1;
             meta.a[2:3] = 1;
             hdr.tags[3].id = 1;
             hdr.tags[0] = hdr.eth;
             meta.a = meta.a + meta.w;
             meta.a = 1 / 0;
             meta.a = meta.f ? 1 : 2;
             meta.a = hdr.eth;
             hdr.eth = { 1, 2 };
             hdr.eth = { dst = 1, dest = 2, ... };
             meta.f = hdr.eth == meta.a;
             meta.f = !meta.a;
             meta.f = meta.a && meta.f;
             (meta.a) = 1;
             hdr.tags.next.id = 1;
             meta.a = (bit<8>) meta.s;
             meta.s = (int<8>) meta.w;"
        )
        .join("\n")
    );
}

#[test]
fn declarations() {
    assert_snapshot!(
        control_errors(
            "Register<bit<8>> r1;
             Register<bit<8>>(1) r2;
             Register<bit<8>, bit<8>>() r3;
             Register<bit<8>, bit<8>>(1, 2, 3) r4;
             Register<bit<8>, bit<8>>(1) reg;
             RegisterAction<bit<8>, bit<8>, bit<8>>(reg) r5;
             RegisterAction<bit<8>, bit<8>, bit<8>>(reg) r6 = { void apply(inout bit<16> x) { } };
             Register<bit<8>, bit<8>>(meta.a) r7;
             const bit<8> k = meta.a;
             bit<3000> z1;
             tag_t[0] z2;
             int z3;
             bit<8>[3] z4;
             nothing z5;
             bit<8> twice; bit<8> twice;
             packet_in p;",
            "reg.reed(1);
             bit<8> z = reg.read(1, 2);
             reg.read();
             z();
             k2 = 2;
             return 3;
             break;
             hdr.eth.setValid(1);
             hdr.eth.setvalid();"
        )
        .join("\n")
    );
}

#[test]
fn statements() {
    assert_snapshot!(
        control_errors(
            "action x(inout bit<8> v) { t.apply(); }
             table t { actions = { NoAction; } }
             action y() { t.apply(); }",
            "switch (meta.a) { 1: {} 1: {} default: {} default: {} }
             switch (t.apply().action_run) { x: {} }
             t();
             t.apply(1);
             x(1);
             x(meta.w);
             meta.a = x(meta.a);
             for (bit<8> i in 1 .. 2) { i = 3; }
             for (bit<8> i in hdr.tags) { }"
        )
        .join("\n")
    );
}

#[test]
fn parsers() {
    assert_snapshot!(
        errors(&parser(
            "state start {
                 pkt.extract(hdr.opts);
                 pkt.extract(hdr.eth, 5);
                 pkt.extract(meta);
                 transition select(meta.a) {
                     1: nxt;
                     1000: next;
                     (1, 2): next;
                 }
             }
             state next { transition start; }
             state next { exit; }"
        ))
        .join("\n")
    );
    assert_eq!(
        errors(&parser("state begin { }")),
        [
            "parser P(packet_in pkt, out headers_t hdr, inout meta_t meta) { | parser `P` has no state `start`"
        ]
    );
}

#[test]
fn the_top_level() {
    let text = format!(
        "{TINY}
struct s {{ s x; }}
struct a_t {{ b_t y; }}
struct b_t {{ bit<8> z; }}
struct a_t {{ bit<8> z; }}
bit<8> f(in bit<8> x) {{ return f(x); }}
bit<8> g(in bit<8> x) {{ if (x == 1) {{ return 1; }} }}
control C(inout bit<8> x) {{ C() c; apply {{}} }}
enum bit<8> E {{ A = 1, A = 2, B }}
error {{ NoMatch }}
header bad_t {{ tuple<bit<8>> x; }}
const bit<8> K = undefined + 1;
control D(inout bit<8> h, in bit<8> m) {{ apply {{ }} }}
control D2(inout bit<8> h) {{ apply {{ }} }}
control D3(inout bit<8> h, inout bit<16> m) {{ apply {{ }} }}
parser PP(packet_in p, out bit<8> h, inout bit<8> m) {{ state start {{ transition accept; }} }}
Tiny(PP(), D()) t1;
Tiny(PP(), D2()) t2;
Tiny(PP(), D3()) t3;
Tiny(PP(), PP()) t4;
Tiny(PP(), D) t5;
Tiny(PP()) main;
"
    );
    assert_snapshot!(errors(&text).join("\n"));
}

#[test]
fn static_assertions() {
    let text = |k: u32| {
        format!(
            "{}const bool ok = static_assert({k} == 4, \"four\");\n",
            control("", "")
        )
    };
    assert!(compile(&text(4)).is_ok());
    assert_eq!(
        errors(&text(5)),
        ["const bool ok = static_assert(5 == 4, \"four\"); | static assertion failed: four"]
    );
}

#[test]
fn static_assertions_that_nothing_reaches() {
    let with = |decls: &str| {
        let text = control("", "").replace("control C(", &format!("{decls}\ncontrol C("));
        errors(&text).join("\n")
    };
    let failed = "static assertion failed: no";
    for decls in [
        "bit<8> f(in bit<8> x) { static_assert(1 == 2, \"no\"); return x; }",
        "action a() { static_assert(1 == 2, \"no\"); }",
        "control unused(inout bit<8> x) { apply { static_assert(1 == 2, \"no\"); } }",
        "parser unused(packet_in p) { state start { static_assert(1 == 2, \"no\"); transition accept; } }",
    ] {
        let found = with(decls);
        assert_eq!(found.matches(failed).count(), 1, "{decls}: {found}");
    }
    // The values of these parameters are unknown.
    for decls in [
        "control unused(inout bit<8> x)(bit<8> n) { apply { static_assert(n == 2, \"no\"); } }",
        "parser unused(packet_in p)(bit<8> n) { state start { static_assert(n == 2, \"no\"); transition accept; } }",
    ] {
        assert_eq!(with(decls), "", "{decls}");
    }
}

#[test]
fn locals_are_known_behind_their_declaration() {
    let locals = "action early() { late(); } action late() { meta.a = 1; }
         action self() { self(); }
         table t { actions = { later; } } action later() { }";
    let found = compile(&control(locals, "early();"))
        .expect_err("errors")
        .render(false);
    for said in [
        "`late` is used before it is declared",
        "`self` is used inside its own declaration: P4 has no recursion",
        "`later` is used before it is declared",
    ] {
        assert!(found.contains(said), "{found}");
    }
    assert_eq!(found.matches("declared here").count(), 3, "{found}");
}

#[test]
fn a_loop_without_a_condition_is_one_fault() {
    for header in [
        "for (;;)",
        "for (bit<8> i = 0;; i = i + 1)",
        "for (;; meta.a = 1)",
    ] {
        for body in ["{ meta.a = 1; }", "meta.a = 1;"] {
            let found = control_errors("", &format!("{header} {body} meta.a = 2;"));
            assert_eq!(found.len(), 1, "{found:?}");
            assert!(
                found[0].contains("a `for` loop needs a condition"),
                "{found:?}"
            );
        }
    }
}

#[test]
fn optional_parameters_and_default_values() {
    let with = |decls: &str, apply: &str| {
        let text = control("", apply).replace("control C(", &format!("{decls}\ncontrol C("));
        errors(&text).join("\n")
    };
    let both = "extern void f(@optional in bit<8> a = 3);";
    assert!(with(both, "").contains("an `@optional` parameter cannot have a default value"));
    let mixed = "extern void f(in bit<8> a, @optional in bit<8> b, in bit<8> c = 3);";
    assert_eq!(
        with(mixed, "f(a = 1); f(c = 1, a = 2); f(a = 1, b = 2, c = 3);"),
        ""
    );
    for call in ["f(1);", "f(1, 2);", "f(1, 2, 3);"] {
        assert!(with(mixed, call).contains("name its arguments"), "{call}");
    }
    let optional = "extern void f(in bit<8> a, @optional in bit<8> b);";
    assert_eq!(with(optional, "f(1); f(1, 2); f(a = 1);"), "");
}

#[test]
fn a_program_needs_main() {
    assert_eq!(
        errors("const bit<8> x = 1;"),
        ["const bit<8> x = 1; | no package named `main`"]
    );
}

#[test]
fn what_nothing_uses_is_checked_too() {
    let text = control("", "").replace(
        "control C(",
        "control Unused(inout bit<8> x)(bit<8> n) { apply { x = y; } }
         bit<8> unused<T>(in T x) { return z; }
         action idle() { w = 1; }
         parser Lonely(packet_in p) { state start { v = 1; } }
         control C(",
    );
    let found = errors(&text);
    for name in ["`y`", "`z`", "`w`", "`v`"] {
        assert!(
            found.iter().any(|e| e.contains(name)),
            "{name} in {found:?}"
        );
    }
}

#[test]
fn a_fault_in_a_shared_control_is_reported_once() {
    let text = control("Inner() a; Inner() b; Inner() c;", "").replace(
        "control C(",
        "control Inner() { apply { nowhere = 1; } } control C(",
    );
    assert_eq!(errors(&text).len(), 1);
}

#[test]
fn hints_name_the_nearest() {
    let d = compile(&control("", "meta.a = metta.b;")).expect_err("a fault");
    assert_eq!(d.list[0].hint.as_deref(), Some("did you mean `meta`?"));
    let d = compile(&control("", "hdr.eth.dts = 1;")).expect_err("a fault");
    assert_eq!(d.list[0].hint.as_deref(), Some("did you mean `dst`?"));
    let d = compile(&control("", "meta.a = meta.w;")).expect_err("a fault");
    assert_eq!(
        d.list[0].hint.as_deref(),
        Some("cast it: `(bit<8>) meta.w`")
    );
}

//! Rules of the language that a program may break in one line each.

mod check_support;

use check_support::{TINY, control, errors};

#[track_caller]
fn refused(text: &str, message: &str) {
    let found = errors(text);
    assert!(
        found.iter().any(|e| e.contains(message)),
        "`{message}` is not in {found:#?}\n{text}"
    );
}

#[test]
fn of_the_top_level() {
    let rules = [
        ("header z { int<0> a; }", "an int<> has one bit at least"),
        ("struct z { bit<8> a; } type z t;", "a new type stands for"),
        ("package q(int a, int a);", "`a` is declared twice"),
        ("package q<A, A>();", "`A` is declared twice"),
        (
            "parser q(in bit<8> a, in bit<8> a);",
            "`a` is declared twice",
        ),
        (
            "parser q<A>(in A a); package r(q<B> x);",
            "`B` is not declared",
        ),
        (
            "extern z { z(); void f(in bit<8> a); void f(in bit<4> a); }",
            "declared twice",
        ),
        (
            "control q(); extern z { z(q c); }",
            "an extern's parameter cannot be",
        ),
        (
            "extern z { z(); int f(); }",
            "cannot be returned at run time",
        ),
        (
            "@a[1] @a(1) const bit<8> z = 1;",
            "both with brackets and without",
        ),
        (
            "@name(4) const bit<8> z = 1; @name(4) header h { }",
            "`@name` takes one string",
        ),
        (
            "bool same<T>(in T a, in T b) { return a == b; }",
            "cannot be compared",
        ),
        (
            "struct in_t { error e; } header z { in_t a; }",
            "a header cannot hold",
        ),
        ("struct a_t { tuple<bit<8>>[2] a; }", "an array cannot hold"),
        (
            "parser q(in bit<8> a) { state start { transition l; } state l { transition start; } }",
            "runs for ever",
        ),
    ];
    for (text, message) in rules {
        refused(&format!("{TINY}{text}"), message);
    }
    let looping = "parser r() { state start { transition a; }\nstate a { transition b; }\nstate b { transition a; } }";
    let told = "state a { transition b; } | parser `r` runs for ever";
    refused(&format!("{TINY}{looping}"), told);
    let extern_main = TINY.to_owned() + "extern main { }";
    refused(&extern_main, "`main` must be a package's instance");
}

#[test]
fn of_statements() {
    let rules = [
        (
            "bit<8>[3] z = { 1, 2 };",
            "bit<8>[3] has 3 elements, the list has 2",
        ),
        ("if (... && true) { }", "`...` is no operand"),
    ];
    for (apply, message) in rules {
        refused(&control("", apply), message);
    }
}

#[test]
fn of_casts_between_new_types() {
    let program = |apply: &str| {
        control("", apply).replace("control C(", "type bit<8> a_t; type a_t b_t; control C(")
    };
    let found = errors(&program(
        "b_t x = (b_t)(a_t) meta.a; meta.a = (bit<8>)(a_t) x;",
    ));
    assert!(found.is_empty(), "{found:?}");
    refused(&program("b_t x = (b_t) meta.a;"), "cannot be cast");
    refused(&program("a_t x = (a_t) meta.w;"), "cannot be cast");
}

#[test]
fn of_inferred_parameters() {
    let text = control("", "say(\"x\");")
        .replace("control C(", "extern void say<T>(in T what); control C(");
    refused(&text, "a parameter of type string cannot have a direction");
    let text = control("", "say({ a = 1, b = 2 });")
        .replace("control C(", "extern void say<T>(in T what); control C(");
    refused(&text, "cannot be inferred");
}

/// What is written wrong is said once.
#[test]
fn of_abstract_methods() {
    let text = control("V() v = { bit<8> g() { return 1; } };", "").replace(
        "control C(",
        "extern V { V(); abstract bit<8> f(); } control C(",
    );
    assert_eq!(errors(&text).len(), 1, "{:?}", errors(&text));
}

/// What p4c's own tests show to be legal.
#[test]
fn what_is_allowed() {
    let programs = [
        "bit<8> f(in tuple<bit<8>, bool> t) { return t[0]; }",
        "parser q(in tuple<bit<8>, bool> t) { state start { transition select(t) { (1, true): accept; } } }",
        "parser q(in bit<8> a) { state start { transition select(a) { 1: start; } } }",
        "void main() { }",
        "header z { bit<8>[4] a; } struct y { z h; }",
    ];
    for text in programs {
        let found = errors(&format!("{TINY}{text}"));
        assert!(
            found.iter().all(|e| e.contains("no package named `main`")),
            "{found:?}\n{text}"
        );
    }
}

#[test]
fn extern_objects_as_parameters() {
    let own = TINY.to_owned()
        + "struct h_t { bit<8> a; }
           extern Box { Box(); bit<8> take(in bit<8> n); }
           parser P(packet_in pkt, out h_t h, inout h_t m) { state start { transition accept; } }
           control Inner(inout h_t h, Box b) { apply { h.a = b.take(h.a); } }
           control C(inout h_t h, inout h_t m) { Box() b; Inner() i; apply { i.apply(h, b); } }
           Tiny(P(), C()) main;";
    assert!(errors(&own).is_empty(), "{:?}", errors(&own));
    refused(
        &own.replace("b.take(h.a)", "b.take(true)"),
        "expected bit<8>",
    );
    refused(
        &own.replace("b.take(h.a)", "b.give(h.a)"),
        "no method `give`",
    );
}

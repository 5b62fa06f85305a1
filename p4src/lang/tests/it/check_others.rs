//! Behavior of p4c on which third-party programs rely.

use crate::check_support;
use crate::check_support::{compile, control, errors, lower, named};
use p4lang::ir::{StmtKind, Type};

#[track_caller]
fn accepted(text: &str) {
    assert_eq!(errors(text), Vec::<String>::new(), "{text}");
}

fn with(decls: &str, locals: &str, apply: &str) -> String {
    control(locals, apply).replace("control C(", &format!("{decls}\ncontrol C("))
}

const VRF: &str = "type bit<10> vrf_t; type vrf_t inner_t; type bool flag_t; const vrf_t none = 0;
    struct with_vrf { vrf_t vrf; bit<8> a; }
    bit<8> f(in vrf_t v) { return 1; } bit<8> g<T>(in T x, in T y) { return 1; }";

#[test]
fn a_number_takes_a_new_type_of_fixed_width() {
    let locals = "action set(vrf_t v) { }
         table t { key = { meta.a: exact; } actions = { set; } default_action = set(0); }";
    let apply = "vrf_t v = 5; inner_t w = 6; v = 7; if (v == 0 || none != v) { t.apply(); }
         meta.a = f(3); with_vrf s = { 1, 2 }; s = { vrf = 4, a = 5 };
         v = meta.f ? (vrf_t) 1 : 2; meta.a = g(1, v);";
    accepted(&with(VRF, locals, apply));
    let p = lower(&with(VRF, "", "vrf_t v = 1023;"));
    assert_eq!(named(&p, "C").vars.last().unwrap().ty, Type::Bit(10));
}

#[test]
fn a_new_type_takes_no_other_number() {
    for (apply, message) in [
        ("flag_t z = 1;", "expected flag_t, found int"),
        ("vrf_t v = 10w1;", "expected vrf_t, found bit<10>"),
        ("vrf_t v = 1; v = v + 1;", "takes bit<> or int<>, not vrf_t"),
        (
            "vrf_t v = 1; if (v < 2) { }",
            "takes bit<> or int<>, not vrf_t",
        ),
    ] {
        let found = errors(&with(VRF, "", apply));
        assert!(
            found.iter().any(|e| e.contains(message)),
            "{apply}: {found:?}"
        );
    }
}

/// P4_16 1.2.5, section 6.8: arguments are copied out from left to right, in the order of the call.
#[test]
fn named_arguments_are_copied_out_in_the_order_of_the_call() {
    let order = |apply: &str| {
        let decl = "void two(out bit<8> first, out bit<8> second) { first = 1; second = 2; }";
        let p = lower(&with(decl, "", apply));
        let call = named(&p, "C").body.iter().find_map(|s| match &s.kind {
            StmtKind::CallFunction(_, args) => Some(args.clone()),
            _ => None,
        });
        call.expect("a call").copied_out()
    };
    assert_eq!(order("two(meta.a, meta.b);"), [0, 1]);
    assert_eq!(order("two(first = meta.a, second = meta.a);"), [0, 1]);
    assert_eq!(order("two(second = meta.a, first = meta.a);"), [1, 0]);
}

#[test]
fn what_an_extern_writes_is_copied_out_in_the_order_of_the_call() {
    let twice = "extern void twice(out bit<8> first, inout bit<8> second);";
    let text = with(twice, "", "twice(second = meta.a, first = meta.a);");
    let p = lower(&text);
    let c = named(&p, "C");
    let text = check_support::Text::of(&p, &c.vars).block(&c.body);
    assert_eq!(
        text.lines().collect::<Vec<_>>(),
        [
            "$tmp = meta.a",
            "twice<>(out $tmp$1, inout $tmp)",
            "meta.a = $tmp",
            "meta.a = $tmp$1",
        ]
    );
}

const SIDES: &str = "control Side(inout meta_t m)(bool left) {
        action go() { m.a = 1; }
        @name(\"acl\") table one { key = { m.a: exact; } actions = { go; } }
        @name(\"acl\") table other { key = { m.b: exact; } actions = { go; } }
        apply { if (left) { one.apply(); } else { BODY } }
    }";

#[test]
fn names_are_those_of_the_branch_that_a_constructor_left() {
    let both = SIDES.replace("BODY", "other.apply();");
    accepted(&with(
        &both,
        "Side(true) l; Side(false) r;",
        "l.apply(meta); r.apply(meta);",
    ));
    let clash = SIDES.replace("BODY", "one.apply(); other.apply();");
    let found = errors(&with(&clash, "Side(false) r;", "r.apply(meta);"));
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(
        found[0].contains("two tables have the control-plane name `C.r.acl`"),
        "{found:?}"
    );
}

#[test]
fn an_open_type_argument_is_that_of_the_method() {
    let locals = "Register<bit<8>, bit<4>>(16) r;
        RegisterAction<_, _, bit<16>>(r) known = { void apply(inout bit<8> v, out bit<16> o) { o = 1; } };
        RegisterAction<bit<8>, bit<4>, _>(r) open = { void apply(inout bit<8> v, out bit<16> o) { o = 2; } };
        RegisterAction<bit<8>, _, _>(r) silent = { void apply(inout bit<8> v) { v = v + 1; } };";
    let apply = "meta.w = known.execute(1); meta.w = open.execute(2); silent.execute(3);";
    accepted(&control(locals, apply));
    let p = lower(&control(locals, apply));
    let open = p.externs.iter().find(|e| e.name == "C.open").expect("it");
    assert_eq!(open.type_args[2], Type::Bit(16));
    let wrong = "Register<bit<8>, bit<4>>(16) r;
        RegisterAction<bit<8>, _, _>(r) z = { void apply(inout bit<16> v) { } };";
    let found = errors(&control(wrong, "z.execute(1);"));
    assert!(
        found
            .iter()
            .any(|e| e.contains("declares bit<8> here, not bit<16>")),
        "{found:?}"
    );
}

#[test]
fn lines_are_joined_before_tokens_are_made() {
    let constant = "const bi\\\nt<8> z = 1\\\n6w0x1\\  \n0 =\\\n= 16 ? 8w1 : 2;";
    let p = lower(&with(constant, "", "meta.a = z;"));
    let c = named(&p, "C");
    let text = check_support::Text::of(&p, &c.vars).block(&c.body);
    assert_eq!(text, "meta.a = 8w1\n");
    let found = compile("const bit<8> z = 1 +\\\n  unk\\\nnown + 2;\n").expect_err("no such name");
    assert_eq!(
        found.short().lines().next(),
        Some("test.p4:2:3: error[unknown-name]: `unknown` is not declared")
    );
}

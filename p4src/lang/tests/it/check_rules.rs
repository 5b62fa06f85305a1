//! Language rules that one line of a program can break.

use crate::check_support::{TINY, compile, control, errors, parser};

#[track_caller]
fn refused(text: &str, message: &str) {
    let found = errors(text);
    assert!(
        found.iter().any(|e| e.contains(message)),
        "`{message}` is not in {found:#?}\n{text}"
    );
}

#[track_caller]
fn warned(text: &str, message: &str) {
    let files = p4lang::Files::new().with("test.p4", text);
    let compiled = p4lang::compile(&files, "test.p4", &p4lang::Options::default());
    let compiled = compiled.unwrap_or_else(|errors| panic!("{errors}"));
    let found = &compiled.warnings.list;
    assert!(
        found.iter().any(|w| w.message.contains(message)),
        "{found:#?}"
    );
}

#[test]
fn of_the_top_level() {
    let rules = [
        ("header z { int<0> a; }", "an int<> has at least one bit"),
        ("struct z { bit<8> a; } type z t;", "`type` takes"),
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
            "an extern cannot return an `int`",
        ),
        (
            "@a[1] @a(1) const bit<8> z = 1;",
            "both with `[…]` and without",
        ),
        (
            "@name(4) const bit<8> z = 1; @name(4) header h { }",
            "`@name` takes one",
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
            "never ends",
        ),
    ];
    for (text, message) in rules {
        refused(&format!("{TINY}{text}"), message);
    }
    let looping = "parser r() { state start { transition a; }\nstate a { transition b; }\nstate b { transition a; } }";
    let told = "state a { transition b; } | parser `r` never ends";
    refused(&format!("{TINY}{looping}"), told);
    let extern_main = TINY.to_owned() + "extern main { }";
    refused(&extern_main, "`main` must be an instance of a package");
}

#[test]
fn of_statements() {
    let rules = [
        (
            "bit<8>[3] z = { 1, 2 };",
            "bit<8>[3] has 3 elements, the list has 2",
        ),
        ("if (... && true) { }", "`...` cannot be an operand"),
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
fn of_translations() {
    let program = |ty: &str| {
        let annotation = format!("@p4runtime_translation({ty})");
        control("", "").replace(
            "control C(",
            &format!("{annotation} type bit<32> t;\ncontrol C("),
        )
    };
    for ty in ["1", "2048", "8w32", "bit<32>", "bit < 0x20 >", "string"] {
        let found = errors(&program(&format!("\"a,b\", {ty}")));
        assert!(found.is_empty(), "{ty}: {found:?}");
    }
    // 4294967295 and 4294967296 would have become other numbers in a P4Info.
    for width in ["0", "-1", "2049", "2000000000", "4294967295", "4294967296"] {
        let message = "the width of a translation must be 1 to 2048";
        refused(&program(&format!("\"u\", {width}")), message);
        if !width.starts_with('-') {
            refused(&program(&format!("\"u\", bit<{width}>")), message);
        }
    }
    for wrong in ["", "\"u\"", "32", "\"u\", int<32>", "\"u\", bit<W>"] {
        refused(&program(wrong), "takes a URI and a type");
    }
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

/// Each mistake is reported once.
#[test]
fn of_abstract_methods() {
    let text = control("V() v = { bit<8> g() { return 1; } };", "").replace(
        "control C(",
        "extern V { V(); abstract bit<8> f(); } control C(",
    );
    assert_eq!(errors(&text).len(), 1, "{:?}", errors(&text));
}

/// Programs that are legal according to p4c's own tests.
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

/// The only error: the text of its span, its message, and its hint.
#[track_caller]
fn told(text: &str) -> (String, String, String) {
    let Err(found) = compile(text) else {
        panic!("compiles:\n{text}");
    };
    let errors: Vec<_> = found.errors().collect();
    let [e] = errors[..] else {
        panic!("not one error:\n{found}");
    };
    let at = found.source.slice(e.span).to_owned();
    (at, e.message.clone(), e.hint.clone().unwrap_or_default())
}

#[track_caller]
fn says(text: &str, at: &str, message: &str, hint: &str) {
    let (found_at, found, found_hint) = told(text);
    assert_eq!(found_at, at, "{found}");
    assert!(found.contains(message), "{found}");
    assert_eq!(found_hint.is_empty(), hint.is_empty(), "{found_hint}");
    assert!(found_hint.contains(hint), "{found_hint}");
}

#[test]
fn of_an_enums_members() {
    let program = |members: &str| {
        let uses = "bit<8> x = (bit<8>) E.b;";
        control("", uses).replace("control C(", &format!("enum {members} control C("))
    };
    let unsigned = "300 does not fit into bit<8>, the enum's underlying type";
    says(&program("bit<8> E { a = 1, b = 300 }"), "300", unsigned, "");
    let signed = "128 does not fit into int<8>";
    says(
        &program("int<8> E { a = -128, b = 128 }"),
        "128",
        signed,
        "",
    );
    let negative = "-1 does not fit into bit<8>";
    says(&program("bit<8> E { b = -1 }"), "-1", negative, "");
    assert!(compile(&program("bit<8> E { a = 0, b = 255, c = (bit<8>) 300 }")).is_ok());
}

#[test]
fn of_value_sets() {
    let program = |set: &str, types: &str| {
        let select = "state start { transition select(meta.a) { s: accept; default: reject; } }";
        format!(
            "{TINY} {types} struct m_t {{ bit<8> a; }}
             parser P(packet_in pkt, out m_t hdr, inout m_t meta) {{ value_set<{set}>(4) s; {select} }}
             control C(inout m_t hdr, inout m_t meta) {{ apply {{ }} }} Tiny(P(), C()) main;"
        )
    };
    let hint = "bit<>, int<>, bool, error, an enum";
    says(&program("int", ""), "int", "elements of type int", hint);
    let header = "header h_t { bit<8> a; }";
    says(&program("h_t", header), "h_t", "elements of type h_t", hint);
    says(
        &program("tuple<h_t>", header),
        "tuple<h_t>",
        "elements of type tuple<h_t>",
        hint,
    );
    assert!(compile(&program("bit<8>", "")).is_ok());
    assert!(compile(&program("s_t", "struct s_t { bit<8> a; }")).is_ok());
    assert!(compile(&program("E", "enum bit<8> E { a = 1 }")).is_ok());
}

/// A hint never suggests the method that was just rejected.
#[test]
fn of_headers_methods() {
    let unions = "header_union u_t { eth_t eth; tag_t tag; } control C(";
    let program = |apply: &str| control("u_t u;", apply).replace("control C(", unions);
    let only = "only headers have `setInvalid`: call it on a member, `….eth.setInvalid()`";
    says(
        &program("u.setInvalid();"),
        "setInvalid",
        "u_t has no method",
        only,
    );
    let only = "only headers have `setValid`: call it on a member, `….eth.setValid()`";
    says(
        &program("hdr.setValid();"),
        "setValid",
        "headers_t has no method",
        only,
    );
    let only = "only headers have `setValid`";
    says(
        &program("meta.setValid();"),
        "setValid",
        "meta_t has no method",
        only,
    );
    let element = "call it on an element, `…[0].setValid()`";
    says(
        &program("hdr.tags.setValid();"),
        "setValid",
        "tag_t[3] has no method",
        element,
    );
    let near = "did you mean `setValid`?";
    says(
        &program("hdr.eth.setvalid();"),
        "setvalid",
        "eth_t has no method",
        near,
    );
    let stacks = "only header stacks have `push_front`: call it on a member, `….tags.push_front()`";
    says(
        &program("hdr.push_front(1);"),
        "push_front",
        "headers_t has no method",
        stacks,
    );
}

#[test]
fn of_numbers_as_truth() {
    let top = |text: &str| control("", "").replace("control C(", &format!("{text} control C("));
    let compare = "compare it: `20 != 0`";
    says(
        &top("const bool x = 20;"),
        "20",
        "expected bool, found int",
        compare,
    );
    let (_, found, hint) = told(&control("", "if (meta.a) { }"));
    assert!(hint.contains("meta.a != 0"), "{found} {hint}");
    says(
        &top("const bool x = 1;"),
        "1",
        "expected bool, found int",
        "write `true`",
    );
    assert!(compile(&top("const bool x = 20 != 0;")).is_ok());
}

#[test]
fn of_implementations_of_abstract_methods() {
    let program = |method: &str| control(&format!("Picker() p = {{ {method} }};"), "");
    let parameter = "bit<16> pick(in bit<8> from) { return 1; }";
    let message = "the abstract method declares bit<8> here, not bit<16>";
    says(&program(parameter), "bit<16>", message, "");
    let parameter = "bit<8> pick(in bit<16> from) { return 1; }";
    says(&program(parameter), "bit<16>", message, "");
    let Err(found) = compile(&program(parameter)) else {
        unreachable!()
    };
    let label = &found.list[0].labels[0];
    assert_eq!(found.source.slice(label.span), "in bit<8> from");
}

#[test]
fn of_names_and_types_left_out() {
    let hint = "`for (bit<8> i in …)`";
    let text = control("", "for (i in 1..6) { meta.a = 1; }");
    says(&text, "i", "the loop variable `i` needs a type", hint);
    let hint = "cannot be a name";
    says(
        &control("bit _;", ""),
        "_",
        "expected a name after the type",
        hint,
    );
    says(
        &control("", "bit<8> _ = 1;"),
        "_",
        "expected a name after the type",
        hint,
    );
    let top = |text: &str| control("", "").replace("control C(", &format!("{text} control C("));
    let text = top("struct S<T> { tuple<T, T> t; } const S<_> x = { t = { 0, 0 } };");
    says(&text, "_", "cannot take `_` as a type argument", "infer");
    let text = top("control g(in bit<1> t)(@optional bit<1> tt) { apply { } }");
    says(
        &text,
        "tt",
        "`@optional` is not allowed here",
        "default value",
    );
}

#[test]
fn of_annotations_without_what_they_annotate() {
    let message = "expected a declaration after the annotation, found the end of the file";
    says("@pkginfo\n", "", message, "");
    let message = "`@pkginfo` needs values";
    says(
        "@pkginfo\nconst bit<32> x = 0;",
        "@pkginfo",
        message,
        "`@pkginfo[name = ",
    );
}

#[test]
fn of_names_for_the_control_plane() {
    let table = |annotations: &str, more: &str| {
        let key =
            "key = { meta.a : exact; } actions = { act; NoAction; } default_action = NoAction;";
        let table = format!("{more} {annotations} table t {{ {key} }}");
        control(&format!("action act() {{ }} {table}"), "t.apply();")
    };
    let action = table("@name(\"x\")", "").replace("action act", "@name(\"x\") action act");
    warned(
        &action,
        "this action and the table before it have the control-plane name `C.x`",
    );
    let register = table("@name(\"r\")", "Register<bit<8>, bit<8>>(4) r;");
    warned(
        &register,
        "this object and the table before it have the control-plane name `C.r`",
    );
    assert!(
        compile(&table(
            "@hidden",
            "@name(\"t\") Register<bit<8>, bit<8>>(4) r;"
        ))
        .is_ok()
    );
    let keys = "meta.a : exact @name(\"k\"); meta.b : exact @name(\"k\");";
    let keys = table("", "").replace("meta.a : exact;", keys);
    warned(
        &keys,
        "two fields of this key have the control-plane name `k`",
    );
    for twice in [
        "@name(\"x\") @name(\"y\")",
        "@name(\"x\") @hidden",
        "@hidden @hidden",
    ] {
        warned(&table(twice, ""), "takes only one of them");
    }
    for (body, takes) in [
        ("@name", "`@name` takes one"),
        ("@name(1)", "`@name` takes one"),
        ("@name(\"a\", \"b\")", "`@name` takes one"),
        ("@name(\"a\" 3)", "`@name` takes one"),
        ("@name(\"\")", "non-empty string"),
        ("@name[1]", "`@name` takes one"),
        ("@name[\"a\" ++ \"b\"]", "`@name` takes one"),
        ("@name[x = \"y\"]", "`@name` takes one"),
        ("@hidden(1)", "`@hidden` takes no value"),
    ] {
        refused(&table(body, ""), takes);
    }
}

#[test]
fn of_arrays_that_are_no_stacks() {
    for (statement, message) in [
        (
            "bit<8>[2] v; v.push_front(1);",
            "bit<8>[2] has no method `push_front`",
        ),
        (
            "meta_t[2] v; v.pop_front(1);",
            "meta_t[2] has no method `pop_front`",
        ),
        (
            "bit<8>[2] v = { y = 1, y = 2 };",
            "bit<8>[2] has no named fields",
        ),
        (
            "tuple<bit<8>, bit<8>> v = { p = 1, q = 2 };",
            "has no named fields",
        ),
        (
            "hdr.tags = { a = { 1 }, b = { 2 }, c = { 3 } };",
            "tag_t[3] has no named fields",
        ),
    ] {
        refused(&control("", statement), message);
    }
    let fine = "hdr.tags.push_front(1); hdr.tags = { { id = 1 }, { id = 2 }, { id = 3 } };";
    assert!(compile(&control("", fine)).is_ok());
}

#[test]
fn of_types_within_types() {
    let top = |text: &str| control("", "").replace("control C(", &format!("{text} control C("));
    for (text, message) in [
        (
            "typedef list<void> v;",
            "a list cannot hold elements of type void",
        ),
        ("typedef void v;", "`typedef` cannot name the type void"),
        (
            "typedef match_kind v;",
            "`typedef` cannot name the type match_kind",
        ),
        ("typedef string v;", "`typedef` cannot name the type string"),
        (
            "struct q { list<bit<8>> l; }",
            "a struct cannot hold a field of type list<bit<8>>",
        ),
        (
            "bit<8> f(in tuple<list<bit<8>>> t) { return 1; }",
            "a tuple cannot hold a field of type list<bit<8>>",
        ),
        (
            "struct z { varbit<8> v; } header q { z z; }",
            "a header cannot hold a field of type z",
        ),
    ] {
        refused(&top(text), message);
    }
    let switch = "state start { switch (meta.a) { 1: { } } transition accept; }";
    refused(&parser(switch), "a parser cannot contain a `switch`");
}

#[test]
fn of_properties_given_twice() {
    let text = control("table t {\n key = { }\n key = { }\n }", "");
    let message = "table property `key` is set twice";
    says(&text, "key = { }", message, "");
}

/// Appendix F: there is no recursion. Methods of one object, or of several objects passed to each other, could recurse.
#[test]
fn of_methods_that_lead_back_to_themselves() {
    let own = |text: &str, locals: &str| {
        control(locals, "").replace("control C(", &format!("{text} control C("))
    };
    let two = "extern Two { Two(); bit<8> run(in bit<8> n); @synchronous(run) abstract bit<8> f(in bit<8> n); abstract bit<8> g(in bit<8> n); }";
    let method = |body: &str| {
        format!("bit<8> f(in bit<8> n) {{ {body} }} bit<8> g(in bit<8> n) {{ return n; }}")
    };
    let made = |body: &str| format!("Two() t = {{ {} }};", method(body));
    for (call, fine) in [
        ("this.f(n)", false),
        ("this.run(n)", false),
        ("this.g(n)", true),
    ] {
        let body = made(&format!("return {call};"));
        // In a control; at the top level without a caller; in a control without an instance.
        let unused = format!("control unused() {{ {body} apply {{ }} }}");
        for text in [
            own(two, &body),
            own(&format!("{two} {body}"), ""),
            own(&format!("{two} {unused}"), ""),
        ] {
            if fine {
                assert!(compile(&text).is_ok(), "{text}");
            } else {
                let message = "this call is recursive: it leads back to the method that makes it";
                says(&text, call, message, "no recursion");
            }
        }
    }
    // Each method calls the other.
    let body = "Two() t = { bit<8> f(in bit<8> n) { return this.g(n); } bit<8> g(in bit<8> n) { return this.f(n); } };";
    refused(&own(two, body), "leads back");
}

#[test]
fn of_abstract_methods_written_twice() {
    let body = "Picker() p = { bit<8> pick(in bit<8> from) { return 1; } bit<8> pick(in bit<8> from) { return 2; } };";
    says(
        &control(body, ""),
        "pick",
        "`pick` is implemented twice",
        "",
    );
    let text = control("", "").replace(
        "control C(",
        "extern E { E(); abstract bit<8> f(in bit<8> a); abstract bit<8> f(in bit<8> a, in bit<8> b); } control C(",
    );
    says(
        &text,
        "f",
        "the abstract method `f` cannot be overloaded",
        "",
    );
}

/// The whole output of an unused declaration is dropped.
#[test]
fn of_packages_in_what_nothing_uses() {
    let text = control("", "").replace(
        "control C(",
        "extern Box { Box(); } package Q(); package R(Box b);
         control unused() { Q() q; R(Box()) r; apply { } } control C(",
    );
    refused(&text, "a package cannot be instantiated in a control");
}

/// Constructs that P4_16 1.2.5 does not have and p4c's own tests do not use.
#[test]
fn of_what_there_is_no_such_thing_as() {
    let top = |text: &str| control("", "").replace("control C(", &format!("{text} control C("));
    let two = "void two(in bit<8> x, in bit<8> y) { }";
    let newtype = "type bit<8> n_t;";
    let with = |text: &str, apply: &str| {
        control("", apply).replace("control C(", &format!("{text} control C("))
    };
    let rules = [
        // 8.22
        (
            with(two, "two(x = 1, 2);"),
            "2",
            "name all arguments or none",
        ),
        // 8.25
        (
            with(newtype, "n_t z = (n_t) meta.a; meta.a[0:0] = z[0:0];"),
            "z",
            "only bit<> and int<> can be sliced, not n_t",
        ),
        // 8.20
        (
            control("", "hdr.tags.push_front(0);"),
            "0",
            "the argument of `push_front` must be positive",
        ),
        (
            control("", "hdr.tags.pop_front(0);"),
            "0",
            "the argument of `pop_front` must be positive",
        ),
        (
            control("", "meta.w = (bit<16>) hdr.tags.nextIndex;"),
            "nextIndex",
            "a header stack has no readable `nextIndex`",
        ),
        (
            control("", "meta.f = \"a\" == \"b\";"),
            "\"a\" == \"b\"",
            "values of type string cannot be compared",
        ),
        // 12.7
        (
            control("", "switch (meta.f) { true: { } }"),
            "meta.f",
            "`switch` does not take values of type bool",
        ),
        // 12.6
        (
            control("", "if (meta.f) bit<8> z = 1;"),
            "bit<8> z = 1;",
            "a declaration cannot be a branch",
        ),
        (
            control("", "for (bit<8> i in 1 .. 2) bit<8> z = i;"),
            "bit<8> z = i;",
            "a declaration cannot be a branch",
        ),
        // A generic function must be correct for every type.
        (
            top("T next<T>(in T x) { return x + 1; }"),
            "x + 1",
            "this operator takes bit<> or int<>, not T",
        ),
        (
            top("T next<T>(in T x) { return -x; }"),
            "x",
            "expected bit<> or int<>, found T",
        ),
        (
            top("enum none_t { }"),
            "none_t",
            "enum `none_t` has no members",
        ),
        (
            top("enum bit<8> none_t { }"),
            "none_t",
            "enum `none_t` has no members",
        ),
        // Appendix F
        (
            top("extern E { E(); Picker f(); }"),
            "Picker",
            "an extern cannot return a Picker",
        ),
        (
            control(
                "action a() { } table t { default_action = a(); actions = { a; } }",
                "",
            ),
            "default_action = a();",
            "`default_action` must come after the table's `actions`",
        ),
        (
            top("parser q() { bit<8> start; state start { transition accept; } }"),
            "start",
            "`start` is declared twice",
        ),
        (
            control(
                "table t { key = { 5 : exact; } actions = { NoAction; } }",
                "",
            ),
            "5",
            "this number needs a width",
        ),
    ];
    for (text, at, message) in rules {
        let (found_at, found, _) = told(&text);
        assert_eq!(found_at, at, "{found}\n{text}");
        assert!(found.contains(message), "{found}");
    }
}

/// 15.1: both instances would have the same name. A control without named objects may be applied any number of times.
#[test]
fn of_controls_applied_by_their_name() {
    let inner = |body: &str| {
        let inner = format!("control Inner(inout bit<8> x) {{ {body} }}");
        control("", "Inner.apply(meta.a); Inner.apply(meta.b);")
            .replace("control C(", &format!("{inner} control C("))
    };
    assert!(compile(&inner("apply { x = 1; }")).is_ok());
    let table = "table t { key = { x : exact; } actions = { NoAction; } }";
    let text = inner(&format!("{table} apply {{ t.apply(); }}"));
    let message = "`Inner` is invoked by type name twice";
    says(&text, "Inner.apply(meta.b)", message, "two instances");
    // A table in a nested control is refused, too.
    let nested = inner("Deep() d; apply { d.apply(x); }").replace(
        "control Inner(",
        &format!(
            "control Deep(inout bit<8> x) {{ {table} apply {{ t.apply(); }} }} control Inner("
        ),
    );
    refused(&nested, message);
}

#[test]
fn of_emit_and_extract() {
    let deparser = |statement: &str| {
        control("", "").replace(
            "control C(",
            &format!(
                "header a_t {{ bit<8> x; }} header b_t {{ bit<8> x; }}
                 control D(packet_out p, in a_t a) {{ apply {{ {statement} }} }} control C("
            ),
        )
    };
    assert!(compile(&deparser("p.emit(a); p.emit<a_t>(a);")).is_ok());
    says(
        &deparser("p.emit<b_t>(a);"),
        "a",
        "expected b_t, found a_t",
        "",
    );
    let message = "`emit` takes one type argument";
    says(&deparser("p.emit<a_t, b_t>(a);"), "b_t", message, "");
    let skip = |args: &str| {
        parser(&format!(
            "state start {{ pkt.extract<opts_t>({args}); transition accept; }}"
        ))
    };
    assert!(compile(&skip("_, 8")).is_ok());
    refused(&skip("_"), "has no fixed size and cannot be skipped");
    refused(&skip("_, true"), "expected bit<32>, found bool");
    for ty in [
        "bit<8>",
        "bool",
        "bit<8>[2]",
        "tag_t[2]",
        "meta_t",
        "tuple<bit<8>>",
    ] {
        let skip = format!("state start {{ pkt.extract<{ty}>(_); transition accept; }}");
        refused(&parser(&skip), "only headers can be extracted");
    }
    let arrays = deparser("bit<8>[2] v; p.emit(v);");
    refused(&arrays, "not bit<8>[2]");
    let arrays = deparser("s_t v; p.emit(v);").replace(
        "header b_t",
        "struct s_t { a_t a; bit<8>[2] v; } header b_t",
    );
    refused(&arrays, "of these, not s_t");
}

/// 18.1: the elements of a constant stack are known at compile time.
#[test]
fn of_constant_stacks() {
    let program = |text: &str| {
        let stack = "const tag_t[2] S = { { 5 }, { 6 } }; const bit<8>[2] A = { 7, 8 };";
        control("", "").replace("control C(", &format!("{stack} {text} control C("))
    };
    for known in [
        "const bit<(S[1].id)> x = 1;",
        "const bit<(A[1])> x = 1;",
        "const bit<(S.size)> x = 1;",
        "const bool x = S == S && S[0] != S[1] && S[0] == { 5 } && S[0] != {#} && A == { 7, 8 };",
        "header v_t { varbit<8> v; } control q() { varbit<8> v = ...; v_t h = ...; apply { h = { ... }; } }",
    ] {
        assert!(compile(&program(known)).is_ok(), "{known}");
    }
    let found = errors(&program("const bit<(S[2].id)> x = 1;"));
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].contains("index 2 is out of range"), "{found:?}");
}

/// An array's size after the name, as in C: p4c accepts it too. The program is the same, with a warning.
#[test]
fn a_size_behind_the_name_is_one_behind_the_type() {
    let message = "in P4, an array's size follows its type, not its name";
    for (decls, as_in_c, as_in_p4) in [
        ("struct s_t { DECL; }", "eth_t e[2]", "eth_t[2] e"),
        (
            "header_union u_t { eth_t e; } struct s_t { DECL; }",
            "u_t u[N]",
            "u_t[N] u",
        ),
        (
            "control Sub(inout DECL) { apply { t[1] = t[0]; } }",
            "tag_t t[2]",
            "tag_t[2] t",
        ),
        (
            "control Sub() { apply { DECL; t[3].setValid(); } }",
            "tag_t t[2 * N]",
            "tag_t[2 * N] t",
        ),
        (
            "typedef DECL; struct s_t { pair_t t; }",
            "tag_t pair_t[2]",
            "tag_t[2] pair_t",
        ),
        (
            "struct in_t { bit<8> v; } struct s_t { DECL; }",
            "in_t t[2][3]",
            "in_t[3][2] t",
        ),
    ] {
        let program = |declared: &str| {
            let declared = decls.replace("DECL", declared);
            let text = control("", "").replace("control C(", &format!("{declared}\ncontrol C("));
            let text = text.replace("struct headers_t", "const bit<8> N = 2; struct headers_t");
            let files = p4lang::Files::new().with("test.p4", &text);
            p4lang::compile(&files, "test.p4", &p4lang::Options::default())
        };
        match (program(as_in_c), program(as_in_p4)) {
            (Ok(c), Ok(p4)) => {
                let said: Vec<_> = c.warnings.list.iter().map(|w| w.message.as_str()).collect();
                let plain = p4.warnings.list.iter().map(|w| w.message.as_str());
                let said: Vec<_> = said.into_iter().filter(|m| *m != message).collect();
                assert_eq!(said, plain.collect::<Vec<_>>(), "{as_in_c}");
                assert!(c.warnings.list.len() > p4.warnings.list.len(), "{as_in_c}");
                let hint = c.warnings.list.iter().find(|w| w.message == message);
                let hint = hint.expect("the warning").hint.clone();
                let one = as_in_c.matches('[').count() == 1;
                assert_eq!(hint, one.then(|| format!("write `{as_in_p4}`")));
                assert_eq!(c.program.types, p4.program.types, "{as_in_c}");
            }
            (c, p4) => panic!("{as_in_c}: {:?}, {:?}", c.err(), p4.err()),
        }
    }
    let many = "tag_t t".to_owned() + &"[1]".repeat(10_000) + ";";
    refused(&control("", &many), "levels deep");
}

/// Tofino's compiler ignores `verify` as well.
#[test]
fn verify_on_a_tofino_is_left_out() {
    let text = |arch: &str| {
        format!(
            "#include <{arch}>
header byte_h {{ bit<8> v; }}
struct h_t {{ byte_h b; }}
struct m_t {{ bit<8> m; }}
parser IP(packet_in p, out h_t h, out m_t m, out ingress_intrinsic_metadata_t ig) {{
    state start {{
        p.extract(ig); p.advance(PORT_METADATA_SIZE); m.m = 0;
        p.extract(h.b);
        verify(h.b.v != 0, error.NoMatch);
        if (h.b.v == 3) {{ verify(p.lookahead<bit<8>>() == 4, error.NoMatch); }}
        transition accept;
    }}
}}
control I(inout h_t h, inout m_t m, in ingress_intrinsic_metadata_t ig,
          in ingress_intrinsic_metadata_from_parser_t ip,
          inout ingress_intrinsic_metadata_for_deparser_t id,
          inout ingress_intrinsic_metadata_for_tm_t tm) {{ apply {{ tm.ucast_egress_port = 1; }} }}
control ID(packet_out p, inout h_t h, in m_t m, in ingress_intrinsic_metadata_for_deparser_t id) {{
    apply {{ p.emit(h); }}
}}
parser EP(packet_in p, out h_t h, out m_t m, out egress_intrinsic_metadata_t eg) {{
    state start {{ p.extract(eg); m.m = 0; transition accept; }}
}}
control E(inout h_t h, inout m_t m, in egress_intrinsic_metadata_t eg,
          in egress_intrinsic_metadata_from_parser_t ep,
          inout egress_intrinsic_metadata_for_deparser_t ed,
          inout egress_intrinsic_metadata_for_output_port_t op) {{ apply {{}} }}
control ED(packet_out p, inout h_t h, in m_t m, in egress_intrinsic_metadata_for_deparser_t ed) {{
    apply {{}}
}}
Pipeline(IP(), I(), ID(), EP(), E(), ED()) pipe;
Switch(pipe) main;"
        )
    };
    for arch in ["tna.p4", "t2na.p4"] {
        let text = text(arch);
        let files = p4lang::Files::new().with("test.p4", &text);
        let compiled = p4lang::compile(&files, "test.p4", &p4lang::Options::default());
        let compiled = compiled.unwrap_or_else(|errors| panic!("{errors}"));
        let said: Vec<_> = compiled.warnings.list.iter().map(|w| &w.message).collect();
        let left_out = "Tofino's parsers do not support `verify`: this one is left out";
        assert_eq!(said, [left_out, left_out], "{arch}");
        let states = compiled.program.parsers.iter().flat_map(|p| &p.states);
        let mut verifies = 0;
        for state in states {
            p4lang::ir::visit(&state.body, &mut |s| {
                verifies += u32::from(matches!(s.kind, p4lang::ir::StmtKind::Verify(..)));
            });
        }
        assert_eq!(verifies, 0, "{arch}");
    }
}

/// A field that a selector hashes is no match field: it has no name in the control plane that could be a duplicate.
#[test]
fn a_selectors_key_is_no_duplicate_of_a_match_field() {
    let twice = "two fields of this key have the control-plane name `meta.a`";
    for (key, expected) in [
        ("meta.a : exact; meta.a : selector;", 0),
        ("meta.a : selector; meta.a : lpm;", 0),
        ("meta.a : selector; meta.a : exact; meta.a : selector;", 0),
        ("meta.a : selector; meta.a : selector;", 0),
        ("meta.b : selector @name(\"meta.a\"); meta.a : exact;", 0),
        ("meta.a : exact; meta.a : selector; meta.a : ternary;", 1),
    ] {
        let table = format!(
            "table t {{ key = {{ {key} }} actions = {{ NoAction; }} default_action = NoAction; }}"
        );
        let text = control(&table, "t.apply();").replace("optional }", "optional, selector }");
        let files = p4lang::Files::new().with("test.p4", &text);
        let compiled = p4lang::compile(&files, "test.p4", &p4lang::Options::default());
        let warnings = compiled
            .unwrap_or_else(|errors| panic!("{errors}"))
            .warnings;
        let found = warnings.list.iter().filter(|w| w.message == twice).count();
        assert_eq!(found, expected, "{key}");
    }
}

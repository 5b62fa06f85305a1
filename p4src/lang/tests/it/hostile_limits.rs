//! Hostile programs, one for each limit: an error within a second of processor time, in bounded memory, on a small stack.

use p4lang::{Files, Options, compile};
use std::fmt::Write;
use test_support::cost::{self, Cost};

/// The messages of a compilation, and its cost.
fn compiled(files: Files) -> (Vec<String>, Cost) {
    cost::least(move || match compile(&files, "a.p4", &Options::default()) {
        Ok(_) => Vec::new(),
        Err(errors) => errors.short().lines().map(str::to_owned).collect(),
    })
}

/// Checks that compilation fails with this message, at low cost.
#[track_caller]
fn refused(files: Files, message: &str) {
    let (errors, cost) = compiled(files);
    println!("{cost}  {}", errors.first().map_or("", |e| e));
    assert!(
        errors.iter().any(|e| e.contains(message)),
        "no `{message}` in {:?}",
        &errors[..errors.len().min(5)]
    );
    cost.assert_small();
}

/// Checks that compilation succeeds, at low cost.
#[track_caller]
fn accepted(files: Files) {
    let (errors, cost) = compiled(files);
    println!("{cost}  accepted");
    assert!(errors.is_empty(), "{errors:?}");
    cost.assert_small();
}

fn one(text: impl Into<String>) -> Files {
    Files::new().with("a.p4", text)
}

/// A program with these declarations, locals of a control, and statements.
fn program(decls: &str, locals: &str, apply: &str) -> Files {
    one(format!(
        "#include <core.p4>
#include <v1model.p4>
header h_t {{ bit<8> a; bit<8> b; }}
struct headers_t {{ h_t h; }}
struct meta_t {{ bit<8> a; bit<32> b; bit<1> c; }}
{decls}
parser P(packet_in pkt, out headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {{
    state start {{ pkt.extract(hdr.h); transition accept; }}
}}
control V(inout headers_t hdr, inout meta_t meta) {{ apply {{ }} }}
control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {{
    {locals}
    apply {{ {apply} }}
}}
control E(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {{ apply {{ }} }}
control U(inout headers_t hdr, inout meta_t meta) {{ apply {{ }} }}
control D(packet_out pkt, in headers_t hdr) {{ apply {{ pkt.emit(hdr); }} }}
V1Switch(P(), V(), I(), E(), U(), D()) main;
"
    ))
}

fn lines(count: usize, mut line: impl FnMut(usize, &mut String)) -> String {
    let mut text = String::new();
    for n in 0..count {
        line(n, &mut text);
        text.push('\n');
    }
    text
}

macro_rules! line {
    ($($format:tt)*) => {
        |n: usize, out: &mut String| { let _ = write!(out, $($format)*, n = n); }
    };
}

#[test]
fn the_frame_of_these_programs_compiles() {
    accepted(program("", "", "meta.a = 1;"));
}

#[test]
fn doubling_control_instances() {
    let mut decls = "control c0(inout bit<8> x) { apply { x = x + 1; } }\n".to_owned();
    decls += &lines(30, |n, out| {
        let _ = write!(
            out,
            "control c{m}(inout bit<8> x) {{ c{n}() a; c{n}() b; apply {{ a.apply(x); b.apply(x); }} }}",
            m = n + 1
        );
    });
    refused(program(&decls, "c30() c;", "c.apply(meta.a);"), "instances");
}

#[test]
fn doubling_parser_instances() {
    let mut decls = "parser p0(packet_in p) { state start { transition accept; } }\n".to_owned();
    decls += &lines(30, |n, out| {
        let _ = write!(
            out,
            "parser p{m}(packet_in p) {{ p{n}() a; p{n}() b; state start {{ a.apply(p); b.apply(p); transition accept; }} }}",
            m = n + 1
        );
    });
    let text = decls + "parser top(packet_in p); package S(top t); S(p30()) main;";
    refused(one(format!("#include <core.p4>\n{text}")), "instances");
}

#[test]
fn doubling_direct_applications() {
    let mut decls = "control c0(inout bit<8> x) { apply { x = x + 1; } }\n".to_owned();
    decls += &lines(30, |n, out| {
        let _ = write!(
            out,
            "control c{m}(inout bit<8> x) {{ apply {{ c{n}.apply(x); c{n}.apply(x); }} }}",
            m = n + 1
        );
    });
    refused(program(&decls, "", "c30.apply(meta.a);"), "instances");
}

#[test]
fn doubling_functions_and_actions() {
    // A function is elaborated once for each list of type arguments, so this is linear.
    let mut decls = "bit<8> f0(in bit<8> x) { return x; }\n".to_owned();
    decls += &lines(50, |n, out| {
        let _ = write!(
            out,
            "bit<8> f{m}(in bit<8> x) {{ return f{n}(x) + f{n}(x); }}",
            m = n + 1
        );
    });
    accepted(program(&decls, "", "meta.a = f50(meta.a);"));
    // A generic function that calls the previous one with two new types: this is exponential.
    let mut decls =
        "struct w0<T> { T a; } struct w1<T> { T a; }\nbit<8> g0<T>(in T x) { return 1; }\n"
            .to_owned();
    decls += &lines(24, |n, out| {
        let _ = write!(
            out,
            "bit<8> g{m}<T>(in T x) {{ w0<T> a; w1<T> b; a.a = x; b.a = x; return g{n}<w0<T>>(a) + g{n}<w1<T>>(b); }}",
            m = n + 1
        );
    });
    refused(
        program(&decls, "", "meta.a = g24<bit<8>>(meta.a);"),
        "more than",
    );
}

#[test]
fn doubling_types() {
    let mut text = "typedef tuple<bit<8>, bit<8>> t0;\n".to_owned();
    text += &lines(60, |n, out| {
        let _ = write!(out, "typedef tuple<t{n}, t{n}> t{m};", m = n + 1);
    });
    refused(program(&text, "", ""), "type too large");
    let mut text = "struct s0 { bit<8> a; }\n".to_owned();
    text += &lines(60, |n, out| {
        let _ = write!(out, "struct s{m} {{ s{n} a; s{n} b; }}", m = n + 1);
    });
    refused(program(&text, "", ""), "type too large");
    let mut text = "struct g0<T> { T a; }\n".to_owned();
    text += &lines(60, |n, out| {
        let _ = write!(out, "struct g{m}<T> {{ g{n}<g{n}<T>> a; }}", m = n + 1);
    });
    refused(
        program(&(text + "struct top { g60<bit<8>> a; }"), "", ""),
        "more than 16384 structs",
    );
}

#[test]
fn widths_and_sizes() {
    refused(
        program("struct x { bit<1000000000> a; }", "", ""),
        "must be 0 to 2048",
    );
    refused(
        program("struct x { varbit<1000000000> a; }", "", ""),
        "must be 0 to 524280",
    );
    refused(
        program(
            "header x { bit<8> a; } struct y { x[1000000000] a; }",
            "",
            "",
        ),
        "must be 0 to 65536",
    );
    refused(
        program(
            "header x { bit<2048> a; } header_union u { x a; } struct y { u[60000] a; } struct z { y a; y b; y c; y d; y e; }",
            "",
            "z v; v.a = v.b;",
        ),
        "large",
    );
    // Memory that a target allocates is limited by the target.
    accepted(program("", "register<bit<32>>(0xffffffff) r;", ""));
    accepted(program("", "register<bit<32>>(1 << 40) r;", ""));
}

#[test]
fn comparisons_of_large_headers() {
    let fields = |n: usize| lines(n, line!("bit<8> f{n};"));
    let compared = |n: usize| {
        let decls = format!("header big_t {{ {} }}", fields(n));
        let locals = "big_t a; big_t b; bit<8> c;";
        program(
            &decls,
            locals,
            "if (a == b) { c = 1; } if (a != b) { c = 2; }",
        )
    };
    accepted(compared(4000));
    refused(compared(5000), "too many fields to compare: more than 4096");
}

/// The message for too many parts.
const PARTS: &str = "comparisons, default values and constants expand to more than 1048576 parts";

#[test]
fn many_comparisons_of_large_headers() {
    let fields = lines(1000, line!("bit<8> f{n};"));
    let decls = format!("header big_t {{ {fields} }} struct outer_t {{ big_t a; big_t b; }}");
    let compared = |n: usize| {
        let statements = "if (a == b) { c = 1; }\n".repeat(n);
        program(&decls, "outer_t a; outer_t b; bit<8> c;", &statements)
    };
    accepted(compared(60));
    refused(compared(2000), PARTS);
    let deep = (1..100).fold("struct d0_t { big_t v; }\n".to_owned(), |text, n| {
        text + &format!("struct d{n}_t {{ d{m}_t v; }}\n", m = n - 1)
    });
    let statements = "if (a == b) { c = 1; }\n".repeat(100);
    let locals = "d99_t a; d99_t b; bit<8> c;";
    refused(program(&(decls + &deep), locals, &statements), PARTS);
}

#[test]
fn constants_and_defaults_of_large_structs() {
    let fields = lines(4000, line!("bit<8> f{n};"));
    let values = vec!["1"; 4000].join(", ");
    let decls = format!("struct big_t {{ {fields} }} const big_t K = {{ {values} }};");
    let many = |statement: &str, n: usize| program(&decls, "big_t v;", &statement.repeat(n));
    for statement in [
        "v = {...};\n",
        "v = K;\n",
        "v.f1 = K.f7;\n",
        "v = (big_t) {...};\n",
    ] {
        accepted(many(statement, 200));
        refused(many(statement, 3000), PARTS);
    }
}

#[test]
fn large_constants() {
    refused(
        program("const int x = 1 << 1000000000;", "", ""),
        "65536 bits",
    );
    refused(
        program("const int x = 1 << (1 << 40);", "", ""),
        "65536 bits",
    );
    let mut text = "const int c0 = 1 << 60000;\n".to_owned();
    text += &lines(60, |n, out| {
        let _ = write!(out, "const int c{m} = c{n} * c{n};", m = n + 1);
    });
    refused(program(&text, "", ""), "65536 bits");
    // Many declarations that are just small enough.
    let text = lines(
        2000,
        line!("const int c{n} = (1 << 65000) * 3 / 7 % ((1 << 64000) + {n});"),
    );
    accepted(program(&(text + "const bit<8> z = c0;"), "", ""));
    refused(
        program(&format!("const int x = {};", "9".repeat(2 << 20)), "", ""),
        "digits",
    );
    refused(
        program(
            &format!("const bit<8> x = 8w0b{};", "_1".repeat(1 << 20)),
            "",
            "",
        ),
        "digits",
    );
    refused(
        program(
            &format!("@name(\"{}\") const bit<8> x = y;", "s".repeat(4 << 20)),
            "",
            "",
        ),
        "y",
    );
}

#[test]
fn loops_over_huge_ranges() {
    accepted(program(
        "",
        "",
        "for (bit<32> i in 0 .. 0xffffffff) { meta.b = meta.b + i; }",
    ));
    refused(
        program(
            "",
            "",
            "for (int i in 0 .. (1 << 40)) { meta.b = meta.b + 1; }",
        ),
        "",
    );
    accepted(program(
        "",
        "",
        "for (bit<32> i = 0; true; i = i + 1) { meta.b = i; }",
    ));
}

#[test]
fn many_states() {
    let states = |n: usize| {
        let mut text = "parser big(packet_in p) { state start { transition s0; }\n".to_owned();
        text += &lines(n, |n, out| {
            let _ = write!(out, "state s{n} {{ transition s{m}; }}", m = n + 1);
        });
        let _ = write!(text, "state s{n} {{ transition accept; }} }}");
        text += "parser top(packet_in p); package S(top t); S(big()) main;";
        one(format!("#include <core.p4>\n{text}"))
    };
    accepted(states(2000));
    accepted(states(50_000));
}

#[test]
fn tables() {
    let table = |size: &str, entries: &str| {
        program(
            "",
            &format!(
                "action a(bit<8> x) {{ meta.a = x; }} table t {{ key = {{ meta.b: ternary; }} actions = {{ a; NoAction; }} size = {size}; {entries} }}"
            ),
            "t.apply();",
        )
    };
    // Entries cause the cost.
    accepted(table("1 << 40", ""));
    let entries = |n: usize| {
        let entries = lines(n, line!("{n} &&& 0xffffffff: a(1);"));
        format!("const entries = {{ {entries} }}")
    };
    accepted(table("1024", &entries(2000)));
    let (errors, cost) = compiled(table("1024", &entries(60_000)));
    println!("{cost}  {errors:?}");
    cost.assert_small();
    let ranges = program(
        "",
        "action a() { } table t { key = { meta.b: range; } actions = { a; } const entries = { 0 .. 0xffffffff: a(); 1 .. 0xfffffffe: a(); } }",
        "t.apply();",
    );
    accepted(ranges);
}

#[test]
fn deep_nesting() {
    const N: usize = 100_000;
    let deep = |text: String| refused(program("", "", &text), "more than 200 levels");
    deep(format!("meta.a = {}1{};", "(".repeat(N), ")".repeat(N)));
    deep(format!("meta.a = {}1;", "~".repeat(N)));
    deep(format!("meta.a = {}1{};", "1 + (".repeat(N), ")".repeat(N)));
    deep(format!("meta.a = {}1;", "meta.c == 1 ? 1 : ".repeat(N)));
    deep(format!("{}{}", "{".repeat(N), "}".repeat(N)));
    deep(format!("{} meta.a = 1;", "if (meta.a == 1) ".repeat(N)));
    deep("if (meta.a == 1) {} else { ".repeat(N));
    // The operand of a member access, an index or a `[n]` is nested inside it: these nest on the left.
    let left = |of: &str, step: &str| {
        let closed = format!("{})", step.repeat(190));
        format!("{}{of}{}", "(".repeat(90), closed.repeat(90))
    };
    deep(format!("meta.a = {};", left("meta", ".a")));
    deep(format!("meta.a = {};", left("meta", "[0]")));
    deep(format!("meta.a = {};", left("meta", "[1:0]")));
    let indexed = format!("{}>", "[1]".repeat(190));
    let types = format!("{}bit<8>{}", "tuple<".repeat(90), indexed.repeat(90));
    refused(
        program(&format!("typedef {types} t;"), "", ""),
        "more than 200 levels",
    );
    let nested = format!("{}bit<8>{}", "tuple<".repeat(N), ">".repeat(N));
    refused(
        program(&format!("typedef {nested} t;"), "", ""),
        "more than 200 levels",
    );
    refused(one(format!("#if {}1\n#endif\n", "(".repeat(N))), "");
    // Maximum depth twice: in expressions, and in the calls around them.
    let chain = lines(250, |n, out| {
        let _ = write!(out, "typedef t{n} t{m};", m = n + 1);
    });
    accepted(program(
        &format!("typedef bit<8> t0;\n{chain}"),
        "t250 x;",
        "x = 1; meta.a = x;",
    ));
    let chain = lines(20_000, |n, out| {
        let _ = write!(out, "struct s{m} {{ s{n} a; }}", m = n + 1);
    });
    refused(
        program(
            &format!("struct s0 {{ bit<8> a; }}\n{chain}"),
            "s20000 x;",
            "x = x;",
        ),
        "types nested more than 128 levels",
    );
    let chain = lines(20_000, |n, out| {
        let _ = write!(out, "type t{n} t{m};", m = n + 1);
    });
    refused(
        program(
            &format!("typedef bit<8> t0;\n{chain}"),
            "t20000 x;",
            "x = x;",
        ),
        "types nested more than 128 levels",
    );
    let chain = lines(4000, |n, out| {
        let _ = write!(out, "typedef tuple<t{n}> t{m};", m = n + 1);
    });
    refused(
        program(
            &format!("typedef bit<8> t0;\n{chain}"),
            "t4000 x;",
            "x = x;",
        ),
        "types nested more than 128 levels",
    );
    let chain = lines(20_000, |n, out| {
        let _ = write!(
            out,
            "bit<8> f{m}(in bit<8> x) {{ return f{n}(x); }}",
            m = n + 1
        );
    });
    refused(
        program(
            &format!("bit<8> f0(in bit<8> x) {{ return x; }}\n{chain}"),
            "",
            "meta.a = f20000(meta.a);",
        ),
        "more than 256 levels",
    );
    let chain = lines(2000, |n, out| {
        let _ = write!(
            out,
            "control c{m}(inout bit<8> x) {{ c{n}() c; apply {{ c.apply(x); }} }}",
            m = n + 1
        );
    });
    refused(
        program(
            &format!("control c0(inout bit<8> x) {{ apply {{ }} }}\n{chain}"),
            "c2000() c;",
            "c.apply(meta.a);",
        ),
        "more than 256 levels",
    );
}

#[test]
fn flat_chains() {
    const N: usize = 20_000;
    let flat = |text: String| accepted(program("", "bit<32> x = 0; bool y = false;", &text));
    let arms = lines(N, line!("if (meta.b == {n}) {{ meta.a = 1; }} else"));
    flat(format!("{arms} {{ meta.a = 2; }}"));
    flat(lines(N, line!("if (meta.b == {n}) meta.a = 1; else")) + ";");
    // Conditions with calls, constant conditions, and both.
    let called = "if (hdr.h.isValid() && meta.b == random_()) { meta.a = 1; } else ";
    let known = "if (1 == 2) { meta.a = 1; } else ";
    let decls = "bit<32> random_() { return 4; }";
    let text = called.repeat(N / 4) + &(known.to_owned() + called).repeat(N / 8) + "{}";
    accepted(program(decls, "", &text));
    for op in ["+", "-", "*", "/", "|+|", "|-|", "&", "|", "^", "<<"] {
        let one = "0xffffffff - meta.b".to_owned();
        flat(format!(
            "x = {one}{};",
            format!(" {op} meta.b").repeat(N / 4)
        ));
    }
    flat(format!("x = 1{};", " + 1".repeat(N)));
    flat(format!("x = meta.b{};", " + meta.b * 2 - 1".repeat(N)));
    for op in ["&&", "||", "==", "!="] {
        flat(format!(
            "y = meta.b == 1{};",
            format!(" {op} y").repeat(N / 2)
        ));
    }
    let right = " && meta.b == random_() || meta.b == 2".repeat(N / 8);
    accepted(program(decls, "bool y;", &format!("y = true{right};")));
    let right = " + random_()".repeat(N / 4);
    accepted(program(decls, "bit<32> x;", &format!("x = meta.b{right};")));
    let text = " ++ \"text\"".repeat(N);
    accepted(program("", "", &format!("log_msg(\"\"{text});")));
    // Chains nested in chains: the lowered expression must not be deeper either.
    let inner = format!("{})", " + meta.b".repeat(150));
    flat(format!("x = {}meta.b{};", "(".repeat(90), inner.repeat(90)));
    let inner = " + meta.b".repeat(150);
    let outer = format!("meta.b{inner} + (");
    flat(format!("x = {}1{};", outer.repeat(60), ")".repeat(60)));
}

#[test]
fn macros_that_laugh() {
    let mut text = "#define l0 lol lol lol lol lol lol lol lol lol lol\n".to_owned();
    text += &lines(30, |n, out| {
        let _ = write!(
            out,
            "#define l{m} l{n} l{n} l{n} l{n} l{n} l{n} l{n} l{n} l{n} l{n}",
            m = n + 1
        );
    });
    refused(one(text.clone() + "l30\n"), "macro expansion processes");
    refused(
        one(text + &"l4\n".repeat(10_000)),
        "macro expansion processes",
    );
    let text = format!("#define long {}\n", "x".repeat(1000));
    refused(
        one(text + &"long\n".repeat(10_000)),
        "macros expand to more than",
    );
    let mut text = "#define f0(x) x x\n".to_owned();
    text += &lines(60, |n, out| {
        let _ = write!(out, "#define f{m}(x) f{n}(f{n}(x))", m = n + 1);
    });
    refused(one(text + "f60(a)\n"), "macro expansion processes");
    let mut text = "#define s0(x) #x #x\n".to_owned();
    text += &lines(60, |n, out| {
        let _ = write!(out, "#define s{m}(x) s{n}(x x) s{n}(x x)", m = n + 1);
    });
    refused(one(text + "s60(a)\n"), "macro expansion processes");
    // Each name expands to many others.
    let chain = lines(20_000, |n, out| {
        let _ = write!(out, "#define m{n} m{m} m{m}", m = n + 1);
    });
    refused(one(chain + "m0\n"), "");
    let paste = format!(
        "#define p(a, b) a ## b\n{}x{}\n",
        "p(".repeat(5000),
        ", y)".repeat(5000)
    );
    refused(one(paste), "");
    let long = format!("#define f(x) x\nf({}", "(".repeat(1 << 20));
    refused(one(long), "no closing");
    let calls = format!("#define f(x) x\n{}", "f(\n".repeat(100_000));
    refused(one(calls), "no closing");
    // One call per line with a distant closing parenthesis: each is searched for once.
    let open = format!("#define f(x) x\n{}", "f f f f f f f f\n".repeat(50_000));
    refused(one(open), "");
}

#[test]
fn includes() {
    let it = "#include \"a.p4\"\n#include \"a.p4\"\n";
    refused(one(it), "more than 64 deep");
    let mut files = one("#include \"f0\"\n");
    for n in 0..40 {
        files.insert(
            &format!("f{n}"),
            format!("#include \"f{m}\"\n#include \"f{m}\"\n", m = n + 1),
        );
    }
    files.insert("f40", "const bit<8> x = 1;\n");
    refused(files, "included");
    let mut files = one("#include \"f0\"\n".repeat(64));
    files.insert("f0", "// comment\n".repeat(100_000));
    refused(files, "MiB");
    refused(one(format!("#include \"{}\"\n", "../".repeat(300_000))), "");
}

#[test]
fn lines_and_bytes() {
    let text = lines(200_000, line!("#line {n} \"file{n}\""));
    refused(one(text), "");
    refused(one("#line 4294967295 \"x\"\n\n\n\nz".to_owned()), "");
    refused(one("#line 99999999999999999999\n".to_owned()), "line");
    refused(one("\0".repeat(1 << 20)), "");
    refused(one(format!("/*{}", "*".repeat(8 << 20))), "no closing");
    refused(one(format!("\"{}", "\\\"".repeat(4 << 20))), "no closing");
    refused(one("/* ".repeat(1 << 20)), "no closing");
    refused(one("\"\n".repeat(1 << 20)), "expected a declaration");
    refused(one("\u{fffd}\u{202e}é".repeat(100_000)), "");
    refused(one("a ".repeat(4 << 20)), "");
    refused(one("@".repeat(1 << 20)), "");
    refused(one("x".repeat(17 << 20)), "MiB");
    refused(one("\n".repeat(12 << 20)), "more than 2097152 lines");
    refused(one("#if 1\n".repeat(500_000)), "without `#endif`");
    refused(
        one("const bit<8> x = 1;\n".repeat(200_000)),
        "declared twice",
    );
}

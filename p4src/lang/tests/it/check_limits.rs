//! Hostile programs end in an error within seconds; large realistic programs compile quickly.

use crate::check_support::{TINY, compile, control, errors, lower};
use test_support::cost;

/// Limit in seconds of processor time, which machine load does not affect: long enough for an unoptimized build, far too short
/// for anything exponential.
const SOON: f64 = 5.0;

#[track_caller]
fn refused(text: &str) -> Vec<String> {
    let text = text.to_owned();
    let (found, cost) = cost::measure(move || errors(&text));
    assert!(cost.seconds < SOON, "took {cost}");
    assert!(!found.is_empty(), "was accepted");
    found
}

#[test]
fn deep_expressions() {
    let deep = "(".repeat(5000) + "meta.a" + &")".repeat(5000);
    refused(&control("", &format!("meta.a = {deep};")));
    let long = vec!["meta.a"; 20_000].join(" + (");
    refused(&control("", &format!("meta.a = {long};")));
    refused(&control(
        "",
        &format!("meta.a = {}meta.a;", "~".repeat(20_000)),
    ));
    refused(&control("", &("if (meta.f) ".repeat(5000) + "meta.a = 1;")));
    refused(&control("", &("{".repeat(5000) + &"}".repeat(5000))));
}

#[test]
fn doubling_types() {
    let mut text = TINY.to_owned() + "typedef tuple<bit<8>, bit<8>> t0;\n";
    for i in 1..60 {
        text += &format!("typedef tuple<t{0}, t{0}> t{i};\n", i - 1);
    }
    assert!(refused(&text)[0].contains("type too large"));

    let mut text = TINY.to_owned() + "struct g0<T> { T a; }\n";
    for i in 1..40 {
        text += &format!("struct g{i}<T> {{ g{0}<g{0}<T>> a; }}\n", i - 1);
    }
    refused(&text);
}

#[test]
fn doubling_instances() {
    let mut decls = "control I0(inout bit<8> x) { apply { x = 1; } }\n".to_owned();
    for i in 1..30 {
        decls += &format!(
            "control I{i}(inout bit<8> x) {{ I{0}() a; I{0}() b; apply {{ a.apply(x); b.apply(x); }} }}\n",
            i - 1
        );
    }
    let text = control("I29() top;", "").replace("control C(", &format!("{decls}control C("));
    let found = refused(&text);
    assert!(
        found
            .iter()
            .any(|e| e.contains("more than 16384 instances")),
        "{found:?}"
    );
}

#[test]
fn doubling_constants() {
    let mut text = TINY.to_owned() + "const int c0 = 1 << 1000;\n";
    for i in 1..60 {
        text += &format!("const int c{i} = c{0} * c{0};\n", i - 1);
    }
    assert!(refused(&text)[0].contains("constant too large"));
    refused(&format!("{TINY}const int x = 1 << 100000000000;"));
}

#[test]
fn doubling_structs() {
    let structs = |n: u32| {
        let mut decls = "struct s0 { bit<8> a; bit<8> b; }\n".to_owned();
        for i in 1..n {
            decls += &format!("struct s{i} {{ s{0} a; s{0} b; }}\n", i - 1);
        }
        decls
    };
    let found = refused(&(TINY.to_owned() + &structs(40)));
    assert!(found[0].contains("type too large"), "{found:?}");
    let text = control("", "s14 x; s14 y; meta.f = x == y;")
        .replace("control C(", &format!("{}control C(", structs(15)));
    let found = refused(&text);
    assert!(found[0].contains("too many fields"), "{found:?}");
}

#[test]
fn many_instances_are_linear() {
    let program = |n: usize| {
        let locals: String = (0..n).map(|i| format!("Cell() c{i};\n")).collect();
        let apply: String = (0..n)
            .map(|i| format!("c{i}.apply(meta.a, meta.b);\n"))
            .collect();
        control(&locals, &apply).replace(
            "control C(",
            "control Cell(in bit<8> at, inout bit<8> x) {
                 Register<bit<8>, bit<8>>(256) cells;
                 apply { bit<8> old = cells.read(at); x = x + old; cells.write(at, x); }
             }
             control C(",
        )
    };
    let seconds = |n: usize| {
        let text = program(n);
        let (externs, cost) = cost::measure(move || lower(&text).externs.len());
        assert_eq!(externs, n);
        cost.seconds
    };
    seconds(256);
    let (small, large) = (seconds(512), seconds(4096));
    assert!(
        large < small * 8.0 * 8.0,
        "8 times the instances took {large} s after {small} s"
    );
}

#[test]
fn many_faults_are_bounded() {
    let apply: String = (0..5000).map(|i| format!("x{i} = {i};\n")).collect();
    let d = compile(&control("", &apply)).expect_err("faults");
    assert!(d.list.len() <= 200);
    assert!(d.suppressed > 4000);
}

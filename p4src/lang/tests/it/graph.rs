//! Graphs in DOT.

#![allow(clippy::disallowed_methods)] // The crate is pure; its tests read programs.

use p4lang::ir::Program;
use p4lang::{Files, Options};
use std::collections::BTreeSet;
use std::path::Path;

#[test]
fn parsers_and_controls_as_dot() {
    let text = "#include <core.p4>
header h_t { bit<16> kind; }
struct headers_t { h_t h; }
parser P(packet_in pkt, out headers_t hdr) {
    state start { pkt.extract(hdr.h); transition select(hdr.h.kind) { 0x0800: more; default: accept; } }
    state more { transition reject; }
}
control C(inout headers_t hdr) {
    action a() { } table t { key = { hdr.h.kind: exact; } actions = { a; } }
    table u { actions = { a; } }
    apply { if (hdr.h.kind == 1) { t.apply(); } else { u.apply(); } }
}
parser PT<H>(packet_in pkt, out H hdr); control CT<H>(inout H hdr);
package Top<H>(PT<H> p, CT<H> c);
Top(P(), C()) main;
";
    let files = Files::new().with("t.p4", text);
    let compiled = p4lang::compile(&files, "t.p4", &Options::default())
        .unwrap_or_else(|errors| panic!("{errors}"));
    insta::assert_snapshot!(p4lang::graph::dot(&compiled.program));
}

/// The project's program for Tofino, with a parser that parser-gen made, and the programs of the corpus.
fn programs() -> Vec<(String, Program)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut paths = vec![root.join("../tna/main.p4")];
    let corpus = std::fs::read_dir(root.join("tests/corpus/pass")).expect("the corpus");
    paths.extend(corpus.map(|entry| entry.expect("an entry").path()));
    paths.sort();
    let load = |path: &str| {
        let path = match path.rsplit_once('/') {
            Some((_, file @ ("generated.p4" | "engine.p4"))) => {
                root.join("tests/tofino").join(file)
            }
            _ => path.replace("pass/shell/", "shell/").into(),
        };
        std::fs::read_to_string(path).ok()
    };
    let compile = |path: &std::path::PathBuf| {
        let path = path.to_string_lossy().into_owned();
        let compiled = p4lang::compile(&load, &path, &Options::default());
        let compiled = compiled.unwrap_or_else(|errors| panic!("{path}: {errors}"));
        (path, compiled.program)
    };
    paths.iter().map(compile).collect()
}

#[test]
fn a_long_chain_is_drawn_and_laid_out() {
    let arms = |count: usize| -> String {
        let arm = |n| format!("if (hdr.h.kind == {n}) {{ t.apply(); }}\nelse ");
        (0..count).map(arm).collect()
    };
    let text = format!(
        "#include <core.p4>
header h_t {{ bit<16> kind; }}
struct headers_t {{ h_t h; }}
control C(inout headers_t hdr) {{
    table t {{ actions = {{ NoAction; }} default_action = NoAction(); }}
    apply {{ {} {{ }} }}
}}
control CT<H>(inout H hdr);
package Top<H>(CT<H> c);
Top(C()) main;
",
        arms(3000)
    );
    let told = move || {
        let laid_out =
            p4lang::format::format("t.p4", &text).unwrap_or_else(|errors| panic!("{errors}"));
        let files = Files::new().with("t.p4", text);
        let compiled = p4lang::compile(&files, "t.p4", &Options::default())
            .unwrap_or_else(|errors| panic!("{errors}"));
        let dot = p4lang::graph::dot(&compiled.program);
        let tables = compiled.p4info.tables.len();
        (laid_out, dot, tables)
    };
    let ((laid_out, dot, tables), cost) = test_support::cost::of(told);
    println!("{cost}");
    assert!(laid_out.contains("else if (hdr.h.kind == 2999) { t.apply(); }\n"));
    assert_eq!(tables, 1);
    assert_eq!(dot.matches("label=\"if (hdr.h.kind == ").count(), 3000);
    assert_eq!(dot.matches("[label=\"yes\"]").count(), 3000);
    assert!(cost.seconds < 5.0, "{cost}");
}

/// Each edge leads from one node of its cluster to another.
#[test]
fn edges_have_ends() {
    for (name, program) in programs() {
        let dot = p4lang::graph::dot(&program);
        let mut nodes: BTreeSet<&str> = BTreeSet::new();
        let mut edges = 0;
        for line in dot.lines().map(str::trim) {
            if line.starts_with("subgraph ") {
                nodes.clear();
            } else if let Some((from, rest)) = line.split_once(" -> ") {
                let to = rest.split([' ', ';']).next().unwrap_or_default();
                assert!(nodes.contains(from) && nodes.contains(to), "{name}: {line}");
                edges += 1;
            } else if let Some((id, _)) = line.split_once(" [label=") {
                assert!(nodes.insert(id), "{name}: {id} is there twice");
            }
        }
        assert!(edges > 0, "{name}");
    }
}

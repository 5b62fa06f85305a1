//! On any input, compilation ends within seconds, in bounded memory and stack, and without a panic.

#![allow(clippy::disallowed_methods)] // The crate is pure; its tests read programs.

use p4lang::{Options, compile, parse};
use proptest::prelude::*;
use std::path::Path;
use test_support::cost;

/// Compiles a text and ignores the result: the test is that the compiler returns.
fn survive(text: &str) {
    let load = |path: &str| (path == "a.p4").then(|| text.to_owned());
    if let Err(diagnostics) = compile(&load, "a.p4", &Options::default()) {
        assert!(diagnostics.has_errors(), "refused without an error");
        let rendered = diagnostics.render(true);
        assert!(rendered.contains("error"), "{rendered}");
    }
}

fn corpus() -> Vec<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus");
    let mut paths: Vec<_> = ["pass", "fail"]
        .iter()
        .flat_map(|folder| std::fs::read_dir(root.join(folder)).expect("corpus"))
        .map(|entry| entry.expect("an entry").path())
        .collect();
    paths.sort();
    let read = |path| std::fs::read_to_string(path).expect("UTF-8");
    paths.into_iter().map(read).collect()
}

/// Fragments from which the random programs are built.
const WORDS: &[&str] = &[
    "control",
    "parser",
    "c",
    "x",
    "bit",
    "<",
    "8",
    ">",
    "(",
    ")",
    "{",
    "}",
    "[",
    "]",
    ";",
    ",",
    ":",
    "=",
    "==",
    "apply",
    "action",
    "table",
    "key",
    "actions",
    "state",
    "start",
    "transition",
    "select",
    "accept",
    "header",
    "struct",
    "enum",
    "typedef",
    "type",
    "extern",
    "package",
    "const",
    "in",
    "out",
    "inout",
    "if",
    "else",
    "switch",
    "for",
    "return",
    "default",
    "_",
    "&&&",
    "..",
    "...",
    "++",
    "+",
    "-",
    "*",
    "?",
    ".",
    "@",
    "name",
    "\"s\"",
    "8w1",
    "T",
    "error",
    "int",
    "void",
    "bool",
    "true",
    "tuple",
    "list",
    "{#}",
    "\n#define x (x",
    "\n#if x",
    "\n#endif",
    "\n",
    "main",
    "entries",
    "priority",
    "this",
    "abstract",
    "value_set",
    "varbit",
];

proptest! {
    #![proptest_config(ProptestConfig { cases: test_support::cases(400), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn random_bytes(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        survive(&String::from_utf8_lossy(&bytes));
    }

    #[test]
    fn random_words(words in proptest::collection::vec(proptest::sample::select(WORDS), 0..120)) {
        survive(&words.join(" "));
    }

    /// Programs with a fragment removed, duplicated or moved.
    #[test]
    fn mutated_programs(
        which in any::<proptest::sample::Index>(),
        cuts in proptest::collection::vec((any::<proptest::sample::Index>(), 0usize..40, any::<proptest::sample::Index>()), 1..4),
        take in any::<bool>(),
    ) {
        let programs = corpus();
        let mut text: Vec<char> = which.get(&programs).chars().collect();
        for (from, length, to) in cuts {
            let from = from.index(text.len().max(1)).min(text.len());
            let end = (from + length).min(text.len());
            let piece: Vec<char> = text[from..end].to_vec();
            if take {
                text.drain(from..end);
            }
            let to = to.index(text.len().max(1)).min(text.len());
            text.splice(to..to, piece);
        }
        survive(&text.into_iter().collect::<String>());
    }
}

/// Sources that would overflow the stack or run forever in a careless compiler.
#[test]
fn deep_and_long_sources() {
    const N: usize = 100_000;
    let inside =
        |statement: String| format!("control c(inout bit<8> a) {{ apply {{ {statement} }} }}");
    let sources = [
        format!("const int x = {}1{};", "(".repeat(N), ")".repeat(N)),
        format!("const int x = {}", "(".repeat(N)),
        format!("const int x = 1{};", " + 1".repeat(N)),
        format!("const int x = {}1;", "-".repeat(N)),
        format!("const int x = {}1;", "(bit<8>)".repeat(N)),
        format!("const int x = a{};", ".b".repeat(N)),
        format!("const int x = a{};", "[1]".repeat(N)),
        format!("const int x = {}1;", "1 ? 2 : ".repeat(N)),
        format!("const int x = {}", "f<".repeat(N)),
        format!("const int x = f({});", "a<b,".repeat(N)),
        format!("const int x = {}", "a<bit<(".repeat(N)),
        format!("const {} x = 1;", "tuple<".repeat(N)),
        format!("const bit<8>{} x = 1;", "[1]".repeat(N)),
        format!("const list<{}", "a[".repeat(N)),
        inside("{".repeat(N)),
        inside("if (true) ".repeat(N)),
        inside("if (true) {} else ".repeat(N)),
        inside("for (;true;) ".repeat(N)),
        inside("a = a; ".repeat(N)),
        inside("a a ".repeat(N)),
        "@a(".repeat(N),
        "{".repeat(N),
        "}".repeat(N),
        "struct s { ".repeat(N),
        "control c() { ".repeat(N),
        format!("const bit<8> x = {};", "9".repeat(N)),
        format!("const bit<{}> x = 1;", "4294967295"),
        "error { a } ".repeat(N),
    ];
    for (index, source) in sources.into_iter().enumerate() {
        let ((), cost) = cost::measure(move || {
            let load = |path: &str| (path == "a.p4").then(|| source.clone());
            let _ = parse(&load, "a.p4", &Options::default());
            survive(&source);
        });
        assert!(cost.seconds < 5.0, "{index}: {cost}");
    }
}

/// Nesting exactly at the parser's limit: the checker has to handle it on a small stack.
#[test]
fn the_deepest_source_allowed() {
    let source = |n: usize| format!("const int x = {}1{};", "(".repeat(n), ")".repeat(n));
    let errors = |n: usize| {
        let text = source(n);
        let load = move |path: &str| (path == "a.p4").then(|| text.clone());
        parse(&load, "a.p4", &Options::default()).is_err()
    };
    let limit = (1..1000).find(|n| errors(*n)).expect("a limit");
    assert!((100..400).contains(&limit), "{limit}");
    survive(&source(limit - 1));
    survive(&format!("const int x = 1{};", " + 1".repeat(limit - 2)));
}

//! Files as tests: files in corpus/pass compile, files in corpus/fail are rejected with the messages in snapshots/.

#![allow(clippy::disallowed_methods)] // The crate is pure; its tests read programs and clocks.

use p4lang::diagnostics::Code;
use p4lang::{Files, Options, compile};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Names and texts of the files in a folder, sorted.
fn folder(name: &str) -> Vec<(String, String)> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/corpus")
        .join(name);
    let mut files: Vec<_> = std::fs::read_dir(&path)
        .expect("a folder of the corpus")
        .map(|entry| {
            let path = entry.expect("an entry").path();
            let name = path.file_stem().expect("a name").to_string_lossy();
            let text = std::fs::read_to_string(&path).expect("UTF-8");
            (name.into_owned(), text)
        })
        .collect();
    files.sort();
    assert!(!files.is_empty(), "{name} is empty");
    files
}

/// The program and its include files.
fn files(name: &str, text: &str) -> Files {
    let shells = folder("shell").into_iter();
    shells.fold(Files::new().with(name, text), |files, (name, text)| {
        files.with(&format!("shell/{name}.p4"), text)
    })
}

fn messages(name: &str, text: &str) -> Result<(), String> {
    let path = format!("{name}.p4");
    match compile(&files(&path, text), &path, &Options::default()) {
        Ok(_) => Ok(()),
        Err(diagnostics) => Err(format!("{}\n{diagnostics}", diagnostics.short())),
    }
}

#[test]
fn what_should_compile_does() {
    let refused: Vec<String> = folder("pass")
        .iter()
        .filter_map(|(name, text)| messages(name, text).err())
        .collect();
    assert!(refused.is_empty(), "{}", refused.join("\n"));
}

/// `Compiled::preprocessed` is a self-contained text.
#[test]
fn the_preprocessed_text_compiles_to_the_same() {
    for (name, text) in folder("pass") {
        let first = match compile(&files("a.p4", &text), "a.p4", &Options::default()) {
            Ok(compiled) => compiled,
            Err(diagnostics) => panic!("{name}:\n{diagnostics}"),
        };
        let load = |path: &str| (path == "a.p4").then(|| first.preprocessed.clone());
        let second = compile(&load, "a.p4", &Options::default()).expect(&name);
        assert_eq!(first.p4info, second.p4info, "{name}");
        assert_eq!(
            first.program.controls.len(),
            second.program.controls.len(),
            "{name}"
        );
    }
}

#[test]
fn what_should_be_refused_is_with_these_messages() {
    for (name, text) in folder("fail") {
        match messages(&name, &text) {
            Ok(()) => panic!("{name} compiles"),
            Err(messages) => insta::assert_snapshot!(name, messages),
        }
    }
}

/// `features.md` names each feature and its programs; each program names its features in its first line.
#[test]
fn the_index_of_features_has_no_hole() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus/features.md");
    let index = std::fs::read_to_string(path).expect("the index");
    let mut listed: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for line in index.lines().filter_map(|l| l.strip_prefix("- ")) {
        let (feature, programs) = line.split_once(": ").expect("a feature and its programs");
        let old = listed.insert(feature, programs.split(", ").collect());
        assert!(old.is_none(), "{feature} is listed twice");
    }
    let programs = folder("pass");
    let mut shown: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for (name, text) in &programs {
        let first = text.lines().next().unwrap_or_default();
        let features = first.strip_prefix("// features: ");
        let features = features.unwrap_or_else(|| panic!("{name} names no feature"));
        for feature in features.split(", ") {
            shown.entry(feature).or_default().insert(name);
        }
    }
    assert_eq!(listed, shown);
    for asked in FEATURES {
        assert!(listed.contains_key(asked), "no program shows: {asked}");
    }
}

/// Features for which there must be a program.
const FEATURES: &[&str] = &[
    "#line",
    "abstract extern methods",
    "abstract methods that run",
    "annotations structured as key-value pairs",
    "annotations structured as lists",
    "annotations unstructured",
    "architectures of the user's own",
    "constant folding at arbitrary precision",
    "default arguments",
    "enums with a type",
    "enums without a type",
    "error declarations",
    "for loops",
    "generics",
    "header stacks",
    "header unions",
    "lists",
    "match_kind extension",
    "named arguments",
    "new types",
    "optional arguments",
    "PSA externs",
    "static_assert",
    "switch on expressions",
    "T2NA externs",
    "TNA externs",
    "tuples",
    "type inference",
    "typedef aliases",
    "v1model externs",
    "value sets",
    "varbit",
];

/// Each diagnostic code occurs in a rejected program.
#[test]
fn every_kind_of_diagnostic_is_shown() {
    let mut seen = BTreeSet::new();
    for (name, text) in folder("fail") {
        let path = format!("{name}.p4");
        if let Err(found) = compile(&files(&path, &text), &path, &Options::default()) {
            seen.extend(found.list.iter().map(|d| d.code));
        }
    }
    let missing: Vec<Code> = Code::ALL
        .iter()
        .copied()
        .filter(|c| !seen.contains(c))
        .collect();
    assert!(missing.is_empty(), "{missing:?}");
}

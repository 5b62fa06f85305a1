//! The top modules stand on each other in one order: none imports what stands above it.
#![allow(clippy::disallowed_methods)] // Reads the sources.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// From the bottom up.
const ORDER: &[&str] = &[
    "bits",
    "call",
    "simd",
    "limits",
    "stats",
    "match_kind",
    "port_numbers",
    "error",
    "externs",
    "table",
    "op",
    "state",
    "rules",
    "job",
    "queues",
    "config",
    "exec",
    "compile",
    "reference",
    "arch",
    "switch",
];

/// The text of a module's files but for tests, which may look at anything.
fn text(path: &Path, found: &mut String) {
    if path.is_dir() {
        for entry in fs::read_dir(path).expect("a folder") {
            text(&entry.expect("an entry").path(), found);
        }
    } else if path.file_name().is_none_or(|name| name != "tests.rs") {
        let file = fs::read_to_string(path).expect("a file");
        let code = file.split("#[cfg(test)]\nmod tests").next().unwrap_or("");
        let lines = code.lines().filter(|l| !l.trim_start().starts_with("//"));
        found.extend(lines.flat_map(|line| [line, "\n"]));
    }
}

/// The modules that a text names by `crate::`.
fn imported(text: &str) -> BTreeSet<&str> {
    let paths = text.split("crate::").skip(1);
    let name = |path: &'_ str| path.find(|c: char| !c.is_alphanumeric() && c != '_');
    paths
        .filter_map(|path| path.get(..name(path)?))
        .filter(|name| ORDER.contains(name))
        .collect()
}

#[test]
fn no_module_imports_what_stands_above_it() {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut seen = BTreeSet::new();
    for entry in fs::read_dir(&src).expect("the sources") {
        let path = entry.expect("an entry").path();
        let name = path
            .file_stem()
            .expect("a name")
            .to_string_lossy()
            .into_owned();
        if name == "lib" {
            continue;
        }
        let place = ORDER.iter().position(|n| *n == name);
        let place = place.unwrap_or_else(|| panic!("{name} has no place in the order"));
        let mut code = String::new();
        text(&path, &mut code);
        for other in imported(&code) {
            let other_place = ORDER.iter().position(|n| *n == other);
            assert!(
                other_place <= Some(place),
                "{name} imports {other}, which stands above it"
            );
        }
        assert!(
            !code.contains("use crate::{"),
            "{name}: one module an import"
        );
        seen.insert(name);
    }
    assert_eq!(
        seen.len(),
        ORDER.len(),
        "every module of the order is there"
    );
}

#[test]
fn imports_are_found_wherever_they_stand() {
    let text = "use crate::op::{Code, Op};\nfn f() { crate::switch::g(crate::no_such) }";
    assert_eq!(imported(text), BTreeSet::from(["op", "switch"]));
}

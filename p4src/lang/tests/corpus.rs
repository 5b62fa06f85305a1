//! Files as tests: what is in corpus/pass compiles, what is in corpus/fail is refused with the messages in snapshots/.

#![allow(clippy::disallowed_methods)] // The crate is pure; its tests read programs and clocks.

use p4lang::{Options, compile};
use std::path::Path;

/// Names and texts of a folder's files, sorted.
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

fn messages(name: &str, text: &str) -> Result<(), String> {
    let path = format!("{name}.p4");
    let loader = |asked: &str| (asked == path).then(|| text.to_owned());
    match compile(&loader, &path, &Options::default()) {
        Ok(_) => Ok(()),
        Err(diagnostics) => Err(format!("{}\n{diagnostics}", diagnostics.short())),
    }
}

#[test]
fn what_should_compile_does() {
    for (name, text) in folder("pass") {
        if let Err(messages) = messages(&name, &text) {
            panic!("{name}:\n{messages}");
        }
    }
}

/// The text that `Compiled::preprocessed` hands out stands alone.
#[test]
fn the_preprocessed_text_compiles_to_the_same() {
    for (name, text) in folder("pass") {
        let load = |path: &str| (path == "a.p4").then(|| text.clone());
        let first = compile(&load, "a.p4", &Options::default()).expect(&name);
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

//! Files that are there but cannot be read, and the text that stands alone.

use p4lang::{Files, Loader, Options, compile, preprocessed, source_text};

/// Files, one of which cannot be read.
struct Broken(Files);

impl Loader for Broken {
    fn load(&self, path: &str) -> Option<String> {
        self.0.load(path)
    }

    fn why_not(&self, path: &str) -> Option<String> {
        (path == "lib/bad.p4").then(|| "it is a folder".to_owned())
    }
}

fn first_error(loader: &dyn Loader, path: &str) -> String {
    let options = Options {
        include_dirs: vec!["lib".to_owned()],
        ..Options::default()
    };
    let found = compile(loader, path, &options).expect_err("an error");
    found.short().lines().next().unwrap_or_default().to_owned()
}

#[test]
fn an_unreadable_file_is_not_a_missing_one() {
    let files = Broken(
        Files::new()
            .with("a.p4", "\n#include <bad.p4>\n")
            .with("b.p4", "#include \"c.p4\"\n"),
    );
    assert_eq!(
        first_error(&files, "a.p4"),
        "a.p4:2:1: error[include]: cannot read `lib/bad.p4`: it is a folder"
    );
    assert_eq!(
        first_error(&files, "lib/bad.p4"),
        "lib/bad.p4:1:1: error[include]: cannot read `lib/bad.p4`: it is a folder"
    );
    assert_eq!(
        first_error(&files, "b.p4"),
        "b.p4:1:1: error[include]: there is no file `c.p4` to include"
    );
    assert_eq!(
        first_error(&files, "d.p4"),
        "d.p4:1:1: error[include]: there is no file `d.p4`"
    );
}

#[test]
fn what_is_not_text_says_what_it_is() {
    assert_eq!(
        source_text(b"header h { }".to_vec()).as_deref(),
        Ok("header h { }")
    );
    let why = |bytes: &[u8]| source_text(bytes.to_vec()).expect_err("no text");
    assert!(why(b"\xff\xfeh\0").contains("UTF-16"));
    assert!(why(b"ELF\0\0").contains("zero bytes"));
    assert_eq!(
        why(b"a\nb\x80"),
        "it is not text in UTF-8: byte 3, on line 2, is 0x80"
    );
}

/// A byte-order mark is no part of the program.
#[test]
fn a_byte_order_mark_is_skipped() {
    let plain = Files::new().with("a.p4", "const bit<8> x = y;");
    let marked = Files::new().with("a.p4", "\u{feff}const bit<8> x = y;");
    assert_eq!(first_error(&marked, "a.p4"), first_error(&plain, "a.p4"));
}

#[test]
fn one_text_without_includes_keeps_its_places() {
    let files = Files::new()
        .with(
            "a.p4",
            "#include \"b.p4\"\n#define W 8\nconst bit<W> x = y;\n",
        )
        .with("b.p4", "const bit<8> z = 1;\n");
    let text = preprocessed(&files, "a.p4", &Options::default()).expect("a text");
    assert!(!text.contains("#include"), "{text}");
    assert!(text.contains("const bit<8> x = y;"), "{text}");
    let alone = Files::new().with("alone.p4", text);
    assert_eq!(first_error(&alone, "alone.p4"), first_error(&files, "a.p4"));
    assert!(preprocessed(&files, "nothing.p4", &Options::default()).is_err());
}

//! Files that exist but cannot be read, and the self-contained preprocessed text.

use p4lang::{Files, Loader, Options, compile, preprocessed, source_text};

/// A set of files, one of which cannot be read.
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
fn a_warning_shows_the_directive_as_written() {
    for before in ["", "#line 7 \"other.p4\"\n"] {
        let text = format!("// a comment\n{before}  #warning watch out\n#warning again\n");
        let files = Files::new().with("a.p4", text);
        let found = compile(&files, "a.p4", &Options::default()).expect_err("no main");
        let shown = found.render(false);
        assert!(shown.contains(" | #warning watch out\n"), "{shown}");
        assert!(shown.contains(" | ^^^^^^^^^^^^^^^^^^\n"), "{shown}");
        assert!(shown.contains(" | #warning again\n"), "{shown}");
    }
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

#[test]
fn what_a_whole_program_lacks_is_said_of_its_own_file() {
    let files = Files::new()
        .with("a.p4", "#include <tna.p4>\n")
        .with(
            "b.p4",
            "#include <core.p4>\nheader h_t { bit<8> a; }\n#include <v1model.p4>\n",
        )
        .with("c.p4", "// nothing\n");
    let lacks = "error[architecture]: no package named `main`";
    for (file, place) in [("a.p4", "a.p4:"), ("b.p4", "b.p4:2:1: "), ("c.p4", "c.p4:")] {
        let told = first_error(&Broken(files.clone()), file);
        assert!(told.starts_with(place) && told.ends_with(lacks), "{told}");
    }
}

#[test]
fn a_line_directive_puts_nothing_on_the_terminal() {
    let text = "#line 1 \"\x1b[31mred\x07.p4\"\nheader h_t { bit<8> a\n";
    let files = Files::new().with("a.p4", text);
    let found = compile(&files, "a.p4", &Options::default()).expect_err("an error");
    for told in [found.short(), found.render(false)] {
        assert!(told.contains("\u{241b}[31mred\u{2407}.p4:"), "{told:?}");
        assert!(!told.contains(['\x1b', '\x07']), "{told:?}");
    }
}

#[test]
fn graphs_hold_no_control_characters() {
    let text = "#include <core.p4>
parser P(packet_in pkt) { state start { transition accept; } }
@name(\"C\x1b[31m\x07\") control C() { @name(\"t\x1b]0;x\x07\") table t { actions = { NoAction; } } apply { t.apply(); } }
parser PT(packet_in pkt); control CT(); package Top(PT p, CT c);
Top(P(), C()) main;
";
    let files = Files::new().with("a.p4", text);
    let compiled = compile(&files, "a.p4", &Options::default()).unwrap_or_else(|e| panic!("{e}"));
    let graph = p4lang::graph::dot(&compiled.program);
    assert!(graph.contains("t\u{241b}]0;x\u{2407}"), "{graph}");
    assert!(!graph.contains(['\x1b', '\x07']), "{graph}");
}

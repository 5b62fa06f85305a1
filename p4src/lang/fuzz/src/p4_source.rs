//! Any bytes as a P4 program: preprocessed, parsed, checked, described in P4Info, formatted. Shared by the fuzz target and by
//! the test that replays the kept inputs.

use p4lang::diagnostics::{Diagnostics, Sink};
use p4lang::lexer::{Tok, lex};
use p4lang::tofino::{Chip, analyse};
use p4lang::{Files, Options, compile, format, graph, parse, preprocessed, source_text};

/// Prefix of a line that begins another file; the file's name follows.
const FILE: &str = "//FILE ";

/// Panics if the compiler violates one of its guarantees on this input.
pub fn run(data: &[u8]) {
    let text = match source_text(data.to_vec()) {
        Ok(text) => text,
        Err(why) => {
            assert!(!why.is_empty());
            // A caller may have its text from elsewhere.
            String::from_utf8_lossy(data).into_owned()
        }
    };
    let mut pieces = text.split(FILE);
    let main = pieces.next().unwrap_or_default();
    let mut files = Files::new().with("a.p4", main);
    for piece in pieces {
        let (name, content) = piece.split_once('\n').unwrap_or((piece, ""));
        if name != "a.p4" {
            files.insert(name, content);
        }
    }
    let options = Options {
        defines: vec![("D".to_owned(), "1".to_owned())],
        include_dirs: vec!["dir".to_owned()],
    };
    let stands_alone = compiles(&files, &options);
    lays_out(&files, main, &options);
    if let Some((text, p4info)) = stands_alone {
        // The device configuration of a target is this text: it must say the same.
        let alone = Files::new().with("a.p4", text.as_str());
        match compile(&alone, "a.p4", &Options::default()) {
            Ok(again) => assert!(again.p4info == p4info, "P4Info differs:\n{text}"),
            Err(errors) => panic!("does not stand alone:\n{}\n{text}", errors.short()),
        }
    }
}

/// The text that stands alone and its P4Info, if it compiles; errors can be shown.
fn compiles(files: &Files, options: &Options) -> Option<(String, p4lang::p4info::P4Info)> {
    match compile(files, "a.p4", options) {
        Ok(compiled) => {
            shown(&compiled.warnings);
            assert!(!graph::dot(&compiled.program).is_empty());
            for chip in [Chip::Tofino, Chip::Tofino2] {
                if let Ok(report) = analyse(&compiled.program, chip) {
                    assert!(!report.pipes.is_empty());
                }
            }
            Some((compiled.preprocessed, compiled.p4info))
        }
        Err(errors) => {
            assert!(errors.has_errors(), "refused without an error");
            shown(&errors);
            None
        }
    }
}

fn shown(diagnostics: &Diagnostics) {
    let rendered = diagnostics.render(false);
    assert_eq!(
        rendered.is_empty(),
        diagnostics.is_empty(),
        "nothing to read"
    );
    assert!(diagnostics.short().len() < 1 << 20);
}

/// The formatter's output has the tokens of its input, parses as the input does, and is stable if formatted again.
fn lays_out(files: &Files, main: &str, options: &Options) {
    let Ok(once) = format::format("a.p4", main) else {
        return;
    };
    // Ends of lines become Unix', within strings, too; what follows is about the text behind that.
    let lines: Vec<&str> = main.split('\n').collect();
    let lines = lines.iter().map(|line| line.trim_end_matches('\r'));
    let unix = lines.collect::<Vec<_>>().join("\n");
    if main.contains('\r') && !main.ends_with('\r') {
        assert_eq!(format::format("a.p4", &unix).ok().as_ref(), Some(&once));
    }
    let main = unix.as_str();
    let mut files = files.clone();
    files.insert("a.p4", main);
    let files = &files;
    let twice = format::format("a.p4", &once).unwrap_or_else(|e| panic!("{}\n{once}", e.short()));
    assert_eq!(once, twice, "laid out twice from\n{main}");
    // Line numbers and the text of macro arguments are the layout's to change.
    if main.contains("__LINE__") || main.contains('#') && main.contains("define") {
        return;
    }
    // The text of a directive need not consist of tokens.
    if !main.contains('#') {
        assert_eq!(tokens(main), tokens(&once), "\n{main}\n{once}");
    }
    let mut after = files.clone();
    after.insert("a.p4", once.as_str());
    // Where empty lines went, `#line` markers may come or go.
    let unmarked = |text: String| -> String {
        let lines = text.split_inclusive('\n');
        lines.filter(|line| !line.starts_with("#line ")).collect()
    };
    let before = preprocessed(files, "a.p4", options).map(|text| tokens(&unmarked(text)));
    let now = preprocessed(&after, "a.p4", options).map(|text| tokens(&unmarked(text)));
    match (before, now) {
        (Ok(before), Ok(now)) => assert_eq!(before, now, "\n{main}\n{once}"),
        (before, now) => assert_eq!(before.is_ok(), now.is_ok(), "\n{main}\n{once}"),
    }
    let parses = |files: &Files| parse(files, "a.p4", options).is_ok();
    assert_eq!(parses(files), parses(&after), "\n{main}\n{once}");
}

/// All tokens as written, `>` apart from a `>` that touches the next one.
fn tokens(text: &str) -> Vec<(Tok, String)> {
    let mut sink = Sink::new();
    let tokens = lex(text, &mut sink);
    let mut out = Vec::with_capacity(tokens.len());
    for (n, token) in tokens.iter().enumerate() {
        let written = &text[token.span.start as usize..token.span.end as usize];
        let next = tokens.get(n + 1);
        let touches = token.kind == Tok::Gt
            && next.is_some_and(|t| {
                matches!(t.kind, Tok::Gt | Tok::Ge) && t.span.start == token.span.end
            });
        let mark = if touches { "+" } else { "" };
        out.push((token.kind, format!("{written}{mark}")));
    }
    out
}

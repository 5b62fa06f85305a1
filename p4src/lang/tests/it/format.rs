//! The formatter, over all of p4src and over small texts.

use p4lang::format::format;
use p4lang::lexer::{Tok, lex};

#[allow(
    clippy::disallowed_methods,
    reason = "this test reads the sources themselves"
)]
fn sources() -> Vec<(String, String)> {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/..");
    let mut found = Vec::new();
    for folder in ["common", "psa", "v1model", "tna", "include"] {
        let mut names: Vec<_> = std::fs::read_dir(format!("{root}/{folder}"))
            .expect("p4src")
            .map(|entry| entry.expect("an entry").path())
            .filter(|path| path.extension().is_some_and(|e| e == "p4"))
            .collect();
        names.sort();
        for path in names {
            let text = std::fs::read_to_string(&path).expect("readable");
            found.push((path.display().to_string(), text));
        }
    }
    assert!(found.len() > 20, "{}", found.len());
    found
}

fn formatted(text: &str) -> String {
    format("t.p4", text).unwrap_or_else(|errors| panic!("{errors}"))
}

/// The text without white space, and the text of every token.
fn contents(text: &str) -> (String, Vec<String>) {
    let mut sink = p4lang::diagnostics::Sink::new();
    let tokens = lex(text, &mut sink)
        .iter()
        .filter(|t| t.kind != Tok::Eof)
        .map(|t| text[t.span.start as usize..t.span.end as usize].to_owned())
        .collect();
    (text.split_whitespace().collect(), tokens)
}

#[test]
fn all_of_p4src_keeps_its_tokens_and_comments() {
    for (path, text) in sources() {
        let once = formatted(&text);
        assert_eq!(contents(&once), contents(&text), "{path}");
        assert_eq!(formatted(&once), once, "{path}: twice is once");
    }
}

#[test]
fn p4src_is_laid_out() {
    for (path, text) in sources()
        .into_iter()
        .filter(|(path, _)| !path.contains("/include/"))
    {
        assert_eq!(formatted(&text), text, "{path}");
    }
}

#[test]
fn a_crooked_text() {
    let text = "\n\ncontrol C( inout  bit<8>x ,in bool y){\n\n   // why\n action a( ) {x=x+1 ;}\n  apply{\n if(y&&!( x==- 1 )){ x = (bit<8>)  (x<<1) ; }   // so\n\n\n\n  a( );\n\n }\n}";
    let expected = "control C(inout bit<8> x, in bool y) {
    // why
    action a() { x = x + 1; }
    apply {
        if (y && !(x == -1)) { x = (bit<8>) (x << 1); }   // so

        a();
    }
}
";
    assert_eq!(formatted(text), expected);
    assert_eq!(formatted(expected), expected);
}

#[test]
fn directives_and_block_comments_stay() {
    let text = "#define A \\\n      1\n   /* one\n  two */ const bit<8> X = A;\n   #if A\nconst bit<8> Y = 2;\n#endif\n";
    let expected = "#define A \\\n      1\n/* one\n  two */ const bit<8> X = A;\n#if A\nconst bit<8> Y = 2;\n#endif\n";
    assert_eq!(formatted(text), expected);
    assert_eq!(formatted(expected), expected);
}

#[test]
fn a_directive_goes_on_as_the_preprocessor_reads_it() {
    for text in [
        "#define SUM(a) /* two\n   lines */ (a  +  1)\nconst bit<8> x = SUM(1);\n",
        "#define SUM(a) (a  + \\\n    1)\nconst bit<8> x = SUM(1);\n",
        "/* a comment */ #define ONE  1\nconst bit<8> x = ONE;\n",
    ] {
        assert_eq!(formatted(text), text);
    }
}

#[test]
fn what_an_annotation_says_stays() {
    let text = "@says(a:b  c ==d /* e */ (f,g) )  @brief( \"x\" ) action a(  ) { }\n";
    let laid_out = "@says(a:b  c ==d /* e */ (f,g) ) @brief( \"x\" ) action a() { }\n";
    assert_eq!(formatted(text), laid_out);
}

#[test]
fn lines_end_as_on_unix() {
    for ends in ["\r\n", "\r\r\n"] {
        let text = format!("const bit<8> a=1;{ends}// \"{ends}#define B{ends}");
        assert_eq!(formatted(&text), "const bit<8> a = 1;\n// \"\n#define B\n");
    }
}

#[test]
fn a_backslash_ends_its_line_whatever_white_space_follows() {
    assert_eq!(formatted("a \\ \n  b\n"), "a \\\n  b\n");
    assert_eq!(
        formatted("#define X a \\ \t\n  b\nX\n"),
        "#define X a \\\n  b\nX\n"
    );
    assert_eq!(formatted("a \\"), "a \\\n");
}

/// The two lines of one token stay unchanged.
#[test]
fn a_token_that_a_backslash_continues_stays_one() {
    let text = "const bit<8> na\\\nme = 1\\\n2;\n";
    assert_eq!(format("a.p4", text).expect("laid out"), text);
}

#[test]
fn a_comment_that_a_backslash_continues_takes_no_token_with_it() {
    for text in [
        "// a \\\n   b /* \n\n\nx\n",
        "control C() {\n    apply {\n        // a \\\n\n    }\n}\n",
        "f(x, // a \\\n\n  y)\n",
    ] {
        let once = formatted(text);
        assert_eq!(contents(&once), contents(text), "{once}");
        assert_eq!(formatted(&once), once, "twice is once");
    }
}

#[test]
fn lines_that_go_on_keep_their_distance() {
    let text = "control C(\n    in bit<8> x,\n    in bit<8> y) {\n  apply {\n    bool z = x == 1\n        || y == 2;\n  }\n}\n";
    let expected = "control C(\n    in bit<8> x,\n    in bit<8> y) {\n    apply {\n        bool z = x == 1\n            || y == 2;\n    }\n}\n";
    assert_eq!(formatted(text), expected);
}

#[test]
fn a_tab_goes_to_the_next_stop() {
    let text = "control C(inout bit<8> x) {\n\tapply {\n\t    if (x == 1 &&\n    \t\tx != 2)\n\t\t\t// why\n\t\tf(x,\n\t\t  x);\n\t}\n}\n";
    let expected = "control C(inout bit<8> x) {\n    apply {\n        if (x == 1 &&\n            x != 2)\n                    // why\n            f(x,\n              x);\n    }\n}\n";
    assert_eq!(formatted(text), expected);
    assert_eq!(formatted(expected), expected);
}

#[test]
fn spaces_around_words_colons_widths_and_shifts() {
    for (text, expected) in [
        ("bit < 8 >z = 1;", "bit<8> z = 1;"),
        ("bit< (1>2 ? 3:4) >z;", "bit<(1>2 ? 3 : 4)> z;"),
        ("tuple<bit<8>>z;", "tuple<bit<8>>z;"),
        ("x = x << 1>>2;", "x = x << 1 >> 2;"),
        ("x>>=2;", "x >>= 2;"),
        (
            "x = a>>b | (a)>>(b) | a[0]>>c;",
            "x = a >> b | (a) >> (b) | a[0] >> c;",
        ),
        ("if (a<b>>c) { }", "if (a<b >> c) { }"),
        ("x = f<g<h>>(b) + g<(W)>>>1;", "x = f<g<h>>(b) + g<(W)>>>1;"),
        ("reg<t<a, b>>(3) r;", "reg<t<a, b>>(3) r;"),
        ("t<a, list<e.f>>z;", "t<a, list<e.f>>z;"),
        ("t<bit<(8+W)>, a<b>>z;", "t<bit<(8 + W)>, a<b>>z;"),
        ("bit<(W>>S)> x = 8+W-9;", "bit<(W >> S)> x = 8 + W - 9;"),
        ("x = y[i+:8] + y[7-:4];", "x = y[i +: 8] + y[7 -: 4];"),
        (
            "if (x == 1) { }else if (y)x = 3;",
            "if (x == 1) { } else if (y) x = 3;",
        ),
        ("x = (bit<8>)y;", "x = (bit<8>) y;"),
        ("x = y[7 : 4] + y[3:0];", "x = y[7 : 4] + y[3:0];"),
        ("x = y ? 1:2;", "x = y ? 1 : 2;"),
        (
            "table t { key = { x :exact; }actions = { a; }const entries = { (3, _) : b(2); } }",
            "table t { key = { x: exact; } actions = { a; } const entries = { (3, _): b(2); } }",
        ),
    ] {
        assert_eq!(formatted(text).trim_end(), expected);
        assert_eq!(formatted(expected).trim_end(), expected);
        assert_eq!(contents(expected), contents(text));
    }
}

#[test]
fn what_has_no_tokens_is_an_error() {
    assert!(format("t.p4", "control C { /* never closed").is_err());
    assert_eq!(formatted(""), "");
}

mod any_text {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// With any distribution of spaces and line ends, formatting keeps the tokens and is idempotent.
        #[test]
        fn twice_is_once(pieces in prop::collection::vec(
            prop::sample::select(vec![
                "control", "C", "(", ")", "{", "}", ";", ",", "=", "==", "+", "-", "<", ">", "!", "8w5", "x", "if", "bit<8>",
                "\n", "\n\n", " ", "   ", "// note\n", "/* a */", "/* a\n b */", "\n#if X\n", "\n#define Y \\\n 5\n", "\"s\"", "[", "]", ".", "&&&", "return",
                ":", "?", "\t", "bit", ">>", "1>>2", "varbit", "x:y", "\n\t \t",
            ]), 0..60)) {
            let text: String = pieces.join(" ");
            if let Ok(once) = format("t.p4", &text) {
                prop_assert_eq!(contents(&once), contents(&text));
                let twice = formatted(&once);
                prop_assert_eq!(twice, once);
            }
        }
    }
}

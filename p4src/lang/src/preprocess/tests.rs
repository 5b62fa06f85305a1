use super::*;
use crate::diagnostics::Diagnostics;
use std::sync::Arc;
use test_support::cost;

fn run(files: Files, options: &Options) -> (SourceMap, Diagnostics) {
    let mut sink = Sink::new();
    let map = preprocess(&files, "main.p4", options, &mut sink);
    let diagnostics = sink.finish(Arc::new(map.clone()));
    (map, diagnostics)
}

/// The output without empty lines.
fn text(source: &str) -> String {
    let (map, diagnostics) = run(Files::new().with("main.p4", source), &Options::default());
    assert!(!diagnostics.has_errors(), "{diagnostics}");
    squeezed(&map.text)
}

fn squeezed(text: &str) -> String {
    let lines = text.lines().map(str::trim).filter(|l| !l.is_empty());
    lines.collect::<Vec<_>>().join("\n")
}

fn errors(source: &str) -> Vec<(Code, String)> {
    let (_, diagnostics) = run(Files::new().with("main.p4", source), &Options::default());
    let found = diagnostics.errors();
    found.map(|d| (d.code, d.message.clone())).collect()
}

#[test]
fn object_and_function_macros() {
    assert_eq!(text("#define N 8\nbit<N> x;"), "bit<8> x;");
    assert_eq!(
        text("#define F(a, b) a + b\nF(1, (2, 3)) F"),
        "1 + (2, 3) F"
    );
    assert_eq!(text("#define F() z\nF() F( )"), "z z");
    assert_eq!(text("#define A B\n#define B A\nA B"), "A B");
    assert_eq!(text("#define N 1\n#undef N\nN"), "N");
    assert_eq!(
        text("#define V(a, ...) f(a, __VA_ARGS__)\nV(1, 2, 3)"),
        "f(1, 2, 3)"
    );
    assert_eq!(
        text("#define F(x) [x]\n#define G F\nG(1) G\n(2)"),
        "[1] [2]"
    );
}

/// The example of the C standard, 6.10.3.5, the usual test of an expansion algorithm.
#[test]
fn rescanning_as_the_c_standard_shows_it() {
    let source = "#define x 3\n#define f(a) f(x * (a))\n#undef x\n#define x 2\n#define g f\n#define z z[0]\n\
        #define m(a) a(w)\n#define w 0,1\n#define t(a) a\n\
        f(y+1) + f(f(z)) % t(t(g)(0) + t)(1);\ng(x+(3,4)-w) & m\n(f)^m(m);";
    assert_eq!(
        text(source),
        "f(2 * (y+1)) + f(2 * (f(2 * (z[0])))) % f(2 * (0)) + t(1);\n\
         f(2 * (2+(3,4)-0,1)) & f(2 * (0,1))\n^m(0,1);"
    );
}

#[test]
fn stringify_and_paste() {
    assert_eq!(text("#define S(x) #x\nS(a  +  \"q\")"), "\"a + \\\"q\\\"\"");
    assert_eq!(
        text("#define P(a, b) a##b\nP(x, 1) P(,y) P(<, <)"),
        "x1 y <<"
    );
    assert_eq!(
        text("#define P(a, b) a ## b\n#define AB ok\n#define A no\nP(A, B)"),
        "ok"
    );
    assert_eq!(text("#define N -1\nx = -N;"), "x = - -1;");
}

#[test]
fn strings_and_comments_are_left_alone() {
    assert_eq!(
        text("#define N 8\n\"N\" // N\n/* N\nN */ N"),
        "\"N\" // N\n/* N\nN */ 8"
    );
    assert_eq!(
        text("#define N 1 /* one\n still */ + 2 // three\nN"),
        "1 + 2"
    );
    assert_eq!(text("#define N 1 \\\n + 2\nN"), "1 + 2");
}

#[test]
fn a_backslash_continues_a_line_comment_too() {
    assert_eq!(text("#define N 1 \\\n + 2 // c \\\n more \\\n\nN"), "1 + 2");
    assert_eq!(text("#define N 8\n// N \\\n N \\ \nN\nN"), "// N  N N\n8");
    assert_eq!(text("#if 0\n// \\\n#else\nn\n#endif\nx"), "x");
    assert_eq!(text("// \\"), "//");
    for included in ["a // c \\", "a // c \\ \n", "// \\\n b \\\n"] {
        let files = Files::new()
            .with("main.p4", "#include \"i.p4\"\nb\n")
            .with("i.p4", included);
        let (map, _) = run(files, &Options::default());
        let before = map.text.strip_suffix("\nb\n").expect("a line of its own");
        assert!(
            !crate::spelling::is_continued(before.trim_end()),
            "{}",
            map.text
        );
    }
    let (map, found) = run(
        Files::new().with("main.p4", "a // c \\ \nb\nc"),
        &Options::default(),
    );
    assert_eq!(map.text, "a // c b\nc\n");
    assert_eq!(found.list.len(), 1);
    assert_eq!(
        &map.text[found.list[0].span.start as usize..found.list[0].span.end as usize],
        "// c"
    );
}

#[test]
fn conditionals() {
    let pick = |defines: &str| {
        text(&format!(
            "{defines}\n#if defined(A) && A > 1\none\n#elif defined B\ntwo\n#ifdef C\nthree\n#endif\n#else\nfour\n#endif"
        ))
    };
    assert_eq!(pick("#define A 2"), "one");
    assert_eq!(pick("#define A 1\n#define B"), "two");
    assert_eq!(pick("#define B\n#define C"), "two\nthree");
    assert_eq!(pick(""), "four");
    assert_eq!(
        text("#if 0\n#error no\n#include \"none\"\n#if 1\nx\n#endif\n#endif\ny"),
        "y"
    );
    assert_eq!(
        text("#ifndef G\n#define G\na\n#endif\n#ifndef G\nb\n#endif"),
        "a"
    );
}

#[test]
fn includes_are_found_in_order() {
    let files = Files::new()
        .with(
            "main.p4",
            "#include \"sub/a.p4\"\n#include <b.p4>\n#define C <c.p4>\n#include C\nmain",
        )
        .with("sub/a.p4", "a\n#include \"b.p4\"")
        .with("sub/b.p4", "sub b")
        .with("inc/b.p4", "inc b")
        .with("inc/c.p4", "#pragma once\n#include \"c.p4\"\ninc c");
    let options = Options {
        include_dirs: vec!["./inc/".into()],
        ..Options::default()
    };
    let (map, diagnostics) = run(files, &options);
    assert!(diagnostics.is_empty(), "{diagnostics}");
    assert_eq!(squeezed(&map.text), "a\nsub b\ninc b\ninc c\nmain");
    let at = |needle: &str| {
        let start = map.text.find(needle).expect(needle) as u32;
        map.location(Span::new(start, start)).to_string()
    };
    assert_eq!(at("sub b"), "sub/b.p4:1:1");
    assert_eq!(at("inc c"), "inc/c.p4:3:1");
    assert_eq!(at("main"), "main.p4:5:1");
}

#[test]
fn places_survive_macros_and_markers() {
    let source = "#define LONG 123456\n#define F(a) a\nx LONG y\nF(1\n) z\n#line 50 \"other.p4\"\nq\n__LINE__ __FILE__";
    let (map, diagnostics) = run(Files::new().with("main.p4", source), &Options::default());
    assert!(diagnostics.is_empty(), "{diagnostics}");
    let at = |map: &SourceMap, needle: &str| {
        let start = map.text.find(needle).expect(needle) as u32;
        map.location(Span::new(start, start)).to_string()
    };
    assert_eq!(at(&map, "3456"), "main.p4:3:3");
    assert_eq!(at(&map, "y"), "main.p4:3:8");
    assert_eq!(at(&map, "z"), "main.p4:5:3");
    assert_eq!(at(&map, "q"), "other.p4:50:1");
    assert!(map.text.contains("51 \"other.p4\""));

    // Preprocessing the output with its markers again yields the same positions.
    let marked = map.with_line_markers();
    let (again, _) = run(Files::new().with("main.p4", marked), &Options::default());
    for needle in ["123456", "z", "q"] {
        let line = |map: &SourceMap| {
            let place = at(map, needle);
            place[..place.rfind(':').unwrap_or(0)].to_owned()
        };
        assert_eq!(line(&map), line(&again), "{needle}");
    }
}

/// Phase 2 of the C standard comes before tokenization.
#[test]
fn continued_lines_are_joined_first() {
    assert_eq!(
        text("#define LONG\\\n_NAME 8\nbit<LONG_NA\\\nME> x;"),
        "bit<8\n> x;"
    );
    assert_eq!(text("#define F(a) [a]\nF\\\n(1\\\n2)"), "[12]");
    assert_eq!(
        text("#def\\\nine N 1\n#if\\\ndef N\ny\\\nes\n#endif"),
        "yes"
    );
    assert_eq!(
        text("a /\\\n* no *\\\n/ b \"s\\\nt\""),
        "a /* no */ b \"st\""
    );
    assert_eq!(text("a\\\n// b \\\nc\nd"), "a// b c\nd");
    assert_eq!(text("x \\"), "x");
}

#[test]
fn places_survive_continued_lines() {
    let source = "#define N 12\nab \\\n  cd\\\nef N \\\n N gh\\\n\n  ij\n// k \\\nl\nmn";
    let (map, _) = run(Files::new().with("main.p4", source), &Options::default());
    assert_eq!(
        squeezed(&map.text).replace("12", "N"),
        "ab   cdef N  N gh\nij\n// k l\nmn"
    );
    let at = |map: &SourceMap, needle: &str| {
        let start = map.text.find(needle).expect(needle) as u32;
        map.location(Span::new(start, start)).to_string()
    };
    let places = [
        ("ab", "2:1"),
        ("cdef", "3:3"),
        ("ef", "4:1"),
        ("12", "4:4"),
        ("gh", "5:4"),
        ("ij", "7:3"),
        ("// k", "8:1"),
        ("l\n", "9:1"),
        ("mn", "10:1"),
    ];
    for (needle, place) in places {
        assert_eq!(at(&map, needle), format!("main.p4:{place}"), "{needle}");
    }
    let second_n = map.text.rfind("12").expect("two") as u32;
    let second_n = Span::new(second_n, second_n + 2);
    assert_eq!(map.location(second_n).to_string(), "main.p4:5:2");
    let shown = |needle: &str| {
        let start = map.text.find(needle).expect(needle) as u32;
        map.written_line(map.line_index(start)).to_owned()
    };
    assert_eq!(shown("ab"), "ab \\");
    assert_eq!(shown("cdef"), "  cd\\");
    assert_eq!(shown("gh"), " N gh\\");
    // Preprocessing the output with its markers again yields the same tokens on the same lines.
    let (again, _) = run(
        Files::new().with("main.p4", map.with_line_markers()),
        &Options::default(),
    );
    assert_eq!(squeezed(&again.text), squeezed(&map.text));
    for (needle, _) in places {
        let line = |place: String| place[..place.rfind(':').unwrap_or(0)].to_owned();
        assert_eq!(line(at(&map, needle)), line(at(&again, needle)), "{needle}");
    }
}

/// Tokens passed from macro to macro do not count as output.
#[test]
fn the_limit_on_macros_is_on_what_they_leave() {
    let mut source = String::from("#define M0(x) x + x\n");
    for i in 1..16 {
        source += &format!("#define M{i}(x) M{p}(x)\n", p = i - 1);
    }
    source += &"M15(ab) ".repeat(5_000);
    let (map, diagnostics) = run(Files::new().with("main.p4", source), &Options::default());
    assert!(!diagnostics.has_errors(), "{diagnostics}");
    assert_eq!(map.text.matches("ab + ab").count(), 5_000);
}

#[test]
fn defines_from_outside() {
    let options = Options {
        defines: vec![("N".into(), "8".into()), ("F(x)".into(), "x+N".into())],
        ..Options::default()
    };
    let (map, _) = run(Files::new().with("main.p4", "F(1)"), &options);
    assert_eq!(squeezed(&map.text), "1+8");
}

/// The driver's macros are defined before the first line, whichever file includes the architecture.
#[test]
fn a_target_is_known_by_its_architecture() {
    let shown = "#ifdef __TARGET_BMV2__
bmv2
#endif
#if __TARGET_TOFINO__ == 1
one
#elif __TARGET_TOFINO__ == 2
two __TOFINO2_VARIANT__
#endif
#ifdef __p4c__
__p4c_major__
#endif
";
    let defines = |name: &str, body: &str| vec![(name.to_owned(), body.to_owned())];
    let none = Vec::new;
    let tofino2 = || defines("__TARGET_TOFINO__", "2");
    for (include, defines, expected) in [
        ("<v1model.p4>", none(), "bmv2"),
        ("<psa.p4>", none(), "bmv2"),
        ("<tna.p4>", none(), "one\n9"),
        ("<t2na.p4>", none(), "two 1\n9"),
        ("\"arch.p4\"", none(), "bmv2"),
        ("\"own/v1model.p4\"", none(), "bmv2"),
        ("<core.p4>", none(), ""),
        // The caller's definition wins.
        ("\"chosen.p4\"", tofino2(), "two 1\n9"),
        ("\"chosen.p4\"", none(), "one\n9"),
        ("<core.p4>", tofino2(), "two __TOFINO2_VARIANT__"),
    ] {
        let options = Options {
            defines,
            ..Options::default()
        };
        for main in [
            format!("#include {include}\nprogram {{\n{shown}}}\n"),
            format!("program {{\n{shown}}}\n#include {include}\n"),
        ] {
            let files = Files::new()
                .with("main.p4", &main)
                .with("arch.p4", "#include <v1model.p4>")
                .with("own/v1model.p4", "// ours")
                .with(
                    "chosen.p4",
                    "#if __TARGET_TOFINO__ == 2\n#include <t2na.p4>\n#else\n#include <tna.p4>\n#endif",
                );
            let (map, diagnostics) = run(files, &options);
            assert!(diagnostics.is_empty(), "{diagnostics}");
            let (_, program) = map.text.split_once("program {").expect("the program");
            let (program, _) = program.split_once('}').expect("its end");
            assert_eq!(squeezed(program), expected, "{main}");
        }
    }
}

#[test]
fn faults_have_places_and_kinds() {
    for (source, code) in [
        ("#include \"none.p4\"", Code::Include),
        ("#include none", Code::Directive),
        ("#error stop", Code::ErrorDirective),
        ("#if 1", Code::Directive),
        ("#if 1 +\n#endif", Code::Directive),
        ("#endif", Code::Directive),
        ("#else", Code::Directive),
        ("#if 1\n#else\n#else\n#endif", Code::Directive),
        ("#frobnicate", Code::Directive),
        ("#define", Code::Macro),
        ("#define F(a, a) a", Code::Macro),
        ("#define F(a", Code::Macro),
        ("#define F ## x", Code::Macro),
        ("#define F(a) a\nF(1, 2)", Code::Macro),
        ("#define F(a) a\nF(1", Code::Macro),
        ("#line x", Code::Directive),
    ] {
        let found = errors(source);
        assert_eq!(found.len(), 1, "{source}: {found:?}");
        assert_eq!(found[0].0, code, "{source}");
    }
    let (_, diagnostics) = run(
        Files::new().with("main.p4", "a\n  #error here\nb"),
        &Options::default(),
    );
    assert_eq!(
        diagnostics.short(),
        "main.p4:2:1: error[error-directive]: here\n"
    );
}

/// Sources that would take unbounded time or memory without limits.
#[test]
fn hostile_sources_end_soon() {
    let mut doubling = String::from("#define M0 x x\n");
    let mut pasting = String::from("#define CAT(a, b) a ## b\n#define D0(x) x\n");
    for i in 1..64 {
        doubling += &format!("#define M{i} M{p} M{p}\n", p = i - 1);
        pasting += &format!(
            "#define E{i}(x) CAT(x, x)\n#define D{i}(x) D{p}(E{i}(x))\n",
            p = i - 1
        );
    }
    let nested = "F(".repeat(200_000);
    let sources = [
        format!("{doubling}M63"),
        format!("{pasting}D63(abc)"),
        "#include \"main.p4\"\n#include \"main.p4\"\n".to_owned(),
        format!("#define F(x) x\n{nested}"),
        format!("#define F(x) x x\n{nested}1{}", ")".repeat(200_000)),
        "#if 1\n".repeat(100_000),
        format!("#if {}", "(".repeat(100_000)),
        "#define A A A\n".to_owned() + &"A ".repeat(100_000),
    ];
    for (index, source) in sources.into_iter().enumerate() {
        let preprocessed = move || {
            let (map, diagnostics) = run(Files::new().with("main.p4", source), &Options::default());
            (map.text.len(), diagnostics.has_errors())
        };
        let ((bytes, refused), cost) = cost::measure(preprocessed);
        assert!(cost.seconds < 5.0, "{index}: {cost}");
        assert!(bytes <= 3 * crate::limits::LIMITS.source_bytes, "{index}");
        assert!(refused || index == 7, "{index}");
    }
}

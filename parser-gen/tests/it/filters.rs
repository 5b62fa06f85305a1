//! The filter language: a corpus of wrong filters with their diagnostics, and what right ones mean.
#![allow(clippy::disallowed_methods, reason = "the corpus is a folder of files")]

use std::path::Path;

use parser_gen::{FieldValues, Filter, Library};

/// `tests/corpus/NAME.filter` holds a filter, `NAME.expected` how its diagnostic reads.
/// `UPDATE_CORPUS=1` writes the latter anew.
#[test]
fn corpus_of_errors() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus");
    let library = Library::builtin();
    let mut cases: Vec<_> = std::fs::read_dir(&folder)
        .expect("the corpus is there")
        .map(|entry| entry.expect("readable").path())
        .filter(|path| {
            path.extension()
                .is_some_and(|extension| extension == "filter")
        })
        .collect();
    cases.sort();
    assert!(cases.len() >= 30, "only {} cases", cases.len());
    for path in cases {
        let text = std::fs::read_to_string(&path).expect("readable");
        let text = text.trim_end_matches('\n');
        let error =
            Filter::parse(&library, text).expect_err(&format!("{} is accepted", path.display()));
        let shown = diagnostic(text, &error);
        let expected = path.with_extension("expected");
        if std::env::var_os("UPDATE_CORPUS").is_some() {
            std::fs::write(&expected, &shown).expect("writable");
        }
        let expected = std::fs::read_to_string(&expected).unwrap_or_default();
        assert_eq!(shown, expected, "{}", path.display());
    }
}

fn diagnostic(text: &str, error: &parser_gen::FilterError) -> String {
    assert!(
        text.get(error.span.clone()).is_some(),
        "{:?} is no place in {text:?}",
        error.span
    );
    let begin = text[..error.span.start].chars().count();
    let width = text[error.span.clone()].chars().count().max(1);
    let mut shown = format!(
        "{text}\n{}{} {error}\n",
        " ".repeat(begin),
        "^".repeat(width)
    );
    if let Some(hint) = &error.hint {
        shown.push_str(&format!("hint: {hint}\n"));
    }
    shown
}

fn matches(text: &str, values: &FieldValues) -> bool {
    Filter::parse(&Library::builtin(), text)
        .unwrap_or_else(|error| panic!("{text}: {error}"))
        .matches(values)
}

#[test]
fn precedence_and_spelling() {
    let mut values = FieldValues::new();
    values.set_number("tcp.dport", 80);
    // `and` binds closer than `or`, `not` closest.
    assert!(matches("tcp.dport == 80 || tcp && udp", &values));
    assert!(!matches("(tcp.dport == 80 || tcp) && udp", &values));
    assert!(matches("not udp and tcp", &values));
    assert!(!matches("!(tcp or udp)", &values));
    assert!(matches("tcp.dport==0x50&&!udp", &values));
}

#[test]
fn an_absent_field_passes_no_comparison() {
    let mut values = FieldValues::new();
    values.set_number("ip.ttl", 3);
    assert!(!matches("tcp.dport != 80", &values));
    assert!(matches("!(tcp.dport == 80)", &values));
    assert!(matches("ip.ttl != 4", &values));
}

#[test]
fn numbers() {
    let mut values = FieldValues::new();
    values.set_number("ip.ttl", 64);
    for (text, expected) in [
        ("ip.ttl < 64", false),
        ("ip.ttl <= 64", true),
        ("ip.ttl > 64", false),
        ("ip.ttl >= 64", true),
        ("ip.ttl in {1, 2, 60..64}", true),
        ("ip.ttl in {60..63, 65..255}", false),
        ("ip.ttl >= 0", true),
    ] {
        assert_eq!(matches(text, &values), expected, "{text}");
    }
}

#[test]
fn addresses() {
    let mut values = FieldValues::new();
    values.set_number("ip.src", 0x0a01_0203);
    values.set_number("ipv6.dst", 0x2001_0db8_0000_0000_0000_0000_0000_0001);
    values.set_number("eth.src", 0x0200_0000_00ff);
    for (text, expected) in [
        ("ip.src == 10.1.2.3", true),
        ("ip.src == 10.0.0.0/8", true),
        ("ip.src == 10.1.0.0/24", false),
        ("ip.src != 192.168.0.0/16", true),
        ("ip.src in {10.1.2.0..10.1.2.9}", true),
        ("ip.src in {192.168.0.0/16, 10.1.0.0/16}", true),
        ("ip.src < 10.1.2.4", true),
        ("ip.src == 0.0.0.0/0", true),
        ("ipv6.dst == 2001:db8::1", true),
        ("ipv6.dst == 2001:db8::/32", true),
        ("ipv6.dst == ::1", false),
        ("eth.src == 02:00:00:00:00:ff", true),
        ("eth.src == 02-00-00-00-00-FE", false),
    ] {
        assert_eq!(matches(text, &values), expected, "{text}");
    }
}

#[test]
fn texts() {
    let mut values = FieldValues::new();
    values.set_text("redis.command", b"gEt");
    values.set_text("redis.key", b"cart:\x01\"");
    for (text, expected) in [
        (r#"redis.command == "GET""#, true),
        (r#"redis.command != "get""#, false),
        (r#"redis.command == "GETSET""#, false),
        (r#"redis.command startswith "ge""#, true),
        (r#"redis.command in {"SET", "GET"}"#, true),
        (r#"redis.key == "cart:\x01\"""#, true),
        (r#"redis.key == "CART:\x01\"""#, false),
        (r#"redis.key startswith "cart:""#, true),
        (r#"redis.key startswith "cart:17:more""#, false),
        (r#"redis.key != "cart:""#, true),
    ] {
        assert_eq!(matches(text, &values), expected, "{text}");
    }
}

#[test]
fn flags_stand_alone() {
    let mut values = FieldValues::new();
    values.set_number("tcp.flags.syn", 1);
    values.set_number("tcp.flags.ack", 0);
    assert!(matches("tcp.flags.syn && !tcp.flags.ack", &values));
    assert!(matches("tcp.flags.ack == 0", &values));
}

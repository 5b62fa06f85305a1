//! Runs the corpus of p4lang's tests: the expectations in its programs must hold on both executors. The corpus' README
//! describes the form of these lines.
#![allow(clippy::disallowed_methods)] // Reads programs.

use p4lang::Files;
use p4lang::runtime::{ActionCall, FieldMatch, Match, TableEntry, Value};
use pipeline::{Config, Executor, Switch};
use std::path::{Path, PathBuf};
use std::sync::Arc;

fn corpus() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../p4src/lang/tests/corpus")
}

fn files(folder: &str) -> Vec<(String, String)> {
    let entries = std::fs::read_dir(corpus().join(folder)).expect("the corpus");
    let mut found: Vec<(String, String)> = entries
        .map(|entry| {
            let path = entry.expect("an entry").path();
            let name = path.file_name().expect("a name").to_string_lossy();
            let text = std::fs::read_to_string(&path).expect("UTF-8");
            (format!("{folder}/{name}"), text)
        })
        .collect();
    found.sort();
    found
}

fn load(text: &str) -> Result<Switch, String> {
    let all = files("shell").into_iter().fold(
        Files::new().with("program.p4", text),
        |all, (name, text)| all.with(&name, text),
    );
    let compiled = p4lang::compile(&all, "program.p4", &p4lang::Options::default())
        .map_err(|diagnostics| diagnostics.to_string())?;
    let config = Config {
        executor: Executor::Both,
        ..Config::default()
    };
    Switch::new(Arc::new(compiled.program), config).map_err(|e| e.to_string())
}

fn number(text: &str) -> Value {
    match text.strip_prefix("0x") {
        Some(digits) => Value::from_str_radix(digits, 16),
        None => Value::from_str_radix(text, 10),
    }
    .unwrap_or_else(|| panic!("not a number: {text}"))
}

/// A field's match; the table's field determines the kind of a plain value.
fn field(text: &str, kind: &str) -> Match {
    if let Some((value, prefix)) = text.split_once('/') {
        return Match::lpm(number(value), prefix.parse().expect("a prefix length"));
    }
    if let Some((value, mask)) = text.split_once("&&&") {
        return Match::ternary(number(value), number(mask));
    }
    if let Some((low, high)) = text.split_once("..") {
        return Match::range(number(low), number(high));
    }
    match kind {
        "optional" => Match::optional(number(text)),
        _ => Match::exact(number(text)),
    }
}

/// `TABLE FIELD=VALUE … [priority=N] => ACTION(PARAMETER=VALUE, …)`
fn entry(text: &str, program: &p4lang::ir::Program) -> TableEntry {
    let (left, action) = text.split_once(" => ").expect("an action");
    let mut words = left.split_whitespace();
    let table = words.next().expect("a table").to_owned();
    let tables = program.controls.iter().flat_map(|c| &c.tables);
    let declared = tables.clone().find(|t| t.name == table);
    let declared = declared.unwrap_or_else(|| panic!("no table {table}"));
    let mut entry = TableEntry {
        table,
        key: Vec::new(),
        priority: 0,
        action: ActionCall {
            name: String::new(),
            params: Vec::new(),
        },
    };
    for word in words {
        let (name, value) = word.split_once('=').expect("FIELD=VALUE");
        if name == "priority" {
            entry.priority = value.parse().expect("a priority");
            continue;
        }
        let key = declared.key.iter().find(|k| k.name == name);
        let kind = &key.unwrap_or_else(|| panic!("no field {name}")).match_kind;
        entry.key.push(FieldMatch {
            field: name.to_owned(),
            value: field(value, kind),
        });
    }
    let (name, params) = action.split_once('(').expect("ACTION(…)");
    entry.action.name = name.to_owned();
    let params = params.trim_end().trim_end_matches(')');
    for param in params.split(',').filter(|p| !p.trim().is_empty()) {
        let (name, value) = param.trim().split_once('=').expect("PARAMETER=VALUE");
        entry.action.params.push((name.to_owned(), number(value)));
    }
    entry
}

/// `PORT HEX`
fn packet(text: &str) -> (u32, Vec<u8>) {
    let (port, hex) = text.trim().split_once(' ').expect("PORT HEX");
    let digits: String = hex.split_whitespace().collect();
    assert_eq!(digits.len() % 2, 0, "half a byte: {text}");
    let byte = |i| u8::from_str_radix(&digits[i..i + 2], 16).expect("hexadecimal digits");
    let bytes = (0..digits.len()).step_by(2).map(byte).collect();
    (port.parse().expect("a port"), bytes)
}

/// Runs the lines; returns the number of packets, and the errors.
fn run(name: &str, text: &str) -> (usize, Vec<String>) {
    let mut switch = match load(text) {
        Ok(switch) => switch,
        Err(error) => return (0, vec![format!("{name}: {error}")]),
    };
    let mut faults = Vec::new();
    let mut waiting: Vec<(u32, Vec<u8>)> = Vec::new();
    let mut count = 0;
    for (n, line) in text.lines().enumerate() {
        let at = format!("{name}:{}", n + 1);
        let Some((what, rest)) = line
            .strip_prefix("//> ")
            .map(|l| l.split_once(' ').unwrap_or((l, "")))
        else {
            continue;
        };
        match what {
            "add" => {
                let program = Arc::clone(switch.program());
                let done = switch.insert_entry(&entry(rest, &program));
                done.unwrap_or_else(|e| panic!("{at}: {e}"));
            }
            "set" => {
                let (set, value) = rest.split_once(' ').expect("a value");
                let done = switch.value_set_insert(set, &[field(value, "exact")]);
                done.unwrap_or_else(|e| panic!("{at}: {e}"));
            }
            "packet" => {
                faults.extend(
                    waiting
                        .drain(..)
                        .map(|p| format!("{at}: before this, {p:02x?} left")),
                );
                count += 1;
                let (port, bytes) = packet(rest);
                switch.handle_packet(count as u64 * 1_000_000, port, &bytes);
                faults.extend(
                    switch
                        .take_differences()
                        .iter()
                        .map(|d| format!("{at}: {d}")),
                );
                waiting.extend(
                    std::iter::from_fn(|| switch.poll_transmit()).map(|t| (t.port, t.bytes)),
                );
            }
            "expect" if waiting.is_empty() => faults.push(format!("{at}: nothing left")),
            "expect" => {
                let (expected, left) = (packet(rest), waiting.remove(0));
                if expected != left {
                    faults.push(format!("{at}: {left:02x?} left"));
                }
            }
            other => panic!("{at}: what is `{other}`?"),
        }
    }
    faults.extend(
        waiting
            .iter()
            .map(|p| format!("{name}: at the end, {p:02x?} left")),
    );
    (count, faults)
}

#[test]
fn programs_meet_their_expectations() {
    let mut faults = Vec::new();
    let mut silent = Vec::new();
    for (name, text) in files("pass") {
        if !text.contains("\n//> ") {
            silent.push(name);
            continue;
        }
        let (packets, wrong) = run(&name, &text);
        assert!(packets > 0 || !wrong.is_empty(), "{name} has no packets");
        faults.extend(wrong);
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    // Programs that are checked but not run.
    let checked = [
        "ambiguities",
        "match_kinds",
        "preprocessor",
        "psa",
        "statements",
        "t2na",
        "tna",
        "v1model",
        "v1model_2020",
    ];
    assert_eq!(silent, checked.map(|name| format!("pass/{name}.p4")));
}

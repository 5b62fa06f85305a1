//! Bad input: each key of the schema has a file in corpus/ that is refused for what stands at it, and so has each kind of
//! mistake that people make. What they are told stands in the snapshots of those files.
#![allow(clippy::disallowed_methods, reason = "the corpus is a folder of files")]

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use scenario::diagnostic::{Code, Diagnostic, Severity, Sink, Source, Span};
use scenario::file::yaml::{self, Kind, Node};
use scenario::{TargetModel, load_with, plan};
use serde_json::{Map, Value};

use crate::corpus::given;

/// A key, as `a-fault.effect.delay`: the definition that has it, and its place there.
type Key = String;

/// Keys that no file can be refused for, with the reason. There is none: a new key needs a file.
const WITHOUT_A_CASE: [&str; 0] = [];

/// The JSON Schema, which is written from the tables that the readers read by.
struct Schema(Value);

/// A part of the schema, and the key or definition that it belongs to.
type Part<'s> = (&'s Value, String);

impl Schema {
    fn root(&self) -> Part<'_> {
        (&self.0, "a-scenario".to_owned())
    }

    /// What may stand in a place: references followed, alternatives side by side.
    fn alternatives<'s>(&'s self, (part, owner): Part<'s>) -> Vec<Part<'s>> {
        if let Some(name) = part["$ref"].as_str() {
            let name = name.trim_start_matches("#/$defs/");
            return self.alternatives((&self.0["$defs"][name], name.to_owned()));
        }
        match part["anyOf"].as_array() {
            Some(parts) => parts
                .iter()
                .flat_map(|part| self.alternatives((part, owner.clone())))
                .collect(),
            None => vec![(part, owner)],
        }
    }

    fn keys(&self, part: Part<'_>, found: &mut BTreeSet<Key>) {
        for (part, owner) in self.alternatives(part) {
            for (name, value) in properties(part).into_iter().flatten() {
                let key = format!("{owner}.{name}");
                if found.insert(key.clone()) {
                    self.keys((value, key), found);
                }
            }
            for inner in ["items", "additionalProperties"] {
                if part[inner].is_object() {
                    self.keys((&part[inner], owner.clone()), found);
                }
            }
        }
    }

    /// The keys that stand in a tree, each with its depth and the place of its value.
    fn places(&self, node: &Node, part: Part<'_>, depth: usize, found: &mut Vec<Place>) {
        let parts = self.alternatives(part);
        let entries: Vec<(&str, Node)> = match (&node.tag, &node.kind) {
            // `!delay 20ms` is `{delay: 20ms}`.
            (Some(tag), _) => vec![(
                tag,
                Node {
                    tag: None,
                    ..node.clone()
                },
            )],
            (None, Kind::Map(entries)) => entries
                .iter()
                .map(|entry| (entry.key.as_str(), entry.value.clone()))
                .collect(),
            (None, Kind::List(items)) => {
                let lists = parts.iter().filter(|(part, _)| part["items"].is_object());
                for (list, owner) in lists {
                    for item in items {
                        self.places(item, (&list["items"], owner.clone()), depth, found);
                    }
                }
                return;
            }
            _ => return,
        };
        // Of several mappings it is the one that knows the most of its keys.
        let known = |part: &Value| {
            let names = entries.iter().filter(|(name, _)| {
                let all = properties(part);
                all.is_some_and(|all| all.contains_key(*name))
            });
            names.count()
        };
        let most = parts.iter().map(|(part, _)| known(part)).max().unwrap_or(0);
        for (part, owner) in &parts {
            for (name, value) in &entries {
                if part["additionalProperties"].is_object() {
                    let inner = (&part["additionalProperties"], owner.clone());
                    self.places(value, inner, depth, found);
                }
                let property = properties(part).and_then(|all| all.get(*name));
                let Some(property) = property.filter(|_| known(part) == most) else {
                    continue;
                };
                let key = format!("{owner}.{name}");
                found.push(Place {
                    key: key.clone(),
                    depth,
                    span: value.span,
                });
                self.places(value, (property, key), depth + 1, found);
            }
        }
    }
}

fn properties(part: &Value) -> Option<&Map<String, Value>> {
    part["properties"].as_object()
}

struct Place {
    key: Key,
    depth: usize,
    span: Span,
}

/// The keys at which a diagnostic points: at their value, or into it, and at that of no key inside.
fn pointed_at(places: &[Place], told: &Diagnostic) -> Vec<Key> {
    let holds = |place: &&Place| {
        place.span.start <= told.span.start && told.span.end <= place.span.end.max(place.span.start)
    };
    let deepest = places.iter().filter(holds).map(|place| place.depth).max();
    places
        .iter()
        .filter(holds)
        .filter(|place| Some(place.depth) == deepest)
        .map(|place| place.key.clone())
        .collect()
}

fn corpus() -> Vec<(String, String)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus");
    let paths = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.is_file());
    let mut files: Vec<_> = paths
        .map(|path| {
            let name = path.file_name().unwrap().to_str().unwrap().to_owned();
            (name, fs::read_to_string(path).unwrap())
        })
        .collect();
    files.sort();
    files
}

/// What is told of a file: its errors; of one that can be planned, its warnings.
fn told(name: &str, text: &str) -> Vec<Diagnostic> {
    let made = load_with(name, text, &given(name, text)).and_then(|scenario| {
        plan(&scenario, &TargetModel::EMBEDDED)?;
        Ok(scenario.warnings)
    });
    match made {
        Ok(told) | Err(told) => told.0,
    }
}

#[test]
fn each_key_of_the_schema_has_a_file_that_is_refused_for_it() {
    let schema = Schema(scenario::json_schema());
    let mut missing = BTreeSet::new();
    schema.keys(schema.root(), &mut missing);
    assert!(missing.len() > 150, "{}", missing.len());
    let all = missing.clone();
    for (name, text) in corpus() {
        let mut sink = Sink::new(Source {
            file: &name,
            text: &text,
        });
        // What is no YAML has no keys.
        let Some(root) = yaml::parse(&mut sink) else {
            continue;
        };
        let mut places = Vec::new();
        schema.places(&root, schema.root(), 0, &mut places);
        let errors = told(&name, &text);
        let errors = errors
            .iter()
            .filter(|told| told.severity == Severity::Error && told.file == name);
        for error in errors {
            for key in pointed_at(&places, error) {
                assert!(all.contains(&key), "{key}");
                missing.remove(&key);
            }
        }
    }
    for key in WITHOUT_A_CASE {
        assert!(missing.remove(key), "`{key}` has a case");
    }
    assert!(
        missing.is_empty(),
        "no file in tests/corpus is refused for what stands at one of these keys:\n{missing:#?}"
    );
}

/// Mistakes that people make: the file that makes each, what kind of diagnostic it gets, on which text, and words of it.
/// A protocol file that loops is in `protocols.rs`.
const MISTAKES: [(&str, &str, Code, &str, &str); 22] = [
    (
        "percent for a fraction",
        "selection-values-wrong",
        Code::OutOfRange,
        "50",
        "for 50 percent write `50%`",
    ),
    (
        "a probability above 1",
        "probability-1.2",
        Code::OutOfRange,
        "1.2",
        "write `1.2%`",
    ),
    ("no unit", "unit-missing", Code::Unit, "20", "has no unit"),
    (
        "no such unit",
        "unit-wrong",
        Code::Unit,
        "20 msec",
        "is not a unit of duration",
    ),
    (
        "a unit of something else",
        "effect-values-wrong",
        Code::Unit,
        "10MB",
        "is not a unit of rate",
    ),
    (
        "bits for bytes",
        "topology-values-wrong",
        Code::Unit,
        "1Gbps",
        "bits or bytes? write `1Gbit/s` for gigabits",
    ),
    (
        "a protected flow",
        "protected-overlap",
        Code::Protected,
        "second",
        "which is protected",
    ),
    (
        "flows that overlap",
        "protected-by-filter",
        Code::Protected,
        "first",
        "can match the same packet",
    ),
    (
        "faults that overlap",
        "contradiction-counted",
        Code::Contradiction,
        "second",
        "contradict each other",
    ),
    (
        "steps that overlap",
        "timeline-overlap",
        Code::OutOfRange,
        "2s",
        "starts before step `one` ends",
    ),
    (
        "a flow without a path",
        "flow-unreachable",
        Code::Unreachable,
        "gets",
        "no packet can belong to flow `gets`",
    ),
    (
        "a flow off its switch",
        "flow-off-the-switch",
        Code::Unreachable,
        "",
        "no path",
    ),
    (
        "a trigger that cannot fire",
        "triggers-never",
        Code::Contradiction,
        "never",
        "sees none",
    ),
    (
        "a trigger that nobody waits for",
        "triggers-never",
        Code::Contradiction,
        "unused",
        "no fault waits for trigger",
    ),
    (
        "a trigger that waits for itself",
        "triggers-never",
        Code::Contradiction,
        "itself",
        "waits for its own hits",
    ),
    (
        "a cycle of triggers",
        "triggers-never",
        Code::Contradiction,
        "a",
        "wait for each other's hits",
    ),
    (
        "a step that cannot begin",
        "timeline-on-never",
        Code::Expectation,
        "3 > 2",
        "it never changes",
    ),
    (
        "a condition that cannot hold",
        "abort-if-never",
        Code::Expectation,
        "1 > 0",
        "it never changes",
    ),
    (
        "a fault that always drops what another hits",
        "contradiction-always-drop",
        Code::Contradiction,
        "",
        "drops",
    ),
    (
        "a fault that cannot hit",
        "client-on-the-servers-host",
        Code::Suspicious,
        "lost",
        "will hit nothing",
    ),
    (
        "a lease shorter than its refresh",
        "lease-short",
        Code::OutOfRange,
        "{for: 300ms, refresh: 200ms}",
        "at least twice as long as its refresh",
    ),
    (
        "a key that there is not",
        "unknown-key-fault",
        Code::UnknownKey,
        "",
        "did you mean",
    ),
];

#[test]
fn mistakes_that_people_make_are_told_where_they_are_made() {
    let files = corpus();
    for (mistake, name, code, at, words) in MISTAKES {
        let (file, text) = files
            .iter()
            .find(|(file, _)| file.strip_suffix(".yaml") == Some(name))
            .unwrap_or_else(|| panic!("{mistake}: no file is called {name}"));
        let told = told(file, text);
        let is_told = told.iter().any(|told| {
            let place = text.get(told.span.start..told.span.end);
            let all = format!("{told}");
            told.code == code && (at.is_empty() || place == Some(at)) && all.contains(words)
        });
        assert!(is_told, "{mistake}: {told:#?}");
    }
}

//! The JSON Schema and the reference, against the readers that they are written from.
#![allow(clippy::disallowed_methods, reason = "the shipped files are files")]

use std::fs;
use std::path::{Path, PathBuf};

use jsonschema::Validator;
use serde_json::{Map, Value, json};

fn repository(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .join(path)
}

fn yaml_files(folder: &Path) -> Vec<(String, String)> {
    let mut files: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|is| is == "yaml"))
        .map(|path| {
            let name = path.file_name().unwrap().to_str().unwrap().to_owned();
            (name, fs::read_to_string(path).unwrap())
        })
        .collect();
    files.sort();
    files
}

fn shipped() -> Vec<(String, String)> {
    yaml_files(&repository("testbeds/scenarios"))
}

fn validator() -> Validator {
    jsonschema::validator_for(&scenario::json_schema()).unwrap()
}

/// As an editor takes a file, but that tags are written out: `!delay 20ms` is `{delay: 20ms}`.
fn as_json(yaml: &serde_yaml::Value) -> Value {
    use serde_yaml::Value as Yaml;
    match yaml {
        Yaml::Null => Value::Null,
        Yaml::Bool(value) => (*value).into(),
        Yaml::Number(number) => match (number.as_u64(), number.as_f64()) {
            (Some(whole), _) => whole.into(),
            (None, Some(value)) => json!(value),
            (None, None) => Value::Null,
        },
        Yaml::String(text) => text.as_str().into(),
        Yaml::Sequence(items) => items.iter().map(as_json).collect(),
        Yaml::Mapping(entries) => {
            let entries = entries.iter().map(|(key, value)| {
                let key = match key {
                    Yaml::String(key) => key.clone(),
                    other => serde_yaml::to_string(other).unwrap().trim().to_owned(),
                };
                (key, as_json(value))
            });
            Value::Object(entries.collect())
        }
        Yaml::Tagged(tagged) => {
            let word = tagged.tag.to_string().trim_start_matches('!').to_owned();
            match as_json(&tagged.value) {
                Value::Null => word.into(),
                Value::String(text) if text.is_empty() => word.into(),
                payload => Value::Object(Map::from_iter([(word, payload)])),
            }
        }
    }
}

fn parse(text: &str) -> Option<Value> {
    let yaml: serde_yaml::Value = serde_yaml::from_str(text).ok()?;
    Some(as_json(&yaml))
}

/// Files that name protocol files are read without them here.
fn load(text: &str) -> Result<(), scenario::Diagnostics> {
    scenario::load("s.yaml", text).map(|_| ())
}

#[test]
fn every_file_that_is_read_passes_the_schema() {
    let validator = validator();
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus");
    let corpus = yaml_files(&corpus).into_iter();
    let read = corpus.filter(|(_, text)| load(text).is_ok());
    let mut count = 0;
    for (name, text) in shipped().into_iter().chain(read) {
        let file = parse(&text).unwrap_or_else(|| panic!("{name}"));
        let errors: Vec<String> = validator
            .iter_errors(&file)
            .map(|error| format!("{}: {error}", error.instance_path()))
            .collect();
        assert!(errors.is_empty(), "{name}: {errors:#?}");
        count += 1;
    }
    assert!(count > 60, "{count}");
}

#[test]
fn keys_that_no_reader_knows_are_in_no_schema() {
    let validator = validator();
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus");
    let mut count = 0;
    for (name, text) in yaml_files(&corpus) {
        let Err(told) = load(&text) else { continue };
        let is_unknown = told
            .0
            .iter()
            .any(|told| told.code == scenario::diagnostic::Code::UnknownKey);
        if let Some(file) = parse(&text).filter(|_| is_unknown) {
            assert!(!validator.is_valid(&file), "{name}");
            count += 1;
        }
    }
    assert!(count > 5, "{count}");
}

/// The places of all nodes, as JSON pointers.
fn places(value: &Value, at: &str, into: &mut Vec<String>) {
    into.push(at.to_owned());
    match value {
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                places(item, &format!("{at}/{index}"), into);
            }
        }
        Value::Object(entries) => {
            for (key, value) in entries {
                let key = key.replace('~', "~0").replace('/', "~1");
                places(value, &format!("{at}/{key}"), into);
            }
        }
        _ => {}
    }
}

/// What the schema refuses, the readers refuse: an editor that marks a file is right.
#[test]
fn what_the_schema_refuses_no_reader_takes() {
    let validator = validator();
    let (mut refused, mut taken) = (0, 0);
    for (name, text) in shipped() {
        let file = parse(&text).unwrap();
        if file.get("protocols").is_some() {
            continue;
        }
        let mut at = Vec::new();
        places(&file, "", &mut at);
        for (number, place) in at
            .iter()
            .enumerate()
            .filter(|(n, _)| n % 5 == name.len() % 5)
        {
            let wrong = [
                json!([[]]),
                json!({"x": 1}),
                json!(-3),
                json!("?"),
                json!(true),
            ];
            let mut changed = file.clone();
            let node = changed.pointer_mut(place).unwrap();
            match node {
                Value::Object(entries) if number % 2 == 0 => {
                    entries.insert("no-such-key".to_owned(), json!({}));
                }
                node => *node = wrong[number % wrong.len()].clone(),
            }
            if validator.is_valid(&changed) {
                taken += 1;
                continue;
            }
            let text = serde_yaml::to_string(&changed).unwrap();
            assert!(load(&text).is_err(), "{name} {place}:\n{text}");
            refused += 1;
        }
    }
    assert!(refused > 200 && taken > 0, "{refused} {taken}");
}

#[test]
fn the_stored_schema_and_the_first_lines_are_up_to_date() {
    let path = repository("testbeds/scenarios/weir.schema.json");
    let stored = fs::read_to_string(path).unwrap_or_default();
    let stored: Value = serde_json::from_str(&stored).unwrap_or_default();
    assert!(
        stored == scenario::json_schema(),
        "write it anew: weir schema > testbeds/scenarios/weir.schema.json"
    );
    for (name, text) in shipped() {
        let first = text.lines().next().unwrap_or_default();
        let expected = "# yaml-language-server: $schema=weir.schema.json";
        assert_eq!(first, expected, "{name}");
    }
}

#[test]
fn the_reference_is_up_to_date() {
    let stored = fs::read_to_string(repository("docs/reference.md")).unwrap_or_default();
    assert!(
        stored.ends_with(&scenario::reference()),
        "write it anew: weir schema --reference > docs/reference.md"
    );
}

//! The JSON Schema and the reference, against the readers that they are written from.
#![allow(clippy::disallowed_methods, reason = "the shipped files are files")]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use jsonschema::Validator;
use regex_lite::Regex;
use scenario::model::Captures;
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

fn shipped_workloads() -> Vec<(String, String)> {
    yaml_files(&repository("testbeds/workloads"))
}

fn validator() -> Validator {
    jsonschema::validator_for(&scenario::json_schema()).unwrap()
}

fn workload_validator() -> Validator {
    jsonschema::validator_for(&scenario::workload_json_schema()).unwrap()
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

/// A file of the corpus or a shipped one, with those that it names.
fn load(text: &str) -> Result<scenario::Scenario, scenario::Diagnostics> {
    let folders = ["controller/scenario/tests/corpus", "testbeds/scenarios"].map(repository);
    let given = scenario::Given::named("s.yaml", text, |named| {
        let mut paths = folders.iter().map(|folder| folder.join(named));
        let path = paths.find(|path| path.is_file());
        let path = path.ok_or_else(|| "there is no such file".to_owned())?;
        Ok((named.to_owned(), fs::read_to_string(path).unwrap()))
    });
    scenario::load_with("s.yaml", text, &given)
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
        let is_unknown = told.0.iter().any(|told| {
            told.file == "s.yaml" && told.code == scenario::diagnostic::Code::UnknownKey
        });
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
    let step = if test_support::runs_all() { 5 } else { 15 };
    for (name, text) in shipped() {
        let file = parse(&text).unwrap();
        let mut at = Vec::new();
        places(&file, "", &mut at);
        for (number, place) in at
            .iter()
            .enumerate()
            .filter(|(n, _)| n % step == name.len() % step)
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
    assert!(refused > 100 && taken > 0, "{refused} {taken}");
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
fn workload_files_pass_a_schema_of_their_own() {
    let path = repository("testbeds/workloads/weir-workload.schema.json");
    let stored = fs::read_to_string(path).unwrap_or_default();
    let stored: Value = serde_json::from_str(&stored).unwrap_or_default();
    assert!(
        stored == scenario::workload_json_schema(),
        "write it anew: weir schema --workload > testbeds/workloads/weir-workload.schema.json"
    );
    let (validator, scenarios) = (workload_validator(), validator());
    for (name, text) in shipped_workloads() {
        let first = text.lines().next().unwrap_or_default();
        let expected = "# yaml-language-server: $schema=weir-workload.schema.json";
        assert_eq!(first, expected, "{name}");
        let file = parse(&text).unwrap();
        assert!(validator.is_valid(&file), "{name}");
        assert!(!scenarios.is_valid(&file), "{name}");
    }
}

/// As of scenarios: what the schema of workload files refuses, the reader takes from no scenario.
#[test]
fn what_the_workload_schema_refuses_no_reader_takes() {
    let validator = workload_validator();
    let (mut refused, mut taken) = (0, 0);
    for (name, text) in shipped_workloads() {
        let file = parse(&text).unwrap();
        let roles: Vec<&str> = match &file["hosts"] {
            Value::Array(roles) => roles.iter().filter_map(Value::as_str).collect(),
            one => one.as_str().into_iter().collect(),
        };
        let scenario = format!(
            "weir: 1\nname: t\ntopology: {{star: {{hosts: [own, {}], switch: sw}}}}\nworkload: {{file: w, commands: \
             [{{name: own, host: own, run: a}}]}}\n",
            roles.join(", ")
        );
        let load = |file: &Value| {
            let text = serde_yaml::to_string(file).unwrap();
            let given = scenario::Given::named("s.yaml", &scenario, |named| {
                Ok((named.to_owned(), text.clone()))
            });
            scenario::load_with("s.yaml", &scenario, &given)
        };
        load(&file).unwrap_or_else(|told| panic!("{name}: {told}"));
        let mut at = Vec::new();
        places(&file, "", &mut at);
        for (number, place) in at.iter().enumerate().filter(|(n, _)| n % 3 == 0) {
            let wrong = [
                json!([[]]),
                json!({"x": 1}),
                json!(-3),
                json!("?"),
                json!(true),
            ];
            let mut changed = file.clone();
            match changed.pointer_mut(place).unwrap() {
                Value::Object(entries) if number % 2 == 0 => {
                    entries.insert("no-such-key".to_owned(), json!({}));
                }
                node => *node = wrong[number % wrong.len()].clone(),
            }
            if validator.is_valid(&changed) {
                taken += 1;
                continue;
            }
            assert!(load(&changed).is_err(), "{name} {place}:\n{changed:#}");
            refused += 1;
        }
    }
    assert!(refused > 80 && taken > 0, "{refused} {taken}");
}

#[test]
fn the_reference_is_up_to_date() {
    let stored = fs::read_to_string(repository("docs/reference.md")).unwrap_or_default();
    assert!(
        stored.ends_with(&scenario::reference()),
        "write it anew: weir schema --reference > docs/reference.md"
    );
}

/// Contents of a file, without positions; `None` if the file is refused.
fn meaning(file: &Value) -> Option<String> {
    let of = load(&serde_yaml::to_string(file).unwrap()).ok()?;
    let plan = scenario::plan(&of, &scenario::TargetModel::EMBEDDED).ok()?;
    let programs = (&of.workload, &of.probes, &of.jobs, &of.disruptions);
    let faults = (&of.faults, &of.triggers, &of.epochs);
    let run = (of.seed, of.limits, of.captures, of.lease);
    let said = format!("{:?} {programs:?} {faults:?} {run:?} {plan}", of.topology);
    let span = r"Span \{ start: \d+, end: \d+ \}";
    let optional = Regex::new(&format!(r"Some\({span}\)")).unwrap();
    let said = optional.replace_all(&said, "None");
    Some(
        Regex::new(span)
            .unwrap()
            .replace_all(&said, "")
            .into_owned(),
    )
}

/// An absent key with a default.
struct Absent {
    /// The key, as `a-star.rate`.
    key: String,
    /// The mapping, as a JSON pointer.
    mapping: String,
    default: Value,
}

/// The keys with defaults that a value of a file leaves out.
fn absent(schema: &Value, part: &Value, owner: &str, at: &str, value: &Value) -> Vec<Absent> {
    let parts = part["anyOf"].as_array().into_iter().flatten();
    let of_parts = parts.flat_map(|part| absent(schema, part, owner, at, value));
    let mut found: Vec<Absent> = of_parts.collect();
    if let Some(name) = part["$ref"].as_str() {
        let name = name.trim_start_matches("#/$defs/");
        found.extend(absent(schema, &schema["$defs"][name], name, at, value));
    }
    for (index, item) in value.as_array().into_iter().flatten().enumerate() {
        found.extend(absent(
            schema,
            &part["items"],
            owner,
            &format!("{at}/{index}"),
            item,
        ));
    }
    let Value::Object(entries) = value else {
        return found;
    };
    let known = part["properties"].as_object();
    for (name, entry) in entries {
        let at = format!("{at}/{name}");
        found.extend(absent(
            schema,
            &part["additionalProperties"],
            owner,
            &at,
            entry,
        ));
        let part = known.and_then(|known| known.get(name));
        found.extend(part.map_or_else(Vec::new, |part| absent(schema, part, owner, &at, entry)));
    }
    let known = known.filter(|known| entries.keys().all(|key| known.contains_key(key)));
    for (name, part) in known.into_iter().flatten() {
        if let (None, Some(default)) = (entries.get(name), part.get("default")) {
            found.push(Absent {
                key: format!("{owner}.{name}"),
                mapping: at.to_owned(),
                default: default.clone(),
            });
        }
    }
    found
}

/// Keys with defaults in all definitions of the schema.
fn with_default(schema: &Value) -> BTreeSet<String> {
    let root = ("a-scenario", schema);
    let definitions = schema["$defs"].as_object().unwrap();
    let definitions = definitions.iter().map(|(name, of)| (name.as_str(), of));
    let keys = definitions.chain([root]).flat_map(|(owner, of)| {
        let properties = of["properties"].as_object().unwrap().iter();
        let keys = properties.filter(|(_, part)| part.get("default").is_some());
        keys.map(move |(name, _)| format!("{owner}.{name}"))
    });
    keys.collect()
}

/// Files that leave out keys which all others state.
const BARE: [&str; 3] = [
    "weir: 1
name: bare
topology: {star: {hosts: [{name: a}, b]}}
workload:
  commands:
    - {name: s, host: b, run: s, ready: started, stop: {signal: INT}}
    - {name: d, host: a, run: d, repeat: {times: 2}}
jobs: {j: {ranks: [a, b], deadline: 10ms}}
flows: {f: {from: a, to: b, filter: tcp}}
faults:
  - {id: w, flows: f, effect: {delay: {latency: 9ms, jitter: 2ms}}, during: on}
  - {id: x, flows: f, effect: {duplicate: {copies: 2}}, select: {gilbert_elliott: {to_bad: 1%, to_good: 9%}}, during: off}
  - {id: y, effect: {kill: {command: s}}, during: off}
timeline: [{name: on, at: 1s, for: 1s}, {name: off, at: 3s, for: 1s}]
",
    "{weir: 1, name: bare, topology: {fat_tree: {k: 2}}}",
    "{weir: 1, name: bare, topology: {jellyfish: {switches: 3, degree: 2, hosts_per_switch: 1}}}",
];

/// A file that states a default means the same as one that leaves the key out.
#[test]
fn declared_defaults_are_those_of_the_readers() {
    let schema = scenario::json_schema();
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus");
    let mut left = with_default(&schema);
    let bare = BARE.map(|text| ("bare".to_owned(), text.to_owned()));
    for (name, text) in yaml_files(&corpus).into_iter().chain(shipped()).chain(bare) {
        let Some(file) = parse(&text) else { continue };
        let of_file = absent(&schema, &schema, "a-scenario", "", &file);
        let mut of_file = of_file
            .into_iter()
            .filter(|of| left.contains(&of.key))
            .peekable();
        let Some(without) = of_file.peek().and_then(|_| meaning(&file)) else {
            continue;
        };
        let of_file: Vec<Absent> = of_file.collect();
        for Absent {
            key,
            mapping,
            default,
        } in of_file
        {
            let mut stated = file.clone();
            let entries = stated
                .pointer_mut(&mapping)
                .unwrap()
                .as_object_mut()
                .unwrap();
            let (_, own) = key.rsplit_once('.').unwrap();
            entries.insert(own.to_owned(), default.clone());
            // Beside some values, the key is refused, because it has no effect.
            if let Some(with) = meaning(&stated) {
                assert_eq!(with, without, "{name}: {mapping}: {own}: {default}");
                left.remove(&key);
            }
        }
    }
    assert!(left.is_empty(), "no file shows {left:?}");
}

#[test]
fn a_scenario_says_which_frames_a_run_keeps() {
    let read = |rest: &str| {
        let text = format!("weir: 1\nname: s\ntopology: {{star: {{hosts: [a, b]}}}}\n{rest}");
        scenario::load("s.yaml", &text).unwrap_or_else(|told| panic!("{rest}: {told}"))
    };
    for (rest, captures, disk_bytes) in [
        ("", Captures::Hits, 1 << 30),
        ("captures: hits\n", Captures::Hits, 1 << 30),
        ("captures: \"all\"\n", Captures::All, 1 << 30),
        (
            "captures: none\nlimits: {disk: 1MiB}\n",
            Captures::None,
            1 << 20,
        ),
        (
            "captures: all\nlimits: {disk: 2GB}\n",
            Captures::All,
            2_000_000_000,
        ),
    ] {
        let scenario = read(rest);
        assert_eq!(scenario.captures, captures, "{rest}");
        assert_eq!(scenario.limits.disk_bytes, disk_bytes, "{rest}");
        assert_eq!(
            scenario.captures_span.is_some(),
            rest.starts_with("captures"),
            "{rest}"
        );
        assert_eq!(
            scenario.clone().with_captures(None).captures,
            captures,
            "{rest}"
        );
        let overridden = scenario.with_captures(Some(Captures::All));
        assert_eq!(
            (overridden.captures, overridden.captures_span),
            (Captures::All, None)
        );
    }
}

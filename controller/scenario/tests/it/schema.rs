//! The JSON Schema and the reference, against the readers that they are written from.
#![allow(clippy::disallowed_methods, reason = "the shipped files are files")]

use std::fs;
use std::path::{Path, PathBuf};

use jsonschema::Validator;
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
fn load(text: &str) -> Result<(), scenario::Diagnostics> {
    let folders = ["controller/scenario/tests/corpus", "testbeds/scenarios"].map(repository);
    let given = scenario::Given::named("s.yaml", text, |named| {
        let mut paths = folders.iter().map(|folder| folder.join(named));
        let path = paths.find(|path| path.is_file());
        let path = path.ok_or_else(|| "there is no such file".to_owned())?;
        Ok((named.to_owned(), fs::read_to_string(path).unwrap()))
    });
    scenario::load_with("s.yaml", text, &given).map(|_| ())
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

/// What the reference states as the default of a key: what stands behind the last semicolon of its line.
fn stated_default(object: &str, key: &str) -> String {
    let page = scenario::reference();
    let heading = format!("## {object}\n");
    let section = page
        .split_once(&heading)
        .unwrap_or_else(|| panic!("no section {object}"))
        .1;
    let section = section.split("\n## ").next().unwrap();
    let row = section
        .lines()
        .find(|line| line.starts_with(&format!("| `{key}` ")))
        .unwrap_or_else(|| panic!("{object} has no {key}"));
    let about = row.trim_end_matches(" |").rsplit(" | ").next().unwrap();
    about.rsplit("; ").next().unwrap().replace('`', "")
}

/// All that a file says and that has a default, without places.
fn meaning(text: &str) -> String {
    let scenario = scenario::load("s.yaml", text).unwrap_or_else(|e| panic!("{text}\n{e}"));
    let plan = scenario::plan(&scenario, &scenario::TargetModel::EMBEDDED).unwrap();
    let links = scenario.topology.links.iter();
    let links: Vec<_> = links
        .map(|link| (link.rate_bps, link.latency_ns, link.mtu))
        .collect();
    let limits = (scenario.limits.time_ns, scenario.limits.disk_bytes);
    let captures = scenario.captures;
    format!(
        "{:?} {:?} {:?} {limits:?} {captures:?} {:?} {links:?} {plan}",
        scenario.seed, scenario.workload, scenario.probes, scenario.lease.lease
    )
}

/// Who writes a key with its stated default says what the file says without it.
#[test]
fn stated_defaults_are_those_of_the_readers() {
    let star = "topology: {star: {hosts: [a, b]}}\n";
    let flows = "topology: {star: {hosts: [a, b]}}\nflows: {f: {from: a, to: b, filter: tcp}}\n";
    let of_fault = |rest: &str| format!("{flows}faults: [{{id: x, flows: f, {rest}}}]\n");
    let of_command = |rest: &str| {
        format!(
            "{star}workload: {{commands: [{{name: s, host: b, run: s, ready: started{rest}}}, {{name: d, host: a, run: d}}]}}\n"
        )
    };
    let cases = [
        // Object, key, the file with `@` where the key goes.
        ("A scenario", "seed", format!("{star}@\n")),
        ("A scenario", "lease", format!("{star}@\n")),
        ("A scenario", "captures", format!("{star}@\n")),
        (
            "A star",
            "switch",
            "topology: {star: {hosts: [a, b], @}}\n".to_owned(),
        ),
        (
            "A star",
            "rate",
            "topology: {star: {hosts: [a, b], @}}\n".to_owned(),
        ),
        (
            "A star",
            "latency",
            "topology: {star: {hosts: [a, b], @}}\n".to_owned(),
        ),
        (
            "A star",
            "mtu",
            "topology: {star: {hosts: [a, b], @}}\n".to_owned(),
        ),
        ("A wire", "rate", "topology: {wire: [l, r], @}\n".to_owned()),
        (
            "A topology",
            "rate",
            "topology: {switches: [w], hosts: [a, b], links: [[a, w], [b, w]], @}\n".to_owned(),
        ),
        (
            "A topology",
            "latency",
            "topology: {switches: [w], hosts: [a, b], links: [[a, w], [b, w]], @}\n".to_owned(),
        ),
        (
            "A topology",
            "mtu",
            "topology: {switches: [w], hosts: [a, b], links: [[a, w], [b, w]], @}\n".to_owned(),
        ),
        ("A command", "root", of_command(", @")),
        ("A command", "stop", of_command(", @")),
        ("`stop`", "within", of_command(", stop: {signal: INT, @}")),
        (
            "`repeat`",
            "pause",
            format!(
                "{star}workload: {{commands: [{{name: d, host: a, run: d, repeat: {{times: 2, @}}}}]}}\n"
            ),
        ),
        (
            "`redis`",
            "port",
            format!(
                "{star}workload: {{redis: {{server: b, clients: {{a: {{requests: 1, commands: [PING]}}}}, @}}}}\n"
            ),
        ),
        (
            "A client",
            "value_size",
            format!(
                "{star}workload: {{redis: {{server: b, clients: {{a: {{requests: 1, commands: [PING], @}}}}}}}}\n"
            ),
        ),
        (
            "A client",
            "pause",
            format!(
                "{star}workload: {{redis: {{server: b, clients: {{a: {{requests: 1, commands: [PING], @}}}}}}}}\n"
            ),
        ),
        (
            "`training`",
            "window",
            format!(
                "{star}workload: {{training: {{server: b, workers: [a], iterations: 1, @}}}}\n"
            ),
        ),
        (
            "A probe",
            "every",
            format!("{star}probes: {{p: {{from: a, tcp: \"b:80\", @}}}}\n"),
        ),
        (
            "A probe",
            "timeout",
            format!("{star}probes: {{p: {{from: a, tcp: \"b:80\", @}}}}\n"),
        ),
        ("A fault", "select", of_fault("effect: drop, @")),
        (
            "A fault",
            "per",
            of_fault("effect: drop, select: {nth: 2}, @"),
        ),
        (
            "A fault",
            "keys",
            of_fault("effect: drop, select: {nth: 2}, per: source, @"),
        ),
        (
            "`delay`",
            "distribution",
            of_fault("effect: {delay: {latency: 9ms, jitter: 2ms, @}}"),
        ),
        (
            "`delay`",
            "order",
            of_fault("effect: {delay: {latency: 9ms, jitter: 2ms, @}}"),
        ),
        (
            "`duplicate`",
            "copies",
            of_fault("effect: {duplicate: {spaced: 2ms, @}}"),
        ),
        (
            "`duplicate`",
            "spaced",
            of_fault("effect: {duplicate: {copies: 2, @}}"),
        ),
        (
            "`corrupt`",
            "checksums",
            of_fault("effect: {corrupt: {field: ip.ttl, bits: 1, @}}"),
        ),
        (
            "`burst`",
            "start",
            of_fault("effect: drop, select: {burst: {length: 2, every: 9, @}}"),
        ),
        (
            "`gilbert_elliott`",
            "loss_bad",
            of_fault("effect: drop, select: {gilbert_elliott: {to_bad: 1%, to_good: 9%, @}}"),
        ),
        (
            "`gilbert_elliott`",
            "loss_good",
            of_fault("effect: drop, select: {gilbert_elliott: {to_bad: 1%, to_good: 9%, @}}"),
        ),
        (
            "`partition`",
            "direction",
            format!("{star}faults: [{{id: x, partition: {{groups: [[a], [b]], @}}}}]\n"),
        ),
        (
            "What a trigger waits for",
            "packets",
            format!(
                "{flows}triggers: {{t: {{after: {{flow: f, @}}}}}}\nfaults: [{{id: x, flows: f, effect: drop, when: t}}]\n"
            ),
        ),
        (
            "`limits`",
            "time",
            format!("{star}limits: {{hits: 5, @}}\n"),
        ),
        (
            "`limits`",
            "disk",
            format!("{star}limits: {{hits: 5, @}}\n"),
        ),
    ];
    for (object, key, template) in cases {
        let default = stated_default(object, key);
        let file = |entry: &str| format!("weir: 1\nname: s\n{}", template.replace('@', entry));
        let without = match template.contains(", @") {
            true => format!("weir: 1\nname: s\n{}", template.replace(", @", "")),
            false => file(""),
        };
        let with = file(&format!("{key}: {default}"));
        assert_eq!(
            meaning(&with),
            meaning(&without),
            "{object}: {key}; {default}"
        );
    }
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

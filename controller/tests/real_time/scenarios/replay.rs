//! The folder of a run: what stands in it, and what `weir replay` makes of it, whole and spoilt.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::LazyLock;

use crate::support::leftovers::{Watched, files};
use crate::support::*;

const SCENARIO: &str = r#"weir: 1
name: t
seed: 5
topology: {star: {hosts: [a, b], switch: sw}}
workload:
  commands:
    - {name: ping, host: a, run: [ping, -n, -c, "40", -i, "0.01", -W, "1", b]}
flows:
  requests: {from: a, to: b, filter: icmp.type == 8}
  answers: {from: b, to: a, filter: icmp.type == 0}
faults:
  - {id: lost, flows: requests, effect: drop, select: {every: 10}}
  - {id: marked, flows: answers, effect: {set: {ip.ttl: 9}}, select: {probability: 0.3}}
  - {id: short, flows: answers, effect: {truncate: 80B}, select: {nth: 7}}
expect: [command.ping.exit >= 0]
"#;

fn weir(folder: &Path, arguments: &[&str]) -> Finished {
    Watched::weir(folder, arguments).run()
}

/// Names and contents of the files of one run, which the tests share.
static RUN: LazyLock<Vec<(String, Vec<u8>)>> = LazyLock::new(|| {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("t.yaml"), SCENARIO).unwrap();
    let run = [
        "run",
        "t.yaml",
        "--json",
        "--captures",
        "all",
        "--out",
        "run",
    ];
    weir(folder.path(), &run).expect_code(PASSED);
    assert_eq!(files(folder.path()), ["run", "t.yaml"]);
    let run = folder.path().join("run");
    let names = files(&run).into_iter();
    names
        .map(|name| (name.clone(), fs::read(run.join(name)).unwrap()))
        .collect()
});

/// Puts the run into a folder `run` of this folder.
fn ran(folder: &Path) {
    fs::write(folder.join("t.yaml"), SCENARIO).unwrap();
    fs::create_dir(folder.join("run")).unwrap();
    for (name, contents) in &*RUN {
        fs::write(folder.join("run").join(name), contents).unwrap();
    }
}

fn edit(file: &Path, old: &str, new: &str) {
    let text = fs::read_to_string(file).unwrap();
    assert!(text.contains(old), "{old}: {text}");
    fs::write(file, text.replacen(old, new, 1)).unwrap();
}

#[test]
fn a_run_is_judged_again_from_its_folder() {
    if !has_namespaces("replay") || !has_program("replay", "ping") {
        return;
    }
    let _turn = beside();
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    ran(folder);
    let run = folder.join("run");
    assert_eq!(
        files(&run),
        [
            "events.jsonl",
            "evidence.json",
            "ping.stderr",
            "ping.stdout",
            "plan.json",
            "report.html",
            "report.json",
            "scenario.yaml",
            "sw.pcapng"
        ]
    );
    let report: serde_json::Value =
        serde_json::from_str(&fs::read_to_string(run.join("report.json")).unwrap()).unwrap();
    let events = fs::read_to_string(run.join("events.jsonl")).unwrap();
    let events: Vec<serde_json::Value> = events
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    for fault in report["faults"].as_array().unwrap() {
        let of = events.iter().filter(|event| event["fault"] == fault["id"]);
        let of: Vec<_> = of.collect();
        assert_eq!(
            fault["fired"].as_u64().unwrap() as usize,
            of.len(),
            "{fault}"
        );
        assert!(of.iter().all(|event| event["outcome"] == "hit"));
    }
    let of = |id: &'static str| events.iter().filter(move |event| event["fault"] == id);
    let ordinals: Vec<u64> = of("lost")
        .map(|event| event["ordinal"].as_u64().unwrap())
        .collect();
    assert_eq!(ordinals, [10, 20, 30, 40]);
    for event in of("marked") {
        let change = &event["changed"][0];
        assert_eq!(
            (&change["at"], &change["to"]),
            (&22.into(), &"09".into()),
            "{event}"
        );
    }
    let short = of("short").next().unwrap();
    assert_eq!(
        (&short["ordinal"], &short["cut_to"]),
        (&7.into(), &80.into()),
        "{short}"
    );
    // Nobody here wrote it.
    if has_program("replay", "tshark") {
        let mut tshark = Command::new("tshark");
        tshark.args([
            "-r",
            "sw.pcapng",
            "-Y",
            "frame.comment",
            "-T",
            "fields",
            "-e",
            "frame.comment",
        ]);
        let told = tshark.current_dir(&run).output().unwrap();
        let told = String::from_utf8(told.stdout).unwrap();
        assert_eq!(
            told.split(['\n', ','])
                .filter(|text| text.contains('#'))
                .count(),
            events.len(),
            "{told}"
        );
        assert!(told.contains("requests #10"), "{told}");
    }
    let again = weir(folder, &["replay", "run", "--json"]);
    again.expect_code(PASSED);
    assert_eq!(again.json()["identical"], true);
    let again = weir(folder, &["replay", "run", "--live", "second", "--json"]);
    again.expect_code(PASSED);
    let compared = &again.json()["flows"];
    for flow in compared.as_array().unwrap() {
        assert_eq!(flow["differing"], serde_json::json!([]), "{flow}");
        assert_ne!(flow["alike"], 0, "{flow}");
    }
}

/// By default the folder has the frames that were hit and those around them: the log is held against them.
#[test]
fn a_folder_with_a_part_of_the_frames_is_checked() {
    if !has_namespaces("replay") || !has_program("replay", "ping") {
        return;
    }
    let _turn = beside();
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    fs::write(folder.join("t.yaml"), SCENARIO).unwrap();
    weir(folder, &["run", "t.yaml", "--json", "--out", "run"]).expect_code(PASSED);
    let again = weir(folder, &["replay", "run", "--json"]);
    again.expect_code(PASSED);
    let told = again.json();
    let checked = &told["checked"];
    assert_eq!(
        (&told["judged_again"], &told["consistent"]),
        (&false.into(), &true.into())
    );
    assert_eq!(checked["found"], checked["events"], "{checked}");
    assert!(
        checked["kept"].as_u64() < checked["passed"].as_u64(),
        "{checked}"
    );
    assert!(
        checked["kept"].as_u64() > checked["events"].as_u64(),
        "{checked}"
    );
    edit(
        &folder.join("run/events.jsonl"),
        "\"outcome\":\"hit\"",
        "\"outcome\":\"missed\"",
    );
    let finished = run(folder, &["replay", "run"]);
    finished.expect_code(1);
    assert!(
        finished.stdout.contains("hits, but the log has"),
        "{finished:?}"
    );
    weir(
        folder,
        &[
            "run",
            "t.yaml",
            "--json",
            "--captures",
            "none",
            "--out",
            "none",
        ],
    )
    .expect_code(PASSED);
    assert!(!folder.join("none/sw.pcapng").exists());
    weir(folder, &["replay", "none"]).expect_code(PASSED);
}

/// The recipe of docs/runs.md, in three seconds instead of ten minutes and at a tenth of the rate.
#[test]
fn the_recipe_of_ten_minutes_under_faults_is_proved() {
    if !has_namespaces("recipe") || !has_program("recipe", "iperf3") {
        return;
    }
    let _turn = beside();
    let page = fs::read_to_string(repository("docs/runs.md")).unwrap();
    let (_, recipe) = page.split_once("## Ten minutes under faults").unwrap();
    let (_, recipe) = recipe.split_once("```yaml\n").unwrap();
    let (recipe, _) = recipe.split_once("```").unwrap();
    let mut recipe = recipe.to_owned();
    for (long, short) in [
        ("rate: 1Gbit/s", "rate: 100Mbit/s"),
        ("\"600\"", "\"3\""),
        (
            "at: 1m, for: 1m, every: 2m",
            "at: 300ms, for: 300ms, every: 600ms",
        ),
        ("0.1%", "1%"),
        ("limits: {time: 11m", "limits: {time: 30s"),
        ("> 10Mbit/s", "> 1Mbit/s"),
    ] {
        assert!(recipe.contains(long), "{long}: {recipe}");
        recipe = recipe.replacen(long, short, 1);
    }
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    fs::write(folder.join("long.yaml"), recipe).unwrap();
    let finished = weir(folder, &["run", "long.yaml", "--json", "--out", "run"]);
    finished.expect_code(PASSED);
    let report = finished.json();
    assert!(
        report["faults"][0]["observed"].as_u64() > Some(0),
        "{report}"
    );
    assert!(report["machine_strain"]["peak_memory_bytes"].as_u64() > Some(1 << 20));
    weir(folder, &["replay", "run"]).expect_code(PASSED);
}

#[test]
fn a_run_into_the_folder_of_another_leaves_nothing_of_that() {
    if !has_namespaces("replay") || !has_program("replay", "ping") {
        return;
    }
    let _turn = beside();
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    ran(folder);
    let run = folder.join("run");
    let refused = weir(folder, &["replay", "run", "--live", "./run"]);
    refused.expect_code(ERROR);
    let said = "--live ./run is the folder of the run itself";
    assert!(refused.stderr.contains(said), "{}", refused.stderr);
    edit(&folder.join("t.yaml"), "name: ping", "name: asks");
    edit(&folder.join("t.yaml"), "command.ping", "command.asks");
    let again = [
        "run",
        "t.yaml",
        "--json",
        "--captures",
        "all",
        "--out",
        "run",
    ];
    weir(folder, &again).expect_code(PASSED);
    let written = files(&run);
    assert!(written.contains(&"asks.stdout".to_owned()), "{written:?}");
    let old = |name: &String| name.starts_with("ping") || name == "unfinished";
    assert!(!written.iter().any(old), "{written:?}");
    weir(folder, &["replay", "run"]).expect_code(PASSED);
    // With a file of somebody else's in it, all stays as it is.
    fs::write(run.join("notes.txt"), "mine").unwrap();
    weir(folder, &again).expect_code(ERROR);
    assert_eq!(files(&run).len(), written.len() + 1);
    weir(folder, &["replay", "run"]).expect_code(PASSED);
}

#[test]
fn a_spoilt_folder_is_told() {
    if !has_namespaces("replay") || !has_program("replay", "ping") {
        return;
    }
    let _turn = beside();
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    ran(folder);
    let told = |spoil: &dyn Fn(&Path), code: i32, said: &str| {
        let spoilt = folder.join("spoilt");
        fs::create_dir(&spoilt).unwrap();
        for file in files(&folder.join("run")) {
            fs::copy(folder.join("run").join(&file), spoilt.join(&file)).unwrap();
        }
        spoil(&spoilt);
        let finished = run(folder, &["replay", "spoilt"]);
        finished.expect_code(code);
        let all = format!("{}{}", finished.stdout, finished.stderr);
        assert!(all.contains(said), "{said}: {all}");
        fs::remove_dir_all(spoilt).unwrap();
    };
    let events = |run: &Path| run.join("events.jsonl");
    let evidence = |run: &Path| run.join("evidence.json");
    told(
        &|run| edit(&events(run), "\"ordinal\":20", "\"ordinal\":21"),
        1,
        "of the log differs",
    );
    told(
        &|run| fs::write(events(run), "").unwrap(),
        1,
        "line 1 of the log differs",
    );
    // A capture of which one frame is another: what left is not what came.
    told(
        &|run| {
            let mut bytes = fs::read(run.join("sw.pcapng")).unwrap();
            let packets = bytes.windows(3).enumerate();
            let mut packets = packets.filter(|(_, begin)| *begin == [0x08, 0x00, 0x45]);
            let (at, _) = packets.nth(50).unwrap();
            bytes[at + 20] ^= 1;
            fs::write(run.join("sw.pcapng"), bytes).unwrap();
        },
        1,
        "not proved",
    );
    told(
        &|run| {
            let bytes = fs::read(run.join("sw.pcapng")).unwrap();
            fs::write(run.join("sw.pcapng"), &bytes[..bytes.len() / 2]).unwrap();
        },
        2,
        "sw.pcapng: ",
    );
    told(
        &|run| fs::remove_file(run.join("sw.pcapng")).unwrap(),
        2,
        "cannot read spoilt/sw.pcapng",
    );
    told(
        &|run| fs::remove_file(evidence(run)).unwrap(),
        2,
        "did not finish",
    );
    told(
        &|run| fs::write(evidence(run), "{}").unwrap(),
        2,
        "evidence.json: missing field",
    );
    // The capture has fewer frames than the run wrote.
    told(
        &|run| edit(&evidence(run), "\"frames\": ", "\"frames\": 1"),
        2,
        "were captured",
    );
    told(
        &|run| edit(&evidence(run), "\"fired\": [", "\"fired\": [1,"),
        2,
        "counters of 4 injections, of 3",
    );
    told(
        &|run| edit(&run.join("scenario.yaml"), "every: 10", "every: 9"),
        2,
        "now gets a different plan than in the run",
    );
    told(
        &|run| edit(&run.join("scenario.yaml"), "drop", "dorp"),
        2,
        "scenario.yaml",
    );
}

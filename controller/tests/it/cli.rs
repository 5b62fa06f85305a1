//! The commands that need no network: help, pages, plans, P4.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::support::leftovers::{Watched, files};
use crate::support::*;
use scenario::model::Direction::Ingress;
use scenario::plan::names::forward::{KEY, TABLE};
use scenario::plan::names::{aggregate, fault};

const COMMANDS: [&str; 33] = [
    "schema",
    "replay",
    "route",
    "collectives",
    "collectives plan",
    "simulate",
    "",
    "demo",
    "run",
    "between",
    "control",
    "job",
    "job setup",
    "job admit",
    "job renew",
    "job keep",
    "job release",
    "job env",
    "job list",
    "doctor",
    "validate",
    "plan",
    "switch",
    "p4",
    "p4 check",
    "p4 info",
    "p4 preprocess",
    "p4 fmt",
    "p4 graph",
    "p4 resources",
    "p4 run",
    "completions",
    "man",
];
const HIDDEN: [&str; 3] = ["agent", "client", "keeper"];

fn redis() -> String {
    repository("testbeds/scenarios/redis-get-loss.yaml")
        .display()
        .to_string()
}

fn passes(args: &[&str]) -> Finished {
    let folder = tempfile::tempdir().unwrap();
    let finished = Watched::weir(folder.path(), args).run();
    finished.expect_code(PASSED);
    assert!(finished.stderr.is_empty(), "{}", finished.stderr);
    assert!(files(folder.path()).is_empty());
    finished
}

#[test]
fn every_command_explains_itself() {
    for command in COMMANDS {
        let mut args: Vec<&str> = command.split_whitespace().collect();
        args.push("--help");
        let help = passes(&args).stdout;
        assert!(
            help.contains("Usage: weir") && help.lines().count() > 5,
            "{command}: {help}"
        );
        for hidden in HIDDEN {
            assert!(
                !help
                    .lines()
                    .any(|line| line.trim_start().starts_with(hidden)),
                "{command} shows {hidden}"
            );
        }
    }
    let help = passes(&["--help"]).stdout;
    assert!(
        help.contains("Exit codes: 0 passed, 1 an expectation failed, 2 could not run, 3 aborted"),
        "{help}"
    );
    for command in COMMANDS
        .iter()
        .filter(|command| !command.is_empty() && !command.contains(' '))
    {
        assert!(
            help.lines()
                .any(|line| line.trim_start().starts_with(command)),
            "{command}: {help}"
        );
    }
    assert!(passes(&["--version"]).stdout.starts_with("weir "));
}

#[test]
fn wrong_arguments_end_with_2() {
    for args in [
        &["frobnicate"][..],
        &["run"],
        &["run", "s.yaml", "--captures", "some"],
        &["between", "eth1", "eth2", "--captures", "all"],
        &["demo", "--iterations", "0"],
        &["validate"],
        &["plan", "--jsno", "x"],
    ] {
        let finished = run(Path::new("/"), args);
        finished.expect_code(ERROR);
        assert!(
            finished.stderr.starts_with("error: ") && finished.stdout.is_empty(),
            "{finished:?}"
        );
    }
}

/// A quantity on the command line is refused with what to write, as one in a file is.
#[test]
fn a_refused_quantity_says_what_to_write() {
    let admit = ["job", "admit", "a", "--ports", "1,2", "--rate"];
    let asked = "which tc and Chaos Mesh mean by `mbps`";
    for (args, told) in [
        (&[&admit[..], &["100mbps"]].concat(), asked),
        (&[&admit[..], &["2gbit"]].concat(), "write `2Gbit/s`"),
        (
            &vec!["job", "setup", "--tenant", "lab=512,rate=2mbps"],
            asked,
        ),
        (&vec!["job", "renew", "a", "--lease", "5"], "`5s` or `5ms`"),
    ] {
        let finished = run(Path::new("/"), args);
        finished.expect_code(ERROR);
        assert!(
            finished.stderr.contains(told),
            "{args:?}\n{}",
            finished.stderr
        );
    }
}

#[test]
fn completions_know_the_commands() {
    for shell in ["bash", "zsh", "fish"] {
        let script = passes(&["completions", shell]).stdout;
        for word in ["demo", "validate", "emit-p4"] {
            assert!(script.contains(word), "{shell}: {word}");
        }
    }
    run(Path::new("/"), &["completions", "tcsh"]).expect_code(ERROR);
}

#[test]
fn there_is_a_manual_page_for_each_command_and_for_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    let pages = folder.path().join("deep/man");
    run(folder.path(), &["man", "deep/man"]).expect_code(PASSED);
    let mut expected: Vec<_> = COMMANDS
        .map(|command| {
            format!("weir-{command}.1")
                .replace(' ', "-")
                .replace("-.1", ".1")
        })
        .into();
    expected.sort();
    assert_eq!(files(&pages), expected);
    for page in expected {
        let text = std::fs::read_to_string(pages.join(&page)).unwrap();
        assert!(
            text.contains(".TH") && text.contains(".SH SYNOPSIS"),
            "{page}"
        );
    }
}

#[test]
fn shipped_scenarios_are_valid() {
    let folder = repository("testbeds/scenarios");
    for file in files(&folder).iter().filter(|file| file.ends_with(".yaml")) {
        let path = folder.join(file).display().to_string();
        let said = passes(&["validate", &path]).stdout;
        assert!(
            said.starts_with(&format!("{path}: valid (")) && said.lines().count() == 1,
            "{said}"
        );
    }
    let said = passes(&["validate", &redis()]).stdout;
    assert!(
        said.ends_with("valid (2 faults, 4 flows, 1 switch)\n"),
        "{said}"
    );
}

#[test]
fn the_schemas_are_json_and_the_reference_a_page() {
    let scenario = passes(&["schema"]).json();
    let workload = passes(&["schema", "--workload"]).json();
    assert_eq!(scenario["title"], "weir scenario");
    assert_eq!(workload["title"], "weir workload");
    assert!(workload["properties"]["weir-workload"].is_object());
    let page = passes(&["schema", "--reference"]).stdout;
    assert!(page.contains("\n## A scenario\n") && page.contains("\n## A workload file\n"));
    let here = tempfile::tempdir().unwrap();
    run(here.path(), &["schema", "--workload", "--reference"]).expect_code(ERROR);
}

#[test]
fn protocols_of_a_folder_are_known_as_those_that_a_scenario_names() {
    let shipped = repository("testbeds/scenarios");
    let folder = shipped.join("protocols").display().to_string();
    let text = std::fs::read_to_string(shipped.join("memo-authors.yaml")).unwrap();
    let bare = text.replace("protocols: [protocols/memo.yaml]\n", "");
    let here = tempfile::tempdir().unwrap();
    let finished = told(
        here.path(),
        &["validate", "-", "--protocols", &folder],
        &bare,
    );
    finished.expect_code(PASSED);
    let finished = told(here.path(), &["validate", "-"], &bare);
    finished.expect_code(ERROR);
    assert!(
        finished.stderr.contains("no field is called `memo.author`"),
        "{}",
        finished.stderr
    );
    // Beside the standard input is where weir was called.
    let finished = told(here.path(), &["plan", "-"], &text);
    finished.expect_code(ERROR);
    let said = "cannot read protocol file `protocols/memo.yaml`: No such file or directory";
    assert!(finished.stderr.contains(said), "{}", finished.stderr);
    let nothing = here.path().display().to_string();
    let finished = told(here.path(), &["plan", "-", "--protocols", &nothing], &bare);
    finished.expect_code(ERROR);
    assert!(
        finished.stderr.contains("there is no *.yaml"),
        "{}",
        finished.stderr
    );
}

#[test]
fn a_plan_is_the_same_each_time() {
    let text = passes(&["plan", &redis()]).stdout;
    assert_eq!(text, passes(&["plan", &redis()]).stdout);
    for part in [
        "scenario redis-get-loss, seed 42",
        "drop-gets on a-gets: sw ingress, unit 0, cell 0",
        "delay-carts on a-cart-sets: sw ingress, unit 1, cell 0, at most ",
        "b-requests (protected): ip.src == 10.0.0.2",
        &format!("  entries of {}\n", fault::select_table(Ingress, 0)),
        &format!("  entries of {TABLE}\n    {KEY} 0x25745000001: unicast(port 1)\n"),
        "  multicast group 2: to ports 1, 2, 3\n",
        "\ncaptures of `weir run`: 3 ports, 79.9 MiB of rings\n  \
           sw ports 1, 2, 3: 79.9 MiB; for the proof of faults drop-gets, delay-carts\n",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let json = passes(&["plan", "--json", &redis()]);
    assert_eq!(json.stdout, passes(&["plan", "--json", &redis()]).stdout);
    let plan = json.json();
    assert_eq!(plan["scenario"], "redis-get-loss");
    assert_eq!(plan["switches"][0]["name"], "sw");
    assert_eq!(plan["injections"].as_array().unwrap().len(), 2);
    // Blocks of 128 KiB, of which a third of 80 MiB holds 213.
    assert_eq!(plan["captures"]["ring_bytes"], 3 * 213 * (128 << 10));
    let port = &plan["captures"]["ports"][0];
    assert_eq!((&port["switch"], &port["port"]), (&"sw".into(), &1.into()));
    assert_eq!(port["faults"][1], "delay-carts");
}

#[test]
fn a_plan_for_a_chip_writes_its_program_and_says_what_it_takes() {
    let folder = tempfile::tempdir().unwrap();
    let planned = run(
        folder.path(),
        &["plan", &redis(), "--target", "tofino2", "--emit-p4", "."],
    );
    planned.expect_code(PASSED);
    assert!(
        planned
            .stdout
            .contains("a probability is a multiple of 2^-16"),
        "{planned:?}"
    );
    assert!(planned.stdout.contains("stateful ALUs"), "{planned:?}");
    // Nothing captures what passes a chip.
    assert!(!planned.stdout.contains("captures"), "{planned:?}");
    let checked = run(folder.path(), &["p4", "check", "sw/tna/main.p4"]);
    checked.expect_code(PASSED);
    // Two faults are one more than the other chip has room for.
    let refused = run(folder.path(), &["plan", &redis(), "--target", "tofino"]);
    refused.expect_code(ERROR);
}

#[test]
fn an_emitted_program_is_the_same_each_time_and_stands_alone() {
    let folder = tempfile::tempdir().unwrap();
    let text = |path: &str| std::fs::read_to_string(folder.path().join(path)).unwrap();
    for target in ["one", "two"] {
        run(folder.path(), &["plan", &redis(), "--emit-p4", target]).expect_code(PASSED);
    }
    assert_eq!(
        text("one/sw/psa/generated.p4"),
        text("two/sw/psa/generated.p4")
    );
    let written: serde_json::Value = serde_json::from_str(&text("one/sw/entries.json")).unwrap();
    let tables = written["entries"].as_array().unwrap().iter();
    let classify = tables.filter(|entry| {
        let table = entry["table"].as_str().unwrap();
        table.starts_with("SwitchIngress.classify.")
    });
    assert!(classify.count() > 0, "{written}");
    assert_eq!(text("one/sw/entries.json"), text("two/sw/entries.json"));
    let checked = run(folder.path(), &["p4", "check", "one/sw/psa/main.p4"]);
    checked.expect_code(PASSED);
    assert_eq!(
        (checked.stdout.as_str(), checked.stderr.as_str()),
        ("one/sw/psa/main.p4: no errors\n", "")
    );
    // `weir p4 run` reads the entries and the groups: a broadcast leaves by all ports.
    let broadcast = format!("ffffffffffff{}", &PACKET[12..]);
    let main = "one/sw/psa/main.p4";
    let flooded = run(
        folder.path(),
        &[
            &["p4", "run", main, "--packet", &broadcast, "--port", "1"][..],
            &["--entries", "one/sw/entries.json"],
        ]
        .concat(),
    );
    flooded.expect_code(PASSED);
    let ports: Vec<&str> = flooded.stdout.lines().map(|line| &line[..2]).collect();
    assert_eq!(ports, ["1:", "2:", "3:"], "{flooded:?}");
    let info = run(folder.path(), &["p4", "info", "one/sw/psa/main.p4"]);
    info.expect_code(PASSED);
    assert_eq!(
        info.stdout,
        run(folder.path(), &["p4", "info", "two/sw/psa/main.p4"]).stdout
    );
    for name in [fault::select_table(Ingress, 0), fault::fired(Ingress, 1)] {
        assert!(info.stdout.contains(&format!("name: \"{name}\"")), "{name}");
    }
    // Nothing is summed, and no fault acts in egress.
    for name in [aggregate::JOBS, "SwitchEgress"] {
        assert!(!info.stdout.contains(name), "{name}");
    }
    let scenario = scenario::load("s.yaml", &std::fs::read_to_string(redis()).unwrap()).unwrap();
    let plan = scenario::plan(&scenario, &scenario::TargetModel::EMBEDDED).unwrap();
    for entry in &plan.switches[0].entries {
        for name in [&entry.table, &entry.action.name] {
            assert!(info.stdout.contains(&format!("name: \"{name}\"")), "{name}");
        }
    }
}

#[test]
fn without_namespaces_plans_are_made_and_runs_say_what_to_change() {
    if !has_namespaces("namespaces refused") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let refused = |args: &[&str]| {
        let mut command = Command::new("unshare");
        command.current_dir(folder.path()).stdin(Stdio::null());
        command.args(["--user", "--map-root-user", "--net", "sh", "-c"]);
        command.arg("for kind in user net mnt pid; do echo 0 > /proc/sys/user/max_${kind}_namespaces; done; exec \"$0\" \"$@\"");
        command.arg(env!("CARGO_BIN_EXE_weir")).args(args);
        Watched::command(command).run()
    };
    let redis = redis();
    let plan = refused(&["plan", &redis]);
    assert_eq!(
        plan.expect_code(PASSED).stdout,
        passes(&["plan", &redis]).stdout
    );
    refused(&["validate", &redis]).expect_code(PASSED);
    let run = refused(&["run", &redis]);
    run.expect_code(ERROR);
    assert_eq!(run.stderr.lines().count(), 1, "{}", run.stderr);
    assert!(
        run.stderr
            .contains("sysctl user.max_user_namespaces is 0; raise it"),
        "{}",
        run.stderr
    );
    let demo = refused(&["demo"]);
    demo.expect_code(ERROR);
    assert!(
        demo.stderr
            .ends_with("hint: `weir demo --links memory` needs no namespaces\n"),
        "{}",
        demo.stderr
    );
    assert!(files(folder.path()).is_empty());
}

#[test]
fn a_reader_that_goes_away_is_no_failure() {
    let folder = tempfile::tempdir().unwrap();
    run(folder.path(), &["plan", &redis(), "--emit-p4", "."]).expect_code(PASSED);
    for args in [
        &["p4", "info", "sw/psa/main.p4"][..],
        &["plan", "--json", &redis()],
        &["completions", "bash"],
    ] {
        let mut child = weir(folder.path(), args)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        drop(child.stdout.take());
        let output = child.wait_with_output().unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(
            stderr.is_empty() && output.status.code() == Some(PASSED),
            "{args:?}: {} {stderr}",
            output.status
        );
    }
}

/// `weir` with something on its standard input.
fn told(folder: &Path, args: &[&str], input: &str) -> Finished {
    let mut child = weir(folder, args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    // A command that refuses its arguments ends without having read.
    match stdin.write_all(input.as_bytes()) {
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => {}
        written => written.unwrap(),
    }
    drop(stdin);
    Finished::of(child.wait_with_output().unwrap())
}

#[test]
fn a_hyphen_is_the_standard_input() {
    let folder = tempfile::tempdir().unwrap();
    let text = std::fs::read_to_string(redis()).unwrap();
    for (args, expected) in [
        (&["validate", "-"][..], "standard input: valid (2 faults, "),
        (&["plan", "-"], "scenario redis-get-loss, seed 42\n"),
    ] {
        let finished = told(folder.path(), args, &text);
        finished.expect_code(PASSED);
        assert!(finished.stdout.starts_with(expected), "{finished:?}");
    }
    // Messages point into it.
    let finished = told(
        folder.path(),
        &["run", "-"],
        &text.replace("seed: 42", "sed: 42"),
    );
    finished.expect_code(ERROR);
    assert!(
        finished.stderr.contains(" --> standard input:7:1"),
        "{finished:?}"
    );
    // Includes stand where the command does.
    std::fs::write(folder.path().join("types.p4"), "typedef bit<9> port_t;\n").unwrap();
    let program = "#include \"types.p4\"\nconst port_t P = 1;\n";
    let finished = told(folder.path(), &["p4", "preprocess", "-"], program);
    finished.expect_code(PASSED);
    assert!(
        finished.stdout.contains("typedef bit<9> port_t;"),
        "{finished:?}"
    );
    // Who takes orders there cannot read a file there.
    let finished = told(
        folder.path(),
        &["control", "-", "--switch", "sw=127.0.0.1:1"],
        &text,
    );
    finished.expect_code(ERROR);
    assert!(finished.stderr.contains("must be a file"), "{finished:?}");
}

#[test]
fn a_mark_at_the_beginning_of_a_file_is_no_part_of_it() {
    let folder = tempfile::tempdir().unwrap();
    let marked = format!("\u{feff}{}", std::fs::read_to_string(redis()).unwrap());
    std::fs::write(folder.path().join("s.yaml"), &marked).unwrap();
    run(folder.path(), &["validate", "s.yaml"]).expect_code(PASSED);
    // Places are those that an editor shows.
    std::fs::write(folder.path().join("s.yaml"), "\u{feff}weird: 1\n").unwrap();
    let finished = run(folder.path(), &["validate", "s.yaml"]);
    assert!(finished.stderr.contains("s.yaml:1:1"), "{finished:?}");
}

const ENTRIES: &str = r#"[
  {"table": "RouterIngress.routes", "key": {"hdr.ipv4.dst": {"value": "0x0a000200", "prefix": 24}},
   "action": "RouterIngress.via", "params": {"next_hop": 7}},
  {"table": "RouterIngress.next_hops", "key": {"meta.next_hop": 7},
   "action": "RouterIngress.forward", "params": {"mac": "0x020000000007", "port": 3}}
]"#;
/// An empty IPv4 packet to 10.0.2.9.
const PACKET: &str = "020000000001 020000000002 0800 4500001400000000400063e00a0001020a000209";

#[test]
fn a_misspelt_filter_of_messages_is_ignored_with_a_warning() {
    let folder = tempfile::tempdir().unwrap();
    let said = |filter: &str| {
        let watched = Watched::weir(folder.path(), &["schema"]).env("RUST_LOG", filter);
        let finished = watched.run();
        finished.expect_code(PASSED);
        finished.stderr
    };
    let told = said("softswitch=loud");
    assert!(told.contains("RUST_LOG is ignored: "), "{told}");
    assert!(told.contains("expected a filter such as info"), "{told}");
    for right in ["", "softswitch=debug,warn"] {
        assert_eq!(said(right), "");
    }
}

/// `/dev/full` takes no byte: the exit code is then all that can be told.
#[test]
fn messages_that_nobody_can_read_do_not_change_the_exit_code() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("wrong.p4");
    std::fs::write(&file, "control").unwrap();
    let file = file.to_str().unwrap();
    for args in [
        ["p4", "check", file],
        ["p4", "info", file],
        ["p4", "fmt", "none.p4"],
        ["p4", "resources", file],
        ["validate", "--json", "none.yaml"],
    ] {
        let full = std::fs::File::options().write(true).open("/dev/full");
        let status = Command::new(env!("CARGO_BIN_EXE_weir"))
            .args(args)
            .current_dir(folder.path())
            .stdout(Stdio::null())
            .stderr(full.unwrap())
            .status()
            .unwrap();
        assert_eq!(status.code(), Some(2), "{args:?}");
    }
    let full = std::fs::File::options().write(true).open("/dev/full");
    let switch = Command::new(env!("CARGO_BIN_EXE_weir"))
        .args(["switch", "--no-p4", "--grpc-server-addr", "127.0.0.1:0"])
        .stdout(full.unwrap())
        .output()
        .unwrap();
    let message = String::from_utf8_lossy(&switch.stderr);
    assert!(message.starts_with("error: standard output: "), "{message}");
    assert_eq!(switch.status.code(), Some(2));
}

fn router() -> String {
    let path = repository("xtask/bench/src/measure/p4/router.p4");
    path.display().to_string()
}

#[test]
fn the_command_that_generates_an_included_file_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let main = repository("p4src/psa/main.p4");
    let main = main.to_str().unwrap();
    for command in ["check", "info", "resources", "graph", "preprocess"] {
        let finished = run(folder.path(), &["p4", command, main]);
        finished.expect_code(ERROR);
        let named = finished
            .stderr
            .matches("weir plan SCENARIO --emit-p4 FOLDER");
        assert_eq!(named.count(), 2, "{command}: {}", finished.stderr);
    }
}

#[test]
fn packets_through_a_program_are_explained() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("entries.json"), ENTRIES).unwrap();
    let router = router();
    let through = |more: &[&str]| {
        let args = [
            &["p4", "run", &router, "--packet", PACKET, "--port", "1"],
            more,
        ]
        .concat();
        let finished = Watched::weir(folder.path(), &args).run();
        finished.expect_code(PASSED);
        assert_eq!(finished.stderr, "");
        finished.stdout
    };
    assert_eq!(through(&[]), "-\n");
    let entries = ["--entries", "entries.json"];
    let bytes = through(&entries);
    assert!(
        bytes.starts_with("3: 02 00 00 00 00 07 02 00 00 00 00 02 08 00 45 ")
            && bytes.lines().count() == 1,
        "{bytes}"
    );
    assert_eq!(through(&[&entries[..], &["--poison"]].concat()), bytes);
    let text = through(&[&entries[..], &["--trace"]].concat());
    let source = std::fs::read_to_string(&router).unwrap();
    let line = source
        .lines()
        .position(|line| line.contains("routes.apply()"));
    let place = format!("router.p4:{}", line.unwrap() + 1);
    assert!(
        text.lines()
            .any(|line| line.starts_with(&place) && line.ends_with("table RouterIngress.routes")),
        "{place}: {text}"
    );
    for part in [
        "hit hdr.ipv4.dst = 0xa000200/24",
        "→ RouterIngress.via(next_hop = 0x7)",
        "→ port 3: 34 bytes",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let missed = through(&["--trace"]);
    assert!(
        missed.contains("miss\n") && missed.contains("→ dropped: "),
        "{missed}"
    );
    for line in through(&["--trace=json"]).lines() {
        let event: serde_json::Value = serde_json::from_str(line).unwrap();
        assert!(event["event"].is_string(), "{line}");
    }
}

#[test]
fn what_cannot_be_sent_through_a_program_is_said() {
    let folder = tempfile::tempdir().unwrap();
    let router = router();
    let wrong = ENTRIES.replace("hdr.ipv4.dst", "hdr.ipv4.dts");
    for (name, text) in [
        ("text.json", "[{"),
        ("keys.json", r#"[{"tabel": 1}]"#),
        ("entry.json", &wrong),
    ] {
        std::fs::write(folder.path().join(name), text).unwrap();
    }
    for (args, said) in [
        (&["--packet", "0x"][..], "expected hexadecimal digits"),
        (&["--packet", "abc"], "an odd number of hexadecimal digits"),
        (
            &["--packet", "00", "--port", "511"],
            "weir: --port: port 511 does not exist",
        ),
        (
            &["--packet", "00", "--entries", "missing.json"],
            "weir: cannot read missing.json: ",
        ),
        (
            &["--packet", "00", "--entries", "text.json"],
            "weir: text.json: EOF ",
        ),
        (
            &["--packet", "00", "--entries", "keys.json"],
            "weir: keys.json: entry 1: unknown key `tabel`",
        ),
        (
            &["--packet", "00", "--entries", "entry.json"],
            "weir: entry.json: entry 1 of RouterIngress.routes: no such key field: hdr.ipv4.dts",
        ),
    ] {
        let args = [&["p4", "run", &router], args].concat();
        let finished = Watched::weir(folder.path(), &args).run();
        finished.expect_code(ERROR);
        assert!(
            finished.stderr.contains(said) && finished.stdout.is_empty(),
            "{args:?}: {finished:?}"
        );
    }
}

/// A v1model program with these statements in ingress and in egress.
fn v1model(ingress: &str, egress: &str) -> String {
    format!(
        "#include <core.p4>
#include <v1model.p4>
header x_h {{ bit<8> a; }}
struct headers_t {{ x_h x; }}
struct meta_t {{}}
parser P(packet_in pkt, out headers_t hdr, inout meta_t meta, inout standard_metadata_t s) {{
    state start {{ pkt.extract(hdr.x); transition accept; }}
}}
control V(inout headers_t hdr, inout meta_t meta) {{ apply {{}} }}
control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t s) {{ apply {{ {ingress} }} }}
control E(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t s) {{ apply {{ {egress} }} }}
control C(inout headers_t hdr, inout meta_t meta) {{ apply {{}} }}
control D(packet_out pkt, in headers_t hdr) {{ apply {{ pkt.emit(hdr); }} }}
V1Switch(P(), V(), I(), E(), C(), D()) main;
"
    )
}

#[test]
fn warnings_are_shown_by_all_that_compiles() {
    let folder = tempfile::tempdir().unwrap();
    let program = v1model("s.egress_spec = 1; hdr.x.a = 8w256;", "");
    std::fs::write(folder.path().join("main.p4"), program).unwrap();
    for (args, code) in [
        (&["p4", "check", "main.p4"][..], PASSED),
        (&["p4", "info", "main.p4"], PASSED),
        (&["p4", "graph", "main.p4"], PASSED),
        (&["p4", "run", "main.p4", "--packet", "01"], PASSED),
        (&["switch", "main.p4", "-i", "1@no-such-link"], ERROR),
    ] {
        let finished = Watched::weir(folder.path(), args).run();
        finished.expect_code(code);
        let warnings = finished.stderr.matches("warning[").count();
        assert_eq!(warnings, 1, "{args:?}: {finished:?}");
        assert!(finished.stderr.contains("main.p4:10:"), "{finished:?}");
    }
}

#[test]
fn a_packet_that_recirculates_for_ever_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let program = v1model(
        "s.egress_spec = 1;",
        "if (hdr.x.a == 1) { recirculate_preserving_field_list(0); }",
    );
    std::fs::write(folder.path().join("main.p4"), program).unwrap();
    let args = [
        "p4", "run", "main.p4", "--packet", "02", "--packet", "01", "--packet", "02",
    ];
    let finished = Watched::weir(folder.path(), &args).run();
    finished.expect_code(FAILED);
    assert_eq!(finished.stdout, "1: 02\n-\n");
    let told = "weir: packet 2 was dropped after 10000 recirculations; the packets after it were not sent\n";
    assert_eq!(finished.stderr, told);
}

#[test]
fn executors_of_one_packet_can_be_chosen() {
    let folder = tempfile::tempdir().unwrap();
    let program = v1model("s.egress_spec = 1;", "");
    std::fs::write(folder.path().join("main.p4"), program).unwrap();
    let through = |more: &[&str]| {
        let args = [&["p4", "run", "main.p4", "--packet", "02"], more].concat();
        Watched::weir(folder.path(), &args).run()
    };
    for executor in ["fast", "reference", "both"] {
        let finished = through(&["--executor", executor]);
        finished.expect_code(PASSED);
        assert_eq!((&*finished.stdout, &*finished.stderr), ("1: 02\n", ""));
    }
    let both = through(&["--executor", "both", "--trace"]);
    both.expect_code(ERROR);
    assert!(
        both.stderr.starts_with("weir: --executor both: "),
        "{both:?}"
    );
}

#[test]
fn fmt_lays_out_in_place_and_what_is_wrong_with_one_file_keeps_no_other_from_it() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let crooked = "const bit<8>   a=1 ;\n";
    let straight = "const bit<8> a = 1;\n";
    std::fs::write(at("a.p4"), crooked).unwrap();
    std::fs::write(at("b.p4"), "/* open\n").unwrap();
    std::fs::write(at("real.p4"), crooked).unwrap();
    std::os::unix::fs::symlink("real.p4", at("c.p4")).unwrap();
    let text = |name: &str| std::fs::read_to_string(at(name)).unwrap();

    let finished = run(folder.path(), &["p4", "fmt", "--check", "a.p4", "c.p4"]);
    finished.expect_code(FAILED);
    assert_eq!(finished.stdout, "a.p4\nc.p4\n");
    assert_eq!(text("a.p4"), crooked);

    let finished = run(
        folder.path(),
        &["p4", "fmt", "a.p4", "b.p4", "no.p4", "c.p4"],
    );
    finished.expect_code(ERROR);
    assert!(finished.stderr.contains("b.p4:1:1"), "{}", finished.stderr);
    assert!(finished.stderr.contains("no.p4"), "{}", finished.stderr);
    assert_eq!([text("a.p4"), text("c.p4")], [straight, straight]);
    assert!(at("c.p4").is_symlink());
    run(folder.path(), &["p4", "fmt", "--check", "a.p4", "c.p4"]).expect_code(PASSED);
    assert_eq!(files(folder.path()), ["a.p4", "b.p4", "c.p4", "real.p4"]);
}

#[test]
fn fmt_lays_out_the_standard_input() {
    let with = |args: &[&str], text: &str| {
        let mut child = weir(Path::new("/"), args)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut input = child.stdin.take().unwrap();
        std::io::Write::write_all(&mut input, text.as_bytes()).unwrap();
        drop(input);
        let output = child.wait_with_output().unwrap();
        (
            output.status.code(),
            String::from_utf8(output.stdout).unwrap(),
        )
    };
    let straight = "const bit<8> a = 1;\n".to_owned();
    let laid_out = with(&["p4", "fmt", "-"], "const bit<8> a=1 ;");
    assert_eq!(laid_out, (Some(PASSED), straight));
    let told = with(&["p4", "fmt", "--check", "-"], "const bit<8> a=1 ;");
    assert_eq!(told, (Some(FAILED), "<stdin>\n".to_owned()));
}

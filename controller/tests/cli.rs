//! The commands that need no network: help, pages, plans, P4.

#[path = "support/leftovers.rs"]
mod leftovers;
mod support;

use std::path::Path;
use std::process::{Command, Stdio};

use leftovers::{Watched, files};
use support::*;

const COMMANDS: [&str; 15] = [
    "",
    "demo",
    "run",
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
    "completions",
    "man",
];
const HIDDEN: [&str; 2] = ["agent", "client"];

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
        for tamper in ["tamper", "kill-worker", "stall-switch"] {
            assert!(!help.contains(tamper), "{command} shows {tamper}");
        }
    }
    let help = passes(&["--help"]).stdout;
    assert!(
        help.contains("Exit codes: 0 passed, 1 an expectation failed, 2 could not run."),
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
fn a_plan_is_the_same_each_time() {
    let text = passes(&["plan", &redis()]).stdout;
    assert_eq!(text, passes(&["plan", &redis()]).stdout);
    for part in [
        "scenario redis-get-loss, seed 42",
        "drop-gets on a-gets: sw ingress, unit 0, cell 0",
        "delay-carts on a-cart-sets: sw ingress, unit 1, cell 0, at most ",
        "b-requests (protected): ip.src == 10.0.0.2",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let json = passes(&["plan", "--json", &redis()]);
    assert_eq!(json.stdout, passes(&["plan", "--json", &redis()]).stdout);
    let plan = json.json();
    assert_eq!(plan["scenario"], "redis-get-loss");
    assert_eq!(plan["switches"][0]["name"], "sw");
    assert_eq!(plan["injections"].as_array().unwrap().len(), 2);
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
    let checked = run(folder.path(), &["p4", "check", "one/sw/psa/main.p4"]);
    checked.expect_code(PASSED);
    assert_eq!(
        (checked.stdout.as_str(), checked.stderr.as_str()),
        ("one/sw/psa/main.p4: no errors\n", "")
    );
    let info = run(folder.path(), &["p4", "info", "one/sw/psa/main.p4"]);
    info.expect_code(PASSED);
    assert_eq!(
        info.stdout,
        run(folder.path(), &["p4", "info", "two/sw/psa/main.p4"]).stdout
    );
    for name in [
        "SwitchIngress.faults.u0.select",
        "SwitchIngress.aggregate.jobs",
        "SwitchEgress.faults.u7.fired.cells",
    ] {
        assert!(info.stdout.contains(&format!("name: \"{name}\"")), "{name}");
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

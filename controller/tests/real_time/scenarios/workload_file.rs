//! Workloads from files of their own: where they are found, what is kept of them, and what is told of one that is wrong.

use std::fs;
use std::io::Write;
use std::path::Path;

use crate::support::leftovers::{Watched, files};
use crate::support::*;

const WORKLOAD: &str = r#"weir-workload: 1
hosts: [server, client]
parameters: {times: 3, greeting: hello}
commands:
  - {name: wait, host: server, run: "echo ready; exec sleep 100", ready: {log: ready}}
  - name: ask
    host: client
    run: "sh {here}/say.sh {greeting} {n} && ping -c 1 -q {host.server.ip} && test $(uname -n) = {host.client.name}"
    repeat: "{times}"
"#;

const REST: &str = "flows: {all: {from: c, to: s, filter: icmp}}\n\
    faults: [{id: late, flows: all, effect: {delay: 1ms}}]\n\
    expect: [fault.late.fired == 4]\n";

fn scenario(file: &str) -> String {
    format!(
        "weir: 1\nname: t\ntopology: {{star: {{hosts: [s, c]}}}}\nworkload:\n  file: {file}\n  hosts: {{server: s, client: c}}\n  \
         with: {{times: 4}}\n{REST}"
    )
}

/// A folder with a scenario in one folder and its workload in another.
fn laid_out() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    fs::create_dir_all(at.join("scenarios")).unwrap();
    fs::create_dir_all(at.join("workloads")).unwrap();
    fs::write(at.join("scenarios/t.yaml"), scenario("../workloads/w.yaml")).unwrap();
    fs::write(at.join("workloads/w.yaml"), WORKLOAD).unwrap();
    fs::write(at.join("workloads/say.sh"), "echo $1 $2 from $(uname -n)\n").unwrap();
    folder
}

fn weir(folder: &Path, arguments: &[&str]) -> Finished {
    Watched::weir(folder, arguments).run()
}

#[test]
fn a_run_keeps_its_workload_and_is_judged_again_without_the_file() {
    if !has_namespaces("workload file") || !has_program("workload file", "ping") {
        return;
    }
    let _turn = beside();
    let folder = laid_out();
    let at = folder.path();
    let file = "scenarios/t.yaml";
    weir(
        at,
        &["run", file, "--json", "--captures", "all", "--out", "run"],
    )
    .expect_code(PASSED);
    let said = fs::read_to_string(at.join("run/ask.stdout")).unwrap();
    for number in 1..=4 {
        assert!(said.contains(&format!("hello {number} from c\n")), "{said}");
    }
    let kept = fs::read_to_string(at.join("run/workload.yaml")).unwrap();
    assert_eq!(kept, WORKLOAD);
    let again = weir(at, &["replay", "run", "--live", "second", "--json"]);
    again.expect_code(PASSED);
    assert_eq!(again.json()["identical"], true);
    // Another workload is another run.
    let other = WORKLOAD.replace("hello", "bye");
    fs::write(at.join("workloads/w.yaml"), other).unwrap();
    let refused = weir(at, &["replay", "run", "--live", "third"]);
    refused.expect_code(ERROR);
    assert_eq!(
        refused.stderr,
        "weir: scenarios/../workloads/w.yaml has changed since the run; to run it again, replace it by the run's \
         copy: run/workload.yaml\n"
    );
    fs::remove_dir_all(at.join("workloads")).unwrap();
    let judged = weir(at, &["replay", "run", "--json"]);
    judged.expect_code(PASSED);
    assert_eq!(judged.json()["identical"], true);
    fs::remove_file(at.join("run/workload.yaml")).unwrap();
    let judged = weir(at, &["replay", "run"]);
    judged.expect_code(ERROR);
    assert!(
        judged.stderr.contains("cannot read run/workload.yaml"),
        "{}",
        judged.stderr
    );
}

#[test]
fn a_scenario_from_the_standard_input_names_files_from_here() {
    if !has_namespaces("workload file") || !has_program("workload file", "ping") {
        return;
    }
    let _turn = beside();
    let folder = laid_out();
    let at = folder.path();
    // A pipe can be read once.
    let (input, mut writer) = std::io::pipe().unwrap();
    let text = scenario("workloads/w.yaml");
    writer.write_all(text.as_bytes()).unwrap();
    drop(writer);
    let watched = Watched::weir(at, &["run", "-", "--json"]).stdin(input);
    watched.run().expect_code(PASSED);
    assert_eq!(files(at), ["scenarios", "weir-run.html", "workloads"]);
}

#[test]
fn what_is_wrong_with_a_workload_is_told_where_it_stands() {
    let _turn = beside();
    let folder = laid_out();
    let at = folder.path();
    let file = "scenarios/t.yaml";
    for command in [&["validate", file][..], &["plan", file], &["run", file]] {
        fs::write(at.join("workloads/w.yaml"), WORKLOAD).unwrap();
        if command[0] != "run" {
            run(at, command).expect_code(PASSED);
        }
        let wrong = WORKLOAD.replace("host: client", "host: clint");
        fs::write(at.join("workloads/w.yaml"), wrong).unwrap();
        let told = run(at, command);
        told.expect_code(ERROR);
        assert_eq!(
            told.stderr,
            "error[unknown-name]: no role is called `clint`\n --> scenarios/../workloads/w.yaml:7:11\n  |\n7 |     host: clint\n  \
             |           ^^^^^\n  = hint: did you mean `client`?\n\n"
        );
        fs::remove_file(at.join("workloads/w.yaml")).unwrap();
        let told = run(at, command);
        told.expect_code(ERROR);
        assert!(
            told.stderr.contains(
                "error[workload]: cannot read workload file `../workloads/w.yaml`: No such file or directory"
            ) && told.stderr.contains("--> scenarios/t.yaml:5:9"),
            "{}",
            told.stderr
        );
        assert_eq!(files(at), ["scenarios", "workloads"]);
    }
}

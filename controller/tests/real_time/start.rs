//! What `weir run` refuses and warns of before its workload starts.

use crate::support::leftovers::{Watched, files};
use crate::support::*;

/// A scenario without a workload.
const GOOD: &str = "\
weir: 1
name: base
topology:
  star: {hosts: [a, b, s]}
flows:
  gets: {from: a, to: s, filter: tcp.dport == 6379}
  others: {from: b, to: s, filter: tcp.dport == 6379}
faults:
  - {id: first, flows: gets, effect: !drop , select: !every 5}
  - {id: second, flows: others, effect: !delay 20ms}
";

#[test]
fn a_report_that_cannot_be_written_is_noticed_before_the_run() {
    if !has_namespaces("unwritable report") {
        return;
    }
    let _turn = beside();
    let folder = tempfile::tempdir().unwrap();
    let long = GOOD.replace(
        "faults:",
        "workload: !idle {for: 900s}\nlimits: {time: 1000s}\nfaults:",
    );
    std::fs::write(folder.path().join("s.yaml"), long).unwrap();
    let arguments = ["run", "s.yaml", "--report", "missing/report.html"];
    let finished = Watched::weir(folder.path(), &arguments).run();
    finished.expect_code(ERROR);
    let expected = "weir: cannot write the report missing/report.html: No such file or directory (os error 2)\n";
    assert_eq!(finished.stderr, expected);
    assert_eq!(files(folder.path()), ["s.yaml"]);
    // A run that fails writes none, and keeps the one before it.
    std::fs::create_dir_all(folder.path().join("p4/common")).unwrap();
    std::fs::write(folder.path().join("p4/common/forward.p4"), "?").unwrap();
    let fails = |report: &str| {
        let arguments = ["run", "s.yaml", "--p4src", "p4", "--report", report];
        Watched::weir(folder.path(), &arguments)
            .run()
            .expect_code(ERROR);
    };
    fails("new.html");
    assert_eq!(files(folder.path()), ["p4", "s.yaml"]);
    std::fs::write(folder.path().join("old.html"), "kept").unwrap();
    fails("old.html");
    let old = std::fs::read_to_string(folder.path().join("old.html"));
    assert_eq!(old.unwrap(), "kept");
}

#[test]
fn p4_errors_of_a_folder_given_to_run_have_their_place() {
    if !has_namespaces("P4 errors of weir run --p4src") {
        return;
    }
    let _turn = beside();
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("s.yaml"), GOOD).unwrap();
    std::fs::create_dir_all(folder.path().join("p4/common")).unwrap();
    std::fs::write(
        folder.path().join("p4/common/forward.p4"),
        "control Forward(in headers_t hdr) { apply { x = 1; } }\n",
    )
    .unwrap();
    let finished = Watched::weir(folder.path(), &["run", "s.yaml", "--p4src", "p4"]).run();
    finished.expect_code(ERROR);
    assert!(
        finished
            .stderr
            .starts_with("weir: switch sw: the P4 program has errors\nerror["),
        "{}",
        finished.stderr
    );
    assert!(
        finished.stderr.contains("common/forward.p4:1:45\n"),
        "{}",
        finished.stderr
    );
    assert_eq!(files(folder.path()), ["p4", "s.yaml"]);
}

/// What a folder changes in the built-in text is the user's: its warnings are shown, those of a run's other text are not.
#[test]
fn warnings_of_a_folder_are_shown_by_a_run() {
    if !has_namespaces("warnings_of_a_folder_are_shown_by_a_run") {
        return;
    }
    let _turn = beside();
    let folder = tempfile::tempdir().unwrap();
    let mut program = std::fs::read_to_string(repository("p4src/common/forward.p4")).unwrap();
    program += "const bit<8> TOO_WIDE = 8w256;\n";
    std::fs::create_dir_all(folder.path().join("p4/common")).unwrap();
    std::fs::write(folder.path().join("p4/common/forward.p4"), &program).unwrap();
    let scenario = "weir: 1\nname: still\ntopology:\n  star: {hosts: [a, b]}\n";
    std::fs::write(folder.path().join("s.yaml"), scenario).unwrap();
    let run = |more: &[&str]| {
        let args = [&["run", "s.yaml"], more].concat();
        let finished = Watched::weir(folder.path(), &args).run();
        finished.expect_code(PASSED);
        finished.stderr
    };
    let said = run(&["--p4src", "p4"]);
    assert!(said.starts_with("switch sw:\nwarning["), "{said}");
    let place = format!("--> common/forward.p4:{}:25\n", program.lines().count());
    assert!(said.contains(&place), "{place}: {said}");
    assert_eq!(said.matches("warning[").count(), 1, "{said}");
    assert!(!run(&[]).contains("warning"));
}

//! testbeds/mininet with the embedded switch, where Mininet is installed.

use std::process::{Command, Stdio};

use crate::support::leftovers::Watched;
use crate::support::*;

/// Debian's Mininet belongs to Debian's interpreter.
const PYTHON: &str = "/usr/bin/python3";

fn has_mininet(test: &str) -> bool {
    let imported = Command::new(PYTHON)
        .args(["-c", "import mininet.net"])
        .stderr(Stdio::null())
        .status();
    if !imported.is_ok_and(|status| status.success()) {
        skip(test, "mininet");
        return false;
    }
    has_namespaces(test)
}

fn topology(script: &str, args: &[&str]) -> Finished {
    let mut command = Command::new(PYTHON);
    command
        .arg("-B")
        .arg(repository("testbeds/mininet").join(script))
        .args(args)
        .env("WEIR", env!("CARGO_BIN_EXE_weir"))
        .stdin(Stdio::null());
    Watched::command(command).run()
}

#[test]
fn a_fault_scenario_hits_what_it_says() {
    if !has_mininet("a_fault_scenario_hits_what_it_says") {
        return;
    }
    let _turn = beside();
    let result = topology("topo_faults.py", &["--private"])
        .expect_code(0)
        .json();
    let answered =
        serde_json::json!({"before": 40, "under the fault": 30, "protected": 40, "after": 40});
    assert_eq!(result["answered"], answered);
    assert_eq!(result["fired"], 10);
}

#[test]
fn updates_are_summed_on_their_way() {
    if !has_mininet("updates_are_summed_on_their_way") {
        return;
    }
    let _turn = alone();
    let result = topology("topo_aggregation.py", &["--private"])
        .expect_code(0)
        .json();
    assert_eq!(result["same weights"], true);
    let bytes = |name: &str| result[name].as_f64().unwrap();
    let share = bytes("bytes to the server") / bytes("bytes without the switch");
    // A quarter, for four workers, and what was sent again.
    assert!((0.25..0.375).contains(&share), "{share}");
}

#[test]
fn mininet_is_refused_outside_a_namespace_of_its_own() {
    let _turn = beside();
    if !has_program(
        "mininet_is_refused_outside_a_namespace_of_its_own",
        "python3",
    ) {
        return;
    }
    for script in ["topo_faults.py", "topo_aggregation.py"] {
        let finished = topology(script, &[]);
        finished.expect_code(1);
        assert!(
            finished.stderr.starts_with("refused: "),
            "{}",
            finished.stderr
        );
        assert!(
            finished.stderr.contains("unshare --user"),
            "{}",
            finished.stderr
        );
    }
}

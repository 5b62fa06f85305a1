//! Faults on RDMA: packets named by their number and round.

use serde_json::Value;

use crate::leftovers::Watched;
use crate::shipped;
use crate::support::*;

/// `weir` runs agents of its own by its name.
fn with_weir_in_path() -> std::ffi::OsString {
    let weir = std::path::Path::new(env!("CARGO_BIN_EXE_weir"));
    let inherited = std::env::var_os("PATH").unwrap_or_default();
    let folders = weir.parent().map(Into::into).into_iter();
    std::env::join_paths(folders.chain(std::env::split_paths(&inherited))).unwrap()
}

#[test]
fn one_packet_is_lost_in_its_first_round_and_comes_in_a_later_one() {
    if !has_namespaces("rdma-drop.yaml") {
        return;
    }
    let _alone = alone();
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("s.yaml"), shipped("rdma-drop.yaml")).unwrap();
    let args = ["run", "s.yaml", "--json", "--out", "kept"];
    let watched = Watched::weir(folder.path(), &args).env("PATH", with_weir_in_path());
    let finished = watched.run();
    finished.expect_code(PASSED);
    assert!(finished.stderr.is_empty(), "{}", finished.stderr);
    let run = finished.json();
    for fault in run["faults"].as_array().unwrap() {
        assert_eq!(fault["proved"], true, "{fault}");
    }
    let again = run["metrics"]["fault.again.fired"].as_f64().unwrap();
    let log = std::fs::read_to_string(folder.path().join("kept/events.jsonl")).unwrap();
    let events: Vec<Value> = log
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let of = |fault: &str| -> Vec<&Value> {
        let events = events.iter();
        events.filter(|event| event["fault"] == fault).collect()
    };
    let (lost, seen) = (of("lost"), of("again"));
    assert_eq!(lost.len(), 1, "{log}");
    assert_eq!(
        lost[0]["rdma"],
        serde_json::json!({"relative_psn": 3, "round": 1})
    );
    assert_eq!(seen.len() as f64, again, "{log}");
    for event in seen {
        assert_eq!(event["rdma"]["relative_psn"], 3);
        assert!(event["rdma"]["round"].as_u64() > Some(1), "{event}");
        for field in ["roce.qp", "roce.psn", "ip.src"] {
            assert_eq!(event["fields"][field], lost[0]["fields"][field], "{event}");
        }
    }
    // The captures say the same without the run.
    let judged = Watched::weir(folder.path(), &["replay", "kept", "--json"]).run();
    judged.expect_code(PASSED);
}

/// Ranks of both jobs have the same bits, and captures prove what one of them has lost.
#[test]
fn sums_by_rdma_are_the_same_bits_whatever_is_lost() {
    if !has_namespaces("rdma-allreduce.yaml") {
        return;
    }
    let _alone = alone();
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("s.yaml"), shipped("rdma-allreduce.yaml")).unwrap();
    let watched = Watched::weir(folder.path(), &["run", "s.yaml", "--json"]);
    let finished = watched.env("PATH", with_weir_in_path()).run();
    finished.expect_code(PASSED);
    assert!(finished.stderr.is_empty(), "{}", finished.stderr);
    let run = finished.json();
    for fault in run["faults"].as_array().unwrap() {
        assert_eq!(fault["proved"], true, "{fault}");
    }
    for rank in ["a", "b", "c", "d", "e", "f", "g", "h"] {
        let of = |what: &str| run["metrics"][format!("command.rank-{rank}.{what}")].as_f64();
        assert_eq!(of("wrong"), Some(0.0), "{rank}");
        let first = run["metrics"]["command.rank-a.fingerprint"].as_f64();
        assert_eq!(of("fingerprint"), first, "{rank}");
    }
}

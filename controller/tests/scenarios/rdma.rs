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
    loses_and_sends_again("rdma-drop.yaml", 3);
}

#[test]
fn ranks_of_an_all_gather_mend_what_one_of_them_loses() {
    loses_and_sends_again("rdma-allgather.yaml", 1000);
}

/// The fault `lost` takes the packet with this number in round 1, `again` sees it in later ones.
fn loses_and_sends_again(file: &str, relative_psn: u64) {
    if !has_namespaces(file) {
        return;
    }
    let _alone = alone();
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("s.yaml"), shipped(file)).unwrap();
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
        serde_json::json!({"relative_psn": relative_psn, "round": 1})
    );
    assert_eq!(seen.len() as f64, again, "{log}");
    for event in seen {
        assert_eq!(event["rdma"]["relative_psn"], relative_psn);
        assert!(event["rdma"]["round"].as_u64() > Some(1), "{event}");
        for field in ["roce.qp", "roce.psn", "ip.src"] {
            assert_eq!(event["fields"][field], lost[0]["fields"][field], "{event}");
        }
    }
    // The captures say the same without the run.
    let judged = Watched::weir(folder.path(), &["replay", "kept", "--json"]).run();
    judged.expect_code(PASSED);
}

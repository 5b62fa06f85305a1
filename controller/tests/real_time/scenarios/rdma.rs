//! Faults on RDMA: packets named by their number and round.

use serde_json::Value;

use super::shipped;
use crate::support::leftovers::Watched;
use crate::support::*;

/// `weir` runs agents of its own by its name.
pub(super) fn with_weir_in_path() -> std::ffi::OsString {
    let weir = std::path::Path::new(env!("CARGO_BIN_EXE_weir"));
    let inherited = std::env::var_os("PATH").unwrap_or_default();
    let folders = weir.parent().map(Into::into).into_iter();
    std::env::join_paths(folders.chain(std::env::split_paths(&inherited))).unwrap()
}

/// A run of a scenario, kept in the folder `kept` of this one.
fn kept(file: &str) -> (tempfile::TempDir, Finished) {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("s.yaml"), shipped(file)).unwrap();
    let args = [
        "run",
        "s.yaml",
        "--json",
        "--captures",
        "all",
        "--out",
        "kept",
    ];
    let watched = Watched::weir(folder.path(), &args).env("PATH", with_weir_in_path());
    let finished = watched.run();
    (folder, finished)
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
    let _turn = beside();
    let (folder, finished) = kept(file);
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
        serde_json::json!({"relative_psn": relative_psn, "round": 1, "first": "told"})
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

/// The fault is armed while the connection's packets pass: who opens it has told where it begins.
#[test]
fn numbers_count_from_where_a_connection_begins() {
    if !has_namespaces("rdma-late.yaml") {
        return;
    }
    let _turn = beside();
    let (folder, finished) = kept("rdma-late.yaml");
    finished.expect_code(PASSED);
    assert!(finished.stderr.is_empty(), "{}", finished.stderr);
    assert_eq!(finished.json()["faults"][0]["proved"], true);
    let read = |name: &str| std::fs::read_to_string(folder.path().join("kept").join(name)).unwrap();
    let event: Value = serde_json::from_str(read("events.jsonl").trim_end()).unwrap();
    let evidence: Value = serde_json::from_str(&read("evidence.json")).unwrap();
    let tellings = evidence["tellings"].as_array().unwrap();
    // Both agents told of both ways, and of answers to READs: the second had nothing to add.
    assert_eq!(tellings.len(), 4, "{evidence:#}");
    let of_data = tellings
        .iter()
        .find(|told| told["stream"]["source"] == "10.0.0.1" && told["stream"]["responds"] == false);
    let first = of_data.unwrap()["first_psn"].as_u64().unwrap();
    let lost = event["fields"]["roce.psn"].as_str().unwrap();
    let lost: u64 = lost.parse().unwrap();
    assert_eq!(lost.wrapping_sub(first) % (1 << 24), 6000, "{event}");
    let judged = Watched::weir(folder.path(), &["replay", "kept", "--json"]).run();
    judged.expect_code(PASSED);
    // Without what agents told, nothing explains the packet that is missing.
    let mut untold = evidence.clone();
    untold["tellings"] = serde_json::json!([]);
    std::fs::write(folder.path().join("kept/evidence.json"), untold.to_string()).unwrap();
    let refused = Watched::weir(folder.path(), &["replay", "kept", "--json"]).run();
    refused.expect_code(FAILED);
    assert_eq!(refused.json()["faults"][0]["proved"], false);
}

#[test]
fn each_effect_hits_the_packet_of_its_number() {
    if !has_namespaces("rdma-effects.yaml") {
        return;
    }
    let _turn = beside();
    let (folder, finished) = kept("rdma-effects.yaml");
    finished.expect_code(PASSED);
    let log = std::fs::read_to_string(folder.path().join("kept/events.jsonl")).unwrap();
    let mut seen = std::collections::BTreeMap::new();
    for line in log.lines() {
        let event: Value = serde_json::from_str(line).unwrap();
        assert_eq!(event["outcome"], "hit", "{event}");
        let fault = event["fault"].as_str().unwrap().to_owned();
        seen.insert(fault, event["rdma"]["relative_psn"].as_u64().unwrap());
    }
    let expected = [
        ("broken", 100),
        ("dropped", 20),
        ("garbled", 200),
        ("late", 400),
        ("marked", 5),
        ("overtaken", 800),
        ("twice", 10),
    ];
    let expected = expected.map(|(fault, psn)| (fault.to_owned(), psn));
    assert_eq!(seen.into_iter().collect::<Vec<_>>(), expected);
}

#[test]
fn writes_and_reads_come_back_and_the_report_says_how_soon() {
    if !has_namespaces("rdma-losses.yaml") {
        return;
    }
    let _turn = beside();
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("s.yaml"), shipped("rdma-losses.yaml")).unwrap();
    let args = ["run", "s.yaml", "--json"];
    let watched = Watched::weir(folder.path(), &args).env("PATH", with_weir_in_path());
    let finished = watched.run();
    finished.expect_code(PASSED);
    let run = finished.json();
    let recoveries = run["recoveries"].as_array().unwrap();
    for (fault, teller, addresses) in [
        ("lost-puts", "nak", ["10.0.0.1", "10.0.0.2"]),
        ("lost-answers", "read", ["10.0.0.2", "10.0.0.1"]),
    ] {
        let of_fault: Vec<&Value> = recoveries
            .iter()
            .filter(|of| of["fault"] == fault)
            .collect();
        let taken = run["faults"]
            .as_array()
            .unwrap()
            .iter()
            .find(|of| of["id"] == fault)
            .unwrap();
        assert_eq!(
            Some(of_fault.len() as u64),
            taken["observed"].as_u64(),
            "{taken}"
        );
        assert_eq!(taken["proved"], true, "{taken}");
        for of in &of_fault {
            assert_eq!([&of["source"], &of["destination"]], addresses, "{of}");
            let Some(whole) = of["retransmission_ns"].as_u64() else {
                // Who timed out has asked for what was on its way.
                assert_eq!(of["passed_before"], true, "it never came again: {of}");
                continue;
            };
            let told_by = of["told_by"].as_str().unwrap();
            assert!([teller, "nobody"].contains(&told_by), "{of}");
            let parts = ["nak_generation_ns", "nak_response_ns"].map(|part| of[part].as_u64());
            assert_eq!(
                parts.map(|part| part.is_some()),
                [told_by == teller; 2],
                "{of}"
            );
            assert!(parts.iter().flatten().sum::<u64>() <= whole, "{of}");
        }
        assert!(of_fault.iter().any(|of| of["told_by"] == teller), "{fault}");
    }
    let page = std::fs::read_to_string(folder.path().join("weir-run.html")).unwrap();
    assert!(page.contains("Recovery of RDMA connections"));
    assert!(page.contains("relative PSN of the lost packet"));
}

/// Ranks of both jobs have the same bits, and captures prove what one of them has lost.
#[test]
fn sums_by_rdma_are_the_same_bits_whatever_is_lost() {
    if !has_namespaces("rdma-allreduce.yaml") {
        return;
    }
    let _turn = beside();
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

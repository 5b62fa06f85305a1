//! The shipped scenarios of programs that are not weir's: each passes, and each of its faults is proved.

use serde_json::Value;

use super::leftovers::{Watched, files};
use super::support::*;

macro_rules! scenarios {
    ($($test:ident: $file:literal, $programs:expr;)+) => {
        /// What the tests below run.
        pub const TESTED: &[&str] = &[$($file),+];

        $(#[test]
        fn $test() {
            passes($file, &$programs);
        })+
    };
}

scenarios! {
    nginx_and_curl_under_loss: "nginx-curl.yaml", ["nginx", "curl"];
}

fn passes(file: &str, programs: &[&str]) {
    let missing = |program: &&&str| !has_program(file, program);
    if !has_namespaces(file) || programs.iter().any(|program| missing(&program)) {
        return;
    }
    let _alone = alone();
    let folder = tempfile::tempdir().unwrap();
    let scenario = repository("testbeds/scenarios").join(file);
    let scenario = scenario.to_str().unwrap();
    let finished = Watched::weir(folder.path(), &["run", scenario, "--json"]).run();
    finished.expect_code(PASSED);
    assert!(finished.stderr.is_empty(), "{}", finished.stderr);
    assert_eq!(files(folder.path()), ["weir-run.html"]);
    let run = finished.json();
    assert_eq!(run["ok"], true);
    let all = |section: &str| run[section].as_array().unwrap().clone();
    for fault in all("faults") {
        assert_eq!(fault["proved"], true, "{fault}");
        assert_eq!(fault["fired"], fault["observed"], "{fault}");
        assert_ne!(fault["fired"], 0, "{fault}");
    }
    for expectation in all("expectations") {
        assert_eq!(expectation["passed"], true, "{expectation}");
    }
    assert!(!all("commands").is_empty());
    let page = std::fs::read_to_string(folder.path().join("weir-run.html")).unwrap();
    for probe in all("probes") {
        assert_ne!(probe["samples"], Value::Array(Vec::new()), "{probe}");
        let name = probe["name"].as_str().unwrap();
        assert!(
            page.contains(&format!("Latency of probe {name} ")),
            "{name}"
        );
    }
}

//! The part of a run's report that explains its exit code: the whole object has thousands of lines.

use std::fmt::Write;

use serde_json::Value;

/// The lines that matter of the JSON object that `weir run --json` prints; any other text as it is.
pub fn shortened(stdout: &str) -> String {
    match serde_json::from_str::<Value>(stdout) {
        Ok(report) if report["expectations"].is_array() => lines(&report),
        _ => stdout.to_owned(),
    }
}

fn lines(report: &Value) -> String {
    let all = |section: &str| report[section].as_array().into_iter().flatten();
    let mut text = format!("the report in short: ok is {}\n", report["ok"]);
    let mut line = |what: &str, value: &dyn std::fmt::Display| {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{what}: {value}");
    };
    if !report["aborted"].is_null() {
        line("aborted", &report["aborted"]);
    }
    for failure in all("failures") {
        line("failure", failure);
    }
    for expectation in all("expectations").filter(|one| one["passed"] == false) {
        let at = &expectation["diagnostic"];
        let file = at["file"].as_str().unwrap_or_default();
        let message = expectation["message"].as_str().unwrap_or_default();
        line(&format!("{file}:{}", at["line"]), &message);
    }
    for section in ["faults", "disruptions", "triggers"] {
        for unproved in all(section).filter(|one| one["proved"] == false) {
            line(&format!("not proved, of {section}"), unproved);
        }
    }
    for command in all("commands").filter(|one| one["failures"] != 0) {
        let [name, failures, exit] = ["name", "failures", "exit"].map(|key| &command[key]);
        line(
            "command",
            &format_args!("{name} failed {failures} times, exit code {exit}"),
        );
    }
    for reason in all("degraded_reasons") {
        line("degraded", reason);
    }
    line("machine", &report["machine_strain"]);
    text
}

#[test]
fn a_report_is_shortened_to_its_failures() {
    let report = serde_json::json!({
        "ok": false,
        "degraded_reasons": ["late: a packet left later"],
        "failures": ["switch sw stood still"],
        "machine_strain": { "busy_share": 0.5 },
        "faults": [
            { "id": "lost", "proved": false, "reason": "1 packet was missed" },
            { "id": "late", "proved": true },
        ],
        "disruptions": [],
        "commands": [{ "name": "get", "failures": 2, "exit": 7 }, { "name": "web", "failures": 0 }],
        "over_time": { "hits": [1, 2, 3] },
        "expectations": [
            { "passed": true, "message": "a is 1", "diagnostic": null },
            { "passed": false, "message": "b is 2, expected == 3", "diagnostic": { "file": "f.yaml", "line": 41 } },
        ],
    });
    assert_eq!(
        shortened(&report.to_string()),
        "the report in short: ok is false\n\
         failure: \"switch sw stood still\"\n\
         f.yaml:41: b is 2, expected == 3\n\
         not proved, of faults: {\"id\":\"lost\",\"proved\":false,\"reason\":\"1 packet was missed\"}\n\
         command: \"get\" failed 2 times, exit code 7\n\
         degraded: \"late: a packet left later\"\n\
         machine: {\"busy_share\":0.5}\n"
    );
    assert_eq!(shortened("2 passed\n"), "2 passed\n");
}

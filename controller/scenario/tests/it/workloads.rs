//! Workloads from files of their own: what becomes of roles and parameters.

use scenario::model::workload::WorkloadSource;
use scenario::{Given, Scenario, load_with, named_workload};

const SCENARIO: &str = include_str!("../corpus/workload-file.yaml");
const WEB: &str = include_str!("../corpus/workloads/web.yaml");

fn given(text: &str) -> Given {
    let workload = WorkloadSource {
        file: "there/web.yaml".to_owned(),
        text: text.to_owned(),
    };
    Given {
        workload: Some(Ok(workload)),
        ..Given::default()
    }
}

fn loaded(scenario: &str, workload: &str) -> Scenario {
    load_with("s.yaml", scenario, &given(workload)).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn roles_become_hosts_and_parameters_values() {
    let scenario = loaded(SCENARIO, WEB);
    insta::with_settings!({omit_expression => true}, {
        insta::assert_snapshot!(
            "workload_file_json",
            serde_json::to_string_pretty(&(&scenario.workload, &scenario.probes)).unwrap()
        );
    });
    assert_eq!(scenario.workload_file.unwrap().text, WEB);
}

/// The same scenario with the file's commands in it, by hand.
#[test]
fn a_file_says_what_the_scenario_could_say_itself() {
    let from_file = loaded(
        "weir: 1\nname: t\ntopology: {star: {hosts: [s, c], switch: sw}}\nworkload: {file: w, hosts: {server: s, client: c}}\n",
        "weir-workload: 1\nhosts: [server, client]\nparameters: {port: 80}\ncommands:\n  - {name: web, host: server, run: \"serve \
         {port}\", ready: {tcp: \"{port}\"}}\n  - {name: get, host: client, run: [get, \"{host.server.ip}\"], repeat: \"{port}\"}\n",
    );
    let by_hand = scenario::load(
        "s.yaml",
        "weir: 1\nname: t\ntopology: {star: {hosts: [s, c], switch: sw}}\nworkload:\n  commands:\n  - {name: web, host: s, run: \
         serve 80, ready: {tcp: 80}}\n  - {name: get, host: c, run: [get, \"{host.s.ip}\"], repeat: 80}\n",
    )
    .unwrap();
    let json = |scenario: &Scenario| {
        let text = serde_json::to_string(&scenario.workload).unwrap();
        text.replace("\"there/web.yaml\"", "null")
    };
    assert_eq!(json(&from_file), json(&by_hand));
}

#[test]
fn the_caller_is_told_which_file_to_read() {
    let named = |text: &str| named_workload("s.yaml", text);
    assert_eq!(named(SCENARIO).as_deref(), Some("workloads/web.yaml"));
    assert_eq!(named("workload: !file a.yaml").as_deref(), Some("a.yaml"));
    for none in [
        "weir: 1",
        "workload: {commands: []}",
        "workload: {file: [a]}",
        "workload: {",
    ] {
        assert_eq!(named(none), None, "{none}");
    }
}

#[test]
fn a_file_that_was_not_given_is_refused() {
    let told = scenario::load("s.yaml", SCENARIO).map(drop).unwrap_err();
    let told = told.0[0].to_string();
    assert_eq!(
        told,
        "s.yaml:5:9: [workload] workload file `workloads/web.yaml` is missing from the given files"
    );
}

proptest::proptest! {
    /// A workload file damaged in one place is accepted, or told what is wrong; nothing panics.
    #[test]
    fn damaged_files(at in 0_usize..1300, length in 0_usize..40, splice in "[-a-z0-9:{}\\[\\]!&*'\"#.% \n]{0,8}") {
        let start = at.min(WEB.len());
        let end = (start + length).min(WEB.len());
        let damaged = format!("{}{splice}{}", &WEB[..start], &WEB[end..]);
        let _ = load_with("s.yaml", SCENARIO, &given(&damaged)).map(|scenario| scenario.workload);
    }
}

//! Bad input: one clear message with its place, exit code 2, and nothing left behind.

use std::os::unix::ffi::OsStrExt;

use crate::support::leftovers::{Watched, files};
use crate::support::*;

/// A scenario of which every test changes one thing. The first fault is in line 9.
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

fn changed(old: &str, new: &str) -> String {
    assert_eq!(GOOD.matches(old).count(), 1, "{old}");
    GOOD.replace(old, new)
}

/// All three commands that take a scenario refuse it with this message, and write nothing.
#[track_caller]
fn refused(text: &str, message: &str) {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("s.yaml"), text).unwrap();
    for command in ["validate", "plan", "run"] {
        let finished = Watched::weir(folder.path(), &[command, "s.yaml"]).run();
        finished.expect_code(ERROR);
        assert_eq!(finished.stderr, message, "{command}");
        assert!(finished.stdout.is_empty(), "{command}: {}", finished.stdout);
        assert_eq!(files(folder.path()), ["s.yaml"], "{command}");
    }
}

#[test]
fn the_scenario_that_the_tests_change_is_good() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("s.yaml"), GOOD).unwrap();
    let finished = Watched::weir(folder.path(), &["validate", "s.yaml"]).run();
    assert_eq!(finished.expect_code(PASSED).stderr, "");
}

#[test]
fn an_unknown_key() {
    refused(
        &changed("faults:", "fautls:"),
        "\
error[unknown-key]: a scenario has no key `fautls`
 --> s.yaml:8:1
  |
8 | fautls:
  | ^^^^^^
  = hint: did you mean `faults`?

",
    );
}

#[test]
fn a_wrong_unit() {
    refused(
        &changed("!delay 20ms", "!delay 20 min"),
        "\
error[unit]: `delay`: `min` is not a unit of duration
  --> s.yaml:10:48
   |
10 |   - {id: second, flows: others, effect: !delay 20 min}
   |                                                ^^^^^^
   = hint: write `20m`

",
    );
}

#[test]
fn a_seed_of_more_than_64_bits() {
    let most = "18446744073709551615";
    let text = format!("{GOOD}seed: {most}\n");
    assert!(scenario::load("s.yaml", &text).is_ok());
    let text = format!("{GOOD}seed: 18446744073709551616\n");
    let errors = scenario::load("s.yaml", &text).map(drop).unwrap_err();
    let told = errors.to_string();
    let message = format!("a whole number is at most {most}; found 18446744073709551616");
    assert!(told.contains(&message), "{told}");
    assert!(told.contains("s.yaml:"), "{told}");
}

#[test]
fn a_probability_above_one() {
    refused(
        &changed("!every 5", "{probability: 1.2}"),
        "\
error[out-of-range]: a probability must lie between 0 and 1, which is 100%; found 1.2
 --> s.yaml:9:68
  |
9 |   - {id: first, flows: gets, effect: !drop , select: {probability: 1.2}}
  |                                                                    ^^^
  = hint: for 1.2 percent write `1.2%`

",
    );
}

#[test]
fn a_filter_with_an_unknown_field() {
    refused(
        &changed(
            "{from: a, to: s, filter: tcp.dport == 6379}",
            "{from: a, to: s, filter: tcp.dprot == 6379}",
        ),
        "\
error[filter]: no field is called `tcp.dprot`
 --> s.yaml:6:34
  |
6 |   gets: {from: a, to: s, filter: tcp.dprot == 6379}
  |                                  ^^^^^^^^^
  = hint: did you mean `tcp.dport`?

",
    );
}

#[test]
fn a_filter_with_a_type_clash() {
    refused(
        &changed(
            "{from: a, to: s, filter: tcp.dport == 6379}",
            "{from: a, to: s, filter: 'tcp.dport == \"http\"'}",
        ),
        "\
error[filter]: `tcp.dport` is compared with a number, not a string
 --> s.yaml:6:48
  |
6 |   gets: {from: a, to: s, filter: 'tcp.dport == \"http\"'}
  |                                                ^^^^^^
  = hint: write a number, as in 80 or 0x50

",
    );
}

#[test]
fn a_flow_that_no_path_reaches() {
    refused(
        &changed("{from: a, to: s, filter: tcp.dport == 6379}", "{from: a, to: s, filter: ip.src == 10.0.0.2}"),
        "\
error[unreachable]: no packet can belong to flow `gets`: no packet matches both its filter and its hosts' addresses
 --> s.yaml:6:3
  |
6 |   gets: {from: a, to: s, filter: ip.src == 10.0.0.2}
  |   ^^^^
  = hint: the flow's filter, including its hosts' addresses, is `ip.src == 10.0.0.1 && ip.dst == 10.0.0.3 && (ip.src == 10.0.0.2)`

",
    );
}

/// Said before any switch is spoken to.
#[test]
fn what_a_controller_of_running_switches_is_told_wrongly() {
    let folder = tempfile::tempdir().unwrap();
    let text = format!("{GOOD}workload: {{idle: {{for: 1s}}}}\nexpect: [fault.first.fired > 0]\n");
    std::fs::write(folder.path().join("s.yaml"), text).unwrap();
    let control = |switches: &[&str]| {
        let switches = switches.iter().flat_map(|at| ["--switch", at]);
        let args: Vec<&str> = ["control", "s.yaml"].into_iter().chain(switches).collect();
        let finished = Watched::weir(folder.path(), &args).run();
        finished.expect_code(ERROR);
        assert!(finished.stdout.is_empty(), "{}", finished.stdout);
        finished.stderr
    };
    let twice = control(&["sw=127.0.0.1:1", "sw=127.0.0.1:2"]);
    let expected = "\
warning[no-effect]: `workload` has no effect here: `weir control` starts nothing on hosts
  --> s.yaml:11:1
   |
11 | workload: {idle: {for: 1s}}
   | ^^^^^^^^
   = hint: start the programs on the hosts yourself, after `weir control` reports `ready`

warning[no-effect]: `expect` has no effect here: `weir control` does not check expectations
  --> s.yaml:12:1
   |
12 | expect: [fault.first.fired > 0]
   | ^^^^^^
   = hint: read the hits of each fault in the JSON object that it prints at the end

weir: --switch sw is given twice, as 127.0.0.1:1 and as 127.0.0.1:2: a switch has one address
";
    assert_eq!(twice, expected);
    for (at, message) in [
        (
            "sw=127.0.0.1:99999",
            "`99999` is not a port: expected 1 to 65535",
        ),
        ("sw=127.0.0.1:0", "`0` is not a port"),
        ("sw=127.0.0.1:", "`` is not a port"),
        ("sw=::1:9559", "an IPv6 address needs brackets"),
        ("sw=:9559", "expected NAME=IP:PORT"),
        ("sw=127.0.0.1", "expected NAME=IP:PORT"),
        ("=127.0.0.1:9559", "expected NAME=IP:PORT"),
    ] {
        let told = control(&[at]);
        assert!(told.contains(message), "{at}: {told}");
    }
    std::fs::write(
        folder.path().join("s.yaml"),
        format!(
            "{GOOD}probes: {{p: {{from: a, tcp: \"s:80\"}}}}\nabort_if: [probe.p.failures > 3]\n"
        ),
    )
    .unwrap();
    let told = control(&["sw=127.0.0.1:1"]);
    assert!(
        told.contains("error[no-effect]") && told.contains("s.yaml:12:12"),
        "{told}"
    );
}

#[test]
fn a_folder_that_holds_more_than_a_run_is_not_written_into() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("s.yaml"), GOOD).unwrap();
    let finished = Watched::weir(folder.path(), &["run", "s.yaml", "--out", "."]).run();
    finished.expect_code(ERROR);
    assert_eq!(
        finished.stderr,
        "weir: . is not empty, and it contains `s.yaml`, which no run writes: name a new folder, or empty this one\n"
    );
    assert_eq!(files(folder.path()), ["s.yaml"]);
}

#[test]
fn two_faults_that_contradict() {
    refused(
        &changed("flows: others, effect: !delay 20ms", "flows: gets, effect: !delay 20ms, select: !nth 10"),
        "\
error[contradiction]: faults `first` and `second` contradict each other on flow `gets`: both select the same packets, and one drops them
  --> s.yaml:10:10
   |
10 |   - {id: second, flows: gets, effect: !delay 20ms, select: !nth 10}
   |          ^^^^^^
   = s.yaml:9:10: `first` is declared here
   = hint: give them different packets, or different steps in `during`

",
    );
}

#[test]
fn a_count_over_packets_of_several_ports() {
    refused(
        &changed("{from: a, to: s, filter: tcp.dport == 6379}", "{to: s, filter: tcp.dport == 6379}"),
        "\
error[unprovable]: fault `first` cannot be proved: `select` counts packets, and packets of flow `gets` enter switch `sw` from `a` and `b`, whose captures have no common order
 --> s.yaml:9:10
  |
9 |   - {id: first, flows: gets, effect: !drop , select: !every 5}
  |          ^^^^^
  = hint: name the flow's senders in `from`: each sender then has its own flow, with its own order; or leave `select` out

",
    );
}

/// Ordinals tell which of two faults of one kind did it.
#[test]
fn two_faults_of_one_kind_on_one_flow_are_valid() {
    let folder = tempfile::tempdir().unwrap();
    for second in ["!drop , select: !every 7", "!delay 20ms"] {
        let second = format!("flows: gets, effect: {second}");
        let composed = changed("flows: others, effect: !delay 20ms", &second);
        std::fs::write(folder.path().join("s.yaml"), composed).unwrap();
        let finished = Watched::weir(folder.path(), &["validate", "s.yaml"]).run();
        assert_eq!(finished.expect_code(PASSED).stderr, "");
    }
}

#[test]
fn control_characters_of_a_file_do_not_reach_the_terminal() {
    let finished = {
        let folder = tempfile::tempdir().unwrap();
        let text = changed("faults:", "\"f\\e[31m\": 1\nfaults:");
        std::fs::write(folder.path().join("s.yaml"), text).unwrap();
        Watched::weir(folder.path(), &["validate", "s.yaml"]).run()
    };
    finished.expect_code(ERROR);
    let told = &finished.stderr;
    assert!(told.contains("has no key `f\u{241b}[31m`"), "{told:?}");
    assert!(!told.contains('\u{1b}'), "{told:?}");
}

#[test]
fn an_error_in_the_second_element_of_a_list_of_tagged_values() {
    refused(
        &changed(
            "flows: others, effect: !delay 20ms",
            "flows: others, effect: !delay 20ms, select: !every three",
        ),
        "\
error[wrong-type]: `every` must be a whole number; found the text `three`
  --> s.yaml:10:69
   |
10 |   - {id: second, flows: others, effect: !delay 20ms, select: !every three}
   |                                                                     ^^^^^

",
    );
}

#[test]
fn two_files_that_contradict() {
    let folder = tempfile::tempdir().unwrap();
    let other = GOOD
        .replace("id: first", "id: lose")
        .replace("id: second, flows: others", "id: slow, flows: b-pings");
    let other = other.replace(
        "others: {from: b, to: s, filter: tcp.dport == 6379}",
        "b-pings: {from: b, to: s, filter: udp.dport == 7}",
    );
    std::fs::write(folder.path().join("one.yaml"), GOOD).unwrap();
    std::fs::write(folder.path().join("two.yaml"), other).unwrap();
    for file in ["one.yaml", "two.yaml"] {
        Watched::weir(folder.path(), &["validate", file])
            .run()
            .expect_code(PASSED);
    }
    let finished = Watched::weir(folder.path(), &["validate", "one.yaml", "two.yaml"]).run();
    finished.expect_code(ERROR);
    let gets = "ip.src == 10.0.0.1 && ip.dst == 10.0.0.3 && (tcp.dport == 6379)";
    assert_eq!(
        finished.stderr,
        format!(
            "\
error[contradiction]: fault `lose` and fault `first` of one.yaml may hit the same packet on switch `sw` at the same time
 --> two.yaml:9:10
  |
9 |   - {{id: lose, flows: gets, effect: !drop , select: !every 5}}
  |          ^^^^
  = two.yaml:9:10: `lose` drops packets of `gets`: `{gets}`
  = one.yaml:9:10: `first` drops packets of `gets`: `{gets}`
  = hint: give the faults disjoint flows or steps; or check the files one at a time if they never run together

"
        )
    );
    assert!(finished.stdout.is_empty());
}

#[test]
fn files_that_cannot_be_read() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("binary.yaml"), [0xFF, 0xFE, 0x00]).unwrap();
    for command in ["validate", "plan", "run"] {
        for (file, reason) in [
            ("missing.yaml", "No such file or directory (os error 2)"),
            (".", "Is a directory (os error 21)"),
            ("binary.yaml", "stream did not contain valid UTF-8"),
        ] {
            let finished = Watched::weir(folder.path(), &[command, file]).run();
            finished.expect_code(ERROR);
            assert_eq!(
                finished.stderr,
                format!("weir: cannot read {file}: {reason}\n"),
                "{command}"
            );
        }
    }
    for args in [
        &["p4", "check", "missing.p4"][..],
        &["p4", "info", "missing.p4"],
        &["p4", "preprocess", "missing.p4"],
    ] {
        let finished = Watched::weir(folder.path(), args).run();
        let stderr = &finished.expect_code(ERROR).stderr;
        assert!(
            stderr.starts_with("error[include]: there is no file `missing.p4`\n"),
            "{stderr}"
        );
    }
    let finished = Watched::weir(folder.path(), &["p4", "check", "binary.yaml"]).run();
    let stderr = &finished.expect_code(ERROR).stderr;
    assert!(
        stderr.starts_with("error[include]: cannot read `binary.yaml`: it is encoded in UTF-16"),
        "{stderr}"
    );
    let finished = Watched::weir(folder.path(), &["switch", "missing.p4"]).run();
    assert_eq!(
        finished.expect_code(ERROR).stderr.trim_end(),
        "error[include]: there is no file `missing.p4`"
    );
    assert_eq!(files(folder.path()), ["binary.yaml"]);
}

#[test]
fn a_file_of_another_kind_is_named_as_what_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str| repository(name).display().to_string();
    let topology = file("testbeds/topologies/grid-example.yaml");
    let trainings = file("testbeds/topologies/grid-example-trainings.yaml");
    let workload = file("testbeds/workloads/nginx.yaml");
    let scenario = file("testbeds/scenarios/grid-training.yaml");
    for (args, said) in [
        (
            &["run", &topology][..],
            "is a topology, not a scenario: `weir route",
        ),
        (
            &["validate", &trainings],
            "is a file of trainings, not a scenario: ",
        ),
        (
            &["plan", &workload],
            "is a workload, not a scenario: a scenario refers to it by",
        ),
        (
            &["route", &trainings, &topology],
            "is a file of trainings, not a topology: ",
        ),
        (
            &["route", &topology, &scenario],
            "is a scenario, not a file of trainings: ",
        ),
    ] {
        let finished = run(folder.path(), args);
        let stderr = &finished.expect_code(ERROR).stderr;
        assert!(stderr.contains(said), "{args:?}: {stderr}");
        assert_eq!(stderr.lines().count(), 1, "{args:?}: {stderr}");
    }
    for name in ["README.md", "p4src/psa/main.p4"] {
        let finished = run(folder.path(), &["run", &file(name)]);
        let stderr = &finished.expect_code(ERROR).stderr;
        assert!(
            stderr.contains("a scenario? Scenarios are YAML files"),
            "{stderr}"
        );
    }
}

#[test]
fn p4_errors_of_a_switch_have_their_place() {
    let folder = tempfile::tempdir().unwrap();
    run(
        folder.path(),
        &[
            "plan",
            &repository("testbeds/scenarios/redis-get-loss.yaml")
                .display()
                .to_string(),
            "--emit-p4",
            ".",
        ],
    )
    .expect_code(PASSED);
    let forward = folder.path().join("sw/common/forward.p4");
    let text = std::fs::read_to_string(&forward)
        .unwrap()
        .replace("meta.egress_port = port;", "meta.egres_port = port;");
    let line = 1 + text
        .lines()
        .position(|line| line.contains("egres_port"))
        .unwrap();
    let column = 1 + text
        .lines()
        .nth(line - 1)
        .unwrap()
        .find("egres_port")
        .unwrap();
    std::fs::write(&forward, text).unwrap();
    for args in [
        &[
            "switch",
            "sw/psa/main.p4",
            "--grpc-server-addr",
            "127.0.0.1:0",
        ][..],
        &["p4", "check", "sw/psa/main.p4"],
    ] {
        let finished = Watched::weir(folder.path(), args).run();
        finished.expect_code(ERROR);
        assert!(finished.stdout.is_empty(), "{}", finished.stdout);
        assert_eq!(
            finished.stderr.matches("error[").count(),
            1,
            "{}",
            finished.stderr
        );
        assert!(
            finished.stderr.contains("`egres_port`"),
            "{}",
            finished.stderr
        );
        assert!(
            finished
                .stderr
                .contains(&format!("common/forward.p4:{line}:{column}\n")),
            "{}",
            finished.stderr
        );
        assert!(
            finished.stderr.contains("meta.egres_port = port;"),
            "{}",
            finished.stderr
        );
    }
}

#[test]
fn sources_that_are_too_large() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    let line = format!("// {}\n", "x".repeat(1020));
    file("big.p4", &line.repeat(17 << 10));
    file("half.p4", &line.repeat(9 << 10));
    file("includes.p4", "// It\n#include \"big.p4\"\n");
    file("twice.p4", "#include \"half.p4\"\n#include \"half.p4\"\n");
    file("s.yaml", GOOD);
    file("big.yaml", &format!("# {line}").repeat(17 << 10));
    std::fs::create_dir_all(folder.path().join("p4/common")).unwrap();
    file("p4/common/forward.p4", &line.repeat(17 << 10));
    let unreadable = "cannot read `big.p4`: it has more than 16 MiB\n";
    for (args, said, place) in [
        (&["p4", "check", "big.p4"][..], unreadable, ""),
        (
            &["switch", "big.p4", "-i", "1@no-such-link"],
            unreadable,
            "",
        ),
        (
            &["p4", "check", "includes.p4"],
            unreadable,
            " --> includes.p4:2:1\n",
        ),
        (
            &["switch", "includes.p4", "-i", "1@no-such-link"],
            unreadable,
            " --> includes.p4:2:1\n",
        ),
        (
            &["p4", "check", "twice.p4"],
            "the source, with `half.p4`, exceeds 16 MiB\n",
            " --> twice.p4:2:1\n",
        ),
        (
            &["p4", "fmt", "big.p4"],
            "weir: cannot read big.p4: it has more than 16 MiB\n",
            "",
        ),
        // It has no end.
        (
            &["p4", "check", "/dev/zero"],
            "cannot read `/dev/zero`: it is a device, not a file\n",
            "",
        ),
        (
            &["validate", "big.yaml"],
            "weir: cannot read big.yaml: it has more than 16 MiB\n",
            "",
        ),
        (
            &["control", "big.yaml", "--switch", "sw=127.0.0.1:1"],
            "weir: cannot read big.yaml: it has more than 16 MiB\n",
            "",
        ),
        (
            &[
                "control",
                "s.yaml",
                "--switch",
                "sw=127.0.0.1:1",
                "--p4src",
                "p4",
            ],
            "weir: cannot read p4/common/forward.p4: it has more than 16 MiB\n",
            "",
        ),
    ] {
        let finished = Watched::weir(folder.path(), args).run();
        finished.expect_code(ERROR);
        let err = &finished.stderr;
        assert!(err.contains(said) && err.contains(place), "{args:?}: {err}");
        assert!(finished.stdout.is_empty(), "{args:?}: {}", finished.stdout);
    }
}

#[test]
fn a_file_whose_name_is_no_text_is_not_called_missing() {
    let folder = tempfile::tempdir().unwrap();
    let name = std::ffi::OsStr::from_bytes(b"na\xffme.p4");
    std::fs::write(folder.path().join(name), "const bit<8> a = 1;\n").unwrap();
    for command in ["check", "preprocess"] {
        let output = weir(folder.path(), &["p4", command]).arg(name).output();
        let output = output.unwrap();
        assert_eq!(output.status.code(), Some(ERROR));
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(said.ends_with(": its name is not UTF-8\n"), "{said}");
    }
    let output = weir(folder.path(), &["p4", "check", "none.p4", "-I"])
        .arg(name)
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(ERROR));
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(said, "weir: -I na\u{fffd}me.p4: its name is not UTF-8\n");
}

#[test]
fn a_graph_does_not_overwrite_what_it_is_drawn_from() {
    let folder = tempfile::tempdir().unwrap();
    let texts = [
        (
            "p.p4",
            "#include \"a.p4\"\npackage P(bit<8> b);\nP(a) main;\n",
        ),
        ("a.p4", "const bit<8> a = 1;\n"),
    ];
    for (name, text) in texts {
        std::fs::write(folder.path().join(name), text).unwrap();
    }
    std::fs::hard_link(folder.path().join("a.p4"), folder.path().join("other.p4")).unwrap();
    for (output, source) in [("p.p4", "p.p4"), ("./a.p4", "a.p4"), ("other.p4", "a.p4")] {
        let finished = run(folder.path(), &["p4", "graph", "p.p4", "-o", output]);
        finished.expect_code(ERROR);
        let message = format!(
            "weir: --output {output} would overwrite the program's source {source}: use another path\n"
        );
        assert_eq!(finished.stderr, message);
    }
    for (name, text) in texts {
        assert_eq!(
            std::fs::read_to_string(folder.path().join(name)).unwrap(),
            text
        );
    }
}

#[test]
fn a_name_that_the_system_finds_too_long_is_not_echoed_whole() {
    let folder = tempfile::tempdir().unwrap();
    let text = format!("#include \"{}\"\n", "x".repeat(1 << 20));
    std::fs::write(folder.path().join("p.p4"), text).unwrap();
    let finished = run(folder.path(), &["p4", "check", "p.p4"]);
    finished.expect_code(ERROR);
    assert!(
        finished.stderr.contains("File name too long"),
        "{}",
        finished.stderr
    );
    assert!(finished.stderr.len() < 2000, "{}", finished.stderr);
}

#[test]
fn a_program_that_a_switch_cannot_read_is_not_called_missing() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("bad.p4"), b"header h_t { \xff }").unwrap();
    std::fs::create_dir(folder.path().join("folder.p4")).unwrap();
    for (file, why) in [
        ("bad.p4", "it is not text in UTF-8"),
        ("folder.p4", "Is a directory"),
    ] {
        let finished = Watched::weir(folder.path(), &["switch", file]).run();
        finished.expect_code(ERROR);
        let said = format!("cannot read `{file}`: {why}");
        assert!(finished.stderr.contains(&said), "{}", finished.stderr);
    }
}

//! The resources of a Tofino that p4src needs: the figures of docs/tofino.md.

use p4lang::tofino::{Chip, Pipe, Report, analyse};
use p4lang::{Files, Options};

macro_rules! p4src {
    ($($path:literal),* $(,)?) => { [$(($path, include_str!(concat!("../../../", $path)))),*] };
}

const FILES: [(&str, &str); 13] = p4src![
    "common/types.p4",
    "common/headers.p4",
    "common/aggregate_types.p4",
    "common/fault.p4",
    "common/values32.p4",
    "common/values64.p4",
    "common/values256.p4",
    "common/aggregate.p4",
    "common/forward.p4",
    "tna/externs.p4",
    "tna/slots.p4",
    "lang/tests/tofino/generated.p4",
    "lang/tests/tofino/engine.p4",
];
const MAIN: &str = include_str!("../../../tna/main.p4");

/// Parts of main.p4's ingress and egress that a program can omit.
const FAULTS: &[&str] = &[
    " gate.apply(hdr, meta);",
    "timeline.apply(meta);",
    "classify.apply(hdr, meta);",
    "faults.apply(hdr, meta);",
];
const AGGREGATE: &[&str] = &["aggregate.apply(hdr, meta);"];
const FORWARD: &[&str] = &["forward.apply(hdr, meta);"];

/// Start of the line in `engine.p4` that sets the number of values of a frame.
const NUM_VALUES: &str = "#define NUM_VALUES";
const VALUES: &str = "#define NUM_VALUES 256";

fn report(chip: Chip, values: &str, without: &[&[&str]]) -> Report {
    let mut main = MAIN.to_owned();
    for part in without.iter().flat_map(|parts| *parts) {
        assert!(main.contains(part), "{part}");
        main = main.replace(part, "");
    }
    let mut files = Files::new().with("tna/main.p4", main);
    for (path, text) in FILES {
        let path = path.replace("lang/tests/tofino", "tna");
        files.insert(
            &path,
            text.replace(VALUES, &format!("{NUM_VALUES} {values}")),
        );
    }
    let generation = match chip {
        Chip::Tofino => "1",
        Chip::Tofino2 => "2",
    };
    let options = Options {
        defines: vec![
            // generated.p4 comes before engine.p4.
            ("NUM_VALUES".to_owned(), values.to_owned()),
            ("__TARGET_TOFINO__".to_owned(), generation.to_owned()),
        ],
        ..Options::default()
    };
    let compiled = p4lang::compile(&files, "tna/main.p4", &options)
        .unwrap_or_else(|errors| panic!("{errors}"));
    let report = analyse(&compiled.program, chip).expect("a TNA program");
    println!("{report}");
    for fault in &report.faults {
        println!(
            "{}: {}",
            compiled.program.source.location(fault.span),
            fault.message
        );
    }
    report
}

fn item<'p>(pipe: &'p Pipe, name: &str) -> &'p p4lang::tofino::Item {
    pipe.items
        .iter()
        .find(|item| item.name == name)
        .unwrap_or_else(|| panic!("no {name}"))
}

#[test]
fn thirty_two_values_fit_the_twelve_stages_of_tofino() {
    let found = report(Chip::Tofino, "32", &[FAULTS]);
    let pipe = &found.pipes[0];
    assert_eq!(found.faults, []);
    assert!(pipe.stages <= 12, "{}", pipe.stages);
    assert_eq!(item(pipe, "stateful ALUs").used, 3 + 2 + 32);
    assert_eq!(pipe.passes, 1);
}

#[test]
fn the_fault_engine_fits_beside_them() {
    for (chip, stages) in [(Chip::Tofino, 12), (Chip::Tofino2, 20)] {
        let found = report(chip, "32", &[]);
        let pipe = &found.pipes[0];
        assert_eq!(found.faults, []);
        assert!(pipe.stages <= stages, "{} of {stages}", pipe.stages);
        assert_eq!(pipe.passes, 1);
    }
}

#[test]
fn the_fault_engine_alone_takes_less_than_a_tenth_of_tofino_2() {
    let found = report(Chip::Tofino2, "32", &[AGGREGATE, FORWARD]);
    let pipe = &found.pipes[0];
    for name in [
        "SRAM blocks",
        "TCAM blocks",
        "stateful ALUs",
        "logical tables",
        "exact crossbar bytes",
        "ternary crossbar bytes",
    ] {
        let share = item(pipe, name).share().expect("a share");
        assert!(share > 0.0 && share < 0.1, "{name}: {share}");
    }
    // The packet's headers take PHV bits in both versions, so the difference belongs to the removed parts.
    let bare = report(Chip::Tofino2, "32", &[AGGREGATE, FORWARD, FAULTS]);
    let [with, bare] = [pipe, &bare.pipes[0]].map(|pipe| item(pipe, "PHV bits"));
    let share = (with.used - bare.used) as f64 / with.available.expect("known") as f64;
    assert!(share > 0.0 && share < 0.1, "PHV: {share}");
}

#[test]
fn more_values_take_more_passes() {
    let passes: Vec<u64> = ["32", "64", "256"]
        .map(|values| report(Chip::Tofino, values, &[FAULTS]).pipes[0].passes)
        .to_vec();
    assert_eq!(passes, [1, 2, 6]);
}

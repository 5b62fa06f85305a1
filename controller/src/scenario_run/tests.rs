//! Captures of a run, and the flows and delays that its metrics, expectations and report derive from them.

use std::time::Duration;

use scenario::model::expect::metric::{ClientMetric, RunMetric};
use testbeds::capture::{Direction, Frame};
use testbeds::probes::Sample;

use super::*;
use crate::experiment::carry_out::workload::{
    CommandResult, SeriesResult, StreamKept, Timed, statistics,
};
use crate::experiment::carry_out::{CarriedOut, ProbeResult};
use crate::experiment::conclude::evidence::Evidence;
use crate::experiment::conclude::evidence::tests::prove;
use crate::experiment::conclude::steps::StepResult;
use crate::experiment::conclude::{Conclusion, add_metrics};
use crate::experiment::fleet::EpochWrite;
use crate::experiment::observe::machine::MachineLoad;
use crate::report::text::Colour;
use crate::target::Kind;
use proof::TriggerCount;

const MS: u64 = 1_000_000;
/// The delay of fault `slow`.
const DELAY: u64 = 20 * MS;

fn planned(expect: &str) -> Planned {
    let text = format!(
        "weir: 1
name: lab
topology: {{star: {{hosts: [a, b], switch: sw}}}}
flows:
  first: {{from: a, to: b, filter: udp.dport == 1001}}
  second: {{from: a, to: b, filter: udp.dport == 1002}}
faults:
  - {{id: slow, flows: first, effect: !delay 20ms, select: !every 2}}
  - {{id: lost, flows: second, effect: !drop , select: !every 2}}
expect: [{expect}]
"
    );
    let scenario = scenario::load("lab.yaml", &text).expect("a scenario");
    Planned::new(scenario, Kind::Embedded).expect("a plan")
}

/// A datagram from a to b; `marker` distinguishes it from others.
fn datagram(planned: &Planned, dport: u16, marker: u8) -> Box<[u8]> {
    let mac = |host: &str| planned.scenario.topology.host(host).expect("a host").mac.0;
    let mut frame = [mac("b"), mac("a")].concat();
    frame.extend([0x08, 0x00, 0x45, 0, 0, 29, 0, 0, 0x40, 0, 64, 17, 0, 0]);
    frame.extend([10, 0, 0, 1, 10, 0, 0, 2, 0x30, 0x39]);
    frame.extend(dport.to_be_bytes());
    frame.extend([0, 9, 0, 0, marker]);
    frame.into()
}

/// A run in which the datagrams of `first` had these latencies; the delay hits every second one. One datagram of `second`
/// passes, and one does not.
fn run(expect: &str, took: &[u64]) -> ScenarioRun {
    let planned = planned(expect);
    let frame = |at_ns, direction, bytes: &[u8]| Frame {
        at_ns,
        direction,
        wire_len: bytes.len() as u32,
        bytes: bytes.into(),
    };
    let mut datagrams: Vec<_> = (0..)
        .zip(took)
        .map(|(n, took)| (u64::from(n) * MS, *took, datagram(&planned, 1001, n)))
        .collect();
    datagrams.push((90 * MS, MS, datagram(&planned, 1002, 0)));
    let lost = (91 * MS, 0, datagram(&planned, 1002, 1));
    let came = datagrams
        .iter()
        .chain([&lost])
        .map(|(at, _, bytes)| frame(*at, Direction::In, bytes));
    let mut left: Vec<_> = datagrams
        .iter()
        .map(|(at, took, bytes)| frame(at + took, Direction::Out, bytes))
        .collect();
    left.sort_by_key(|frame| frame.at_ns);
    let recordings = [(1, came.collect()), (2, left)];
    let counted = |injection: &scenario::plan::Injection| match injection.fault.as_str() {
        "slow" => took.len() as u64 / 2,
        _ => 1,
    };
    let fired: Vec<u64> = planned.plan.injections.iter().map(counted).collect();
    let armed = EpochWrite {
        switch: "sw".to_owned(),
        epoch: 1,
        sent_ns: 0,
        confirmed_ns: 0,
    };
    let evidence = Evidence {
        kept: Default::default(),
        writes: vec![armed],
        keyless: vec![0; fired.len()],
        triggers: vec![TriggerCount::default(); planned.scenario.triggers.len()],
        fired,
        losses: Vec::new(),
        carried: Vec::new(),
        announcements: Vec::new(),
        shares_stamps: false,
    };
    let (proof, hits) = prove(&planned, &evidence, &recordings);
    let conclusion = Conclusion::from_proof(&planned, &evidence, proof);
    let mut carried_out = CarriedOut {
        wall: Duration::from_secs(1),
        ..CarriedOut::default()
    };
    add_metrics(&mut carried_out.measured.metrics, &conclusion);
    let run = RunResult {
        scenario: planned.scenario.name.clone(),
        carried_out,
        steps: Vec::new(),
        marks: {
            let mut marks = crate::experiment::observe::hit_log::Marks::default();
            hits.iter().for_each(|hit| marks.add(hit));
            marks.into_marks()
        },
        conclusion,
        machine_load: MachineLoad::default(),
        evidence,
    };
    judged(&planned.scenario, run)
}

fn measured(judged: &ScenarioRun, name: &str) -> f64 {
    judged.run.metrics()[&name.parse::<Metric>().expect("a metric")]
}

fn passed(run: &ScenarioRun) -> Vec<bool> {
    run.expectations.iter().map(|e| e.passed).collect()
}

#[test]
fn the_longest_time_of_a_flow_is_a_metric() {
    let took = [MS, DELAY + 3 * MS, 2 * MS, DELAY + MS];
    let expect =
        "flow.first.longest <= 23ms, flow.first.longest < 23ms, flow.second.longest <= 1ms";
    let run = run(expect, &took);
    assert_eq!(
        measured(&run, "flow.first.longest"),
        (DELAY + 3 * MS) as f64
    );
    assert_eq!(measured(&run, "flow.second.longest"), MS as f64);
    assert_eq!(passed(&run), [true, false, true]);
    assert!(!run.verdict.is_ok(), "an expectation failed");
}

#[test]
fn how_far_a_delay_went_beyond_what_was_asked_is_a_metric() {
    let took = [MS, DELAY + 3 * MS, 2 * MS, DELAY + MS];
    let early = run("", &[MS, DELAY - MS / 20, 2 * MS, DELAY - MS / 5]);
    let run = run("fault.slow.beyond <= 3ms, fault.slow.beyond < 3ms", &took);
    assert_eq!(measured(&run, "fault.slow.beyond"), (3 * MS) as f64);
    assert_eq!(passed(&run), [true, false]);
    // Both held datagrams were seen.
    assert_eq!(
        (
            run.run.conclusion.faults[0].fired,
            run.run.conclusion.faults[0].observed
        ),
        (2, 2)
    );
    // The recorder may have stamped a frame a little late when it came.
    assert_eq!(
        (
            early.run.conclusion.faults[0].fired,
            early.run.conclusion.faults[0].observed
        ),
        (2, 1)
    );
    assert_eq!(measured(&early, "fault.slow.beyond"), 0.0);
    // Only delays have this metric.
    let of_drop = Metric::fault("lost", FaultMetric::Beyond);
    assert!(!run.run.metrics().contains_key(&of_drop));
}

/// A delay beyond the plan's bound is reported, but fails nothing.
#[test]
fn the_bound_of_a_delay_is_reported_and_who_passes_it_is_named() {
    let planned = planned("");
    let of = |fault: &str| {
        let injection = planned.plan.injections.iter().find(|i| i.fault == fault);
        injection.expect("an injection").lateness_bound_ns
    };
    let bound = of("slow").expect("a bound");
    assert_eq!(of("lost"), None);
    let shown = format!("{:.3} ms", bound as f64 / 1e6);
    for (beyond, is_slow) in [(bound, false), (bound + MS, true)] {
        let run = run("", &[MS, DELAY + beyond, MS, DELAY]);
        assert!(run.verdict.is_ok());
        assert_eq!(run.run.conclusion.faults[0].lateness_bound_ns, Some(bound));
        assert_eq!(run.run.conclusion.faults[0].is_in_time(), Some(!is_slow));
        assert_eq!(run.run.conclusion.faults[1].lateness_bound_ns, None);
        let text = show(&planned, &run, Colour::Off);
        let row = text
            .lines()
            .find(|line| {
                line.starts_with("slow ") && line.contains(" ms") && !line.contains("slow:")
            })
            .expect("a row");
        let (beyond_bound, all) = (usize::from(is_slow), 2);
        assert!(row.contains(&shown), "{shown}: {row}");
        let share = format!("{beyond_bound} of {all}, ");
        assert!(row.contains(&share), "{share}: {row}");
        let told = format!("the plan allows {shown}");
        let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert_eq!(words.contains(&told), is_slow, "{text}");
        let json = serde_json::to_value(json(&planned, &run)).expect("JSON");
        assert_eq!(json["degraded"], is_slow);
        assert_eq!(
            json["degraded_reasons"].as_array().map(Vec::len),
            Some(2 * beyond_bound)
        );
        assert_eq!(json["faults"][0]["beyond"], beyond_bound);
        assert_eq!(json["metrics"]["fault.slow.beyond_ns"], beyond);
        let page = page(&planned, &run);
        assert_eq!(page.contains(&told), is_slow);
        assert!(page.contains(&shown), "the table");
    }
}

/// Each statement on a fault occurs once in a report.
#[test]
fn each_check_stands_once() {
    let took = [MS, DELAY, MS, DELAY];
    let silent = run("", &took);
    let counts = "the switch fired 2, captures saw 2";
    assert_eq!(
        show(&planned(""), &silent, Colour::Off)
            .matches(counts)
            .count(),
        1
    );
    let expect = "fault.slow.observed == fault.slow.fired";
    let told = run(expect, &took);
    let text = show(&planned(expect), &told, Colour::Off);
    assert!(!text.contains(counts), "{text}");
    assert_eq!(text.matches(expect).count(), 1, "{text}");
    assert!(text.contains("(2 == 2)"), "{text}");
}

/// A run with something in every table, no two figures the same.
fn full() -> (Planned, ScenarioRun) {
    let planned = planned("");
    let mut judged = run(
        "",
        &[MS, DELAY + 3 * MS + 7_000, 2 * MS + 11_000, DELAY + MS],
    );
    let run = &mut judged.run;
    run.steps.push(StepResult {
        step: "cut".to_owned(),
        epoch: 2,
        at_ns: 5 * MS,
        write_ns: Some(1_234_000),
        skew_ns: Some(567_000),
    });
    let of_client = |what| Metric::client("a", None, what);
    run.carried_out.measured.metrics.extend([
        (of_client(ClientMetric::Requests), 4321.0),
        (of_client(ClientMetric::P50), 1_111_000.0),
        (of_client(ClientMetric::P90), 1_222_000.0),
        (of_client(ClientMetric::P99), 1_333_000.0),
        (of_client(ClientMetric::Max), 1_444_000.0),
        (Metric::Run(RunMetric::Wall), 987_000_000.0),
        (Metric::Run(RunMetric::Skew), 567_000.0),
    ]);
    let sample = |n: u64| Sample {
        at_ns: n * MS,
        latency_ns: (!n.is_multiple_of(10)).then_some(2_000_000 + n * 1_000),
    };
    run.carried_out.probes.push(ProbeResult {
        name: "web".to_owned(),
        from: "a".to_owned(),
        question: "tcp 10.0.0.2:80".to_owned(),
        first_failure: Some("refused".to_owned()),
        beyond: 0,
        samples: (0..150).map(sample).collect(),
    });
    let numbers: Vec<f64> = (0..77).map(|n| f64::from(3_000_000 + n * 1_000)).collect();
    let kept = || StreamKept {
        tail: "said".to_owned(),
        bytes: 4,
    };
    run.carried_out.measured.commands.push(CommandResult {
        name: "load".to_owned(),
        host: "b".to_owned(),
        service: false,
        runs: 77,
        failures: 13,
        ended_by_faults: 0,
        exit: Some(42),
        series: vec![SeriesResult {
            name: "duration".to_owned(),
            measure: scenario::model::expect::Measure::Duration,
            last: numbers.last().copied(),
            statistics: statistics(&numbers),
        }],
        stdout: kept(),
        stderr: kept(),
    });
    run.carried_out.measured.timed.push(Timed {
        name: "command load, duration".to_owned(),
        measure: scenario::model::expect::Measure::Duration,
        points: (0..)
            .zip(numbers)
            .map(|(n, number)| (n * MS, number))
            .collect(),
    });
    let probes = judged.run.carried_out.probes.clone();
    probes
        .iter()
        .for_each(|probe| probe.add_metrics(&mut judged.run.carried_out.measured.metrics));
    (planned, judged)
}

/// The numbers of a JSON value, in their order.
fn numbers(value: &serde_json::Value, into: &mut Vec<f64>) {
    match value {
        serde_json::Value::Number(number) => into.extend(number.as_f64()),
        serde_json::Value::Array(items) => items.iter().for_each(|item| numbers(item, into)),
        serde_json::Value::Object(entries) => {
            entries.values().for_each(|entry| numbers(entry, into));
        }
        _ => {}
    }
}

/// The figures of a cell, each with its rounding error: `3 of 100, 3.0 %`, `1.234 ms`.
fn figures(cell: &str) -> Vec<(f64, f64)> {
    let words: Vec<&str> = cell
        .split([' ', ','])
        .filter(|word| !word.is_empty())
        .collect();
    let grouped = cell.replace(',', "");
    if let Ok(number) = grouped.parse::<f64>() {
        return vec![(number, 0.0)];
    }
    let pairs = words.iter().zip(words.iter().skip(1).chain([&""]));
    pairs
        .filter_map(|(word, unit)| {
            let number = word.parse::<f64>().ok()?;
            match *unit {
                "ms" => Some((number * 1e6, 500.0)),
                // A percentage follows from the two numbers before it.
                "%" => None,
                _ => Some((number, 0.0)),
            }
        })
        .collect()
}

#[test]
fn every_figure_of_the_tables_is_in_the_json() {
    let (planned, judged) = full();
    let json = serde_json::to_value(json(&planned, &judged)).expect("JSON");
    let mut known = Vec::new();
    // The drawing's data are not part of the reported figures.
    let told = json.as_object().expect("an object").iter();
    told.filter(|(key, _)| *key != "over_time")
        .for_each(|(_, value)| numbers(value, &mut known));
    let mut count = 0;
    for section in report::sections(&planned, &judged) {
        let table = section.table();
        for row in table.rows() {
            let cells = row
                .iter()
                .enumerate()
                .filter(|(column, _)| table.has_figures(*column));
            for (figure, within) in cells.flat_map(|(_, cell)| figures(cell)) {
                let is_known = known.iter().any(|known| (known - figure).abs() <= within);
                // The number of entries of a step tells how often it came.
                let is_counted = row[0] == "cut" && figure <= 1.0;
                assert!(is_known || is_counted, "{row:?}: {figure}");
                count += 1;
            }
        }
    }
    assert!(count > 40, "{count}");
}

#[test]
fn a_page_and_the_json_have_what_happened_when() {
    let (planned, judged) = full();
    let json = serde_json::to_value(json(&planned, &judged)).expect("JSON");
    let over_time = &json["over_time"];
    let hits = &over_time["hits"]["slow"];
    // Datagrams come a millisecond apart, and every second one is hit; 700 columns represent the workload's one second.
    assert_eq!(hits.as_array().map(Vec::len), Some(2), "{over_time}");
    assert_eq!(
        hits[1],
        serde_json::json!({"at_s": 0.003, "hits": 1, "wrong": 0})
    );
    let flow = &over_time["flows"][0];
    assert_eq!(
        (&flow["flow"], &flow["bin_ns"]),
        (&"first".into(), &10_000_000.into())
    );
    let packets = |side: &str| {
        let bins = flow[side].as_array().expect("bins").iter();
        bins.map(|bin| bin["packets"].as_u64().unwrap_or(0))
            .collect::<Vec<_>>()
    };
    assert_eq!(packets("sent")[..3], [4, 0, 0]);
    // The two held datagrams came 20 ms later.
    assert_eq!(packets("received")[..3], [2, 0, 2]);
    let series = over_time["series"].as_array().expect("series");
    let names: Vec<_> = series.iter().map(|series| &series["name"]).collect();
    assert_eq!(names, ["command load, duration", "probe web, latency"]);
    assert_eq!(series[1]["points"][0], serde_json::json!([0.0, null]));
    let page = page(&planned, &judged);
    for part in [
        "<h2>Timeline</h2>",
        ">fault slow: 2 packets</text>",
        ">probe web, latency, ms</text>",
        ">flow second, packets/s: ",
        "A thin line goes from each mark through all panels.",
    ] {
        assert!(page.contains(part), "{part}");
    }
    assert!(
        !page.contains("<script") && !page.contains("href="),
        "nothing from elsewhere"
    );
}

#[test]
fn the_fault_table_says_whom_and_what() {
    let run = run("", &[MS, DELAY, MS, DELAY]);
    let text = show(&planned(""), &run, Colour::Off);
    let mut rows = text
        .lines()
        .map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "));
    assert!(
        rows.any(|row| row == "slow first every 2nd delay 20ms 4 2 2"),
        "{text}"
    );
    assert!(
        text.lines().all(|line| line.chars().count() <= 80),
        "{text}"
    );
}

#[test]
fn errors_of_clients_are_a_column_and_a_note_and_fail_nothing() {
    let mut judged = run("", &[MS, DELAY + MS]);
    let metric = |command, what| Metric::client("a", command, what);
    let counts = [
        (metric(None, ClientMetric::Requests), 7.0),
        (metric(None, ClientMetric::Errors), 0.0),
        (metric(Some("fly"), ClientMetric::Requests), 7.0),
    ];
    judged.run.carried_out.measured.metrics.extend(counts);
    let planned = planned("");
    let told = |judged: &ScenarioRun| show(&planned, judged, Colour::Off);
    assert!(!told(&judged).contains("errors"), "{}", told(&judged));
    let errors = metric(None, ClientMetric::Errors);
    judged.run.carried_out.measured.metrics.insert(errors, 7.0);
    judged
        .run
        .carried_out
        .measured
        .remarks
        .push("client a: refused".to_owned());
    let judged = super::judged(&planned.scenario, judged.run);
    let text = told(&judged);
    assert!(
        text.contains("client  command  requests  errors  p50"),
        "{text}"
    );
    assert!(
        text.contains("\na       all             7       7"),
        "{text}"
    );
    assert!(text.contains("note   client a: refused\n"), "{text}");
    assert!(judged.verdict.is_ok() && judged.verdict.degraded.is_empty());
    let html = page(&planned, &judged);
    assert!(
        html.contains("<li class=\"warn\">client a: refused</li>"),
        "{html}"
    );
    assert!(html.contains(">errors</th>"), "{html}");
}

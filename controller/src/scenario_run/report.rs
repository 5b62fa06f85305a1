//! Writes the report of a scenario's run: as text for the terminal, as JSON, and as an HTML page.

use std::collections::BTreeSet;

use scenario::model::expect::Measure;
use scenario::model::expect::metric::{ClientMetric, FlowMetric, Metric, Name};
use scenario::outcome::Outcome;
use serde::Serialize;
use serde_json::{Map, Value};

use super::over_time::OverTime;
use super::{ScenarioRun, programs};
use crate::experiment::carry_out::guard::Aborted;
use crate::experiment::carry_out::workload::CommandResult;
use crate::experiment::carry_out::{ProbeResult, Repair};
use crate::experiment::conclude::steps::{StepResult, start_ns};
use crate::experiment::conclude::{DisruptionResult, FaultResult, TriggerResult};
use crate::experiment::observe::machine::MachineLoad;
use crate::experiment::{Planned, RunResult};
use crate::report::chart::{Role, bars};
use crate::report::html::Page;
use crate::report::json::{self as common, Header};
use crate::report::section::Section;
use crate::report::table::Table;
use crate::report::text::{self, Colour};
use crate::report::{disruptions, faults, grouped, milliseconds, recoveries, repairs, triggers};
use proof::Recovery;

fn flows_table(run: &RunResult) -> Table {
    let mut table = Table::new([
        "flow", "sent", "received", "lost", "extra", "p50", "p99", "longest",
    ]);
    let names: BTreeSet<Name> = run
        .conclusion
        .flows
        .keys()
        .map(|name| Name::from(name.as_str()))
        .collect();
    for name in names {
        let value = |what| {
            run.metrics()
                .get(&Metric::flow(name.as_str(), what))
                .copied()
        };
        let count = |what| value(what).map_or_else(String::new, |count| grouped(count as u64));
        let is_empty = value(FlowMetric::Received) == Some(0.0);
        let time = |what| {
            let time = value(what).filter(|_| !is_empty);
            time.map_or_else(String::new, |ns| milliseconds(ns as u64))
        };
        table.row([
            name.to_string(),
            count(FlowMetric::Sent),
            count(FlowMetric::Received),
            count(FlowMetric::Lost),
            count(FlowMetric::Extra),
            time(FlowMetric::P50),
            time(FlowMetric::P99),
            time(FlowMetric::Longest),
        ]);
    }
    table
}

/// Table with a row per step of the timeline: how often it came into force or was skipped, and its longest times.
fn steps_table(run: &RunResult) -> Table {
    let mut table = Table::new(["step", "times", "skipped", "longest write", "longest skew"]);
    let mut names: Vec<&str> = run.steps.iter().map(|step| step.step.as_str()).collect();
    names.dedup();
    for name in names {
        let times = || run.steps.iter().filter(|step| step.step == name);
        let skipped = times().filter(|step| step.write_ns.is_none()).count();
        let longest = |ns: Option<u64>| ns.map_or_else(String::new, milliseconds);
        table.row([
            name.to_owned(),
            grouped((times().count() - skipped) as u64),
            grouped(skipped as u64),
            longest(times().filter_map(|step| step.write_ns).max()),
            longest(times().filter_map(|step| step.skew_ns).max()),
        ]);
    }
    table
}

const STEPS_LEGEND: &str = "The longest write: from its sending to the first switch until the last switch confirmed it. \
     Skew: from the first switch's confirmation to the last one's; in this time the switches were in different steps. \
     Skipped: the next step was due before this one was written.";

/// Each client of the workload with its Redis command (`None`: all commands together) and its value of the metric `wanted`.
fn clients(
    run: &RunResult,
    wanted: ClientMetric,
) -> impl Iterator<Item = (&Name, Option<&Name>, f64)> {
    run.metrics()
        .iter()
        .filter_map(move |(metric, value)| match metric {
            Metric::Client {
                name,
                command,
                what,
            } if *what == wanted => Some((name, command.as_ref(), *value)),
            _ => None,
        })
}

/// Table with a row per client and command: number of requests, and latencies.
fn clients_table(run: &RunResult) -> Table {
    let errors = |client: &Name| {
        let metric = Metric::client(client.as_str(), None, ClientMetric::Errors);
        run.metrics().get(&metric).copied().unwrap_or_default()
    };
    let has_errors = clients(run, ClientMetric::Requests).any(|(client, ..)| errors(client) > 0.0);
    let mut head = vec!["client", "command", "requests", "p50", "p90", "p99", "max"];
    if has_errors {
        head.insert(3, "errors");
    }
    let mut table = Table::new(head);
    for (client, command, requests) in clients(run, ClientMetric::Requests) {
        let time = |what| {
            let metric = Metric::client(client.as_str(), command.map(Name::as_str), what);
            let value = run.metrics().get(&metric);
            value.map_or_else(String::new, |ns| milliseconds(*ns as u64))
        };
        let mut row = vec![
            client.to_string(),
            command.map_or_else(|| "all".to_owned(), Name::to_string),
            grouped(requests as u64),
            time(ClientMetric::P50),
            time(ClientMetric::P90),
            time(ClientMetric::P99),
            time(ClientMetric::Max),
        ];
        if has_errors {
            // Errors are counted over all commands.
            let count = command.is_none().then(|| grouped(errors(client) as u64));
            row.insert(3, count.unwrap_or_default());
        }
        table.row(row);
    }
    table
}

/// Table of the metrics that no other table of the report contains.
fn other_metrics(run: &RunResult) -> Table {
    let mut table = Table::new(["metric", "value"]);
    for (metric, value) in run.metrics() {
        if !matches!(
            metric,
            Metric::Training(_) | Metric::Switch { .. } | Metric::Run(_)
        ) {
            continue;
        }
        let shown = match metric.measure() {
            Measure::Duration if *value < 1e9 => milliseconds(*value as u64),
            Measure::Duration => format!("{:.2} s", value / 1e9),
            _ if metric.is_ratio() => format!("{value:.4}"),
            Measure::Number | Measure::Size | Measure::Rate => grouped(*value as u64),
        };
        table.row([metric.to_string(), shown]);
    }
    table
}

/// The sections of the report: tables, and more content for the HTML page.
pub(super) fn sections<'a>(planned: &'a Planned, judged: &'a ScenarioRun) -> [Section<'a>; 13] {
    let (scenario, run) = (&planned.scenario, &judged.run);
    let start_ns = start_ns(&run.evidence.writes);
    let faults = faults::table(scenario, &run.conclusion.faults);
    let recovered = recoveries::table(&run.conclusion.recoveries);
    let disrupted = disruptions::table(scenario, &run.conclusion.disruptions);
    let repaired = repairs::table(&run.carried_out.repairs, start_ns);
    let triggered = triggers::table(&run.conclusion.triggers);
    let probes = programs::probes_table(&run.carried_out.probes);
    [
        Section::new("Faults", faults, faults::LEGEND)
            .then(|page| OverTime::new(planned, run).add(page, planned)),
        Section::new(
            "",
            faults::lateness_table(&run.conclusion.faults),
            faults::LATENESS_LEGEND,
        ),
        Section::new(
            "Recovery of RDMA connections",
            recovered,
            recoveries::LEGEND,
        )
        .then(|page| {
            if let Some(drawing) = recoveries::drawing(&run.conclusion.recoveries) {
                page.figure(&drawing, "Each point is a lost packet.");
            }
        }),
        Section::new(
            "Faults of programs and switches",
            disrupted,
            disruptions::LEGEND,
        )
        .then(move |page| {
            let start_ns = start_ns.filter(|_| !run.conclusion.disruptions.is_empty());
            if let Some(start_ns) = start_ns {
                page.table(&disruptions::times_table(
                    &run.conclusion.disruptions,
                    start_ns,
                ))
                .about(disruptions::TIMES_LEGEND);
            }
        }),
        Section::new("Replanned gradients", repaired, repairs::LEGEND),
        Section::new("Triggers", triggered, triggers::LEGEND),
        Section::new("Timeline", steps_table(run), STEPS_LEGEND).then(|page| {
            page.heading("Checks").successes(&judged.verdict);
        }),
        Section::new("Flows, from the captures", flows_table(run), ""),
        Section::new("Measurements of the clients", clients_table(run), "")
            .then(|page| add_latencies(page, run)),
        Section::new(
            "Commands",
            programs::commands_table(&run.carried_out.measured.commands),
            "",
        ),
        Section::new(
            "",
            programs::series_table(&run.carried_out.measured.commands),
            "",
        ),
        Section::new("Results of the probes", probes, "").then(|page| {
            programs::add_failures(page, &run.carried_out.probes);
            programs::add_outputs(page, &run.carried_out.measured.commands);
        }),
        Section::new("Other measurements", other_metrics(run), ""),
    ]
}

fn add_latencies(page: &mut Page, run: &RunResult) {
    let latencies: Vec<_> = clients(run, ClientMetric::P90)
        .map(|(client, command, ns)| match command {
            Some(command) => (format!("{client} {command}"), Role::Other, ns / 1e6),
            None => (client.to_string(), Role::Main, ns / 1e6),
        })
        .collect();
    // A client that received no answer has no latencies.
    if !latencies.is_empty() {
        let drawing = bars("90th percentile of the latency, ms", &latencies);
        page.figure(&drawing, "By client; in grey, by the client's commands.");
    }
}

/// The report as text for the terminal.
pub fn show(planned: &Planned, judged: &ScenarioRun, colour: Colour) -> String {
    let title = format!(
        "{} {}",
        super::command(&planned.scenario),
        judged.run.scenario
    );
    let sections = sections(planned, judged);
    let tables = sections.iter().map(Section::table);
    text::report(&title, &judged.verdict, tables, colour)
}

/// The report as a JSON object.
pub fn json<'a>(planned: &'a Planned, judged: &'a ScenarioRun) -> impl Serialize + 'a {
    #[derive(Serialize)]
    struct Json<'a> {
        #[serde(flatten)]
        header: &'a Header,
        scenario: &'a str,
        seed: u64,
        ok: bool,
        degraded: bool,
        degraded_reasons: &'a [String],
        wall_s: f64,
        #[serde(skip_serializing_if = "Option::is_none")]
        aborted: &'a Option<Aborted>,
        #[serde(skip_serializing_if = "<[String]>::is_empty")]
        failures: &'a [String],
        machine_strain: &'a MachineLoad,
        faults: &'a [FaultResult],
        #[serde(skip_serializing_if = "<[Recovery]>::is_empty")]
        recoveries: &'a [Recovery],
        disruptions: &'a [DisruptionResult],
        #[serde(skip_serializing_if = "<[Repair]>::is_empty")]
        repairs: &'a [Repair],
        #[serde(skip_serializing_if = "<[TriggerResult]>::is_empty")]
        triggers: &'a [TriggerResult],
        steps: &'a [StepResult],
        commands: &'a [CommandResult],
        probes: &'a [ProbeResult],
        over_time: OverTime<'a>,
        metrics: Map<String, Value>,
        expectations: &'a [Outcome],
    }
    let run = &judged.run;
    Json {
        header: &judged.header,
        scenario: &run.scenario,
        seed: planned.scenario.seed,
        ok: judged.verdict.is_ok(),
        degraded: !judged.verdict.degraded.is_empty(),
        degraded_reasons: &judged.verdict.degraded,
        wall_s: run.carried_out.wall.as_secs_f64(),
        aborted: &run.carried_out.aborted,
        failures: &run.carried_out.measured.failures,
        machine_strain: &run.machine_load,
        faults: &run.conclusion.faults,
        recoveries: &run.conclusion.recoveries,
        disruptions: &run.conclusion.disruptions,
        repairs: &run.carried_out.repairs,
        triggers: &run.conclusion.triggers,
        steps: &run.steps,
        commands: &run.carried_out.measured.commands,
        probes: &run.carried_out.probes,
        over_time: OverTime::new(planned, run),
        metrics: common::metrics(run.metrics()),
        expectations: &judged.expectations,
    }
}

/// The report as an HTML page, with drawings and the scenario's text.
pub fn page(planned: &Planned, judged: &ScenarioRun) -> String {
    let (scenario, run) = (&planned.scenario, &judged.run);
    let mut page = Page::new(&format!("weir run {}", run.scenario), &judged.verdict);
    page.about(&judged.header.line());
    if !scenario.description.is_empty() {
        page.paragraph(&scenario.description);
    }
    let wall_s = run.carried_out.wall.as_secs_f64();
    page.paragraph(&format!(
        "Seed {}; the workload took {wall_s:.1} s.",
        scenario.seed
    ));
    for section in sections(planned, judged) {
        section.add(&mut page);
    }
    for (heading, text) in [
        ("Plan", planned.plan.to_string()),
        ("Scenario", scenario.text.clone()),
    ] {
        let (shown, left) = beginning(&text, MOST_TEXT);
        page.heading(heading).preformatted(shown);
        if left > 0 {
            page.about(&format!(
                "{} more lines are not shown.",
                grouped(left as u64)
            ));
        }
    }
    page.render()
}

/// Maximum size of the plan's or the scenario's text in the HTML page, in bytes: more would be too large for browsers.
const MOST_TEXT: usize = 256 << 10;

/// Returns the first lines of a text, as many as fit into `most` bytes, and the number of the remaining lines.
fn beginning(text: &str, most: usize) -> (&str, usize) {
    if text.len() <= most {
        return (text, 0);
    }
    let fitting = text.as_bytes()[..most]
        .iter()
        .rposition(|byte| *byte == b'\n');
    // A line feed byte is never part of another character.
    let (shown, rest) = text.split_at(fitting.map_or(0, |end| end + 1));
    (shown, rest.lines().count())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_fit_is_counted() {
        assert_eq!(beginning("a\nb\n", 4), ("a\nb\n", 0));
        assert_eq!(beginning("a\n\u{e9}\nc\nd", 5), ("a\n\u{e9}\n", 2));
        assert_eq!(beginning("\u{e9}\u{e9}", 3), ("", 1));
    }
}

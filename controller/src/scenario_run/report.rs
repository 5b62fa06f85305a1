//! A scenario's run for people.

use super::ScenarioRun;
use crate::experiment::Planned;
use crate::report::grouped;
use crate::report::html::Page;
use crate::report::plot::{self, PlotError};
use crate::report::table::Table;

fn faults_table(run: &ScenarioRun) -> Table {
    let mut table = Table::new([
        "fault",
        "kind",
        "frames met",
        "fired (switch)",
        "observed (captures)",
        "latest beyond",
        "bound",
    ]);
    for fault in &run.faults {
        table.row([
            fault.id.clone(),
            fault.kind.to_owned(),
            grouped(fault.met),
            grouped(fault.fired),
            grouped(fault.observed),
            fault.latest_ns.map_or_else(String::new, milliseconds),
            fault
                .lateness_bound_ns
                .map_or_else(String::new, milliseconds),
        ]);
    }
    table
}

fn flows_table(run: &ScenarioRun) -> Table {
    let mut table = Table::new(["flow", "sent", "received", "lost", "extra"]);
    let names = run
        .metrics
        .keys()
        .filter_map(|name| name.strip_prefix("flow.")?.strip_suffix(".sent"));
    for name in names {
        let value = |what: &str| {
            run.metrics
                .get(&format!("flow.{name}.{what}"))
                .map_or_else(String::new, |value| grouped(*value as u64))
        };
        table.row([
            name.to_owned(),
            value("sent"),
            value("received"),
            value("lost"),
            value("extra"),
        ]);
    }
    table
}

/// Latencies that clients measured: name, requests, p50, p99, max.
fn clients_table(run: &ScenarioRun) -> Table {
    let mut table = Table::new(["client", "requests", "p50", "p90", "p99", "max"]);
    let names = run
        .metrics
        .keys()
        .filter_map(|name| name.strip_prefix("client.")?.strip_suffix(".p50"));
    for name in names {
        let value = |what: &str| run.metrics.get(&format!("client.{name}.{what}")).copied();
        let time =
            |what: &str| value(what).map_or_else(String::new, |value| milliseconds(value as u64));
        let requests = value("requests").map_or_else(String::new, |value| grouped(value as u64));
        table.row([
            name.to_owned(),
            requests,
            time("p50"),
            time("p90"),
            time("p99"),
            time("max"),
        ]);
    }
    table
}

fn other_metrics(run: &ScenarioRun) -> Table {
    let mut table = Table::new(["metric", "value"]);
    for (name, value) in &run.metrics {
        if ["training.", "switch.", "run."]
            .iter()
            .any(|prefix| name.starts_with(prefix))
        {
            let shown = if name.ends_with(".wall") {
                format!("{:.2} s", value / 1e9)
            } else if value.fract() == 0.0 {
                grouped(*value as u64)
            } else {
                format!("{value:.4}")
            };
            table.row([name.clone(), shown]);
        }
    }
    table
}

fn milliseconds(ns: u64) -> String {
    format!("{:.3} ms", ns as f64 / 1e6)
}

/// For the terminal.
pub fn show(run: &ScenarioRun) -> String {
    let mut text = String::new();
    for table in [
        faults_table(run),
        flows_table(run),
        clients_table(run),
        other_metrics(run),
    ] {
        if !table.rows().is_empty() {
            text += &format!("\n{table}");
        }
    }
    text.push('\n');
    for (holds, line) in checks(run) {
        text += &format!("{} {line}\n", if holds { "ok    " } else { "FAILED" });
    }
    for line in overdue(run) {
        text += &format!("slow   {line}\n");
    }
    text
}

/// Delays that lasted longer than the plan allows. That says more of the machine than of the fault, so it fails no run by
/// itself: who wants that expects `fault.ID.beyond` to be small.
fn overdue(run: &ScenarioRun) -> Vec<String> {
    let overdue = run.faults.iter().filter_map(|fault| {
        let (latest, bound) = (fault.latest_ns?, fault.lateness_bound_ns?);
        (fault.is_in_time() == Some(false)).then(|| {
            format!(
                "{}: a frame left {} later than asked, the plan says at most {}: this machine was too slow for it",
                fault.id,
                milliseconds(latest),
                milliseconds(bound)
            )
        })
    });
    overdue.collect()
}

fn checks(run: &ScenarioRun) -> Vec<(bool, String)> {
    let faults = run.faults.iter().map(|fault| {
        let text = format!(
            "{}: the switch fired {}, captures saw {}",
            fault.id, fault.fired, fault.observed
        );
        (fault.is_proved(), text)
    });
    let expectations = run.expectations.iter().map(|expectation| {
        (
            expectation.passed,
            format!("{}  ({})", expectation.text, expectation.message),
        )
    });
    faults.chain(expectations).collect()
}

/// For the browser.
pub fn page(planned: &Planned, run: &ScenarioRun) -> Result<String, PlotError> {
    let mut page = Page::new(&format!("weir run {}", run.scenario), run.ok);
    if !planned.scenario.description.is_empty() {
        page.paragraph(&planned.scenario.description);
    }
    page.paragraph(&format!(
        "Seed {}; the workload took {:.1} s.",
        run.seed, run.wall_s
    ));
    let checks = checks(run);
    page.heading("What must hold")
        .checks(checks.iter().map(|(holds, text)| (*holds, text.as_str())));
    page.heading("Faults").table(&faults_table(run));
    for line in overdue(run) {
        page.paragraph(&line);
    }
    page.paragraph(
        "\"Fired\" is the switch's own counter. \"Observed\" comes only from captures on both sides of the faulting switch: frames \
         that are missing, came once more, or came at least as late as asked.",
    );
    let flows = flows_table(run);
    if !flows.rows().is_empty() {
        page.heading("Flows, from the captures").table(&flows);
    }
    let clients = clients_table(run);
    if !clients.rows().is_empty() {
        page.heading("What the clients measured").table(&clients);
        let bars: Vec<(&str, f64)> = run
            .metrics
            .iter()
            .filter_map(|(name, value)| {
                Some((
                    name.strip_prefix("client.")?.strip_suffix(".p90")?,
                    value / 1e6,
                ))
            })
            .collect();
        page.figure(
            &plot::bars("90th percentile of the latency, ms", &bars)?,
            "By client and command.",
        );
    }
    let others = other_metrics(run);
    if !others.rows().is_empty() {
        page.heading("Other measurements").table(&others);
    }
    page.heading("Plan").preformatted(&planned.plan.to_string());
    page.heading("Scenario")
        .preformatted(&planned.scenario.text);
    Ok(page.render())
}

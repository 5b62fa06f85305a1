//! Writes the report of the demo: as a table for the terminal, as an HTML page, and as JSON.

use serde::Serialize;
use testbeds::bed::Wiring;

use super::Demo;
use crate::experiment::carry_out::TrainingResult;
use crate::experiment::conclude::FaultResult;
use crate::experiment::fleet::aggregation::chunks_per_iteration;
use crate::experiment::observe::machine::MachineLoad;
use crate::report::chart::{Chart, Content, Form, Panel, Role, Series, Unit, bars};
use crate::report::html::Page;
use crate::report::json::Header;
use crate::report::section::Section;
use crate::report::table::Table;
use crate::report::text::{self, Colour};
use crate::report::{faults, grouped, percent};

/// The demo's runs that have a training result: name, duration in seconds, result.
fn trained(demo: &Demo) -> impl Iterator<Item = (&str, f64, &TrainingResult)> {
    demo.runs.iter().filter_map(|run| {
        let wall_s = run.carried_out.wall.as_secs_f64();
        Some((
            run.scenario.as_str(),
            wall_s,
            run.carried_out.training.as_ref()?,
        ))
    })
}

fn runs_table(demo: &Demo) -> Table {
    let mut table = Table::new([
        "run",
        "accuracy",
        "server link bytes",
        "sent again",
        "time",
        "weights",
    ]);
    let weights = |sha256: &str| sha256.chars().take(12).collect::<String>() + "…";
    for (name, wall_s, of) in trained(demo) {
        table.row([
            name.to_owned(),
            percent(of.accuracy),
            grouped(of.server_link_bytes),
            grouped(of.retransmitted_bytes),
            format!("{wall_s:.1} s"),
            weights(&of.weights_sha256),
        ]);
    }
    let reference = &demo.reference;
    table.row([
        "reference".to_owned(),
        percent(reference.accuracy),
        String::new(),
        String::new(),
        format!("{:.1} s", reference.wall.as_secs_f64()),
        weights(&reference.weights_sha256),
    ]);
    table
}

/// The sections of the report: tables, and drawings for the HTML page.
fn sections(demo: &Demo) -> [Section<'_>; 3] {
    let results = &demo.runs[2].conclusion.faults;
    let faults = faults::table(&demo.faulted.scenario, results);
    [
        Section::new("Runs", runs_table(demo), "").then(|page| add_figures(page, demo)),
        Section::new("Faults of the faulted run", faults, faults::LEGEND),
        Section::new("", faults::lateness_table(results), faults::LATENESS_LEGEND),
    ]
}

/// The report as text for the terminal.
pub fn show(demo: &Demo, colour: Colour) -> String {
    let sections = sections(demo);
    let tables = sections.iter().map(Section::table);
    text::report("weir demo", &demo.verdict, tables, colour)
}

fn links(demo: &Demo) -> &'static str {
    match demo.wiring {
        Wiring::Veth => "veth",
        Wiring::Memory => "memory",
    }
}

/// The report as a JSON object.
pub fn json(demo: &Demo) -> impl Serialize {
    #[derive(Serialize)]
    struct Json<'a> {
        #[serde(flatten)]
        header: &'a Header,
        workers: usize,
        links: &'static str,
        seed: u64,
        ok: bool,
        degraded: bool,
        degraded_reasons: &'a [String],
        wall_s: f64,
        runs: Vec<OneRun<'a>>,
        server_bytes_removed_share: f64,
        faults: &'a [FaultResult],
    }
    #[derive(Serialize)]
    struct OneRun<'a> {
        name: &'a str,
        accuracy: f64,
        weights_sha256: &'a str,
        server_link_bytes: u64,
        server_link_repeated_bytes: u64,
        retransmitted_bytes: u64,
        iterations: u32,
        chunks: usize,
        wall_s: f64,
        #[serde(skip_serializing_if = "Option::is_none")]
        machine_strain: Option<&'a MachineLoad>,
    }
    let find = |name: &str| demo.runs.iter().find(|run| run.scenario == name);
    let iterations = demo.faulted.training().map_or(0, |job| job.iterations);
    let reference = OneRun {
        name: "reference",
        accuracy: demo.reference.accuracy,
        weights_sha256: &demo.reference.weights_sha256,
        server_link_bytes: 0,
        server_link_repeated_bytes: 0,
        retransmitted_bytes: 0,
        iterations,
        chunks: chunks_per_iteration(),
        wall_s: demo.reference.wall.as_secs_f64(),
        machine_strain: None,
    };
    let runs = trained(demo).map(|(name, wall_s, of)| OneRun {
        name,
        accuracy: of.accuracy,
        weights_sha256: &of.weights_sha256,
        server_link_bytes: of.server_link_bytes,
        server_link_repeated_bytes: of.server_link_repeated_bytes,
        retransmitted_bytes: of.retransmitted_bytes,
        iterations: of.iterations,
        chunks: chunks_per_iteration(),
        wall_s,
        machine_strain: find(name).map(|run| &run.machine_load),
    });
    Json {
        header: &demo.header,
        workers: demo.workers,
        links: links(demo),
        seed: demo.faulted.scenario.seed,
        ok: demo.verdict.is_ok(),
        degraded: !demo.verdict.degraded.is_empty(),
        degraded_reasons: &demo.verdict.degraded,
        wall_s: demo.wall.as_secs_f64(),
        runs: runs.chain([reference]).collect(),
        server_bytes_removed_share: demo.server_bytes_removed,
        faults: &demo.runs[2].conclusion.faults,
    }
}

/// Role of a run in drawings, which determines its color.
fn role(name: &str) -> Role {
    match name {
        "aggregated" => Role::Main,
        "faulted" => Role::Faulted,
        _ => Role::Other,
    }
}

fn add_figures(page: &mut Page, demo: &Demo) {
    let megabytes: Vec<_> = trained(demo)
        .map(|(name, _, of)| (name, role(name), of.server_link_bytes as f64 / 1e6))
        .collect();
    page.figure(
        &bars("megabytes on the server's link", &megabytes),
        &format!(
            "Frame bytes without FCS on the server's link, both directions, counted by the switch's port and checked against the \
             server's interface. Aggregation removes {:.2} % of those sent once; the limit for {} workers is {:.2} %.",
            demo.server_bytes_removed * 100.0,
            demo.workers,
            (1.0 - 1.0 / demo.workers as f64) * 100.0
        ),
    );
    let curves: Vec<Series> = trained(demo)
        .map(|(name, _, of)| {
            let mut elapsed = 0.0;
            let points = of.rounds.iter().map(|round| {
                elapsed += round.wall_ms / 1e3;
                (elapsed, round.accuracy * 100.0)
            });
            Series {
                name: name.to_owned(),
                role: role(name),
                points: points.collect(),
            }
        })
        .collect();
    let times = curves.iter().flat_map(|of| of.points.iter().map(|at| at.0));
    let chart = Chart {
        label: "accuracy of each run over time",
        axis: "seconds",
        end: times.fold(1.0, f64::max),
        bands: &[],
        moments: &[],
        panels: &[Panel {
            title: "held-out accuracy, %".to_owned(),
            unit: Unit::Number,
            content: Content::Series(curves, Form::Lines),
        }],
    };
    page.figure(
        &chart.svg(),
        "The final weights of all runs are compared bit by bit; on the way, accuracy is what the server measured after each \
         iteration.",
    );
}

/// The report as an HTML page.
pub fn page(demo: &Demo) -> String {
    let mut page = Page::new("weir demo", &demo.verdict);
    page.about(&demo.header.line());
    page.paragraph(&format!(
        "{} workers and a parameter server train a network on handwritten digits through two software switches, over {} links, \
         from seed {}. The same training runs four times: summed in the switch, summed by the server, summed in the switch \
         while faults hit two of the workers, and in one process without any network.",
        demo.workers,
        links(demo),
        demo.faulted.scenario.seed
    ));
    for section in sections(demo) {
        section.add(&mut page);
    }
    page.heading("Checks").successes(&demo.verdict);
    let scenario = &demo.faulted.scenario;
    let iterations = demo.faulted.training().map_or(0, |job| job.iterations);
    page.heading("Scenario of the faulted run")
        .about(&format!(
            "As shipped, but with seed {} and {iterations} iterations.",
            scenario.seed
        ))
        .preformatted(&scenario.text);
    page.render()
}

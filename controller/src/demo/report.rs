//! The demo for people: a table in the terminal, a page in the browser.

use super::{Demo, scenario_text};
use crate::report::html::Page;
use crate::report::plot::{self, Curve, PlotError};
use crate::report::table::Table;
use crate::report::{bytes, grouped};

fn runs_table(demo: &Demo) -> Table {
    let mut table = Table::new([
        "run",
        "accuracy",
        "server link bytes",
        "sent again",
        "time",
        "weights",
    ]);
    for run in &demo.runs {
        let on_wire = run.name != "reference";
        let count = |value: u64| {
            if on_wire {
                grouped(value)
            } else {
                String::new()
            }
        };
        table.row([
            run.name.to_owned(),
            format!("{:.1} %", run.accuracy * 100.0),
            count(run.server_link_bytes),
            count(run.retransmitted_bytes),
            format!("{:.1} s", run.wall_s),
            run.weights_sha256.chars().take(12).collect::<String>() + "…",
        ]);
    }
    table
}

fn faults_table(demo: &Demo) -> Table {
    let mut table = Table::new([
        "fault",
        "kind",
        "frames met",
        "fired (switch)",
        "observed (captures)",
    ]);
    for fault in &demo.faults {
        table.row([
            fault.id.clone(),
            fault.kind.to_owned(),
            grouped(fault.met),
            grouped(fault.fired),
            grouped(fault.observed),
        ]);
    }
    table
}

/// For the terminal.
pub fn show(demo: &Demo) -> String {
    let mut text = format!("\n{}\n{}\n", runs_table(demo), faults_table(demo));
    for (holds, check) in &demo.checks {
        text += &format!("{} {check}\n", if *holds { "ok    " } else { "FAILED" });
    }
    text
}

/// For the browser.
pub fn page(demo: &Demo) -> Result<String, PlotError> {
    let mut page = Page::new("weir demo", demo.ok);
    page.paragraph(&format!(
        "{} workers and a parameter server train a network on handwritten digits through two software switches, over {} links, \
         from seed {}. The same training runs four times: summed in the switch, summed by the server, summed in the switch \
         while faults hit two of the workers, and in one process without any network.",
        demo.workers, demo.links, demo.seed
    ));
    page.heading("What must hold").checks(
        demo.checks
            .iter()
            .map(|(holds, text)| (*holds, text.as_str())),
    );
    page.heading("Runs").table(&runs_table(demo));
    let megabytes: Vec<(&str, f64)> = demo
        .runs
        .iter()
        .filter(|run| run.server_link_bytes > 0)
        .map(|run| (run.name, run.server_link_bytes as f64 / 1e6))
        .collect();
    page.figure(
        &plot::bars("megabytes on the server's link", &megabytes)?,
        &format!(
            "Frame bytes without FCS on the server's link, both directions, counted by the switch's port and checked against the \
             server's interface. Aggregation removes {:.2} %; the limit for {} workers is {:.2} %.",
            demo.server_bytes_removed * 100.0,
            demo.workers,
            (1.0 - 1.0 / demo.workers as f64) * 100.0
        ),
    );
    let curves: Vec<Curve<'_>> = demo
        .runs
        .iter()
        .filter(|run| !run.rounds.is_empty())
        .map(|run| {
            let mut elapsed = 0.0;
            let points = run.rounds.iter().map(|round| {
                elapsed += round.wall_ms / 1e3;
                (elapsed, round.accuracy * 100.0)
            });
            Curve {
                name: run.name,
                points: points.collect(),
            }
        })
        .collect();
    page.figure(
        &plot::curves("seconds", "held-out accuracy, %", &curves)?,
        "The same weights after the same iteration in every run; faults and missing aggregation only cost time.",
    );
    page.heading("Faults").table(&faults_table(demo));
    page.paragraph(
        "\"Fired\" is the switch's own counter. \"Observed\" comes only from captures on both sides of the faulting switch, matched \
         by worker, chunk, version and transmission number: a frame that is missing, came twice, or came late.",
    );
    let again: Vec<String> = demo
        .runs
        .iter()
        .filter(|run| run.sent_bytes > 0)
        .map(|run| format!("{} {}", run.name, bytes(run.retransmitted_bytes)))
        .collect();
    page.paragraph(&format!("Sent again: {}.", again.join(", ")));
    page.heading("Scenario of the faulted run")
        .preformatted(&scenario_text(demo.seed));
    Ok(page.render())
}

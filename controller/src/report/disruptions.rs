//! Report tables and checks for faults that act on programs and switches.

use scenario::model::Scenario;

use super::table::Table;
use super::{Check, grouped, milliseconds};
use crate::experiment::carry_out::disruption::DisruptionExecution;
use crate::experiment::conclude::DisruptionResult;

/// Table with a row per fault of a program or a switch: effect, number of executions and observations, longest durations.
pub fn table(scenario: &Scenario, results: &[DisruptionResult]) -> Table {
    let head = [
        "fault",
        "effect",
        "host",
        "done",
        "seen",
        "took",
        "lasted",
        "undone in",
    ];
    let mut table = Table::new(head);
    for result in results {
        let mut declared = scenario.disruptions.iter();
        let declared = declared.find(|disruption| disruption.id == result.id);
        let longest = |span: fn(&DisruptionExecution) -> Option<u64>| {
            let spans = result.times.iter().filter_map(span);
            spans.max().map_or_else(String::new, milliseconds)
        };
        table.row([
            result.id.clone(),
            declared.map_or_else(String::new, |disruption| disruption.does.to_string()),
            result.host.clone().unwrap_or_default(),
            grouped(result.fired),
            grouped(result.observed),
            longest(|time| Some(time.done_ns?.saturating_sub(time.asked_ns))),
            longest(|time| Some(time.undo_ns?.saturating_sub(time.done_ns?))),
            longest(|time| Some(time.undone_ns?.saturating_sub(time.undo_ns?))),
        ]);
    }
    table
}

/// Explanation of the words in [`table`], for readers of a report.
pub const LEGEND: &str = "\"Done\" is how often the controller carried out the fault. \"Seen\" is how often the controller also \
     observed the effect: /proc showed that all processes were stopped and resumed, or that none was left; a restarted program \
     was ready, a restarted switch had all entries. \"Took\", \"lasted\" and \"undone in\" are maxima: until the effect was \
     observed, from then until the controller began to undo it, and from there until the undoing was observed.";

/// Maximum number of executions in the table of [`times_table`].
const LISTED: usize = 100;

/// Table with a row for each execution of each fault; times are relative to `start_ns`, when the workload began.
pub fn times_table(results: &[DisruptionResult], start_ns: u64) -> Table {
    let head = [
        "fault",
        "on",
        "at",
        "done after",
        "undone at",
        "after",
        "processes",
        "",
    ];
    let mut table = Table::new(head);
    let times = results
        .iter()
        .flat_map(|result| result.times.iter().map(move |time| (result, time)));
    for (result, time) in times.take(LISTED) {
        let since = |at_ns: Option<u64>, from_ns: u64| {
            at_ns.map_or_else(String::new, |ns| milliseconds(ns.saturating_sub(from_ns)))
        };
        let notes = [&time.skipped, &time.unseen, &time.remark];
        let notes: Vec<&str> = notes.into_iter().flatten().map(String::as_str).collect();
        table.row([
            result.id.clone(),
            result.on.clone(),
            since(Some(time.asked_ns), start_ns),
            since(time.done_ns, time.asked_ns),
            since(time.undo_ns, start_ns),
            since(time.undone_ns, time.undo_ns.unwrap_or_default()),
            grouped(u64::from(time.processes)),
            notes.join("; "),
        ]);
    }
    table
}

/// Explanation of the words in [`times_table`], for readers of a report.
pub const TIMES_LEGEND: &str = "The first hundred executions: when the controller began, since the start of the workload, and \
     after which time it observed the effect; then the same for the undoing.";

/// The check that a fault of a program or a switch is proved, with how often it was carried out and observed.
pub fn check(result: &DisruptionResult) -> Check {
    let counts = format!(
        "{}: carried out {}, seen {}",
        result.id,
        times(result.fired),
        times(result.observed)
    );
    let text = match &result.reason {
        Some(reason) => format!("{counts}: {reason}"),
        None => counts,
    };
    Check::new(result.proved, text)
}

fn times(count: u64) -> String {
    match count {
        1 => "once".to_owned(),
        count => format!("{} times", grouped(count)),
    }
}

//! Report tables and checks for packet faults, and for the lateness of packets that they delay.

use scenario::model::{Fault, Scenario};

use super::table::Table;
use super::{Check, grouped, milliseconds, percent};
use crate::experiment::conclude::FaultResult;

/// Table with a row per fault: its flows, its selection of packets, its effect, and how many packets arrived and were hit.
pub fn table(scenario: &Scenario, results: &[FaultResult]) -> Table {
    let mut table = Table::new(["fault", "flow", "packets", "effect", "met", "fired", "seen"]);
    for result in results {
        let declared = scenario.faults.iter().find(|fault| fault.id == result.id);
        table.row([
            result.id.clone(),
            declared.map_or_else(String::new, |fault| flows(scenario, fault)),
            declared.map_or_else(String::new, |fault| fault.selected()),
            declared.map_or_else(String::new, |fault| fault.effect.to_string()),
            grouped(result.met),
            grouped(result.fired),
            grouped(result.observed),
        ]);
    }
    table
}

/// Explanation of the words in [`table`], for readers of a report.
pub const LEGEND: &str = "\"Met\" are packets of the fault's flows that arrived at its switch. \"Fired\" is the switch's own \
     counter. \"Seen\" comes only from captures on both sides of that switch: the model replays the frames that arrived and \
     decides which of them the fault had to hit; the frames that left show which it hit.";

/// Names of a fault's flows as the scenario declares them, each name once.
fn flows(scenario: &Scenario, fault: &Fault) -> String {
    let flows = fault
        .flows
        .iter()
        .filter_map(|index| scenario.flows.get(*index));
    let mut names: Vec<&str> = flows.map(|flow| flow.declared.as_str()).collect();
    names.dedup();
    names.join(", ")
}

/// Table with the lateness of packets that each fault delayed or limited in rate, and the lateness that the plan allows.
pub fn lateness_table(results: &[FaultResult]) -> Table {
    let mut table = Table::new(["fault", "latest", "bound", "beyond the bound"]);
    for result in results {
        // A fault without a hit has no latest packet.
        let Some(latest_ns) = result.latest_ns.filter(|_| result.observed > 0) else {
            continue;
        };
        table.row([
            result.id.clone(),
            milliseconds(latest_ns),
            result
                .lateness_bound_ns
                .map_or_else(|| "none".to_owned(), milliseconds),
            beyond(result).unwrap_or_default(),
        ]);
    }
    table
}

/// Explanation of the words in [`lateness_table`], for readers of a report.
pub const LATENESS_LEGEND: &str = "\"Latest\" is the largest lateness of a packet beyond the requested time, which is 0 for `police`. \"Bound\" is the lateness that the plan allows.";

/// Formats how many packets left later than the plan allows: `3 of 100, 3.0 %`. `None` if the fault delays no packets.
fn beyond(result: &FaultResult) -> Option<String> {
    let beyond = result.beyond?;
    let share = beyond as f64 / result.observed.max(1) as f64;
    Some(format!(
        "{} of {}, {}",
        grouped(beyond),
        grouped(result.observed),
        percent(share)
    ))
}

/// Remarks on faults whose packets left later than the plan allows. Late packets say more about the machine than about the
/// fault, so they fail no run: a scenario that requires short delays expects `fault.ID.beyond` to be small.
pub fn late(results: &[FaultResult]) -> Vec<String> {
    let late = results
        .iter()
        .filter(|fault| fault.is_in_time() == Some(false));
    late.filter_map(|fault| {
        let (latest, bound) = (fault.latest_ns?, fault.lateness_bound_ns?);
        let share =
            beyond(fault).map_or_else(String::new, |beyond| format!(", which {beyond} exceeded"));
        Some(format!(
            "{}: a packet left {} later than requested, the plan allows {}{share}",
            fault.id,
            milliseconds(latest),
            milliseconds(bound)
        ))
    })
    .collect()
}

/// The check that a packet fault is proved, with the switches' count of hits and that of the captures.
pub fn check(result: &FaultResult) -> Check {
    let counts = format!(
        "{}: the switch fired {}, captures saw {}",
        result.id,
        grouped(result.fired),
        grouped(result.observed)
    );
    let text = match &result.reason {
        Some(reason) => format!("{counts}: {reason}"),
        None => counts,
    };
    Check::new(result.proved, text)
}

//! Report table of the times at which a training's gradients were replanned because switches went down or returned.

use super::milliseconds;
use super::table::Table;
use crate::experiment::carry_out::Repair;

/// Table with a row per replanning; `start_ns`: when the workload began, in nanoseconds since 1970.
pub fn table(repairs: &[Repair], start_ns: Option<u64>) -> Table {
    let head = [
        "replanned without",
        "at",
        "switches updated after",
        "resumed after",
        "sums on",
    ];
    let mut table = Table::new(head);
    for repair in repairs {
        let since = |at_ns: Option<u64>| {
            let took = at_ns.map(|at_ns| at_ns.saturating_sub(repair.seen_ns));
            took.map_or_else(String::new, milliseconds)
        };
        let gone = match repair.gone.as_slice() {
            [] => "–".to_owned(),
            gone => gone.join(", "),
        };
        let at = start_ns.map(|start_ns| repair.seen_ns.saturating_sub(start_ns));
        table.row([
            gone,
            at.map_or_else(String::new, milliseconds),
            since(repair.installed_ns),
            since(repair.resumed_ns),
            repair
                .failed
                .clone()
                .unwrap_or_else(|| match repair.sums.as_slice() {
                    [] => "the server".to_owned(),
                    sums => sums.join(", "),
                }),
        ]);
    }
    table
}

/// Explanation of the words in [`table`].
pub const LEGEND: &str = "The switches that were down when the gradients were replanned, and when the controller noticed the first \
     change. Updated: the other switches had the new plan. Resumed: the server had the first sum by it.";

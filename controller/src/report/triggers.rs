//! Report table and checks for triggers, which turn faults on and off.

use super::table::Table;
use super::{Check, grouped};
use crate::experiment::conclude::TriggerResult;

/// Table with a row per trigger: its condition, and how often it fired.
pub fn table(results: &[TriggerResult]) -> Table {
    let mut table = Table::new(["trigger", "switch", "is on", "counted", "seen"]);
    for result in results {
        table.row([
            result.name.clone(),
            result.switch.clone(),
            result.what.clone(),
            result.on.map_or_else(String::new, grouped),
            grouped(result.observed),
        ]);
    }
    table
}

/// Explanation of the words in [`table`].
pub const LEGEND: &str = "\"Counted\" is how often the trigger fired by the switch's own counter, if there is one; for a \
     trigger with keys, for all keys together. \"Seen\" comes from the captures alone.";

/// The check that a trigger's counts agree; `None` if there is nothing to check: no count by the switch, and no error.
pub fn check(result: &TriggerResult) -> Option<Check> {
    let counted = result.on.map(|on| {
        format!(
            "trigger {}: the switch counted {}, captures saw {}",
            result.name,
            grouped(on),
            grouped(result.observed)
        )
    });
    let text = match (counted, &result.reason) {
        (Some(counted), None) => counted,
        (Some(counted), Some(reason)) => format!("{counted}: {reason}"),
        (None, Some(reason)) if !result.proved => format!("trigger {}: {reason}", result.name),
        (None, _) => return None,
    };
    Some(Check::new(result.proved, text))
}

//! The lines of `events.jsonl` for executions of faults of programs and switches.

use scenario::model::disruption::Subject;
use serde::Serialize;

use crate::experiment::Planned;
use crate::experiment::carry_out::disruption::DisruptionExecution;

/// A line of `events.jsonl`: one execution of a fault of a program or a switch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DisruptionEvent<'a> {
    /// When the controller observed the fault's effect, or else when it began to carry it out, in nanoseconds since 1970.
    pub at_ns: u64,
    /// Word for the fault's effect, such as `kill`.
    pub effect: &'static str,
    /// Name of the command that the fault acts on; `None` for a switch.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<&'a str>,
    /// Host of the command; `None` for a switch.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host: Option<&'a str>,
    /// Name of the switch that the fault acts on; `None` for a command.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub switch: Option<&'a str>,
    /// `hit`: carried out and observed; `missed`: something else was observed; `skipped`: not carried out.
    pub outcome: &'static str,
    /// Times and remarks of the execution.
    #[serde(flatten)]
    pub carried: &'a DisruptionExecution,
}

/// The lines for all executions of faults of programs and switches, in order.
pub fn disruptions<'a>(
    planned: &'a Planned,
    carried: &'a [DisruptionExecution],
) -> Vec<DisruptionEvent<'a>> {
    let scenario = &planned.scenario;
    let of = |carried: &'a DisruptionExecution| {
        let mut declared = scenario.disruptions.iter();
        let disruption = declared.find(|of| of.id == carried.fault)?;
        let (command, switch) = match disruption.does.subject() {
            Subject::Command(name) => (Some(name), None),
            Subject::Switch(name) => (None, Some(name)),
        };
        Some(DisruptionEvent {
            at_ns: carried.done_ns.unwrap_or(carried.asked_ns),
            effect: disruption.does.word(),
            command,
            host: disruption.host(scenario),
            switch,
            outcome: match (&carried.skipped, carried.is_seen()) {
                (Some(_), _) => "skipped",
                (None, true) => "hit",
                (None, false) => "missed",
            },
            carried,
        })
    };
    carried.iter().filter_map(of).collect()
}

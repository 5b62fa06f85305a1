//! The lines of `events.jsonl` that say what the controller did to programs and switches.

use scenario::disruption::Subject;
use serde::Serialize;

use crate::experiment::events::{events, lines};
use crate::experiment::{Carried, Planned};
use proof::Hit;

/// What the controller did to a program or a switch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Disrupted<'a> {
    /// When it was seen to be done, or else was begun, in nanoseconds since 1970.
    pub at_ns: u64,
    /// Its effect.
    pub effect: &'static str,
    /// To which command.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<&'a str>,
    /// On which host.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host: Option<&'a str>,
    /// To which switch.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub switch: Option<&'a str>,
    /// `hit`; `missed`: something else was seen; `skipped`: it was not carried out.
    pub outcome: &'static str,
    /// All that is known of it.
    #[serde(flatten)]
    pub carried: &'a Carried,
}

/// The log of what the controller did, in order.
#[must_use]
pub fn disruptions<'a>(planned: &'a Planned, carried: &'a [Carried]) -> Vec<Disrupted<'a>> {
    let scenario = &planned.scenario;
    let of = |carried: &'a Carried| {
        let mut declared = scenario.disruptions.iter();
        let disruption = declared.find(|of| of.id == carried.fault)?;
        let (command, switch) = match disruption.does.subject() {
            Subject::Command(name) => (Some(name), None),
            Subject::Switch(name) => (None, Some(name)),
        };
        Some(Disrupted {
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

/// The log of a run as its folder has it: frames, then what the controller did.
#[must_use]
pub fn log(planned: &Planned, carried: &[Carried], hits: &[Hit]) -> String {
    lines(&events(planned, hits)) + &lines(&disruptions(planned, carried))
}

//! Plans the disruptions: faults on programs and switches that the controller carries out, and their times.

use std::fmt;

use serde::Serialize;

use super::TargetModel;
use crate::diagnostic::{Code, Sink};
use crate::model::Scenario;
use crate::model::disruption::{ACTS_WITHIN_NS, Disruption, Does, Subject};
use crate::units::show_duration;

/// A disruption (a fault on a program or switch) as the plan shows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PlannedDisruption {
    /// The fault's name.
    pub fault: String,
    /// The action of the controller on the command or switch.
    pub effect: Does,
    /// The host of the disrupted command; `None` if a switch is disrupted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// Start and end of each time range in which the disruption is in force, relative to the start of the workload.
    pub times: Vec<ActiveTime>,
    /// Maximum time, in nanoseconds, from the start of a range until the controller has acted.
    pub within_ns: u64,
}

/// A range of the timeline in which a disruption is in force.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct ActiveTime {
    /// Number of the first epoch of the range.
    pub epoch: u16,
    /// Start in nanoseconds since the start of the workload; `None` if it depends on events of the run.
    pub from_ns: Option<u64>,
    /// End in nanoseconds since the start of the workload; `None` if it depends on events, or is the end of the run.
    pub to_ns: Option<u64>,
}

/// The disruptions that a controller of this target carries out, as the plan shows them.
pub(super) fn plan(
    sink: &mut Sink<'_>,
    scenario: &Scenario,
    target: &TargetModel,
) -> Vec<PlannedDisruption> {
    let disruptions = scenario.disruptions.iter();
    let planned = disruptions.map(|disruption| {
        refuse(sink, disruption, target);
        let times = disruption.epochs.iter().map(|range| ActiveTime {
            epoch: *range.start(),
            from_ns: scenario.begins_ns(*range.start()),
            to_ns: scenario.begins_ns(range.end().saturating_add(1)),
        });
        PlannedDisruption {
            fault: disruption.id.clone(),
            effect: disruption.does.clone(),
            host: disruption.host(scenario).map(str::to_owned),
            times: times.collect(),
            within_ns: ACTS_WITHIN_NS,
        }
    });
    planned.collect()
}

fn refuse(sink: &mut Sink<'_>, disruption: &Disruption, target: &TargetModel) {
    let word = disruption.does.word();
    let (message, hint) = match disruption.does.subject() {
        Subject::Command(_) if !target.runs_hosts => (
            format!(
                "this target cannot {word} a program: weir does not start programs on its hosts"
            ),
            "use `weir run` on the embedded switch or on BMv2, which starts the programs",
        ),
        Subject::Switch(_) if !target.runs_hosts => (
            format!("this target cannot {word} a switch: weir does not start its switches"),
            "use `weir run` on the embedded switch, which starts its switches itself",
        ),
        Subject::Switch(_) if !target.restarts => (
            format!(
                "this target cannot {word} a switch: BMv2's program is compiled when the switch starts"
            ),
            "use the embedded switch",
        ),
        _ => return,
    };
    sink.error(Code::Effect, disruption.span, message)
        .hint(hint);
}

/// Refuses packet faults on a switch that a disruption restarts: the switch's ordinals and counters are lost with its process.
pub(super) fn check_provable<'s>(
    sink: &mut Sink<'_>,
    scenario: &Scenario,
    injected_on: impl Iterator<Item = (&'s str, &'s str)>,
) {
    let mut told: Vec<&str> = Vec::new();
    for (fault, switch) in injected_on {
        let on_it = |of: &&Disruption| of.does.subject() == Subject::Switch(switch);
        let Some(restarts) = scenario.disruptions.iter().find(on_it) else {
            continue;
        };
        if told.contains(&fault) {
            continue;
        }
        told.push(fault);
        let declared = scenario.faults.iter().find(|of| of.id == fault);
        let span = declared.map_or(restarts.span, |of| of.place_span);
        let message = format!(
            "fault `{fault}` cannot be proved on switch `{switch}`, which `{}` restarts: the restart loses the switch's packet numbers and counters",
            restarts.id
        );
        let source = scenario.source();
        sink.error(Code::Unprovable, span, message)
            .related(
                &source,
                restarts.span,
                format!("`{}` is declared here", restarts.id),
            )
            .hint("let the fault act on another switch: `where: SWITCH`");
    }
}

impl fmt::Display for PlannedDisruption {
    /// For users: `freeze: pause primary on p; at 500ms until 1.5s`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (word, name) = (self.effect.word(), self.effect.subject().name());
        write!(f, "{}: {word} {name}", self.fault)?;
        if let Some(host) = &self.host {
            write!(f, " on {host}")?;
        }
        f.write_str(&self.effect.undone())?;
        /// Maximum number of time ranges that the text of a plan lists one by one.
        const TOLD: usize = 4;
        for time in self.times.iter().take(TOLD) {
            match time.from_ns {
                Some(from_ns) => write!(f, "; at {}", show_duration(from_ns))?,
                None => write!(f, "; with epoch {}", time.epoch)?,
            }
            if let Some(to_ns) = time.to_ns.filter(|_| self.effect.ends_with_step()) {
                write!(f, " until {}", show_duration(to_ns))?;
            }
        }
        match self.times.len() {
            0..=TOLD => Ok(()),
            many => write!(f, "; … ({many} times in all)"),
        }
    }
}

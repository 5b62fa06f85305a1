//! Faults that hit no packet: the controller itself pauses or ends a program on a host, or restarts a switch.
//!
//! A disruption is in force during ranges of epochs. At the start of each range the controller acts, at its end it undoes
//! the action, and it reads both back from the system. No switch is involved in the decision.

use std::fmt;
use std::ops::RangeInclusive;

use serde::Serialize;

use crate::diagnostic::{Code, Sink, Span};
use crate::model::Scenario;
use crate::plan::TargetModel;
use crate::units::show_duration;
use crate::workload::commands::{Command, Ready, When};
use crate::workload::{Training, Workload};

/// Maximum delay, in nanoseconds, from a step taking force to the controller acting, on a machine that is not overloaded:
/// one iteration of the timeline loop, plus the search for all processes of a command.
pub const ACTS_WITHIN_NS: u64 = 10_000_000;

/// A fault on a program or on a switch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Disruption {
    /// The fault's name.
    pub id: String,
    /// The action, and the command or switch that it is applied to.
    pub does: Does,
    /// Epochs in ascending, disjoint ranges. The action is carried out once for each range.
    pub epochs: Vec<RangeInclusive<u16>>,
    /// Position of the declaration in the file.
    pub span: Span,
    /// Position where the file names the command or switch.
    pub on_span: Span,
}

/// The action that the controller carries out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Does {
    /// Stops all processes of a command, and continues them at the end of the step.
    Pause {
        /// The command's name.
        command: String,
    },
    /// Kills all processes of a command.
    Kill {
        /// The command's name.
        command: String,
        /// Whether the controller starts the command again at the end of the step.
        restart: bool,
    },
    /// Sends a command its own stop signal, and kills the command if it does not exit.
    Stop {
        /// The command's name.
        command: String,
        /// Whether the controller starts the command again at the end of the step.
        restart: bool,
    },
    /// Kills a switch's process, then starts it again with all its configuration.
    Restart {
        /// The switch's name.
        switch: String,
        /// Time from the kill to the restart; `None`: the restart happens at the end of the step.
        after_ns: Option<u64>,
    },
}

/// The target of a disruption.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Subject<'a> {
    /// The named command of the workload.
    Command(&'a str),
    /// The named switch.
    Switch(&'a str),
}

impl Does {
    /// The words of all actions, in the order in which messages list them.
    pub const WORDS: [&'static str; 4] = ["pause", "kill", "stop", "restart"];

    /// The action's word in files and reports.
    #[must_use]
    pub fn word(&self) -> &'static str {
        match self {
            Does::Pause { .. } => "pause",
            Does::Kill { .. } => "kill",
            Does::Stop { .. } => "stop",
            Does::Restart { .. } => "restart",
        }
    }

    /// The command or switch that the action is applied to.
    #[must_use]
    pub fn subject(&self) -> Subject<'_> {
        match self {
            Does::Pause { command } | Does::Kill { command, .. } | Does::Stop { command, .. } => {
                Subject::Command(command)
            }
            Does::Restart { switch, .. } => Subject::Switch(switch),
        }
    }

    /// Description of how the action ends, to append to the subject's name.
    fn undone(&self) -> String {
        match self {
            Does::Kill { restart: true, .. } | Does::Stop { restart: true, .. } => {
                ", then start it again".to_owned()
            }
            Does::Restart {
                after_ns: Some(after_ns),
                ..
            } => format!(" after {}", show_duration(*after_ns)),
            _ => String::new(),
        }
    }

    /// Whether the action is undone at the end of its step.
    fn ends_with_step(&self) -> bool {
        let by_itself = matches!(
            self,
            Does::Restart {
                after_ns: Some(_),
                ..
            }
        );
        !by_itself && !self.is_for_good()
    }

    /// Whether the action needs nothing further at the end of its step.
    #[must_use]
    pub fn is_for_good(&self) -> bool {
        matches!(
            self,
            Does::Kill { restart: false, .. } | Does::Stop { restart: false, .. }
        )
    }
}

impl fmt::Display for Does {
    /// `pause primary`, `kill db, then start it again`, `restart sw after 200ms`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} {}{}",
            self.word(),
            self.subject().name(),
            self.undone()
        )
    }
}

impl<'a> Subject<'a> {
    /// Name of the command or switch.
    #[must_use]
    pub fn name(self) -> &'a str {
        match self {
            Subject::Command(name) | Subject::Switch(name) => name,
        }
    }
}

impl fmt::Display for Subject<'_> {
    /// ``command `web` ``
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Subject::Command(name) => write!(f, "command `{name}`"),
            Subject::Switch(name) => write!(f, "switch `{name}`"),
        }
    }
}

impl Disruption {
    /// Whether the disruption is in force in an epoch.
    #[must_use]
    pub fn is_in_force(&self, epoch: u16) -> bool {
        self.epochs.iter().any(|range| range.contains(&epoch))
    }

    /// The host that runs the disrupted command; `None` for a switch.
    #[must_use]
    pub fn host<'s>(&self, scenario: &'s Scenario) -> Option<&'s str> {
        let Subject::Command(name) = self.does.subject() else {
            return None;
        };
        let command = scenario.command(name)?;
        Some(&command.host)
    }
}

impl Scenario {
    /// A command of the workload, by name.
    #[must_use]
    pub fn command(&self, name: &str) -> Option<&Command> {
        let Some(Workload::Commands(declared)) = &self.workload else {
            return None;
        };
        declared
            .commands
            .iter()
            .find(|command| command.name == name)
    }
}

/// Refuses disruptions that cannot be carried out, or that contradict each other.
pub(crate) fn check(sink: &mut Sink<'_>, scenario: &Scenario) {
    for (i, later) in scenario.disruptions.iter().enumerate() {
        is_possible(sink, scenario, later);
        for earlier in &scenario.disruptions[..i] {
            contradiction(sink, earlier, later);
        }
    }
}

fn is_possible(sink: &mut Sink<'_>, scenario: &Scenario, disruption: &Disruption) {
    let Disruption {
        id,
        does,
        on_span,
        epochs,
        ..
    } = disruption;
    match does.subject() {
        Subject::Switch(name) => {
            if let Some(Workload::Training(training)) = &scenario.workload {
                under_training(sink, scenario, training, (disruption, name));
            }
        }
        Subject::Command(name) => {
            let ready = scenario.command(name).and_then(|of| of.ready.as_ref());
            if let Some(Ready {
                when: When::Exit(_),
                ..
            }) = ready
            {
                let message = format!(
                    "fault `{id}` comes too late: command `{name}` is a preparation, and has ended before the timeline begins"
                );
                sink.error(Code::Effect, *on_span, message)
                    .hint("name a service, whose `ready` is `tcp`, `log`, `file` or `started`, or a driver");
            }
        }
    }
    if does.is_for_good() && epochs.len() > 1 {
        let message = format!(
            "fault `{id}` ends {} for good, and its steps come {} times",
            does.subject(),
            epochs.len()
        );
        let (word, name) = (does.word(), does.subject().name());
        sink.error(Code::Contradiction, disruption.span, message)
            .hint(format!(
                "write `{{{word}: {{command: {name}, restart: true}}}}`: it is then started again at the end of each"
            ));
    }
}

/// Refuses to restart a switch that a training cannot do without.
fn under_training(
    sink: &mut Sink<'_>,
    scenario: &Scenario,
    training: &Training,
    (Disruption { id, on_span, .. }, name): (&Disruption, &str),
) {
    let mut links = scenario.topology.links.iter();
    if links.any(|link| link.peer(&training.server) == Some(name)) {
        let message = format!(
            "fault `{id}` cannot restart switch `{name}` under a training: its counters are held against the server's link, and \
             are lost with it"
        );
        sink.error(Code::Effect, *on_span, message);
    } else if scenario.gradients.is_none() {
        let message = format!(
            "fault `{id}` cannot restart switch `{name}` under a training without a `plan`: no other switch would sum what it forgets"
        );
        sink.error(Code::Effect, *on_span, message)
            .hint("write `plan: {by: grid}`: gradients are planned again when a switch dies");
    }
}

/// Refuses two disruptions of the same subject that overlap in time, or where the second finds no process left.
fn contradiction(sink: &mut Sink<'_>, a: &Disruption, b: &Disruption) {
    if a.does.subject() != b.does.subject() {
        return;
    }
    let meet = a.epochs.iter().any(|a| {
        let mut others = b.epochs.iter();
        others.any(|b| a.start() <= b.end() && b.start() <= a.end())
    });
    let comes_after = |first: &Disruption, then: &Disruption| {
        let ended = first.epochs.first().filter(|_| first.does.is_for_good());
        let last = then.epochs.last();
        ended.is_some_and(|ended| last.is_some_and(|last| last.start() > ended.end()))
    };
    let why = if meet {
        "both act at the same time".to_owned()
    } else if comes_after(a, b) {
        format!("`{}` ends it for good before", a.id)
    } else if comes_after(b, a) {
        format!("`{}` ends it for good before", b.id)
    } else {
        return;
    };
    let message = format!(
        "faults `{}` and `{}` contradict each other on {}: {why}",
        a.id,
        b.id,
        a.does.subject()
    );
    let source = sink.source();
    sink.error(Code::Contradiction, b.span, message)
        .related(&source, a.span, format!("`{}` is declared here", a.id))
        .hint("give them different steps in `during`");
}

/// A disruption as the plan shows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Planned {
    /// The fault's name.
    pub fault: String,
    /// The action.
    pub effect: Does,
    /// The host of the command; `None` for a switch.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// Start and end of each range, relative to the start of the workload.
    pub times: Vec<Time>,
    /// Maximum time, in nanoseconds, that the controller may take to act.
    pub within_ns: u64,
}

/// A range of the timeline.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Time {
    /// The first epoch of the range.
    pub epoch: u16,
    /// Start, in nanoseconds; `None` if it depends on events of the run.
    pub from_ns: Option<u64>,
    /// End, in nanoseconds; `None` if it depends on events of the run, or if the range lasts until the run ends.
    pub to_ns: Option<u64>,
}

/// The disruptions that the controller of these switches will carry out.
pub(crate) fn plan(sink: &mut Sink<'_>, scenario: &Scenario, target: &TargetModel) -> Vec<Planned> {
    let disruptions = scenario.disruptions.iter();
    let planned = disruptions.map(|disruption| {
        refuse(sink, disruption, target);
        let times = disruption.epochs.iter().map(|range| Time {
            epoch: *range.start(),
            from_ns: scenario.begins_ns(*range.start()),
            to_ns: scenario.begins_ns(range.end().saturating_add(1)),
        });
        Planned {
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
            format!("this target cannot {word} a program: weir starts nothing on its hosts"),
            "`weir run` on the embedded switch or on BMv2 starts the programs of hosts",
        ),
        Subject::Switch(_) if !target.runs_hosts => (
            format!(
                "this target cannot {word} a switch: its switches are started by somebody else"
            ),
            "`weir run` on the embedded switch starts its switches itself",
        ),
        Subject::Switch(_) if !target.restarts => (
            format!(
                "this target cannot {word} a switch: a program of BMv2's is compiled when it starts"
            ),
            "the embedded switch can",
        ),
        _ => return,
    };
    sink.error(Code::Effect, disruption.span, message)
        .hint(hint);
}

/// Refuses packet faults on a switch that is restarted: its ordinals and counters are lost with its process.
pub(crate) fn check_provable<'s>(
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
            "fault `{fault}` cannot be proved on switch `{switch}`, which `{}` restarts: what the switch has numbered and \
             counted ends with its process",
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

impl fmt::Display for Planned {
    /// `freeze: pause primary on p; at 500ms until 1.5s`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (word, name) = (self.effect.word(), self.effect.subject().name());
        write!(f, "{}: {word} {name}", self.fault)?;
        if let Some(host) = &self.host {
            write!(f, " on {host}")?;
        }
        f.write_str(&self.effect.undone())?;
        /// Maximum number of times that are listed one by one.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_says_what_it_does_to_whom() {
        let command = || "db".to_owned();
        let all = [
            (Does::Pause { command: command() }, "pause db"),
            (
                Does::Kill {
                    command: command(),
                    restart: true,
                },
                "kill db, then start it again",
            ),
            (
                Does::Stop {
                    command: command(),
                    restart: false,
                },
                "stop db",
            ),
            (
                Does::Restart {
                    switch: "sw".to_owned(),
                    after_ns: Some(200_000_000),
                },
                "restart sw after 200ms",
            ),
        ];
        for ((does, text), word) in all.iter().zip(Does::WORDS) {
            assert_eq!((does.to_string().as_str(), does.word()), (*text, word));
        }
    }
}

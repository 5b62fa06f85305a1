//! Faults that hit no packet: the controller itself pauses or ends a program of a host, or restarts a switch.
//!
//! A disruption is in force in stretches of the timeline. At the beginning of each the controller does something, at its end
//! it undoes that, and both are read back from the system. No switch knows of it.

use std::fmt;
use std::ops::RangeInclusive;

use serde::Serialize;

use crate::diagnostic::{Code, Sink, Span};
use crate::model::Scenario;
use crate::plan::TargetModel;
use crate::units::show_duration;
use crate::workload::commands::{Command, Ready, When};
use crate::workload::{Training, Workload};

/// For so long after its step is in force the controller may not yet have acted, on a machine that has time: a turn of the
/// loop that follows the timeline, and what it takes to find all processes of a command.
pub const ACTS_WITHIN_NS: u64 = 10_000_000;

/// A fault of a program or of a switch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Disruption {
    /// Its name.
    pub id: String,
    /// What is done, and to whom.
    pub does: Does,
    /// When: epochs in ascending, disjoint ranges. Each is one time that it is carried out.
    pub epochs: Vec<RangeInclusive<u16>>,
    /// Where it is declared.
    pub span: Span,
    /// Where it names whom it is done to.
    pub on_span: Span,
}

/// What the controller does.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Does {
    /// All processes of a command are stopped, and go on at the end.
    Pause {
        /// Which command.
        command: String,
    },
    /// All processes of a command are killed.
    Kill {
        /// Which command.
        command: String,
        /// Whether it is started again at the end.
        restart: bool,
    },
    /// A command is asked to end, by its own signal, and killed if it does not.
    Stop {
        /// Which command.
        command: String,
        /// Whether it is started again at the end.
        restart: bool,
    },
    /// A switch's process is killed, and started again with all that it was told.
    Restart {
        /// Which switch.
        switch: String,
        /// So long after it was killed; at the end of the step without.
        after_ns: Option<u64>,
    },
}

/// What a disruption is done to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Subject<'a> {
    /// A command of the workload.
    Command(&'a str),
    /// A switch.
    Switch(&'a str),
}

impl Does {
    /// The words of all, in the order in which messages list them.
    pub const WORDS: [&'static str; 4] = ["pause", "kill", "stop", "restart"];

    /// Its word in files and reports.
    #[must_use]
    pub fn word(&self) -> &'static str {
        match self {
            Does::Pause { .. } => "pause",
            Does::Kill { .. } => "kill",
            Does::Stop { .. } => "stop",
            Does::Restart { .. } => "restart",
        }
    }

    /// What it is done to.
    #[must_use]
    pub fn subject(&self) -> Subject<'_> {
        match self {
            Does::Pause { command } | Does::Kill { command, .. } | Does::Stop { command, .. } => {
                Subject::Command(command)
            }
            Does::Restart { switch, .. } => Subject::Switch(switch),
        }
    }

    /// What becomes of it then, behind its name.
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

    /// Whether the end of its step is when it is undone.
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

    /// Whether nothing is left to be done at the end of its step.
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
    /// Its name.
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
    /// Whether it is in force in an epoch.
    #[must_use]
    pub fn is_in_force(&self, epoch: u16) -> bool {
        self.epochs.iter().any(|range| range.contains(&epoch))
    }

    /// The host that it is felt on first; none of a switch.
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

/// Two that are done to the same: at the same time, or one when there is nobody left.
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

/// A disruption as a plan has it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Planned {
    /// The fault's name.
    pub fault: String,
    /// What is done.
    pub effect: Does,
    /// On which host, if it is done to a command.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// When it begins and ends, since the start of the workload.
    pub times: Vec<Time>,
    /// How long the controller may take to act.
    pub within_ns: u64,
}

/// A stretch of the timeline.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Time {
    /// The epoch that it begins with.
    pub epoch: u16,
    /// When; none if that depends on what happens.
    pub from_ns: Option<u64>,
    /// When it is over; none if that depends on what happens, or if it lasts until the end.
    pub to_ns: Option<u64>,
}

/// What the controller of these switches will do.
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

/// Refuses faults of packets on a switch that is restarted: its ordinals and counters end with its process.
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
        /// More are not told one by one.
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

//! Faults that hit no packet: the controller itself pauses or ends a program on a host, or restarts a switch.
//!
//! A disruption is in force during ranges of epochs. At the start of each range the controller acts, at its end the controller
//! undoes the action, and it checks both in the system. No switch is involved.

use std::fmt;
use std::ops::RangeInclusive;

use serde::Serialize;

use crate::diagnostic::Span;
use crate::model::Scenario;
use crate::model::workload::Workload;
use crate::model::workload::commands::Command;
use crate::units::show_duration;

/// Maximum time, in nanoseconds, from the start of a step until the controller has acted, on a machine that is not overloaded:
/// one iteration of the timeline loop, plus the search for all processes of a command.
pub const ACTS_WITHIN_NS: u64 = 10_000_000;

/// A disruption: a fault on a program or on a switch instead of packets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Disruption {
    /// The fault's name.
    pub id: String,
    /// The action of the controller, and the command or switch on which it acts.
    pub does: Does,
    /// Epochs (intervals of the timeline) in which the controller disrupts, in ascending, disjoint ranges. It acts once per
    /// range.
    pub epochs: Vec<RangeInclusive<u16>>,
    /// Position of the fault's declaration in the file.
    pub span: Span,
    /// Position where the file names the command or switch.
    pub on_span: Span,
}

/// The action of a disruption, which the controller carries out.
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

/// The command or switch that a disruption disrupts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Subject<'a> {
    /// The command of the workload with this name.
    Command(&'a str),
    /// The switch with this name.
    Switch(&'a str),
}

impl Does {
    /// The words of all actions in files, in the order in which messages list them.
    pub const WORDS: [&'static str; 4] = ["pause", "kill", "stop", "restart"];

    /// The word of the action in files and reports.
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

    /// Text on how the controller ends the action, to append to the name of the command or switch.
    pub(crate) fn undone(&self) -> String {
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

    /// Whether the controller undoes the action at the end of its step.
    pub(crate) fn ends_with_step(&self) -> bool {
        let by_itself = matches!(
            self,
            Does::Restart {
                after_ns: Some(_),
                ..
            }
        );
        !by_itself && !self.is_for_good()
    }

    /// Whether the controller has nothing to do at the end of the action's step.
    #[must_use]
    pub fn is_for_good(&self) -> bool {
        matches!(
            self,
            Does::Kill { restart: false, .. } | Does::Stop { restart: false, .. }
        )
    }
}

impl fmt::Display for Does {
    /// For users: `pause primary`, `kill db, then start it again`, `restart sw after 200ms`
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
    /// For users: ``command `web` ``
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Subject::Command(name) => write!(f, "command `{name}`"),
            Subject::Switch(name) => write!(f, "switch `{name}`"),
        }
    }
}

impl Disruption {
    /// Whether the disruption is in force in the epoch with this number.
    #[must_use]
    pub fn is_in_force(&self, epoch: u16) -> bool {
        self.epochs.iter().any(|range| range.contains(&epoch))
    }

    /// Name of the host that runs the disrupted command; `None` if a switch is disrupted.
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
    /// The command of the workload with this name; `None` if there is none.
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

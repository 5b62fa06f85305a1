//! Programs of the user's, each in a host: services, and the drivers that use them.
//!
//! A command that says when it is `ready` is a service: started before the timeline begins, in the order of the file, each
//! when the one before is ready, and stopped when the last driver has ended. All others are drivers: started together once
//! the timeline has begun. The run ends when they have ended.

use serde::Serialize;

use super::Template;
use crate::expect::Measure;

/// Services and drivers, in declared order.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Commands {
    /// At least one of them is a driver.
    pub commands: Vec<Command>,
}

/// A program and where it runs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Command {
    /// Its name in metrics and messages.
    pub name: String,
    /// Host.
    pub host: String,
    /// The workload file that it stands in; none: the scenario.
    pub file: Option<String>,
    /// What is run.
    pub run: Run,
    /// When others may use it; none: it is a driver.
    pub ready: Option<Ready>,
    /// Variables of its environment, beside those of the caller.
    pub env: Vec<(String, Template)>,
    /// The folder it starts in; none: the caller's.
    pub dir: Option<Template>,
    /// Whether it may do in its host what takes privileges.
    pub root: bool,
    /// Of a driver: how often it runs.
    pub repeat: Repeat,
    /// Of a service: how it is stopped.
    pub stop: Stop,
    /// Numbers that are taken from its output.
    pub series: Vec<Series>,
}

/// A command's words.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Run {
    /// A line for `/bin/sh`.
    Line(Template),
    /// A program and its arguments.
    Words(Vec<Template>),
}

/// When a service can be used.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Ready {
    /// What tells.
    pub when: When,
    /// How long it may take.
    pub within_ns: u64,
}

/// What tells that a service can be used.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum When {
    /// That it was started.
    Started,
    /// That it accepts connections at this port.
    Tcp(u16),
    /// That a line of its output matches.
    Log(String),
    /// That a file is there.
    File(Template),
    /// That it has ended with this exit code: a preparation.
    Exit(u8),
}

/// How often a driver runs: so often or for so long, whatever comes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Repeat {
    /// So often at most.
    pub times: Option<u32>,
    /// No more once so much time has passed since the first began.
    pub for_ns: Option<u64>,
    /// Between the end of one and the start of the next.
    pub pause_ns: u64,
}

/// How a service is asked to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Stop {
    /// What it is sent.
    pub signal: Signal,
    /// When that has been without effect for so long, it is killed.
    pub within_ns: u64,
}

/// The signals that ask a program to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Signal {
    /// SIGTERM.
    Term,
    /// SIGINT.
    Int,
    /// SIGQUIT.
    Quit,
    /// SIGHUP.
    Hup,
    /// SIGKILL.
    Kill,
}

/// Numbers in a command's output.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Series {
    /// Its name in metrics.
    pub name: String,
    /// Where they stand.
    pub source: Source,
    /// What they measure.
    pub measure: Measure,
    /// What one of the declared unit is in the measure's own.
    pub factor: f64,
}

/// Where a number stands in the output.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// In the first group of every match, line by line.
    Regex(String),
    /// At this pointer (RFC 6901) of the JSON document that the standard output is, or that its last line is.
    Json(String),
}

impl Command {
    /// Whether others use it, and it ends with them.
    #[must_use]
    pub fn is_service(&self) -> bool {
        self.ready.is_some()
    }

    /// All its texts with variables.
    pub fn templates(&self) -> impl Iterator<Item = &Template> {
        let words = match &self.run {
            Run::Line(line) => std::slice::from_ref(line),
            Run::Words(words) => words,
        };
        let file = match &self.ready {
            Some(Ready {
                when: When::File(path),
                ..
            }) => Some(path),
            _ => None,
        };
        let env = self.env.iter().map(|(_, value)| value);
        words.iter().chain(env).chain(&self.dir).chain(file)
    }
}

impl Run {
    /// The same about other hosts: those that the names stand for.
    #[must_use]
    pub fn with_hosts(self, host: &impl Fn(&str) -> String) -> Run {
        let of = |template: Template| template.with_hosts(host);
        match self {
            Run::Line(line) => Run::Line(of(line)),
            Run::Words(words) => Run::Words(words.into_iter().map(of).collect()),
        }
    }
}

impl Command {
    /// The same on other hosts: those that the names stand for.
    #[must_use]
    pub fn with_hosts(mut self, host: &impl Fn(&str) -> String) -> Command {
        let of = |template: Template| template.with_hosts(host);
        self.host = host(&self.host);
        self.run = self.run.with_hosts(host);
        self.ready = self.ready.map(|ready| Ready {
            when: match ready.when {
                When::File(path) => When::File(of(path)),
                other => other,
            },
            ..ready
        });
        let env = self.env.into_iter();
        self.env = env.map(|(name, value)| (name, of(value))).collect();
        self.dir = self.dir.map(of);
        self
    }
}

impl Signal {
    /// All, with their names.
    pub const ALL: [(&'static str, Signal); 5] = [
        ("TERM", Signal::Term),
        ("INT", Signal::Int),
        ("QUIT", Signal::Quit),
        ("HUP", Signal::Hup),
        ("KILL", Signal::Kill),
    ];
}

impl Default for Repeat {
    fn default() -> Self {
        Repeat {
            times: Some(1),
            for_ns: None,
            pause_ns: 0,
        }
    }
}

impl Default for Stop {
    fn default() -> Self {
        Stop {
            signal: Signal::Term,
            within_ns: 2_000_000_000,
        }
    }
}

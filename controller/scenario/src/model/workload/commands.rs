//! Programs of the user, each on a host: services, and the drivers that use them.
//!
//! A command with `ready` is a service. Services start before the timeline begins, in the order of the file, each when
//! the previous one is ready, and stop after the last driver has exited. All other commands are drivers, which start
//! together once the timeline has begun. The run ends when all drivers have exited.

use serde::Serialize;

use super::Template;
use crate::model::expect::Measure;

/// Services and drivers, in declared order.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Commands {
    /// The commands; at least one is a driver.
    pub commands: Vec<Command>,
}

/// A program and its host.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Command {
    /// The command's name in metrics and messages.
    pub name: String,
    /// The host's name.
    pub host: String,
    /// The workload file that declares it; `None`: the scenario.
    pub file: Option<String>,
    /// The command line.
    pub run: CommandLine,
    /// When other commands may use it; `None`: the command is a driver.
    pub ready: Option<Ready>,
    /// Environment variables, in addition to those of the caller.
    pub env: Vec<(String, Template)>,
    /// Working directory; `None`: that of the caller.
    pub dir: Option<Template>,
    /// Whether the command may use privileges on its host.
    pub root: bool,
    /// For a driver: how often it runs.
    pub repeat: Repeat,
    /// For a service: how it is stopped.
    pub stop: Stop,
    /// Numbers to extract from its output.
    pub series: Vec<Series>,
}

/// A command line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CommandLine {
    /// A line for `/bin/sh`.
    Line(Template),
    /// A program and its arguments.
    Words(Vec<Template>),
}

/// When a service counts as ready.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Ready {
    /// The sign of readiness.
    pub when: When,
    /// Maximum time until it is ready, in nanoseconds.
    pub within_ns: u64,
}

/// The sign that a service is ready.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum When {
    /// The service was started.
    Started,
    /// The service accepts connections at this port.
    Tcp(u16),
    /// A line of the service's output matches this regular expression.
    Log(String),
    /// A file exists.
    File(Template),
    /// The program has exited with this code: it is a preparation.
    Exit(u8),
}

/// How often a driver runs: limited by number or by time, whichever comes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Repeat {
    /// Maximum number of runs.
    pub times: Option<u32>,
    /// Time in nanoseconds since the first run began, after which no run starts.
    pub for_ns: Option<u64>,
    /// Pause between the end of a run and the start of the next, in nanoseconds.
    pub pause_ns: u64,
}

/// How a service is stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Stop {
    /// The signal to send.
    pub signal: Signal,
    /// Time in nanoseconds after which a service that is still running is killed.
    pub within_ns: u64,
}

/// Signals that ask a program to exit.
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

/// A series of numbers in a command's output.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Series {
    /// The series' name in metrics.
    pub name: String,
    /// Position of the numbers in the output.
    pub source: SeriesSource,
    /// The measure of the numbers.
    pub measure: Measure,
    /// Factor from the declared unit to the measure's unit.
    pub factor: f64,
}

/// Position of a number in the output.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SeriesSource {
    /// The first group of every match of a regular expression, line by line.
    Regex(String),
    /// The value at this pointer (RFC 6901) in the JSON document that the standard output, or its last line, contains.
    Json(String),
}

impl Command {
    /// Whether the command is a service, which other commands use and which stops after them.
    #[must_use]
    pub fn is_service(&self) -> bool {
        self.ready.is_some()
    }

    /// All texts of the command that may contain variables.
    pub fn templates(&self) -> impl Iterator<Item = &Template> {
        let words = match &self.run {
            CommandLine::Line(line) => std::slice::from_ref(line),
            CommandLine::Words(words) => words,
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

impl CommandLine {
    /// A copy of the command line with each host name mapped by `host`.
    #[must_use]
    pub fn with_hosts(self, host: &impl Fn(&str) -> String) -> CommandLine {
        let of = |template: Template| template.with_hosts(host);
        match self {
            CommandLine::Line(line) => CommandLine::Line(of(line)),
            CommandLine::Words(words) => CommandLine::Words(words.into_iter().map(of).collect()),
        }
    }
}

impl Command {
    /// A copy of the command with each host name mapped by `host`.
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
    /// All signals, with their names.
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

impl Stop {
    /// How a service without `stop` is stopped.
    pub const DEFAULT: Stop = Stop {
        signal: Signal::Term,
        within_ns: 2_000_000_000,
    };
}

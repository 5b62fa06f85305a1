//! The user's programs, each on a host: services, and the drivers that use them.
//!
//! A command with `ready` is a service. Services start before the timeline begins, in the order of the file, each when the
//! previous one is ready, and stop after the last driver has exited. All other commands are drivers, which start together once
//! the timeline has begun. The run ends when all drivers have exited.

use serde::Serialize;

use super::Template;
use crate::model::expect::Measure;

/// The services and drivers of a workload, in declared order.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Commands {
    /// Services and drivers in declared order; at least one is a driver.
    pub commands: Vec<Command>,
}

/// A program of the user and the host that runs it: a service or a driver.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Command {
    /// The command's name in metrics and messages.
    pub name: String,
    /// Name of the host that runs the command.
    pub host: String,
    /// Name of the workload file that declares the command; `None`: the scenario declares it.
    pub file: Option<String>,
    /// The command line of the program.
    pub run: CommandLine,
    /// When the service is ready, so that other commands may start; `None`: the command is a driver.
    pub ready: Option<Ready>,
    /// Environment variables by name, in addition to those of weir's caller.
    pub env: Vec<(String, Template)>,
    /// Working directory of the program; `None`: that of weir's caller.
    pub dir: Option<Template>,
    /// Whether the command may use root's privileges on its host.
    pub root: bool,
    /// For a driver: how often it runs, and for how long.
    pub repeat: Repeat,
    /// For a service: the signal that stops it, and the time that it gets to exit.
    pub stop: Stop,
    /// Series of numbers to extract from the command's output.
    pub series: Vec<Series>,
}

/// The command line of a program, for a shell or as separate words.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CommandLine {
    /// A line that `/bin/sh` runs.
    Line(Template),
    /// A program followed by its arguments.
    Words(Vec<Template>),
}

/// When a service counts as ready, and how long that may take.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Ready {
    /// The sign by which weir recognizes that the service is ready.
    pub when: When,
    /// Maximum time from the start of the service until it is ready, in nanoseconds.
    pub within_ns: u64,
}

/// A sign by which weir recognizes that a service is ready.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum When {
    /// The process of the service was started.
    Started,
    /// The service accepts connections at this port.
    Tcp(u16),
    /// A line of the service's output matches this regular expression.
    Log(String),
    /// The file with this path exists.
    File(Template),
    /// The program has exited with this code: it is a preparation and not a lasting service.
    Exit(u8),
}

/// How often a driver runs: limited by number of runs or by time, whichever comes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Repeat {
    /// Maximum number of runs; `None`: no limit.
    pub times: Option<u32>,
    /// Time in nanoseconds since the first run began, after which no further run starts; `None`: no limit.
    pub for_ns: Option<u64>,
    /// Pause between the end of one run of the driver and the start of the next, in nanoseconds.
    pub pause_ns: u64,
}

/// How weir stops a service at the end of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Stop {
    /// The signal that asks the service to exit.
    pub signal: Signal,
    /// Time in nanoseconds after which a service that is still running is killed.
    pub within_ns: u64,
}

/// Signals that the controller can send to a program to stop it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Signal {
    /// The signal SIGTERM.
    Term,
    /// The signal SIGINT.
    Int,
    /// The signal SIGQUIT.
    Quit,
    /// The signal SIGHUP.
    Hup,
    /// The signal SIGKILL.
    Kill,
}

/// A series of numbers to extract from a command's output.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Series {
    /// The series' name in metrics.
    pub name: String,
    /// Where the numbers are in the output.
    pub source: SeriesSource,
    /// The quantity that the numbers measure, and thus their unit in metrics.
    pub measure: Measure,
    /// Factor from the unit that the file declares to the measure's base unit.
    pub factor: f64,
}

/// Where the numbers of a series are in a command's output.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SeriesSource {
    /// In the first group of every match of this regular expression, line by line.
    Regex(String),
    /// At this pointer (RFC 6901) in the JSON document that the standard output, or its last line, contains.
    Json(String),
}

impl Command {
    /// Whether the command is a service, which drivers use and which stops after them.
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
    /// The command line with each host name replaced by the result of `host`.
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
    /// The command with each host name replaced by the result of `host`.
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
    /// All signals, with their names in files.
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
    /// How a service is stopped if the file does not give `stop`.
    pub const DEFAULT: Stop = Stop {
        signal: Signal::Term,
        within_ns: 2_000_000_000,
    };
}

//! Reads the workload `commands`: programs of the user, which are services, or drivers that use them.

mod keys;
mod metrics;

use super::RawWorkload;
use crate::diagnostic::{Code, Diagnostic, Sink, Span, Spanned, enumerate_names, nearest};
use crate::file::schema::reader::{self, Fields};
use crate::file::schema::templates::{self, Reader};
use crate::file::yaml::{Entry, Kind, Node, Style};
use crate::model::workload::commands::{Command, Ready, Repeat, Signal, Stop, When};
use crate::model::workload::{Commands, Template, Workload};
use keys::{READY, REPEAT, STOP};

pub(super) use keys::COMMAND;

/// Maximum number of commands: more than a user writes by hand; each command is a process and two threads.
const MAX_COMMANDS: usize = 64;
/// Default of the time within which a service must be ready, in nanoseconds.
const READY_WITHIN_NS: u64 = 10_000_000_000;
/// Default of the time within which a preparation must be finished, in nanoseconds.
const PREPARED_WITHIN_NS: u64 = 60_000_000_000;

/// The commands that one file lists.
pub(super) struct Listed {
    pub commands: Vec<Command>,
    /// Names of the hosts that the commands name, with positions.
    pub hosts: Vec<Spanned<String>>,
    /// Names of the commands to whose folders the listed commands refer, with positions.
    pub folders: Vec<Spanned<String>>,
    /// Whether every listed command was accepted.
    pub is_whole: bool,
}

pub(super) fn read(sink: &mut Sink<'_>, node: &Node) -> Option<RawWorkload> {
    let Listed {
        commands,
        hosts,
        folders,
        is_whole,
    } = list(sink, node, &[])?;
    if is_whole {
        check_folders(sink, &folders, &commands);
        if commands.iter().all(Command::is_service) {
            report_no_driver(sink, node.span).hint(
                "leave `ready` out of the command that does the work, or add one with `run: sleep 10`",
            );
        }
    }
    Some(RawWorkload {
        workload: Workload::Commands(Commands { commands }),
        hosts,
        switches: Vec::new(),
        file: None,
    })
}

/// Reads a list of commands; `before` are the commands that were read earlier, whose names are taken.
pub(super) fn list(sink: &mut Sink<'_>, node: &Node, before: &[Command]) -> Option<Listed> {
    let items = reader::list(sink, node, "`commands`")?;
    let count = before.len() + items.len();
    if count > MAX_COMMANDS {
        let beyond = items.get(MAX_COMMANDS - before.len().min(MAX_COMMANDS));
        let message = format!("{count} commands; a workload has at most {MAX_COMMANDS}");
        let span = beyond.map_or(node.span, |node| node.span);
        sink.error(Code::Capacity, span, message);
        return None;
    }
    let errors = sink.errors();
    let mut reader = Reader::new(sink);
    let mut commands: Vec<Command> = Vec::new();
    for item in items {
        let Some((name, command)) = reader.command(item) else {
            continue;
        };
        let mut others = before.iter().chain(&commands);
        if others.any(|other| other.name == name.value) {
            let message = format!("command `{}` is declared twice", name.value);
            reader.sink.error(Code::Duplicate, name.span, message).hint(
                "give each command its own name; to run a command several times, write `repeat`",
            );
        }
        commands.push(command);
    }
    let Reader { hosts, folders, .. } = reader;
    Some(Listed {
        commands,
        hosts,
        folders,
        is_whole: sink.errors() == errors,
    })
}

/// Reports references to the folder of a command that is not declared.
pub(super) fn check_folders(
    sink: &mut Sink<'_>,
    folders: &[Spanned<String>],
    commands: &[Command],
) {
    let names = || commands.iter().map(|command| command.name.as_str());
    templates::check_folders(sink, folders, names);
}

/// Reports that no command is a driver, so that the run would never end.
pub(super) fn report_no_driver<'s>(sink: &'s mut Sink<'_>, span: Span) -> &'s mut Diagnostic {
    let message = "no command is a driver, so nothing would end the run: all commands have `ready`";
    sink.error(Code::MissingKey, span, message)
}

impl Reader<'_, '_> {
    fn command(&mut self, node: &Node) -> Option<(Spanned<String>, Command)> {
        let fields = reader::fields(self.sink, node, &COMMAND)?;
        let name = fields.name(self.sink, "name");
        let host = fields.name(self.sink, "host");
        self.hosts.extend(host.clone());
        let run = fields.read("run", |node| self.run(node));
        let ready = fields.get("ready").map(|node| self.ready(node));
        let env = fields.get("env").map(|node| self.env(node));
        let dir = fields.get("dir").map(|node| self.template(node, "`dir`"));
        let root = fields.flag(self.sink, "root");
        let repeat = self.repeat(&fields);
        let stop = fields.get("stop").map(|node| self.stop(node));
        let series = fields
            .get("metrics")
            .map(|node| metrics::read(self.sink, node));
        self.fit(&fields, ready.as_ref());
        let name = name?;
        let command = Command {
            name: name.value.clone(),
            host: host?.value,
            file: None,
            run: run?,
            // A refused `ready` still counts as one, so that the service is not taken for a driver.
            ready: match ready {
                Some(ready) => Some(ready?),
                None => None,
            },
            env: env.unwrap_or_default(),
            dir: dir.flatten(),
            root: root.unwrap_or_default(),
            repeat: repeat.unwrap_or_default(),
            stop: stop.flatten().unwrap_or(Stop::DEFAULT),
            series: series.unwrap_or_default(),
        };
        Some((name, command))
    }

    /// Refuses keys of a command that would have no effect beside its other keys.
    fn fit(&mut self, fields: &Fields<'_>, ready: Option<&Option<Ready>>) {
        let is_preparation = matches!(
            ready,
            Some(Some(Ready {
                when: When::Exit(_),
                ..
            }))
        );
        if let (Some(node), Some(_)) = (fields.get("repeat"), ready) {
            self.sink
                .error(
                    Code::OutOfRange,
                    node.span,
                    "`repeat` is only for drivers, but a command with `ready` is a service",
                )
                .hint("leave `repeat` out, or `ready`");
        }
        if let (Some(node), None) = (fields.get("stop"), ready) {
            self.sink
                .error(
                    Code::OutOfRange,
                    node.span,
                    "`stop` is only for services, but a command without `ready` is a driver",
                )
                .hint("leave `stop` out: a driver ends by itself; or add `ready`");
        }
        if let (Some(node), true) = (fields.get("stop"), is_preparation) {
            self.sink
                .error(
                    Code::OutOfRange,
                    node.span,
                    "`stop` has no effect: a command with `ready: {exit: …}` ends by itself before the run starts",
                )
                .hint("leave `stop` out");
        }
    }

    fn ready(&mut self, node: &Node) -> Option<Ready> {
        const KINDS: [&str; 4] = ["tcp", "log", "file", "exit"];
        if let Kind::Text { value, .. } = &node.kind
            && node.tag.is_none()
        {
            if value == "started" {
                return Some(Ready {
                    when: When::Started,
                    within_ns: 0,
                });
            }
            let hint = match nearest(value, KINDS.into_iter().chain(["started"])) {
                Some("started") => "did you mean `started`?".to_owned(),
                Some(kind) => format!("`{kind}` needs a value: `{{{kind}: …}}`"),
                None => "write `started`, or one of `{tcp: 80}`, `{log: REGEX}`, `{file: PATH}`, `{exit: 0}`"
                    .to_owned(),
            };
            let message = format!("`ready` cannot be `{value}`");
            self.sink
                .error(Code::UnknownVariant, node.span, message)
                .hint(hint);
            return None;
        }
        let fields = reader::fields(self.sink, node, &READY)?;
        let declared: Vec<&str> = KINDS
            .into_iter()
            .filter(|kind| fields.get(kind).is_some())
            .collect();
        let [kind] = declared[..] else {
            let message = format!(
                "`ready` needs one of {}; found {}",
                enumerate_names(KINDS),
                enumerate_names(declared.iter().copied())
            );
            self.sink
                .error(Code::WrongType, node.span, message)
                .hint("write for example `ready: {tcp: 80}`");
            return None;
        };
        let value = fields.get(kind)?;
        let when = match kind {
            "tcp" => fields
                .number(self.sink, "tcp")
                .map(|port| When::Tcp(port.value)),
            "log" => metrics::pattern(self.sink, value, "`log`").map(When::Log),
            "file" => self.template(value, "`file`").map(When::File),
            _ => fields
                .number(self.sink, "exit")
                .map(|code| When::Exit(code.value)),
        };
        let within = fields.optional_number(self.sink, "within");
        let default_ns = if kind == "exit" {
            PREPARED_WITHIN_NS
        } else {
            READY_WITHIN_NS
        };
        Some(Ready {
            when: when?,
            within_ns: within?.map_or(default_ns, |within| within.value),
        })
    }

    fn env(&mut self, node: &Node) -> Vec<(String, Template)> {
        let entries: &[Entry] = reader::map(self.sink, node, "`env`").unwrap_or_default();
        let mut variables = Vec::new();
        for entry in entries {
            let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
            if entry.key.is_empty()
                || !entry.key.chars().all(is_name)
                || entry.key.starts_with(|c: char| c.is_ascii_digit())
            {
                let message = format!("`{}` cannot be the name of a variable", entry.key);
                self.sink
                    .error(Code::OutOfRange, entry.key_span, message)
                    .hint("the name of a variable has letters, digits and `_`, and does not start with a digit");
            }
            let value = match &entry.value.kind {
                // A value that looks like a number is taken as written.
                Kind::Number { .. } | Kind::Bool(_) => {
                    Template::parse(&reader::written(self.sink, &entry.value)).ok()
                }
                _ => self.template(&entry.value, "the value of a variable"),
            };
            variables.extend(value.map(|value| (entry.key.clone(), value)));
        }
        variables
    }

    fn repeat(&mut self, command: &Fields<'_>) -> Option<Repeat> {
        let node = command.get("repeat");
        let is_number = |node: &Node| match &node.kind {
            // A parameter may be a number.
            Kind::Text { style, .. } => *style == Style::Made,
            kind => matches!(kind, Kind::Number { .. }),
        };
        let Some(node) = node.filter(|node| !is_number(node)) else {
            return Some(Repeat {
                times: Some(command.number(self.sink, "repeat")?.value),
                ..Repeat::default()
            });
        };
        let fields = reader::fields(self.sink, node, &REPEAT)?;
        let times = fields.optional_number(self.sink, "times");
        let length = fields.optional_number(self.sink, "for");
        let pause = fields.number(self.sink, "pause");
        if fields.get("times").is_none() && fields.get("for").is_none() {
            self.sink
                .error(
                    Code::MissingKey,
                    fields.span,
                    "`repeat` needs `times` or `for`",
                )
                .hint("write for example `{times: 100, pause: 10ms}`");
            return None;
        }
        Some(Repeat {
            times: times?.map(|times| times.value),
            for_ns: length?.map(|length| length.value),
            pause_ns: pause?.value,
        })
    }

    fn stop(&mut self, node: &Node) -> Option<Stop> {
        if let Kind::Text { .. } = node.kind {
            return Some(Stop {
                signal: self.signal(node)?,
                ..Stop::DEFAULT
            });
        }
        let fields = reader::fields(self.sink, node, &STOP)?;
        let signal = fields.read("signal", |node| self.signal(node));
        let within = fields.number(self.sink, "within");
        Some(Stop {
            signal: signal?,
            within_ns: within?.value,
        })
    }

    fn signal(&mut self, node: &Node) -> Option<Signal> {
        let text = reader::text(self.sink, node, "a signal")?;
        let bare = text.value.strip_prefix("SIG").unwrap_or(&text.value);
        let found = Signal::ALL.iter().find(|(name, _)| *name == bare);
        if found.is_none() {
            let names = Signal::ALL.iter().map(|(name, _)| *name);
            let message = format!("`{}` is not a signal that can stop a service", text.value);
            self.sink
                .error(Code::UnknownVariant, text.span, message)
                .hint(format!("write one of {}", enumerate_names(names)));
        }
        found.map(|(_, signal)| *signal)
    }
}

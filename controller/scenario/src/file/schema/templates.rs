//! Reads texts with variables (`{dir}`, `{host.a.ip}`), and the command lines of the user's programs, in commands and probes.

use super::reader;
use super::shape::Shape;
use crate::diagnostic::{Code, Sink, Spanned, few_names, nearest};
use crate::file::yaml::{Kind, Node, locate};
use crate::model::workload::commands::CommandLine;
use crate::model::workload::{Template, Variable};

/// The shape of a command line: a line for the shell, or a list of words.
pub(super) const RUN: Shape = Shape::Either(&[Shape::Text, Shape::List(&Shape::Text)]);

/// Reads texts with variables, and collects the hosts and commands that they name, which are resolved later.
pub(super) struct Reader<'s, 'f> {
    pub sink: &'s mut Sink<'f>,
    pub hosts: Vec<Spanned<String>>,
    /// Names of the commands to whose folders the texts refer.
    pub folders: Vec<Spanned<String>>,
}

impl<'s, 'f> Reader<'s, 'f> {
    pub fn new(sink: &'s mut Sink<'f>) -> Self {
        Reader {
            sink,
            hosts: Vec::new(),
            folders: Vec::new(),
        }
    }

    /// Reads the command line of a program; `None` if it was refused.
    pub fn run(&mut self, node: &Node) -> Option<CommandLine> {
        let Kind::List(items) = &node.kind else {
            if !matches!(node.kind, Kind::Text { .. }) {
                let wanted =
                    "`run` must be a line for the shell, or a list of a program and its arguments";
                return reader::wrong_type(self.sink, node, wanted);
            }
            let line = self.template(node, "`run`")?;
            if line.text().trim().is_empty() {
                self.sink
                    .error(Code::OutOfRange, node.span, "`run` is empty");
                return None;
            }
            return Some(CommandLine::Line(line));
        };
        let items = reader::list(self.sink, node, "`run`").unwrap_or(items);
        let words: Vec<Template> = items
            .iter()
            .filter_map(|item| self.template(item, "a word of `run`"))
            .collect();
        if items.is_empty() || words.first().is_some_and(|word| word.text().is_empty()) {
            self.sink
                .error(Code::OutOfRange, node.span, "`run` names no program")
                .hint("write for example `[curl, -s, \"http://{host.s.ip}/\"]`, or a line for the shell");
            return None;
        }
        (words.len() == items.len()).then_some(CommandLine::Words(words))
    }

    /// Reads a text with variables; `what` is its description in messages.
    pub fn template(&mut self, node: &Node, what: &str) -> Option<Template> {
        let text = reader::text(self.sink, node, what)?;
        let file = self.sink.source().text;
        match Template::parse(&text.value) {
            Ok(template) => {
                for (place, variable) in template.variables() {
                    let span = locate(file, node, place.start, place.end);
                    match variable {
                        Variable::Ip(host) | Variable::Name(host) => {
                            self.hosts.push(Spanned::new(host.clone(), span));
                        }
                        Variable::DirOf(command) => {
                            self.folders.push(Spanned::new(command.clone(), span));
                        }
                        Variable::Dir | Variable::Here | Variable::Number => {}
                    }
                }
                Some(template)
            }
            Err(error) => {
                let place = locate(file, node, error.place.start, error.place.end);
                self.sink
                    .error(Code::UnknownName, place, error.to_string())
                    .hint("variables are `{host.NAME.ip}`, `{host.NAME.name}`, `{dir}`, `{dir.COMMAND}`, `{here}` and `{n}`");
                None
            }
        }
    }
}

/// Refuses references to the folder of a command that is not declared.
pub(crate) fn check_folders<'c, I>(
    sink: &mut Sink<'_>,
    folders: &[Spanned<String>],
    commands: impl Fn() -> I,
) where
    I: Iterator<Item = &'c str> + Clone,
{
    for folder in folders {
        if commands().any(|name| name == folder.value) {
            continue;
        }
        let hint = match (nearest(&folder.value, commands()), commands().next()) {
            (Some(near), _) => format!("did you mean `{near}`?"),
            (None, Some(_)) => format!("declared: {}", few_names(commands())),
            (None, None) => "the workload has no commands".to_owned(),
        };
        let message = format!("no command is called `{}`", folder.value);
        sink.error(Code::UnknownName, folder.span, message)
            .hint(hint);
    }
}

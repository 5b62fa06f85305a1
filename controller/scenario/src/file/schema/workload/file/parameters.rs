//! Replaces the parameters of a workload file: `{NAME}` in its texts becomes the parameter's value.
//!
//! They are replaced as text before anything else reads the file, so `"{port}"` may replace a number. As with variables, a
//! brace after `$` or `%` belongs to another program.

use std::collections::BTreeMap;

use crate::diagnostic::{Code, Sink, Source, Span, Spanned, unknown};
use crate::file::schema::reader;
use crate::file::yaml::{Entry, Kind, Node, Style};

const MAX_PARAMETERS: usize = 64;
/// Maximum length of a parameter's value, in characters.
const MAX_VALUE: usize = 4096;
/// Maximum size of all texts after parameters were replaced, in bytes: a text may contain one parameter many times.
const MAX_FILLED: usize = 1 << 20;
/// Names of the variables that every text may use; no parameter may have one of these names.
const TAKEN: [&str; 3] = ["dir", "here", "n"];

/// The parameters of a workload file, with their values.
pub(super) struct Parameters {
    by_name: BTreeMap<String, Parameter>,
    /// Number of bytes of all texts in which parameters were replaced so far.
    filled: usize,
    is_full: bool,
}

struct Parameter {
    declared: Span,
    is_number: bool,
    /// The parameter's value as text.
    written: String,
    is_used: bool,
}

impl Parameters {
    /// Reads the parameters that the workload file declares, with their default values.
    pub fn declared(file: &mut Sink<'_>, node: Option<&Node>) -> Option<Parameters> {
        let entries: &[Entry] = match node {
            Some(node) => reader::map(file, node, "`parameters`")?,
            None => &[],
        };
        if let Some(beyond) = entries.get(MAX_PARAMETERS) {
            let message = format!(
                "{} parameters; a workload file has at most {MAX_PARAMETERS}",
                entries.len()
            );
            file.error(Code::Capacity, beyond.key_span, message);
            return None;
        }
        let mut by_name = BTreeMap::new();
        for entry in entries {
            let is_good = reader::check_name(file, &entry.key, entry.key_span, "a parameter");
            if TAKEN.contains(&entry.key.as_str()) {
                let message = format!("`{{{}}}` is a built-in variable", entry.key);
                file.error(Code::Duplicate, entry.key_span, message)
                    .hint("give the parameter another name");
                continue;
            }
            let Some((is_number, written)) = value(file, &entry.value) else {
                continue;
            };
            if is_good {
                let parameter = Parameter {
                    declared: entry.key_span,
                    is_number,
                    written,
                    is_used: false,
                };
                by_name.insert(entry.key.clone(), parameter);
            }
        }
        (by_name.len() == entries.len()).then_some(Parameters {
            by_name,
            filled: 0,
            is_full: false,
        })
    }

    /// Sets the parameters to the values that the scenario assigns.
    pub fn set(&mut self, sink: &mut Sink<'_>, file: Source<'_>, node: Option<&Node>) {
        let entries: &[Entry] = node
            .and_then(|node| reader::map(sink, node, "`with`"))
            .unwrap_or_default();
        for entry in entries {
            let Some(parameter) = self.by_name.get_mut(&entry.key) else {
                let name = Spanned::new(entry.key.clone(), entry.key_span);
                let names = self.by_name.keys().map(String::as_str);
                unknown(sink, "parameter of the workload file", &name, names);
                continue;
            };
            let Some((is_number, written)) = value(sink, &entry.value) else {
                continue;
            };
            if parameter.is_number && !is_number {
                let message = format!(
                    "parameter `{}` must be a number; found {}",
                    entry.key,
                    entry.value.describe()
                );
                let default = format!("its default is {}", parameter.written);
                sink.error(Code::WrongType, entry.value.span, message)
                    .related(&file, parameter.declared, default);
                continue;
            }
            parameter.written = written;
        }
    }

    /// A copy of a node in whose texts the parameters are replaced by their values. `None` if an error was reported.
    pub fn fill(&mut self, file: &mut Sink<'_>, node: &Node) -> Option<Node> {
        let errors = file.errors();
        let mut node = node.clone();
        self.fill_in(file, &mut node);
        (file.errors() == errors).then_some(node)
    }

    fn fill_in(&mut self, file: &mut Sink<'_>, node: &mut Node) {
        match &mut node.kind {
            Kind::List(items) => items.iter_mut().for_each(|item| self.fill_in(file, item)),
            Kind::Map(entries) => {
                // In YAML, `{requests}` without quotes is a mapping with a key and no value.
                if let [entry] = &entries[..]
                    && entry.value.kind == Kind::Null
                    && self.by_name.contains_key(&entry.key)
                {
                    let message =
                        format!("YAML reads `{{{}}}` without quotes as a mapping", entry.key);
                    file.error(Code::WrongType, node.span, message)
                        .hint(format!(
                            "write the parameter in quotes: `\"{{{}}}\"`",
                            entry.key
                        ));
                    return;
                }
                for entry in entries {
                    self.fill_in(file, &mut entry.value);
                }
            }
            Kind::Text { value, .. } => {
                if let Some(value) = self.within(value) {
                    let style = Style::Made;
                    node.kind = Kind::Text { value, style };
                }
                if self.filled > MAX_FILLED && !self.is_full {
                    self.is_full = true;
                    let message = format!(
                        "with all parameters filled in, the texts of this file are longer than {MAX_FILLED} bytes"
                    );
                    file.error(Code::Capacity, node.span, message);
                }
            }
            Kind::Null | Kind::Bool(_) | Kind::Number { .. } => {}
        }
    }

    /// A text in which parameters are replaced by their values; `None` if the text contains no parameter.
    fn within(&mut self, text: &str) -> Option<String> {
        if self.is_full {
            return None;
        }
        let mut filled = String::new();
        let (mut copied, mut at) = (0, 0);
        while let Some(open) = text[at..].find('{').map(|open| at + open) {
            at = open + 1;
            let Some(close) = text[at..].find(['{', '}']).map(|close| at + close) else {
                break;
            };
            if text[close..].starts_with('{') || text[..open].ends_with(['$', '%']) {
                continue;
            }
            if let Some(parameter) = self.by_name.get_mut(&text[at..close]) {
                parameter.is_used = true;
                filled.push_str(&text[copied..open]);
                filled.push_str(&parameter.written);
                at = close + 1;
                copied = at;
            }
        }
        if copied == 0 {
            return None;
        }
        filled.push_str(&text[copied..]);
        self.filled += filled.len();
        Some(filled)
    }

    /// Reports parameters that no text of the workload file contains.
    pub fn check_used(&self, file: &mut Sink<'_>) {
        for (name, parameter) in self.by_name.iter().filter(|(_, of)| !of.is_used) {
            let message = format!("no command and no probe uses parameter `{{{name}}}`");
            file.error(Code::UnknownName, parameter.declared, message)
                .hint("leave the parameter out");
        }
    }
}

/// Reads the value of a parameter: whether it is a number, and its text.
fn value(sink: &mut Sink<'_>, node: &Node) -> Option<(bool, String)> {
    let (is_number, written) = match &node.kind {
        Kind::Text { value, .. } if node.tag.is_none() => (false, value.clone()),
        Kind::Number { .. } if node.tag.is_none() => (true, reader::written(sink, node)),
        _ => return reader::wrong_type(sink, node, "a parameter must be a number or text"),
    };
    if written.chars().count() > MAX_VALUE {
        let message = format!("the value of a parameter has at most {MAX_VALUE} characters");
        sink.error(Code::Capacity, node.span, message);
        return None;
    }
    Some((is_number, written))
}

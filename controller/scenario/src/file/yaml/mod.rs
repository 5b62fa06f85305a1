//! Parses YAML text into a tree in which every value has a position.
//!
//! Two readers parse the same text. `serde_yaml` determines the type of each scalar, because users know its typing of
//! plain scalars; `saphyr-parser` provides positions, because serde's errors have none inside tagged values and sequences
//! of them. Both are used only in this module, since `serde_yaml` is frozen upstream.

mod marked;
mod scalar;

use crate::diagnostic::{Code, Sink, Span, is_obeyed};

pub use scalar::locate;

/// Maximum nesting depth of a file; deeper nesting could overflow the stack of the two YAML readers.
const MAX_DEPTH: usize = 64;
/// Maximum number of YAML values after aliases are expanded, which stops files that expand without limit.
const MAX_NODES: usize = 100_000;

/// A value of the YAML tree, with its position in the file.
#[derive(Debug, Clone, PartialEq)]
pub struct Node {
    /// Span of the value in the file, without the value's tag.
    pub span: Span,
    /// The name of the tag in front of the value, `tag` in `!tag`; `None` if there is none.
    pub tag: Option<String>,
    /// The type and content of the value.
    pub kind: Kind,
}

/// The type and content of a YAML value.
#[derive(Debug, Clone, PartialEq)]
pub enum Kind {
    /// No value: `~`, `null` or an empty text.
    Null,
    /// A boolean: `true` or `false`.
    Bool(bool),
    /// A number, with or without a fraction.
    Number {
        /// The number's value.
        value: f64,
        /// The number's value if it is an integer; otherwise `None`.
        integer: Option<i128>,
    },
    /// Any scalar that is not null, a boolean or a number.
    Text {
        /// The text without quotes and with escapes decoded.
        value: String,
        /// The style in which the file writes the scalar, which is needed to find positions inside it.
        style: Style,
    },
    /// A YAML sequence, with its elements.
    List(Vec<Node>),
    /// A mapping, with its entries in the order of the file.
    Map(Vec<Entry>),
}

/// The style in which a file writes a scalar.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Style {
    /// Without quotes, on one or several lines.
    Plain,
    /// In single quotes: `'…'`
    Single,
    /// In double quotes: `"…"`
    Double,
    /// As a block: `|` or `>`
    Block,
    /// Not in the file: weir composed the text, for example from a parameter.
    Made,
}

/// A key of a mapping, with its value.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// The key as text.
    pub key: String,
    /// Position of the key.
    pub key_span: Span,
    /// The value at the key.
    pub value: Node,
}

impl Node {
    /// The value at a key; `None` if the node is no mapping or does not have the key.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&Node> {
        match &self.kind {
            Kind::Map(entries) => entries
                .iter()
                .find(|entry| entry.key == key)
                .map(|entry| &entry.value),
            _ => None,
        }
    }

    /// A description of the value's type for messages: `a list`.
    #[must_use]
    pub fn describe(&self) -> String {
        match &self.kind {
            Kind::Null => "nothing".to_owned(),
            Kind::Bool(value) => format!("the boolean `{value}`"),
            Kind::Number { value, .. } => format!("the number {value}"),
            Kind::Text { value, .. } => format!("the text `{value}`"),
            Kind::List(_) => "a list".to_owned(),
            Kind::Map(_) => "a mapping".to_owned(),
        }
    }

    /// For every node below this node, in document order: its path (`faults[1].select.every`) and its position.
    #[must_use]
    pub fn paths(&self) -> Vec<(String, Span)> {
        let mut found = Vec::new();
        self.collect_paths(String::new(), &mut found);
        found
    }

    fn collect_paths(&self, path: String, found: &mut Vec<(String, Span)>) {
        match &self.kind {
            Kind::List(items) => {
                for (i, item) in items.iter().enumerate() {
                    item.collect_paths(format!("{path}[{i}]"), found);
                }
            }
            Kind::Map(entries) => {
                for Entry { key, value, .. } in entries {
                    let dot = if path.is_empty() { "" } else { "." };
                    value.collect_paths(format!("{path}{dot}{key}"), found);
                }
            }
            _ => found.push((path, self.span)),
        }
    }
}

/// Parses the YAML document in the sink's file. `None` if an error was reported.
pub fn parse(sink: &mut Sink<'_>) -> Option<Node> {
    let text = sink.source().text;
    if let Some((start, c)) = text.char_indices().find(|(_, c)| !is_printable(*c)) {
        let end = start + c.len_utf8();
        let message = format!(
            "a file holds no control characters, and this is U+{:04X}",
            u32::from(c)
        );
        sink.error(Code::Syntax, Span { start, end }, message)
            .hint("leave it out");
        return None;
    }
    let mut root = marked::parse(sink)?;
    refuse_large_integers(sink, &root);
    if sink.has_errors() {
        return None;
    }
    match serde_yaml::from_str::<serde_yaml::Value>(text) {
        Ok(value) => assign_types(sink, &mut root, &value),
        Err(error) => {
            let start = error.location().map_or(0, |location| location.index());
            sink.error(
                Code::Syntax,
                Span { start, end: start },
                strip_location(&error.to_string()),
            );
        }
    }
    refuse_controls(sink, &root);
    (!sink.has_errors()).then_some(root)
}

/// Reports control characters, which would act on a terminal instead of being shown. Escapes in double quotes can produce them,
/// and weir prints a file's texts unchanged in tables, plans, pages and generated P4.
fn refuse_controls(sink: &mut Sink<'_>, node: &Node) {
    match &node.kind {
        Kind::Text { value, .. } => {
            if let Some(c) = value.chars().find(|c| is_obeyed(*c)) {
                let message = format!(
                    "text holds no control characters, and this has U+{:04X}",
                    u32::from(c)
                );
                sink.error(Code::Syntax, node.span, message)
                    .hint("leave it out");
            }
        }
        Kind::List(items) => items.iter().for_each(|item| refuse_controls(sink, item)),
        // Keys are schema keys or names, which contain no such character.
        Kind::Map(entries) => entries
            .iter()
            .for_each(|entry| refuse_controls(sink, &entry.value)),
        Kind::Null | Kind::Bool(_) | Kind::Number { .. } => {}
    }
}

/// Reports integers that exceed weir's types; serde_yaml's own error would name its Rust types.
fn refuse_large_integers(sink: &mut Sink<'_>, node: &Node) {
    match &node.kind {
        Kind::List(items) => items
            .iter()
            .for_each(|item| refuse_large_integers(sink, item)),
        Kind::Map(entries) => entries
            .iter()
            .for_each(|entry| refuse_large_integers(sink, &entry.value)),
        Kind::Text {
            value,
            style: Style::Plain,
        } => {
            let digits = value.trim_start_matches(['-', '+']);
            let is_integer = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
            let fits = value.parse::<u64>().is_ok() || value.parse::<i64>().is_ok();
            if is_integer && !fits {
                let most = u64::MAX;
                let message = format!("a whole number is at most {most}; found {value}");
                sink.error(Code::OutOfRange, node.span, message);
            }
        }
        _ => {}
    }
}

/// Whether YAML permits a character in a text (YAML 1.2.2, section 5.1).
fn is_printable(c: char) -> bool {
    matches!(c, '\t' | '\n' | '\r' | ' '..='~' | '\u{85}' | '\u{a0}'..='\u{fffd}' | '\u{10000}'..)
}

/// Gives each scalar of the tree from saphyr the type that serde_yaml read at the same path.
fn assign_types(sink: &mut Sink<'_>, node: &mut Node, value: &serde_yaml::Value) {
    use serde_yaml::Value;
    let value = match value {
        Value::Tagged(tagged) => &tagged.value,
        other => other,
    };
    match (&mut node.kind, value) {
        (Kind::List(items), Value::Sequence(values)) if items.len() == values.len() => {
            for (item, value) in items.iter_mut().zip(values) {
                assign_types(sink, item, value);
            }
        }
        (Kind::Map(entries), Value::Mapping(values)) if entries.len() == values.len() => {
            for (entry, (_, value)) in entries.iter_mut().zip(values) {
                assign_types(sink, &mut entry.value, value);
            }
        }
        (Kind::Text { .. }, Value::String(_)) => {}
        (kind @ Kind::Text { .. }, Value::Null) => *kind = Kind::Null,
        (kind @ Kind::Text { .. }, Value::Bool(value)) => *kind = Kind::Bool(*value),
        (kind @ Kind::Text { .. }, Value::Number(number)) => {
            let integer = number
                .as_u64()
                .map(i128::from)
                .or_else(|| number.as_i64().map(i128::from));
            *kind = Kind::Number {
                value: number.as_f64().unwrap_or(f64::NAN),
                integer,
            };
        }
        _ => {
            sink.error(
                Code::Syntax,
                node.span,
                "weir cannot read this YAML; put quotes around the value, or write it on lines of its own",
            );
        }
    }
}

/// Removes the position (" at line 3 column 4") from a message of serde_yaml, since the diagnostic has it.
fn strip_location(message: &str) -> &str {
    message.split(" at line ").next().unwrap_or(message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diagnostic::Source;

    fn tree(text: &str) -> Node {
        let mut sink = Sink::new(Source { file: "t", text });
        parse(&mut sink).unwrap_or_else(|| panic!("{}", sink.into_diagnostics()))
    }

    fn errors(text: &str) -> String {
        let mut sink = Sink::new(Source { file: "t", text });
        assert_eq!(parse(&mut sink), None);
        sink.into_diagnostics().to_string()
    }

    #[test]
    fn every_path_has_its_span() {
        let text =
            "a:\n  - !drop {x: 1}\n  - !delay 'twenty'\nä: \"é\"\nlast: |\n  block\n  text\n";
        let found: Vec<_> = tree(text)
            .paths()
            .into_iter()
            .map(|(path, span)| (path, &text[span.start..span.end]))
            .collect();
        assert_eq!(found[0], ("a[0].x".to_owned(), "1"));
        assert_eq!(found[1], ("a[1]".to_owned(), "'twenty'"));
        assert_eq!(found[2], ("ä".to_owned(), "\"é\""));
        assert_eq!(found[3].0, "last");
        assert_eq!(found[3].1, "block\n  text");
    }

    #[test]
    fn a_control_character_is_shown_where_it_stands() {
        for text in [
            "a: 1\nb: x\x1bx\n",
            "a: 1\nb: \"\x07\"\n",
            "a: 1\n# é\x7f\n",
        ] {
            let told = errors(text);
            let line = text.lines().nth(1).unwrap();
            let column = 1 + line.chars().position(char::is_control).unwrap();
            assert!(
                told.starts_with(&format!("t:2:{column}: [syntax]")),
                "{told}"
            );
        }
    }

    #[test]
    fn no_text_holds_what_a_terminal_obeys() {
        for (text, place) in [
            ("a: 1\nb: {c: [\"SET \\e]0;x\\a k\"]}\n", "t:2:9: [syntax]"),
            ("a: 1\nb: \"\\x9b2J\"\n", "t:2:4: [syntax]"),
            ("a: 1\nb: \u{202e}x\n", "t:2:4: [syntax]"),
            ("a: 1\nb: \"\\r\"\n", "t:2:4: [syntax]"),
        ] {
            let told = errors(text);
            assert!(told.starts_with(place), "{told}");
        }
        tree("a: |\n  several\n  lines\nb: \"and\\ta tab\"\n# \u{202e}\n");
    }

    #[test]
    fn scalars_have_yaml_types() {
        let root = tree("[1, 1.5, x, ~, true, '1', !every 5, 0x10]");
        let Kind::List(items) = root.kind else {
            panic!()
        };
        let described: Vec<_> = items.iter().map(Node::describe).collect();
        assert_eq!(
            described,
            [
                "the number 1",
                "the number 1.5",
                "the text `x`",
                "nothing",
                "the boolean `true`",
                "the text `1`",
                "the number 5",
                "the number 16"
            ]
        );
        assert_eq!(items[6].tag.as_deref(), Some("every"));
    }

    #[test]
    fn aliases_are_expanded_in_place() {
        let root = tree("a: &x {k: 1}\nb: *x\n");
        assert_eq!(
            root.get("b").and_then(|b| b.get("k")).map(Node::describe),
            Some("the number 1".into())
        );
    }

    #[test]
    fn duplicates_bombs_and_depth_are_refused() {
        assert_eq!(
            errors("a: 1\nb: 2\na: 3\n"),
            "t:3:1: [duplicate] key `a` is given twice (the first is in line 1)"
        );
        let bomb = "a: &a [x,x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b,*b]\nd: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c,*c]\ne: [*d,*d,*d,*d,*d,*d,*d,*d,*d,*d]\n";
        assert!(
            errors(bomb).contains("expands to more than"),
            "{}",
            errors(bomb)
        );
        let deep = errors(&"[".repeat(100));
        assert!(deep.contains("nested"), "{deep}");
        assert!(errors("a: [1\nb: 2\n").contains("[syntax]"));
        assert!(errors("a: 1\n---\nb: 1\n").contains("one document"));
    }

    proptest::proptest! {
        #[test]
        fn never_panics(text in "[-a-c:\\[\\]{}!&*|>'\"# \n\\\\,?%~0-9é]{0,60}") {
            let mut sink = Sink::new(Source { file: "t", text: &text });
            let found = parse(&mut sink);
            proptest::prop_assert!(found.is_some() || sink.has_errors());
        }
    }
}

//! Builds a tree of nodes with spans from saphyr's events. All scalars are text here; types are assigned later.

use std::collections::{BTreeMap, HashMap};

use saphyr_parser::{Event, Marker, Parser, ScalarStyle, Tag};

use super::{Entry, Kind, MAX_DEPTH, MAX_NODES, Node, Style};
use crate::diagnostic::{Code, Sink, Span};

/// Reads the YAML document. `None` if the tree is incomplete; the errors are then in the sink.
pub(super) fn parse(sink: &mut Sink<'_>) -> Option<Node> {
    let text = sink.source().text;
    let mut builder = Builder {
        offsets: text
            .char_indices()
            .map(|(byte, _)| byte)
            .chain([text.len()])
            .collect(),
        text,
        open: Vec::new(),
        anchors: BTreeMap::new(),
        nodes: 0,
        root: None,
    };
    for event in Parser::new_from_str(text) {
        match event {
            Ok((event, span)) => {
                let span = Span {
                    start: builder.byte(span.start),
                    end: builder.byte(span.end),
                };
                builder.event(sink, event, span)?;
            }
            Err(error) => {
                let at = builder.byte(*error.marker());
                sink.error(Code::Syntax, Span { start: at, end: at }, error.info());
                return None;
            }
        }
    }
    if builder.root.is_none() {
        sink.error(Code::Syntax, Span::default(), "the file is empty")
            .hint("start with `weir: 1`");
    }
    builder.root
}

/// A list or mapping whose end has not been read yet.
struct Open {
    start: usize,
    anchor: usize,
    tag: Option<String>,
    items: Items,
}

enum Items {
    List(Vec<Node>),
    Map {
        entries: Vec<Entry>,
        key: Option<(String, Span)>,
        /// For each key of the mapping: where the key starts in the file, as a byte offset.
        keys: HashMap<String, usize>,
    },
}

struct Builder<'a> {
    text: &'a str,
    /// Byte offset of each character of the text, because saphyr counts characters.
    offsets: Vec<usize>,
    open: Vec<Open>,
    anchors: BTreeMap<usize, Node>,
    nodes: usize,
    root: Option<Node>,
}

impl Builder<'_> {
    fn byte(&self, marker: Marker) -> usize {
        self.offsets
            .get(marker.index())
            .copied()
            .unwrap_or(self.text.len())
    }

    fn event(&mut self, sink: &mut Sink<'_>, event: Event<'_>, span: Span) -> Option<()> {
        match event {
            Event::Scalar(value, style, anchor, tag) => {
                let style = match style {
                    ScalarStyle::Plain => Style::Plain,
                    ScalarStyle::SingleQuoted => Style::Single,
                    ScalarStyle::DoubleQuoted => Style::Double,
                    ScalarStyle::Literal | ScalarStyle::Folded => Style::Block,
                };
                let kind = Kind::Text {
                    value: value.into_owned(),
                    style,
                };
                let tag = name_of(tag.as_deref());
                self.finish(
                    sink,
                    Node {
                        span: self.trim(span, style),
                        tag,
                        kind,
                    },
                    anchor,
                )
            }
            Event::SequenceStart(anchor, tag) => {
                self.open(sink, span, anchor, tag.as_deref(), Items::List(Vec::new()))
            }
            Event::MappingStart(anchor, tag) => {
                let items = Items::Map {
                    entries: Vec::new(),
                    key: None,
                    keys: HashMap::new(),
                };
                self.open(sink, span, anchor, tag.as_deref(), items)
            }
            Event::SequenceEnd | Event::MappingEnd => {
                let Open {
                    start,
                    anchor,
                    tag,
                    items,
                } = self.open.pop()?;
                let kind = match items {
                    Items::List(items) => Kind::List(items),
                    Items::Map { entries, .. } => Kind::Map(entries),
                };
                let span = self.trim(
                    Span {
                        start,
                        end: span.end.max(start),
                    },
                    Style::Plain,
                );
                self.finish(sink, Node { span, tag, kind }, anchor)
            }
            Event::Alias(anchor) => {
                let Some(target) = self.anchors.get(&anchor) else {
                    sink.error(
                        Code::Syntax,
                        span,
                        "this alias is inside the node that it names",
                    );
                    return None;
                };
                let mut node = target.clone();
                self.nodes += count(&node);
                // An error in an aliased scalar is shown at its definition; an error in an aliased collection is shown
                // where it is used.
                if matches!(node.kind, Kind::List(_) | Kind::Map(_)) {
                    node.span = span;
                }
                self.finish(sink, node, 0)
            }
            Event::DocumentStart(_) if self.root.is_some() => {
                sink.error(
                    Code::Syntax,
                    span,
                    "a scenario is one document; a second one starts here",
                );
                None
            }
            _ => Some(()),
        }
    }

    fn open(
        &mut self,
        sink: &mut Sink<'_>,
        span: Span,
        anchor: usize,
        tag: Option<&Tag>,
        items: Items,
    ) -> Option<()> {
        if self.open.len() == MAX_DEPTH {
            sink.error(
                Code::Syntax,
                span,
                format!("nested more than {MAX_DEPTH} levels deep"),
            );
            return None;
        }
        self.open.push(Open {
            start: span.start,
            anchor,
            tag: name_of(tag),
            items,
        });
        Some(())
    }

    /// Adds a complete node to the list or mapping that contains it.
    fn finish(&mut self, sink: &mut Sink<'_>, node: Node, anchor: usize) -> Option<()> {
        self.nodes += 1;
        if self.nodes > MAX_NODES {
            sink.error(
                Code::Syntax,
                node.span,
                format!("the document expands to more than {MAX_NODES} values"),
            );
            return None;
        }
        if anchor != 0 {
            self.anchors.insert(anchor, node.clone());
        }
        match self.open.last_mut().map(|open| &mut open.items) {
            None => self.root = Some(node),
            Some(Items::List(items)) => items.push(node),
            Some(Items::Map { entries, key, keys }) => match key.take() {
                Some((key, key_span)) => entries.push(Entry {
                    key,
                    key_span,
                    value: node,
                }),
                None => {
                    let Kind::Text { value, .. } = node.kind else {
                        sink.error(
                            Code::Syntax,
                            node.span,
                            "a key is a single word here, not a collection",
                        );
                        return None;
                    };
                    if let Some(first) = keys.insert(value.clone(), node.span.start) {
                        let (line, _) = sink.source().position(first);
                        sink.error(
                            Code::Duplicate,
                            node.span,
                            format!("key `{value}` is given twice"),
                        )
                        .hint(format!("the first is in line {line}"));
                    }
                    *key = Some((value, node.span));
                }
            },
        }
        Some(())
    }

    /// The part of a span that belongs to the value. For saphyr, a scalar with a tag or anchor begins at the tag, and a block
    /// ends after the line breaks and comments that follow it.
    fn trim(&self, span: Span, style: Style) -> Span {
        let mut text = self.text.get(span.start..span.end).unwrap_or("");
        while text.starts_with(['!', '&']) {
            let property = text.find(char::is_whitespace).unwrap_or(text.len());
            text = text[property..].trim_start();
        }
        let start = span.end - text.len();
        let quoted = matches!(style, Style::Single | Style::Double);
        Span {
            start,
            end: if quoted {
                span.end
            } else {
                start + text.trim_end().len()
            },
        }
    }
}

fn count(node: &Node) -> usize {
    1 + match &node.kind {
        Kind::List(items) => items.iter().map(count).sum(),
        Kind::Map(entries) => entries.iter().map(|entry| count(&entry.value)).sum(),
        _ => 0,
    }
}

/// The tag's name, `name` in `!name`; `None` for tags of the core schema (`!!str`), which only affect typing.
fn name_of(tag: Option<&Tag>) -> Option<String> {
    tag.filter(|tag| !tag.is_yaml_core_schema())
        .map(|tag| tag.suffix.clone())
}

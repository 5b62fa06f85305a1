//! Reads NetworkX's node-link JSON, as `node_link_data` writes it: `nodes`, and `links` or, since NetworkX 3.4, `edges`.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::assemble::assemble;
use super::graph::{Attribute, Attributes, Edge, Graph, Node};
use super::{ImportError, ImportErrorKind, Imported, MAX_BYTES, Options};

/// Fields of a JSON object by name; values are kept as raw text, so that their positions are known.
type Fields<'t> = BTreeMap<Cow<'t, str>, &'t RawValue>;

#[derive(Deserialize)]
struct File<'t> {
    #[serde(default)]
    directed: bool,
    #[serde(borrow, default)]
    graph: Option<&'t RawValue>,
    #[serde(borrow)]
    nodes: Vec<&'t RawValue>,
    #[serde(borrow)]
    links: Option<Vec<&'t RawValue>>,
    #[serde(borrow)]
    edges: Option<Vec<&'t RawValue>>,
}

/// Reads a node-link JSON file.
///
/// # Errors
///
/// If the file is invalid, with line and column.
pub fn read(text: &str, options: &Options) -> Result<Imported, ImportError> {
    if text.len() > MAX_BYTES {
        let kind = ImportErrorKind::TooLarge {
            count: text.len(),
            what: "bytes",
            most: MAX_BYTES,
        };
        return Err(kind.at(text, 0));
    }
    let file = serde_json::from_str(text).map_err(|error| syntax(&error, text, 0))?;
    assemble(&graph(text, &file)?, options)
}

/// Syntax error in a part of the file's text that starts at byte `start`.
fn syntax(error: &serde_json::Error, text: &str, start: usize) -> ImportError {
    let whole = error.to_string();
    // The message ends with the position.
    let message = whole
        .rfind(" at line ")
        .map_or(&*whole, |end| &whole[..end]);
    let lines = text[start..].split_inclusive('\n');
    let before: usize = lines
        .take(error.line().saturating_sub(1))
        .map(str::len)
        .sum();
    let mut offset = (start + before + error.column().saturating_sub(1)).min(text.len());
    while !text.is_char_boundary(offset) {
        offset -= 1;
    }
    ImportErrorKind::Syntax(message.to_owned()).at(text, offset)
}

fn graph<'t>(text: &'t str, file: &File<'t>) -> Result<Graph<'t>, ImportError> {
    let edges = match (&file.links, &file.edges) {
        (Some(edges), None) | (None, Some(edges)) => edges,
        (None, None) => {
            return Err(structure("the file has neither `links` nor `edges`").at(text, 0));
        }
        (Some(_), Some(edges)) => {
            let at = edges.first().map_or(0, |edge| offset(text, edge));
            return Err(structure("the file has both `links` and `edges`").at(text, at));
        }
    };
    let mut read = Graph {
        text,
        attributes: Attributes::default(),
        nodes: Vec::with_capacity(file.nodes.len()),
        edges: Vec::with_capacity(edges.len()),
    };
    if let Some(graph) = file.graph {
        // NetworkX 1 wrote a list of pairs instead.
        let fields = serde_json::from_str(graph.get()).unwrap_or_default();
        read.attributes = attributes(text, &fields);
    }
    for node in &file.nodes {
        let fields = fields(text, node)?;
        let attributes = attributes(text, &fields);
        let label = ["label", "name"].iter().find_map(|n| attributes.find(n));
        read.nodes.push(Node {
            id: needed(text, node, &fields, "a node", "id")?.0,
            label: label.map(|label| label.value.clone()),
            attributes,
            at: offset(text, node),
        });
    }
    for edge in edges {
        let fields = fields(text, edge)?;
        let end = |name| needed(text, edge, &fields, "an edge", name);
        read.edges.push(Edge {
            ends: [end("source")?, end("target")?],
            is_directed: file.directed,
            attributes: attributes(text, &fields),
            at: offset(text, edge),
        });
    }
    Ok(read)
}

fn structure(message: &str) -> ImportErrorKind {
    ImportErrorKind::Structure(message.to_owned())
}

/// Byte offset in the file's text of a part that was borrowed from it.
fn offset(text: &str, part: &RawValue) -> usize {
    (part.get().as_ptr() as usize).saturating_sub(text.as_ptr() as usize)
}

fn fields<'t>(text: &str, value: &'t RawValue) -> Result<Fields<'t>, ImportError> {
    let start = offset(text, value);
    serde_json::from_str(value.get()).map_err(|error| syntax(&error, text, start))
}

/// Attributes from all fields of a JSON object whose values are texts, numbers or Booleans.
fn attributes(text: &str, fields: &Fields<'_>) -> Attributes {
    let mut attributes = Attributes::default();
    for (name, value) in fields {
        if let Some(said) = scalar(value) {
            let at = offset(text, value);
            attributes.insert(name.to_string(), Attribute { value: said, at });
        }
    }
    attributes
}

fn scalar(value: &RawValue) -> Option<String> {
    let written = value.get();
    match written.as_bytes().first()? {
        b'"' => serde_json::from_str(written).ok(),
        b'[' | b'{' | b'n' => None,
        _ => Some(written.to_owned()),
    }
}

/// The required field `name` as an identifier, and its byte offset in the text; an error if it is missing.
fn needed(
    text: &str,
    owner: &RawValue,
    fields: &Fields<'_>,
    what: &str,
    name: &str,
) -> Result<(String, usize), ImportError> {
    let Some(value) = fields.get(name) else {
        let message = format!("{what} has no `{name}`");
        return Err(structure(&message).at(text, offset(text, owner)));
    };
    let at = offset(text, value);
    match scalar(value) {
        Some(id) => Ok((id, at)),
        None => {
            let message = format!("`{name}` of {what} is neither text nor a number");
            Err(structure(&message).at(text, at))
        }
    }
}

//! Reads GraphML files, as the Topology Zoo, NetworkX and yEd write them.
//!
//! Reads `key`, one `graph`, `node`, `edge` and `data`, and labels in yEd's graphics. Refuses hyperedges, graphs inside nodes,
//! and document types, hence entities. Ignores ports and everything else.

use std::collections::BTreeMap;

use roxmltree::{Document, Node as Element, ParsingOptions};

use super::assemble::assemble;
use super::graph::{Attribute, Attributes, Edge, Graph, Node};
use super::{ImportError, ImportErrorKind, Imported, MAX_BYTES, Options};

/// Maximum number of elements, texts and comments in a GraphML file.
const MAX_XML_NODES: u32 = 20_000_000;

/// Reads a GraphML file.
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
    let parsing = ParsingOptions {
        allow_dtd: false,
        nodes_limit: MAX_XML_NODES,
        ..ParsingOptions::default()
    };
    let document = Document::parse_with_options(text, parsing).map_err(|error| {
        let (place, message) = (error.pos(), error.to_string());
        // Most messages end with the position.
        let message = message
            .strip_suffix(&format!(" at {place}"))
            .unwrap_or(&message);
        ImportError {
            line: place.row as usize,
            column: place.col as usize,
            kind: ImportErrorKind::Syntax(message.to_owned()),
        }
    })?;
    assemble(&graph(text, &document)?, options)
}

fn graph<'t>(text: &'t str, document: &Document<'t>) -> Result<Graph<'t>, ImportError> {
    let wrong = |element: Element<'_, '_>, message: &str| {
        let kind = ImportErrorKind::Structure(message.to_owned());
        kind.at(text, element.range().start)
    };
    let root = document.root_element();
    if !is(root, "graphml") {
        let found = format!("`{}` is not `graphml`", root.tag_name().name());
        return Err(wrong(root, &found));
    }
    let keys = keys(root);
    let mut graphs = root.children().filter(|child| is(*child, "graph"));
    let graph = graphs
        .next()
        .ok_or_else(|| wrong(root, "the file has no `graph`"))?;
    if let Some(second) = graphs.next() {
        return Err(wrong(second, "the file has a second `graph`"));
    }
    let is_directed = graph.attribute("edgedefault") == Some("directed");
    let mut read = Graph {
        text,
        attributes: attributes(graph, &keys),
        nodes: Vec::new(),
        edges: Vec::new(),
    };
    for element in graph.children() {
        if is(element, "hyperedge") {
            return Err(wrong(element, "an edge of more than two ends is not read"));
        }
        if is(element, "node") {
            if let Some(inner) = element.children().find(|child| is(*child, "graph")) {
                return Err(wrong(inner, "a graph inside a node is not read"));
            }
            let id = element.attribute("id");
            let id = id.ok_or_else(|| wrong(element, "a node has no `id`"))?;
            let attributes = attributes(element, &keys);
            let label = ["label", "name"].iter().find_map(|n| attributes.find(n));
            let label = label.map(|label| label.value.clone());
            read.nodes.push(Node {
                id: id.to_owned(),
                label: label.or_else(|| label_in_graphics(element)),
                attributes,
                at: element.range().start,
            });
        }
        if is(element, "edge") {
            let end = |name: &str| {
                let end = element
                    .attribute_node(name)
                    .ok_or_else(|| wrong(element, &format!("an edge has no `{name}`")))?;
                Ok((end.value().to_owned(), end.range().start))
            };
            let own = element.attribute("directed");
            read.edges.push(Edge {
                ends: [end("source")?, end("target")?],
                is_directed: own.map_or(is_directed, |own| own == "true"),
                attributes: attributes(element, &keys),
                at: element.range().start,
            });
        }
    }
    Ok(read)
}

fn is(element: Element<'_, '_>, name: &str) -> bool {
    element.is_element() && element.tag_name().name() == name
}

/// Names of the attributes that the file declares, by the identifiers of their `key` elements.
fn keys<'d>(root: Element<'d, '_>) -> BTreeMap<&'d str, &'d str> {
    let keys = root.children().filter(|child| is(*child, "key"));
    keys.filter_map(|key| Some((key.attribute("id")?, key.attribute("attr.name")?)))
        .collect()
}

/// Attributes in the `data` elements of an element; skips those without a text.
fn attributes(element: Element<'_, '_>, keys: &BTreeMap<&str, &str>) -> Attributes {
    let mut attributes = Attributes::default();
    for data in element.children().filter(|child| is(*child, "data")) {
        let name = data.attribute("key").and_then(|key| keys.get(key));
        let text = data.text().filter(|text| !text.trim().is_empty());
        if let Some((name, value)) = name.zip(text) {
            let attribute = Attribute {
                value: value.to_owned(),
                at: data.range().start,
            };
            attributes.insert((*name).to_owned(), attribute);
        }
    }
    attributes
}

/// Label of a node in yEd's `<data><y:ShapeNode><y:NodeLabel>`; `None` if there is none.
fn label_in_graphics(node: Element<'_, '_>) -> Option<String> {
    let data = node.children().filter(|child| is(*child, "data"));
    let shapes = data.flat_map(|data| data.children());
    let mut labels = shapes
        .flat_map(|shape| shape.children())
        .filter(|child| is(*child, "NodeLabel"));
    let text = labels.find_map(|label| label.text())?.trim();
    (!text.is_empty()).then(|| text.to_owned())
}

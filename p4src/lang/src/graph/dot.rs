//! Prints the program graph in DOT, the input language of Graphviz.

use super::{Cluster, Shape};
use crate::source::visible;
use std::fmt::Write;

pub(super) fn print(clusters: &[Cluster]) -> String {
    let mut out = String::from("digraph program {\n  node [shape=box, fontname=\"monospace\"];\n");
    for cluster in clusters {
        let (id, name) = (&cluster.id, escaped(&cluster.name));
        let _ = writeln!(out, "  subgraph cluster_{id} {{\n    label=\"{name}\";");
        for node in &cluster.nodes {
            let lines: Vec<String> = node.label.iter().map(|l| escaped(l)).collect();
            let label = lines.join("\\n");
            let attributes = attributes(node.shape);
            let _ = writeln!(out, "    {} [label=\"{label}\"{attributes}];", node.id);
        }
        let id = |n: usize| cluster.nodes.get(n).map_or("", |node| node.id.as_str());
        for edge in &cluster.edges {
            let label = match edge.label.as_str() {
                "" => String::new(),
                label => format!(" [label=\"{}\"]", escaped(label)),
            };
            let _ = writeln!(out, "    {} -> {}{label};", id(edge.from), id(edge.to));
        }
        out.push_str("  }\n");
    }
    out.push_str("}\n");
    out
}

fn attributes(shape: Shape) -> &'static str {
    match shape {
        Shape::State => "",
        Shape::Start => ", shape=circle",
        Shape::End | Shape::Accept | Shape::Reject | Shape::Exit => ", shape=doublecircle",
        Shape::Condition => ", shape=diamond",
        Shape::Table => ", style=filled",
        Shape::Control => ", shape=component",
        Shape::Extern => ", shape=cylinder",
    }
}

fn escaped(text: &str) -> String {
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    visible(&words).replace('\\', "\\\\").replace('"', "\\\"")
}

//! A program as a graph in DOT: the states of its parsers; the tables, calls and branches of its controls. Graphviz draws
//! it.
//!
//! `build` walks the IR; `dot`(self::dot()) prints the graph.

mod build;
mod dot;

use crate::ir::Program;

/// One node.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Node {
    /// Identifier, unique in the graph.
    id: String,
    shape: Shape,
    /// Lines of the label.
    label: Vec<String>,
}

/// The kind of a node, which determines its shape.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Shape {
    /// Start and end of a control.
    Start,
    End,
    /// A parser's state.
    State,
    Accept,
    Reject,
    /// `if`, `switch` or a loop.
    Condition,
    Table,
    /// The application of a control.
    Control,
    /// A call of a method of an extern object.
    Extern,
    Exit,
}

/// An edge between nodes of one cluster, by index.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Edge {
    from: usize,
    to: usize,
    label: String,
}

/// A parser or control.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Cluster {
    id: String,
    name: String,
    nodes: Vec<Node>,
    edges: Vec<Edge>,
}

/// The parsers and controls of a program in DOT, one cluster each.
pub fn dot(program: &Program) -> String {
    dot::print(&build::clusters(program))
}

//! A program as a graph in DOT: the states of its parsers; the tables, calls and branches of its controls. Graphviz draws
//! it.
//!
//! `build` walks the IR; `dot`(self::dot()) prints the graph.

mod build;
mod dot;

use crate::ir::Program;

/// A node of the program graph.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Node {
    /// Identifier of the node, unique in the graph.
    id: String,
    shape: Shape,
    /// Lines of the node's label.
    label: Vec<String>,
}

/// The kind of a graph node, which determines its shape.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Shape {
    /// Start of a control; `End` is its end.
    Start,
    End,
    /// A state of a parser.
    State,
    Accept,
    Reject,
    /// A branch: `if`, `switch` or a loop.
    Condition,
    Table,
    /// A control's `apply` of another control.
    Control,
    /// A call of a method of an extern object.
    Extern,
    Exit,
}

/// An edge between two nodes of one cluster, given by their indices.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Edge {
    from: usize,
    to: usize,
    label: String,
}

/// A parser or control with its nodes and edges.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Cluster {
    id: String,
    name: String,
    nodes: Vec<Node>,
    edges: Vec<Edge>,
}

/// The program graph in DOT, with one cluster for each parser and control.
pub fn dot(program: &Program) -> String {
    dot::print(&build::clusters(program))
}

//! A program as a graph: the states of its parsers, the tables, calls and branches of its controls, in DOT. Graphviz draws
//! it.
//!
//! `build` walks the IR; `dot`(self::dot()) prints.

mod build;
mod dot;

use crate::ir::Program;

/// One node.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Node {
    /// Unique in the graph.
    id: String,
    shape: Shape,
    /// Lines.
    label: Vec<String>,
}

/// What a node stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Shape {
    /// Where a control begins and ends.
    Start,
    End,
    /// A parser's state.
    State,
    Accept,
    Reject,
    /// `if`, `switch`, a loop.
    Condition,
    Table,
    /// A control is applied.
    Control,
    /// A method of an extern object is called.
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

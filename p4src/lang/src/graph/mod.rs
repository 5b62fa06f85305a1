//! A program as a graph: the states of its parsers, the tables, calls and branches of its controls. Written in DOT for
//! Graphviz, or drawn as SVG by ourselves.
//!
//! `build` walks the IR; `dot`(self::dot()) prints. For SVG, `layers` puts a cluster's nodes one below the other and
//! orders each layer (after Sugiyama, Tagawa and Toda, 1981), `place` gives coordinates, and `svg`(self::svg())
//! draws.

mod build;
mod dot;
mod layers;
mod place;
mod svg;

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

/// The same as an SVG image that stands alone: no script, no font, nothing to fetch.
pub fn svg(program: &Program) -> String {
    svg::draw(&build::clusters(program))
}

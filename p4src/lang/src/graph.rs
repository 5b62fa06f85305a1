//! A program as a graph in DOT: the states of its parsers, the tables, calls and branches of its controls.

use crate::ir::{
    Const, Control, Expr, ExprKind, Keyset, Parser, Program, Stmt, StmtKind, Target, Transition,
};
use crate::source::Span;
use std::fmt::Write;

/// The parsers and controls that `main` is made of, one cluster each.
pub fn dot(program: &Program) -> String {
    let mut out = String::from("digraph program {\n  node [shape=box, fontname=\"monospace\"];\n");
    for (n, parser) in program.parsers.iter().enumerate() {
        cluster(&mut out, &format!("p{n}"), &parser.name, |out| {
            parser_graph(program, parser, n, out)
        });
    }
    for (n, control) in program.controls.iter().enumerate() {
        cluster(&mut out, &format!("c{n}"), &control.name, |out| {
            let mut graph = Flow {
                program,
                control,
                prefix: format!("c{n}"),
                nodes: 0,
                out,
            };
            let start = graph.node("start", "shape=circle");
            let ends = graph.block(&control.body, vec![(start, String::new())]);
            let end = graph.node("end", "shape=doublecircle");
            graph.join(&ends, &end);
        });
    }
    out.push_str("}\n");
    out
}

fn cluster(out: &mut String, id: &str, label: &str, inside: impl FnOnce(&mut String)) {
    let _ = writeln!(
        out,
        "  subgraph cluster_{id} {{\n    label=\"{}\";",
        escaped(label)
    );
    inside(out);
    out.push_str("  }\n");
}

fn escaped(text: &str) -> String {
    text.split_whitespace()
        .collect::<Vec<_>>()
        .join(" ")
        .replace('\\', "\\\\")
        .replace('"', "\\\"")
}

fn parser_graph(program: &Program, parser: &Parser, n: usize, out: &mut String) {
    let name = |target: Target| match target {
        Target::Accept => format!("p{n}_accept"),
        Target::Reject => format!("p{n}_reject"),
        Target::State(id) => format!("p{n}_s{}", id.0),
    };
    for (k, state) in parser.states.iter().enumerate() {
        let extracts: String = state
            .body
            .iter()
            .filter(|stmt| {
                matches!(
                    stmt.kind,
                    StmtKind::Extract { .. } | StmtKind::ApplyParser(..)
                )
            })
            .map(|stmt| format!("\\n{}", escaped(program.source.slice(stmt.span))))
            .collect();
        let _ = writeln!(
            out,
            "    p{n}_s{k} [label=\"{}{extracts}\"];",
            escaped(&state.name)
        );
    }
    let _ = writeln!(
        out,
        "    p{n}_accept [label=\"accept\", shape=doublecircle];"
    );
    let _ = writeln!(
        out,
        "    p{n}_reject [label=\"reject\", shape=doublecircle];"
    );
    for (k, state) in parser.states.iter().enumerate() {
        match &state.transition {
            Transition::Direct(target) => {
                let _ = writeln!(out, "    p{n}_s{k} -> {};", name(*target));
            }
            Transition::Select { cases, .. } => {
                for (sets, target) in cases {
                    let label = sets.iter().map(keyset).collect::<Vec<_>>().join(", ");
                    let _ = writeln!(
                        out,
                        "    p{n}_s{k} -> {} [label=\"{}\"];",
                        name(*target),
                        escaped(&label)
                    );
                }
            }
        }
    }
}

fn keyset(set: &Keyset) -> String {
    match set {
        Keyset::Any => "_".to_owned(),
        Keyset::Value(e) => value(e),
        Keyset::Mask(v, m) => format!("{} &&& {}", value(v), value(m)),
        Keyset::Range(a, b) => format!("{} .. {}", value(a), value(b)),
        Keyset::ValueSet(id) => format!("value set {}", id.0),
    }
}

fn value(e: &Expr) -> String {
    match &e.kind {
        ExprKind::Const(Const::Bits { value, .. }) if value.bits() > 8 => format!("{value:#x}"),
        ExprKind::Const(Const::Bits { value, .. }) => value.to_string(),
        ExprKind::Const(Const::Bool(b)) => b.to_string(),
        ExprKind::Cast(e) => value(e),
        _ => "…".to_owned(),
    }
}

/// Nodes that lead on, each with what to write on the way out of it.
type Ends = Vec<(String, String)>;

struct Flow<'p, 'o> {
    program: &'p Program,
    control: &'p Control,
    prefix: String,
    nodes: usize,
    out: &'o mut String,
}

impl Flow<'_, '_> {
    fn node(&mut self, label: &str, attributes: &str) -> String {
        let id = format!("{}_{}", self.prefix, self.nodes);
        self.nodes += 1;
        let comma = if attributes.is_empty() { "" } else { ", " };
        let _ = writeln!(
            self.out,
            "    {id} [label=\"{}\"{comma}{attributes}];",
            escaped(label)
        );
        id
    }

    fn join(&mut self, from: &Ends, to: &str) {
        for (from, label) in from {
            let label = if label.is_empty() {
                String::new()
            } else {
                format!(" [label=\"{}\"]", escaped(label))
            };
            let _ = writeln!(self.out, "    {from} -> {to}{label};");
        }
    }

    fn step(&mut self, label: &str, attributes: &str, from: &Ends) -> Ends {
        let id = self.node(label, attributes);
        self.join(from, &id);
        vec![(id, String::new())]
    }

    fn block(&mut self, block: &[Stmt], mut ends: Ends) -> Ends {
        for stmt in block {
            ends = self.stmt(stmt, ends);
        }
        ends
    }

    fn stmt(&mut self, stmt: &Stmt, from: Ends) -> Ends {
        match &stmt.kind {
            StmtKind::ApplyTable { table, .. } => {
                let name = self
                    .control
                    .tables
                    .get(table.index())
                    .map_or("", |t| t.name.as_str());
                self.step(&format!("table {name}"), "style=filled", &from)
            }
            StmtKind::ApplyControl(id, _) => {
                let name = self
                    .program
                    .controls
                    .get(id.index())
                    .map_or("", |c| c.name.as_str());
                self.step(name, "shape=component", &from)
            }
            StmtKind::CallMethod { object, method, .. } => {
                let name = self
                    .program
                    .externs
                    .get(object.index())
                    .map_or("", |e| e.name.as_str());
                self.step(&format!("{name}.{method}"), "shape=cylinder", &from)
            }
            StmtKind::If(_, then, other) => {
                if !tells(then) && !tells(other) {
                    return from;
                }
                let id = self.node(&self.heading(stmt.span), "shape=diamond");
                self.join(&from, &id);
                let mut ends = self.block(then, vec![(id.clone(), "yes".to_owned())]);
                ends.extend(self.block(other, vec![(id, "no".to_owned())]));
                ends
            }
            StmtKind::Switch { cases, default, .. } => {
                let id = self.node(&self.heading(stmt.span), "shape=diamond");
                self.join(&from, &id);
                let mut ends = Ends::new();
                for (n, (_, block)) in cases.iter().enumerate() {
                    ends.extend(self.block(block, vec![(id.clone(), format!("case {}", n + 1))]));
                }
                ends.extend(self.block(default, vec![(id, "default".to_owned())]));
                ends
            }
            StmtKind::Atomic(block) => self.block(block, from),
            StmtKind::Loop {
                cond_stmts,
                body,
                update,
                ..
            } => {
                let id = self.node("loop", "shape=diamond");
                self.join(&from, &id);
                let ends = self.block(cond_stmts, vec![(id.clone(), String::new())]);
                let ends = self.block(body, ends);
                let ends = self.block(update, ends);
                self.join(&ends, &id);
                vec![(id, "done".to_owned())]
            }
            StmtKind::Exit => {
                self.step("exit", "shape=doublecircle", &from);
                Ends::new()
            }
            _ => from,
        }
    }

    /// The first line of a statement.
    fn heading(&self, span: Span) -> String {
        let text = self.program.source.slice(span);
        let end = text.find('{').unwrap_or(text.len());
        text[..end].trim().chars().take(80).collect()
    }
}

/// Whether a block has something to show.
fn tells(block: &[Stmt]) -> bool {
    block.iter().any(|stmt| match &stmt.kind {
        StmtKind::If(_, a, b) => tells(a) || tells(b),
        StmtKind::Atomic(b) => tells(b),
        StmtKind::ApplyTable { .. }
        | StmtKind::ApplyControl(..)
        | StmtKind::CallMethod { .. }
        | StmtKind::Switch { .. }
        | StmtKind::Loop { .. }
        | StmtKind::Exit => true,
        _ => false,
    })
}

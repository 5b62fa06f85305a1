//! Builds the nodes and edges of the program graph from the IR.

use super::{Cluster, Edge, Node, Shape};
use crate::ir::{
    Const, Control, Expr, ExprKind, Keyset, Parser, Program, Stmt, StmtKind, Target, Transition,
};
use crate::source::Span;

/// The clusters of the program graph: one for each parser and control.
pub(super) fn clusters(program: &Program) -> Vec<Cluster> {
    let parsers = program.parsers.iter().enumerate();
    let parsers = parsers.map(|(n, parser)| of_parser(program, parser, n));
    let controls = program.controls.iter().enumerate();
    let controls = controls.map(|(n, control)| of_control(program, control, n));
    parsers.chain(controls).collect()
}

fn of_parser(program: &Program, parser: &Parser, n: usize) -> Cluster {
    let count = parser.states.len();
    let index = |target: Target| match target {
        Target::State(id) => id.index(),
        Target::Accept => count,
        Target::Reject => count + 1,
    };
    let mut nodes = Vec::with_capacity(count + 2);
    let mut edges = Vec::new();
    for (k, state) in parser.states.iter().enumerate() {
        let does = |stmt: &&Stmt| {
            matches!(
                stmt.kind,
                StmtKind::Extract { .. } | StmtKind::ApplyParser(..)
            )
        };
        let told = state.body.iter().filter(does);
        let told = told.map(|stmt| program.source.slice(stmt.span).to_owned());
        nodes.push(Node {
            id: format!("p{n}_s{k}"),
            shape: Shape::State,
            label: std::iter::once(state.name.clone()).chain(told).collect(),
        });
        let mut edge = |target, label| {
            edges.push(Edge {
                from: k,
                to: index(target),
                label,
            });
        };
        match &state.transition {
            Transition::Direct(target) => edge(*target, String::new()),
            Transition::Select { cases, .. } => {
                for (sets, target) in cases {
                    let sets: Vec<String> = sets.iter().map(|set| keyset(set, parser)).collect();
                    edge(*target, sets.join(", "));
                }
            }
        }
    }
    for (name, shape) in [("accept", Shape::Accept), ("reject", Shape::Reject)] {
        nodes.push(Node {
            id: format!("p{n}_{name}"),
            shape,
            label: vec![name.to_owned()],
        });
    }
    Cluster {
        id: format!("p{n}"),
        name: parser.name.clone(),
        nodes,
        edges,
    }
}

fn keyset(set: &Keyset, parser: &Parser) -> String {
    match set {
        Keyset::Any => "_".to_owned(),
        Keyset::Value(e) => value(e),
        Keyset::Mask(v, m) => format!("{} &&& {}", value(v), value(m)),
        Keyset::Range(a, b) => format!("{} .. {}", value(a), value(b)),
        Keyset::ValueSet(id) => parser
            .value_sets
            .get(id.index())
            .map_or_else(|| "value set".to_owned(), |set| set.name.clone()),
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

fn of_control(program: &Program, control: &Control, n: usize) -> Cluster {
    let mut flow = Flow {
        program,
        control,
        id: format!("c{n}"),
        nodes: Vec::new(),
        edges: Vec::new(),
    };
    let start = flow.node("start", Shape::Start);
    let ends = flow.block(&control.body, vec![(start, String::new())]);
    let end = flow.node("end", Shape::End);
    flow.join(&ends, end);
    Cluster {
        id: flow.id,
        name: control.name.clone(),
        nodes: flow.nodes,
        edges: flow.edges,
    }
}

/// Graph nodes that still need an outgoing edge: (index of the node, label of that edge).
type Ends = Vec<(usize, String)>;

struct Flow<'p> {
    program: &'p Program,
    control: &'p Control,
    id: String,
    nodes: Vec<Node>,
    edges: Vec<Edge>,
}

impl Flow<'_> {
    fn node(&mut self, label: &str, shape: Shape) -> usize {
        let n = self.nodes.len();
        self.nodes.push(Node {
            id: format!("{}_{n}", self.id),
            shape,
            label: vec![label.to_owned()],
        });
        n
    }

    fn join(&mut self, from: &Ends, to: usize) {
        for (from, label) in from {
            self.edges.push(Edge {
                from: *from,
                to,
                label: label.clone(),
            });
        }
    }

    fn step(&mut self, label: &str, shape: Shape, from: &Ends) -> Ends {
        let node = self.node(label, shape);
        self.join(from, node);
        vec![(node, String::new())]
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
                let table = self.control.tables.get(table.index());
                let name = table.map_or("", |t| t.name.as_str());
                self.step(&format!("table {name}"), Shape::Table, &from)
            }
            StmtKind::ApplyControl(id, _) => {
                let control = self.program.controls.get(id.index());
                let name = control.map_or("", |c| c.name.as_str());
                self.step(name, Shape::Control, &from)
            }
            StmtKind::CallMethod { object, method, .. } => {
                let object = self.program.externs.get(object.index());
                let name = object.map_or("", |e| e.name.as_str());
                self.step(&format!("{name}.{method}"), Shape::Extern, &from)
            }
            StmtKind::If(arms, otherwise) => {
                // The arms after the last one with visible content need no test node.
                let shown = match tells(otherwise) {
                    true => arms.len(),
                    false => (arms.iter().rposition(|arm| tells(&arm.then))).map_or(0, |n| n + 1),
                };
                let (mut ends, mut from) = (Ends::new(), from);
                for (n, arm) in arms.iter().enumerate() {
                    from = self.block(&arm.before, from);
                    if n < shown {
                        let id = self.branch(arm.span, &from);
                        ends.extend(self.block(&arm.then, vec![(id, "yes".to_owned())]));
                        from = vec![(id, "no".to_owned())];
                    }
                }
                ends.extend(self.block(otherwise, from));
                ends
            }
            StmtKind::Switch { cases, default, .. } => {
                let id = self.branch(stmt.span, &from);
                let mut ends = Ends::new();
                for (n, (_, block)) in cases.iter().enumerate() {
                    ends.extend(self.block(block, vec![(id, format!("case {}", n + 1))]));
                }
                ends.extend(self.block(default, vec![(id, "default".to_owned())]));
                ends
            }
            StmtKind::Atomic(block, _) => self.block(block, from),
            StmtKind::Loop {
                cond_stmts,
                body,
                update,
                ..
            } => {
                let id = self.node("loop", Shape::Condition);
                self.join(&from, id);
                let ends = self.block(cond_stmts, vec![(id, String::new())]);
                let ends = self.block(body, ends);
                let ends = self.block(update, ends);
                self.join(&ends, id);
                vec![(id, "done".to_owned())]
            }
            StmtKind::Exit => {
                self.step("exit", Shape::Exit, &from);
                Ends::new()
            }
            _ => from,
        }
    }

    fn branch(&mut self, span: Span, from: &Ends) -> usize {
        let id = self.node(&self.heading(span), Shape::Condition);
        self.join(from, id);
        id
    }

    /// The source of a statement up to its first `{`, cut to 80 characters: the label of its node.
    fn heading(&self, span: Span) -> String {
        let text = self.program.source.slice(span);
        let end = text.find('{').unwrap_or(text.len());
        text[..end].trim().chars().take(80).collect()
    }
}

/// Whether a block contains a statement that the program graph shows.
fn tells(block: &[Stmt]) -> bool {
    block.iter().any(|stmt| match &stmt.kind {
        StmtKind::If(arms, otherwise) => {
            (arms.iter()).any(|arm| tells(&arm.before) || tells(&arm.then)) || tells(otherwise)
        }
        StmtKind::Atomic(b, _) => tells(b),
        StmtKind::ApplyTable { .. }
        | StmtKind::ApplyControl(..)
        | StmtKind::CallMethod { .. }
        | StmtKind::Switch { .. }
        | StmtKind::Loop { .. }
        | StmtKind::Exit => true,
        _ => false,
    })
}

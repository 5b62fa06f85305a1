//! Finds the registers that a path through the program may execute twice, although a stateful ALU works once per packet.
//!
//! The analysis follows paths, not values: of an `if`, only one branch runs, and any combination of branches may happen.
//! Conflicts are counted at run time ([`crate::Stats::register_conflicts`]); p4lang's `tofino` refuses those that are certain.

use p4lang::ir::{Block, Const, Control, ControlId, ExternId, ExternKind, Program, Stmt, StmtKind};
use std::collections::BTreeSet;

/// Registers that a path through the program executes: those executed at least once, and those at least twice.
#[derive(Default, Clone)]
struct Executions {
    once: BTreeSet<ExternId>,
    twice: BTreeSet<ExternId>,
}

impl Executions {
    fn then(&mut self, next: Executions) {
        let again: Vec<_> = self.once.intersection(&next.once).copied().collect();
        self.twice.extend(again);
        self.twice.extend(next.twice);
        self.once.extend(next.once);
    }

    fn or(&mut self, other: Executions) {
        self.once.extend(other.once);
        self.twice.extend(other.twice);
    }
}

/// The registers that a packet may execute twice, in order of declaration.
pub(crate) fn executed_twice(program: &Program) -> Vec<ExternId> {
    let mut found = BTreeSet::new();
    for i in 0..program.controls.len() {
        // Nested blocks are also visited from outside: duplicate findings are equal.
        let walk = Walk { program };
        found.extend(walk.control(ControlId(i as u32), 0).twice);
    }
    found.into_iter().collect()
}

/// Maximum nesting depth of controls that the analysis follows.
const DEPTH: u32 = 64;

struct Walk<'p> {
    program: &'p Program,
}

impl<'p> Walk<'p> {
    fn control(&self, id: ControlId, depth: u32) -> Executions {
        let control = &self.program.controls[id.index()];
        if depth > DEPTH {
            return Executions::default();
        }
        self.block(control, &control.body, depth)
    }

    fn block(&self, control: &'p Control, block: &'p Block, depth: u32) -> Executions {
        let mut executions = Executions::default();
        for stmt in block {
            executions.then(self.stmt(control, stmt, depth));
        }
        executions
    }

    fn either(&self, control: &'p Control, blocks: &[&'p Block], depth: u32) -> Executions {
        let mut executions = Executions::default();
        for block in blocks {
            executions.or(self.block(control, block, depth));
        }
        executions
    }

    fn stmt(&self, control: &'p Control, stmt: &'p Stmt, depth: u32) -> Executions {
        match &stmt.kind {
            StmtKind::If(arms, otherwise) => {
                // Conditions are evaluated in order until one holds.
                let (mut conditions, mut executions) =
                    (Executions::default(), Executions::default());
                let paths = arms.iter().map(|arm| (Some(&arm.before), &arm.then));
                for (before, block) in paths.chain([(None, otherwise)]) {
                    if let Some(calls) = before {
                        conditions.then(self.block(control, calls, depth));
                    }
                    let mut path = conditions.clone();
                    path.then(self.block(control, block, depth));
                    executions.or(path);
                }
                executions
            }
            StmtKind::Switch { cases, default, .. } => {
                let mut blocks: Vec<&Block> = cases.iter().map(|(_, block)| block).collect();
                blocks.push(default);
                self.either(control, &blocks, depth)
            }
            StmtKind::Loop { body, update, .. } => {
                let mut executions = self.block(control, body, depth);
                executions.then(self.block(control, update, depth));
                // The body may run several times.
                executions.then(executions.clone());
                executions
            }
            StmtKind::Atomic(block, _) => self.block(control, block, depth),
            StmtKind::ApplyTable { table, .. } => {
                let mut executions = Executions::default();
                for offered in &control.tables[table.index()].actions {
                    let mut one = self.block(control, &offered.calls, depth);
                    let body = &control.actions[offered.action.index()].body;
                    one.then(self.block(control, body, depth));
                    executions.or(one);
                }
                executions
            }
            StmtKind::CallAction(id, _) => {
                self.block(control, &control.actions[id.index()].body, depth)
            }
            StmtKind::ApplyControl(id, _) => self.control(*id, depth + 1),
            StmtKind::CallMethod { object, .. } => {
                let mut executions = Executions::default();
                executions.once.extend(self.register(*object));
                executions
            }
            _ => Executions::default(),
        }
    }

    /// The register that a call on this object executes: the object itself, or its first argument; `None` for other objects.
    fn register(&self, object: ExternId) -> Option<ExternId> {
        let instance = &self.program.externs[object.index()];
        match &instance.kind {
            ExternKind::Register | ExternKind::DirectRegister => Some(object),
            kind if is_action(kind) => match instance.args.first() {
                Some((_, Const::Extern(register))) => Some(*register),
                _ => None,
            },
            _ => None,
        }
    }
}

/// Whether objects of this extern run code on a cell of a register or selector, which is their first argument.
fn is_action(kind: &ExternKind) -> bool {
    matches!(
        kind,
        ExternKind::RegisterAction
            | ExternKind::DirectRegisterAction
            | ExternKind::MinMaxAction
            | ExternKind::SelectorAction
    )
}

//! Which blocks, tables and actions of a program P4Info speaks of, and in which order.

use super::build::is_hidden;
use crate::ir::{self, ControlId, ExternId, PackageArg, ParserId, Stmt, StmtKind};
use std::collections::BTreeSet;

/// Blocks of a program in the order of P4Info.
pub(super) struct Blocks {
    pub(super) parsers: Vec<ParserId>,
    pub(super) controls: Vec<ControlId>,
    pub(super) externs: Vec<ExternId>,
}

impl Blocks {
    pub(super) fn of(program: &ir::Program) -> Blocks {
        let mut blocks = Blocks {
            parsers: Vec::new(),
            controls: Vec::new(),
            externs: Vec::new(),
        };
        blocks.package(&program.main);
        // Breadth first through what the blocks apply.
        let mut at = 0;
        while let Some(&id) = blocks.controls.get(at) {
            let mut inner = BTreeSet::new();
            if let Some(control) = program.controls.get(id.index()) {
                visit(&control.body, &mut |stmt| {
                    if let StmtKind::ApplyControl(id, _) = stmt.kind {
                        inner.insert(id);
                    }
                });
            }
            for id in inner {
                push_new(&mut blocks.controls, id);
            }
            at += 1;
        }
        for index in 0..program.controls.len() {
            push_new(&mut blocks.controls, ControlId(index as u32));
        }
        for index in 0..program.parsers.len() {
            push_new(&mut blocks.parsers, ParserId(index as u32));
        }
        blocks.order_externs(program);
        blocks
    }

    fn package(&mut self, package: &ir::Package) {
        for (_, arg) in &package.args {
            match arg {
                PackageArg::Parser(id) => push_new(&mut self.parsers, *id),
                PackageArg::Control(id) => push_new(&mut self.controls, *id),
                PackageArg::Package(inner) => self.package(inner),
                PackageArg::Extern(_) | PackageArg::Const(_) => {}
            }
        }
    }

    fn order_externs(&mut self, program: &ir::Program) {
        let owned = |owner: Option<ControlId>| {
            program
                .externs
                .iter()
                .enumerate()
                .filter(move |(_, e)| e.owner == owner)
                .map(|(index, _)| ExternId(index as u32))
        };
        let mut externs: Vec<ExternId> = owned(None).collect();
        for control in &self.controls {
            externs.extend(owned(Some(*control)));
        }
        self.externs = externs;
    }
}

pub(super) fn push_new<T: PartialEq>(list: &mut Vec<T>, item: T) {
    if !list.contains(&item) {
        list.push(item);
    }
}

/// All statements of a block, outer ones first.
pub(super) fn visit<'p>(block: &'p [Stmt], see: &mut impl FnMut(&'p Stmt)) {
    for stmt in block {
        see(stmt);
        match &stmt.kind {
            StmtKind::If(_, then, otherwise) => {
                visit(then, see);
                visit(otherwise, see);
            }
            StmtKind::Switch { cases, default, .. } => {
                for (_, block) in cases {
                    visit(block, see);
                }
                visit(default, see);
            }
            StmtKind::Loop {
                cond_stmts,
                body,
                update,
                ..
            } => {
                visit(cond_stmts, see);
                visit(body, see);
                visit(update, see);
            }
            StmtKind::Atomic(block) => visit(block, see),
            _ => {}
        }
    }
}

/// What the control plane can see of a control.
pub(super) struct Visible<'p> {
    /// Tables that are applied.
    pub(super) tables: Vec<&'p ir::Table>,
    /// Actions that those tables offer or that the control calls: shared ones first, in order of their first use, then the control's own.
    pub(super) actions: Vec<VisibleAction<'p>>,
}

pub(super) struct VisibleAction<'p> {
    pub(super) action: &'p ir::Action,
    /// A table offers it, so its parameters are the control plane's.
    pub(super) offered: bool,
}

impl<'p> Visible<'p> {
    pub(super) fn of(control: &'p ir::Control) -> Visible<'p> {
        let mut applied = BTreeSet::new();
        let mut called: Vec<usize> = Vec::new();
        let mut see = |stmt: &Stmt| {
            if let StmtKind::ApplyTable { table, .. } = &stmt.kind {
                applied.insert(table.index());
            }
        };
        visit(&control.body, &mut see);
        for action in &control.actions {
            visit(&action.body, &mut see);
        }
        visit(&control.body, &mut |stmt| {
            if let StmtKind::CallAction(id, _) = &stmt.kind {
                push_new(&mut called, id.index());
            }
        });
        let tables: Vec<&ir::Table> = applied
            .iter()
            .filter_map(|index| control.tables.get(*index))
            .collect();
        let mut used: Vec<usize> = Vec::new();
        for offered in tables.iter().flat_map(|t| &t.actions) {
            push_new(&mut used, offered.action.index());
        }
        let offered = used.len();
        let offered: BTreeSet<usize> = used[..offered].iter().copied().collect();
        for index in called {
            push_new(&mut used, index);
        }
        // A shared action was declared outside this control.
        let own = |index: &usize| {
            let span = control.actions.get(*index).map(|a| a.span);
            span.is_some_and(|s| control.span.start <= s.start && s.end <= control.span.end)
        };
        let (mut own, mut order): (Vec<usize>, Vec<usize>) = used.into_iter().partition(own);
        own.sort_unstable();
        order.extend(own);
        let actions = order.into_iter().filter_map(|index| {
            let action = control.actions.get(index)?;
            let offered = offered.contains(&index);
            (!is_hidden(&action.annotations)).then_some(VisibleAction { action, offered })
        });
        Visible {
            actions: actions.collect(),
            tables: tables
                .into_iter()
                .filter(|table| !is_hidden(&table.annotations))
                .collect(),
        }
    }
}

pub(super) const NO_ACTION: &str = "NoAction";

/// Index of `NoAction` among a table's actions.
pub(super) fn listed_no_action(control: &ir::Control, table: &ir::Table) -> Option<usize> {
    table.actions.iter().position(|offered| {
        let action = control.actions.get(offered.action.index());
        action.is_some_and(|a| a.name == NO_ACTION)
    })
}

/// Whether a table falls back on a `NoAction` that it does not list.
pub(super) fn implies_no_action(control: &ir::Control, table: &ir::Table) -> bool {
    table.default_action.action.is_none() && listed_no_action(control, table).is_none()
}

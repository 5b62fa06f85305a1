//! Selects the parsers, controls, tables, actions and externs that a program's P4Info contains, and their order.

use super::annotations::is_hidden;
use crate::ir::{self, ControlId, ExternId, PackageArg, ParserId, Stmt, StmtKind, visit};
use std::collections::{BTreeMap, BTreeSet};

/// Parsers, controls and externs of a program, in the order of P4Info.
pub(super) struct Blocks<'p> {
    pub(super) parsers: Vec<ParserId>,
    pub(super) controls: Vec<Visible<'p>>,
    pub(super) externs: Vec<ExternId>,
}

/// The control plane's view of a control, including the controls that it instantiates: as in p4c, these count as parts of it,
/// each at the place where its instance is declared.
pub(super) struct Visible<'p> {
    /// Tables that the controls apply, each with the control that declares it.
    pub(super) tables: Vec<(&'p ir::Control, &'p ir::Table)>,
    /// Actions that tables offer or controls call: first copies of top-level actions, by first use, then the controls' own.
    pub(super) actions: Vec<VisibleAction<'p>>,
    /// The control and the controls that it instantiates.
    pub(super) controls: Vec<&'p ir::Control>,
}

pub(super) enum VisibleAction<'p> {
    /// An action that a table offers; the control plane supplies its parameters.
    Offered(&'p ir::Action),
    /// An action that control bodies call but no table offers.
    Called(&'p ir::Action),
    /// `NoAction` as the default action of a table whose action list does not contain it.
    Implied,
}

impl<'p> Blocks<'p> {
    pub(super) fn new(program: &'p ir::Program) -> Blocks<'p> {
        let mut roots = Roots::default();
        roots.package(&program.main);
        let mut blocks = Blocks {
            parsers: roots.parsers,
            controls: Vec::new(),
            externs: Vec::new(),
        };
        for index in 0..program.parsers.len() {
            push_new(&mut blocks.parsers, ParserId(index as u32));
        }
        let mut walk = Walk::new(program);
        blocks.externs.append(&mut walk.owned(None));
        let rest = (0..program.controls.len() as u32).map(ControlId);
        for id in roots.controls.into_iter().chain(rest) {
            walk.control(id, &mut blocks.externs);
            blocks.controls.extend(walk.visible());
        }
        blocks
    }
}

/// The parsers and controls that the package `main` receives as arguments.
#[derive(Default)]
struct Roots {
    parsers: Vec<ParserId>,
    controls: Vec<ControlId>,
}

impl Roots {
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
}

/// Collects the tables, actions and externs of the package's controls, one control at a time.
struct Walk<'p> {
    program: &'p ir::Program,
    seen: BTreeSet<ControlId>,
    /// Indices of extern instances, by the control that owns them (`None`: top level).
    owned: BTreeMap<Option<ControlId>, Vec<ExternId>>,
    controls: Vec<&'p ir::Control>,
    tables: Vec<(&'p ir::Control, &'p ir::Table)>,
    /// Actions that the controls declare, in source order.
    own: Vec<&'p ir::Action>,
    /// Actions that the controls call but do not declare.
    called: Vec<&'p ir::Action>,
}

/// A local declaration of a control, in source order.
enum Local<'p> {
    Table(&'p ir::Table),
    Action(&'p ir::Action),
    Control(ControlId),
    Extern(ExternId),
}

impl<'p> Walk<'p> {
    fn new(program: &'p ir::Program) -> Walk<'p> {
        let mut owned: BTreeMap<_, Vec<ExternId>> = BTreeMap::new();
        for (index, e) in program.externs.iter().enumerate() {
            owned
                .entry(e.owner)
                .or_default()
                .push(ExternId(index as u32));
        }
        Walk {
            program,
            seen: BTreeSet::new(),
            owned,
            controls: Vec::new(),
            tables: Vec::new(),
            own: Vec::new(),
            called: Vec::new(),
        }
    }

    fn owned(&mut self, owner: Option<ControlId>) -> Vec<ExternId> {
        self.owned.remove(&owner).unwrap_or_default()
    }

    fn control(&mut self, id: ControlId, externs: &mut Vec<ExternId>) {
        let program = self.program;
        let Some(control) = program.controls.get(id.index()) else {
            return;
        };
        if !self.seen.insert(id) {
            return;
        }
        self.controls.push(control);
        let applied = applied_tables(control);
        let mut inner = BTreeSet::new();
        let mut called = Vec::new();
        let mut see = |stmt: &Stmt| match &stmt.kind {
            StmtKind::ApplyControl(id, _) => {
                inner.insert(*id);
            }
            StmtKind::CallAction(id, _) => push_new(&mut called, id.index()),
            _ => {}
        };
        visit(&control.body, &mut see);
        let tables = || applied.iter().filter_map(|n| control.tables.get(*n));
        let offered = tables().flat_map(|t| &t.actions);
        let used: BTreeSet<usize> = offered
            .map(|a| a.action.index())
            .chain(called.iter().copied())
            .collect();
        let actions = || used.iter().filter_map(|n| control.actions.get(*n));
        let mut locals: Vec<(u32, Local<'p>)> = Vec::new();
        locals.extend(tables().map(|t| (t.span.start, Local::Table(t))));
        let own = actions().filter(|a| is_own(control, a));
        locals.extend(own.map(|a| (a.span.start, Local::Action(a))));
        for id in inner {
            if let Some(c) = program.controls.get(id.index()) {
                locals.push((c.instantiated.start, Local::Control(id)));
            }
        }
        for id in self.owned(Some(id)) {
            if let Some(e) = program.externs.get(id.index()) {
                locals.push((e.span.start, Local::Extern(id)));
            }
        }
        locals.sort_by_key(|(at, _)| *at);
        let shared = called.iter().filter_map(|n| control.actions.get(*n));
        self.called.extend(shared.filter(|a| !is_own(control, a)));
        for (_, local) in locals {
            match local {
                Local::Table(table) => self.tables.push((control, table)),
                Local::Action(action) => self.own.push(action),
                Local::Control(id) => self.control(id, externs),
                Local::Extern(id) => externs.push(id),
            }
        }
    }

    /// Returns the control plane's view of the controls visited since the last call of `visible`; `None` if none was visited.
    fn visible(&mut self) -> Option<Visible<'p>> {
        let controls = std::mem::take(&mut self.controls);
        let tables = std::mem::take(&mut self.tables);
        let (own, called) = (
            std::mem::take(&mut self.own),
            std::mem::take(&mut self.called),
        );
        if controls.is_empty() {
            return None;
        }
        let mut offered: BTreeSet<&str> = BTreeSet::new();
        let mut shared: Vec<&str> = Vec::new();
        let mut actions: Vec<VisibleAction<'p>> = Vec::new();
        for (control, table) in &tables {
            for action in &table.actions {
                let Some(action) = control.actions.get(action.action.index()) else {
                    continue;
                };
                offered.insert(&action.name);
                if !is_own(control, action) && !shared.contains(&action.name.as_str()) {
                    shared.push(&action.name);
                    actions.push(VisibleAction::Offered(action));
                }
            }
            if implies_no_action(control, table) && !shared.contains(&NO_ACTION) {
                shared.push(NO_ACTION);
                actions.push(VisibleAction::Implied);
            }
        }
        for action in called.into_iter().chain(own) {
            actions.push(match offered.contains(action.name.as_str()) {
                true => VisibleAction::Offered(action),
                false => VisibleAction::Called(action),
            });
        }
        actions.retain(|a| match a {
            VisibleAction::Offered(a) | VisibleAction::Called(a) => !is_hidden(&a.annotations),
            VisibleAction::Implied => true,
        });
        let shown = |(_, table): &(_, &ir::Table)| !is_hidden(&table.annotations);
        Some(Visible {
            tables: tables.into_iter().filter(shown).collect(),
            actions,
            controls,
        })
    }
}

/// Indices of the tables that a control applies; the control plane sees no other tables.
pub(crate) fn applied_tables(control: &ir::Control) -> BTreeSet<usize> {
    let mut applied = BTreeSet::new();
    let mut see = |stmt: &Stmt| {
        if let StmtKind::ApplyTable { table, .. } = &stmt.kind {
            applied.insert(table.index());
        }
    };
    visit(&control.body, &mut see);
    for action in &control.actions {
        visit(&action.body, &mut see);
    }
    applied
}

/// Whether the control itself declares the action; other actions are copies of top-level ones.
fn is_own(control: &ir::Control, action: &ir::Action) -> bool {
    control.span.start <= action.span.start && action.span.end <= control.span.end
}

pub(super) fn push_new<T: PartialEq>(list: &mut Vec<T>, item: T) {
    if !list.contains(&item) {
        list.push(item);
    }
}

pub(super) const NO_ACTION: &str = "NoAction";

/// Index of `NoAction` in a table's action list; `None` if the table does not list it.
pub(super) fn listed_no_action(control: &ir::Control, table: &ir::Table) -> Option<usize> {
    table.actions.iter().position(|offered| {
        let action = control.actions.get(offered.action.index());
        action.is_some_and(|a| a.name == NO_ACTION)
    })
}

/// Whether a table's default action is a `NoAction` that is missing in the table's action list.
pub(super) fn implies_no_action(control: &ir::Control, table: &ir::Table) -> bool {
    table.default_action.action.is_none() && listed_no_action(control, table).is_none()
}

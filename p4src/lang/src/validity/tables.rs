//! Analyzes tables: the actions that a table may run, and the paths on which it may run them.

use super::state::State;
use super::{Frame, Walk};
use crate::ir::{Arch, BoundAction, Const, Expr, ExprKind, Table, VarId};
use num_bigint::BigUint;
use std::cmp::Reverse;

/// Match kinds with which a table entry may match any value of the key field.
const LEFT_OUT: [&str; 4] = ["ternary", "range", "lpm", "optional"];

/// Maximum number of `const` entries that are analyzed one by one; with more entries, any action may run on any path.
const MAX_ENTRIES: usize = 64;

/// An action that a table may run.
struct ActionRun<'p> {
    /// Index of the action in the table's list; the length of the list stands for a `NoAction` that the table does not list.
    action: usize,
    /// The arguments that the table entry gives to the action; `None` if they are not known.
    data: Option<&'p [Const]>,
    hit: State,
    miss: State,
}

impl<'p> Walk<'p> {
    /// Whether `e` is `isValid()` of the header whose field the expression `field` reads.
    fn is_validity_of(&self, frame: Frame<'p>, e: &Expr, field: &Expr) -> bool {
        match (&e.kind, &field.kind) {
            (ExprKind::IsValid(header), ExprKind::Read(field)) => {
                let header = self.name(frame, header);
                let field = self.name(frame, field);
                field.rsplit_once('.').is_some_and(|(of, _)| of == header)
            }
            (_, ExprKind::Cast(inner) | ExprKind::Slice(inner, ..)) => {
                self.is_validity_of(frame, e, inner)
            }
            _ => false,
        }
    }

    pub(super) fn table(
        &mut self,
        frame: Frame<'p>,
        table: usize,
        (hit, action_run): (Option<VarId>, Option<VarId>),
        mut state: State,
    ) -> State {
        let Some(table) = frame.unit.control.and_then(|c| c.tables.get(table)) else {
            return state;
        };
        for key in &table.key {
            // v1model looks up 0 for a field of an invalid header. In other architectures an entry may also match on the header's
            // validity, or match any value of the field.
            let asks = |other: &Expr| self.is_validity_of(frame, other, &key.expr);
            let is_guarded = table.key.iter().any(|other| asks(&other.expr));
            let may_be_left_out = LEFT_OUT.contains(&key.match_kind.as_str());
            if self.program.arch != Arch::V1model && !is_guarded && !may_be_left_out {
                self.read(frame, &key.expr, &mut state);
            }
        }
        let span = self.span;
        let mut after = State::default();
        for run in self.runs(frame, table, state) {
            let (mut hits, mut misses) = (run.hit, run.miss);
            if let Some(var) = hit {
                self.let_var(frame, var, 1, &mut hits);
                self.let_var(frame, var, 0, &mut misses);
            }
            let mut state = self.join(hits, misses);
            if let Some(offered) = table.actions.get(run.action) {
                state = self.block(frame, &offered.calls, state);
                state = self.action(frame, offered.action, &offered.args, run.data, state);
                self.span = span;
            }
            if let Some(var) = action_run {
                self.let_var(frame, var, run.action, &mut state);
            }
            after = self.join(after, state);
        }
        after
    }

    /// The actions that a table may run; its entries are known if they are `const`.
    fn runs(&mut self, frame: Frame<'p>, table: &'p Table, state: State) -> Vec<ActionRun<'p>> {
        let follows = table.const_entries && table.entries.len() <= MAX_ENTRIES;
        let mut runs = Vec::new();
        let mut rest = state.clone();
        if follows {
            let mut entries: Vec<_> = table.entries.iter().collect();
            entries.sort_by_key(|entry| Reverse(entry.priority));
            for entry in entries {
                let keys = table.key.iter().map(|key| &key.expr);
                let (hit, other) = self.case(frame, keys, &entry.keys, rest);
                rest = other;
                runs.push(ActionRun {
                    hit,
                    miss: State::default(),
                    ..run(table, &entry.action)
                });
            }
        }
        let is_constant = table.const_default;
        for action in 0..=table.actions.len() {
            let on = |may_be: bool, state: &State| match may_be {
                true => state.clone(),
                false => State::default(),
            };
            runs.push(ActionRun {
                action,
                data: None,
                hit: on(!follows && may_hit(table, action), &state),
                miss: on(!is_constant && may_miss(table, action), &rest),
            });
        }
        if is_constant {
            runs.push(ActionRun {
                miss: rest,
                ..run(table, &table.default_action)
            });
        }
        runs
    }

    /// Sets a variable to a number, such as the index of the action that ran.
    fn let_var(&mut self, frame: Frame<'p>, var: VarId, number: usize, state: &mut State) {
        let place = self.var(frame, var);
        self.set_value(&place, &BigUint::from(number), state);
        let number = self.places.number(&place);
        state.set.insert(number);
    }
}

fn run<'p>(table: &Table, bound: &'p BoundAction) -> ActionRun<'p> {
    ActionRun {
        action: bound.action.unwrap_or(table.actions.len()),
        data: Some(&bound.args),
        hit: State::default(),
        miss: State::default(),
    }
}

/// Whether a hit may run the action with index `n` of the table's list.
fn may_hit(table: &Table, n: usize) -> bool {
    n < table.actions.len() && !is_annotated(table, n, "defaultonly")
}

/// Whether a miss may run action `n` of a table's list if the default action is not `const`; past the list is `NoAction`.
fn may_miss(table: &Table, n: usize) -> bool {
    match table.actions.get(n) {
        Some(_) => !is_annotated(table, n, "tableonly"),
        None => table.default_action.action.is_none(),
    }
}

fn is_annotated(table: &Table, n: usize, name: &str) -> bool {
    let offered = table.actions.get(n);
    offered.is_some_and(|a| a.annotations.iter().any(|a| a.name == name))
}

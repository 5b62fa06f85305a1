//! Analyzes parsers: it visits each parser state after all states that lead to it, except through loops.

use super::calls::value;
use super::state::State;
use super::{Frame, Walk};
use crate::ir::{Expr, ExprKind, Keyset, Parser, ParserId, Target, Transition};
use std::collections::BTreeSet;

impl<'p> Walk<'p> {
    /// The analysis state after a parser accepts a packet.
    pub(super) fn parser(&mut self, frame: Frame<'p>, id: ParserId, state: State) -> State {
        let parser = &self.program.parsers[id.index()];
        let state = self.block(frame, &parser.init, state);
        let positions = positions(parser);
        let mut before = vec![State::default(); parser.states.len()];
        let mut rounds = vec![0; parser.states.len()];
        let mut accepted = State::default();
        let mut waiting = BTreeSet::new();
        let mut arriving = vec![(Target::State(crate::ir::StateId(0)), state)];
        loop {
            for (target, state) in arriving.drain(..) {
                match target {
                    Target::Accept => accepted = self.join(accepted, state),
                    Target::Reject => {}
                    Target::State(id) => {
                        let at = id.index();
                        if let Some(before) = before.get_mut(at)
                            && self.enters(before, state, rounds[at])
                        {
                            waiting.insert((positions[at], at));
                        }
                    }
                }
            }
            let Some((_, at)) = waiting.pop_first() else {
                return accepted;
            };
            if self.stopped.is_some() {
                return accepted;
            }
            rounds[at] += 1;
            let here = &parser.states[at];
            let mut after = self.block(frame, &here.body, before[at].clone());
            self.span = here.span;
            match &here.transition {
                Transition::Direct(target) => arriving.push((*target, after)),
                Transition::Select { keys, cases } => {
                    for key in keys {
                        self.read(frame, key, &mut after);
                    }
                    for (sets, target) in cases {
                        let (yes, no) = self.case(frame, keys, sets, after);
                        arriving.push((*target, yes));
                        after = no;
                    }
                }
            }
        }
    }

    /// Splits the paths by a `select` case or table entry: (paths on which its keysets match, other paths).
    pub(super) fn case(
        &mut self,
        frame: Frame<'p>,
        keys: impl IntoIterator<Item = &'p Expr>,
        sets: &'p [Keyset],
        state: State,
    ) -> (State, State) {
        let (mut matches, mut other) = (state, State::default());
        for (key, set) in keys.into_iter().zip(sets) {
            let constant = match set {
                Keyset::Any => continue,
                Keyset::Value(Expr {
                    kind: ExprKind::Const(constant),
                    ..
                }) => value(constant),
                _ => None,
            };
            let (yes, no) = self.equal(frame, key, constant.as_ref(), matches);
            matches = yes;
            other = self.join(other, no);
        }
        (matches, other)
    }
}

/// For each parser state, its position in an order in which it follows all states that lead to it, except through loops.
fn positions(parser: &Parser) -> Vec<usize> {
    let targets = |at: usize| -> Vec<Target> {
        match parser.states.get(at).map(|state| &state.transition) {
            Some(Transition::Direct(target)) => vec![*target],
            Some(Transition::Select { cases, .. }) => cases.iter().map(|(_, to)| *to).collect(),
            None => Vec::new(),
        }
    };
    let count = parser.states.len();
    let mut positions = vec![count; count];
    let mut met = vec![false; count];
    let mut next = count;
    let mut open = vec![(0, targets(0))];
    while let Some((at, left)) = open.last_mut() {
        let at = *at;
        match left.pop() {
            Some(Target::State(id)) if !met.get(id.index()).copied().unwrap_or(true) => {
                met[id.index()] = true;
                open.push((id.index(), targets(id.index())));
            }
            Some(_) => {}
            None => {
                open.pop();
                next = next.saturating_sub(1);
                if let Some(position) = positions.get_mut(at) {
                    *position = next;
                }
            }
        }
    }
    positions
}

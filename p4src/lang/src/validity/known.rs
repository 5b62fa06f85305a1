//! The analysis's knowledge at a program point (paths and their facts), and operations on it.

use super::MAX_FACTS;
use super::Walk;
use super::paths::Paths;
use super::state::{Kind, State, Value, VarPart};
use super::statements::MAX_ROUNDS;
use num_bigint::BigUint;

/// Maximum number of decision diagram nodes of a set of paths; `bound` replaces a larger set by a simpler superset.
const MAX_SIZE: usize = 8_000;

impl Walk<'_> {
    /// The union of the paths of two states.
    pub(super) fn join(&mut self, mut a: State, b: State) -> State {
        if b.is_unreachable() {
            return a;
        }
        if a.is_unreachable() {
            return b;
        }
        let before = a.paths;
        a.paths = self.diagrams.join(a.paths, b.paths);
        a.set.extend(b.set);
        if ![before, b.paths].contains(&a.paths) {
            self.bound(&mut a);
        }
        a
    }

    /// Adds the paths `more` to those that enter a loop (`head`); returns whether `head` changed. After `MAX_ROUNDS` rounds it
    /// drops the relations between facts, so that `head` soon stays the same.
    pub(super) fn enters(&mut self, head: &mut State, more: State, rounds: u32) -> bool {
        let before = (head.paths, head.set.len());
        *head = self.join(std::mem::take(head), more);
        if rounds >= MAX_ROUNDS {
            head.paths = self.diagrams.unrelated(head.paths);
        }
        before != (head.paths, head.set.len())
    }

    /// Replaces a set of paths that is too large by a simpler superset: forgets values, then all relations between facts.
    pub(super) fn bound(&mut self, state: &mut State) {
        if !self.diagrams.is_larger(state.paths, MAX_SIZE) {
            return;
        }
        self.coarse.entry(self.unit).or_insert(self.span);
        let values = self.facts.all_values().flat_map(|value| &value.equals);
        for (_, fact) in values {
            state.paths = self.diagrams.forget(state.paths, *fact);
            let is_larger = self.diagrams.is_larger(state.paths, MAX_SIZE);
            if !is_larger {
                return;
            }
            if self.diagrams.is_larger(state.paths, 4 * MAX_SIZE) {
                break;
            }
        }
        state.paths = self.diagrams.unrelated(state.paths);
    }

    /// Ends the analysis at the current statement.
    pub(super) fn stop(&mut self) {
        self.stopped.get_or_insert((self.unit, self.span));
    }

    /// Number of the fact that a header is valid.
    pub(super) fn fact(&mut self, header: &VarPart) -> u32 {
        if self.is_first {
            self.facts.meet(header, Kind::Header);
            return 0;
        }
        let fact = self.facts.header(header);
        if self.facts.len() > MAX_FACTS {
            self.stop();
        }
        fact
    }

    /// Splits the paths: (paths on which a fact holds, paths on which it does not).
    pub(super) fn split(&mut self, state: State, fact: u32) -> (State, State) {
        if self.is_first {
            return (state.clone(), state);
        }
        let yes = self.diagrams.where_is(state.paths, fact, true);
        let no = self.diagrams.where_is(state.paths, fact, false);
        (state.on(yes), state.on(no))
    }

    /// Sets a fact to true or false on all paths.
    pub(super) fn hold(&mut self, state: &mut State, fact: u32, holds: bool) {
        if !self.is_first {
            state.paths = self.diagrams.set(state.paths, fact, holds);
        }
    }

    /// Sets the fact `to` to the value of the fact `from` on each path.
    pub(super) fn hold_as(&mut self, state: &mut State, to: u32, from: u32) {
        if !self.is_first {
            state.paths = self.diagrams.copy(state.paths, to, from);
        }
    }

    /// Whether a fact holds: (on some path, on all paths).
    pub(super) fn known(&mut self, state: &State, fact: u32) -> (bool, bool) {
        if self.is_first {
            return (true, false);
        }
        let yes = self.diagrams.where_is(state.paths, fact, true);
        (yes != Paths::NONE, yes == state.paths)
    }

    /// Forgets what is known about all values for which `is` returns true.
    pub(super) fn forget_where(&mut self, state: &mut State, is: impl Fn(&Value) -> bool) {
        for value in self.facts.all_values().filter(|value| is(value)) {
            for (_, fact) in &value.equals {
                state.paths = self.diagrams.forget(state.paths, *fact);
            }
        }
    }

    /// Forgets what is known about the values of a variable or part, and of the fields in it.
    pub(super) fn forget_in(&mut self, place: &VarPart, state: &mut State) {
        for (_, value) in self.facts.values_in(place) {
            for (_, fact) in &value.equals {
                state.paths = self.diagrams.forget(state.paths, *fact);
            }
        }
    }

    /// Sets the value of a variable or part to a constant.
    pub(super) fn set_value(&mut self, place: &VarPart, constant: &BigUint, state: &mut State) {
        if self.is_first {
            self.facts.set(place, constant);
        }
        for (other, fact) in self.facts.value(place).into_iter().flat_map(|v| &v.equals) {
            state.paths = self.diagrams.set(state.paths, *fact, other == constant);
        }
    }

    /// Copies what is known about the values in `from` to `to`, for those constants with which the program compares `to`.
    pub(super) fn copy_values(&mut self, to: &VarPart, from: &VarPart, state: &mut State) {
        if self.is_first {
            self.facts.copy(to, from);
            return;
        }
        for (part, value) in self.facts.values_in(to) {
            let source = self.facts.value(&part.moved(to, from));
            for (constant, fact) in &value.equals {
                let equals = source.into_iter().flat_map(|source| &source.equals);
                let known = equals.into_iter().find(|(other, _)| other == constant);
                state.paths = match known {
                    Some((_, known)) => self.diagrams.copy(state.paths, *fact, *known),
                    None => self.diagrams.forget(state.paths, *fact),
                };
            }
        }
    }

    /// Splits the paths: (paths on which the variable or part `place` equals the constant, other paths).
    pub(super) fn split_value(
        &mut self,
        place: &VarPart,
        constant: &BigUint,
        state: State,
    ) -> (State, State) {
        let (mut yes, mut no) = (state.paths, state.paths);
        for (other, fact) in self.facts.value(place).into_iter().flat_map(|v| &v.equals) {
            let is_it = other == constant;
            yes = self.diagrams.where_is(yes, *fact, is_it);
            if is_it {
                no = self.diagrams.where_is(no, *fact, false);
            }
        }
        (state.on(yes), state.on(no))
    }
}

//! The walk's knowledge at a point, and operations on it.

use super::MAX_FACTS;
use super::Walk;
use super::paths::Paths;
use super::state::{Kind, State, Value, VarPart};
use super::statements::MAX_ROUNDS;
use num_bigint::BigUint;

/// Maximum number of nodes in a set of paths before it is widened.
const MAX_SIZE: usize = 8_000;

impl Walk<'_> {
    /// The union of two states' paths.
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

    /// Adds paths to those that enter a loop; returns whether any is new. After some rounds it drops the relations between facts.
    pub(super) fn enters(&mut self, head: &mut State, more: State, rounds: u32) -> bool {
        let before = (head.paths, head.set.len());
        *head = self.join(std::mem::take(head), more);
        if rounds >= MAX_ROUNDS {
            head.paths = self.diagrams.unrelated(head.paths);
        }
        before != (head.paths, head.set.len())
    }

    /// Widens a set of paths that is too large: first forgets values, then the relations between headers.
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

    /// Ends the walk at this position.
    pub(super) fn stop(&mut self) {
        self.stopped.get_or_insert((self.unit, self.span));
    }

    /// The fact that a header is valid.
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

    /// Splits the paths into those on which a fact holds, and the others.
    pub(super) fn split(&mut self, state: State, fact: u32) -> (State, State) {
        if self.is_first {
            return (state.clone(), state);
        }
        let yes = self.diagrams.where_is(state.paths, fact, true);
        let no = self.diagrams.where_is(state.paths, fact, false);
        (state.on(yes), state.on(no))
    }

    /// Sets a fact to true or false.
    pub(super) fn hold(&mut self, state: &mut State, fact: u32, holds: bool) {
        if !self.is_first {
            state.paths = self.diagrams.set(state.paths, fact, holds);
        }
    }

    /// Sets a fact to the state of another fact.
    pub(super) fn hold_as(&mut self, state: &mut State, to: u32, from: u32) {
        if !self.is_first {
            state.paths = self.diagrams.copy(state.paths, to, from);
        }
    }

    /// Whether a fact holds on some path, and on all paths.
    pub(super) fn known(&mut self, state: &State, fact: u32) -> (bool, bool) {
        if self.is_first {
            return (true, false);
        }
        let yes = self.diagrams.where_is(state.paths, fact, true);
        (yes != Paths::NONE, yes == state.paths)
    }

    /// Forgets the values that satisfy a predicate.
    pub(super) fn forget_where(&mut self, state: &mut State, is: impl Fn(&Value) -> bool) {
        for value in self.facts.all_values().filter(|value| is(value)) {
            for (_, fact) in &value.equals {
                state.paths = self.diagrams.forget(state.paths, *fact);
            }
        }
    }

    /// Forgets the values of a place and its parts.
    pub(super) fn forget_in(&mut self, place: &VarPart, state: &mut State) {
        for (_, value) in self.facts.values_in(place) {
            for (_, fact) in &value.equals {
                state.paths = self.diagrams.forget(state.paths, *fact);
            }
        }
    }

    /// Sets the value of a place to a constant.
    pub(super) fn set_value(&mut self, place: &VarPart, constant: &BigUint, state: &mut State) {
        if self.is_first {
            self.facts.set(place, constant);
        }
        for (other, fact) in self.facts.value(place).into_iter().flat_map(|v| &v.equals) {
            state.paths = self.diagrams.set(state.paths, *fact, other == constant);
        }
    }

    /// Copies the values of a place and its parts to another place, as far as they are followed there.
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

    /// Splits the paths into those on which a place's value equals the constant, and the others.
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

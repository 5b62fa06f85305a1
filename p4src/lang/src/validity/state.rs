//! Places of a program, the facts about them that the walk follows, and the state at a point.

use super::paths::{Diagrams, Paths};
use hashbrown::{HashMap, HashSet};
use num_bigint::BigUint;
use std::collections::{BTreeMap, BTreeSet};

/// A variable, or a part of one.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct VarPart {
    root: u32,
    /// Field indices, from the outermost.
    pub path: Vec<u32>,
}

impl VarPart {
    pub fn field(&self, field: u32) -> VarPart {
        self.follow(&[field])
    }

    pub fn follow(&self, path: &[u32]) -> VarPart {
        VarPart {
            root: self.root,
            path: [&self.path[..], path].concat(),
        }
    }

    /// Whether the other place is this one or a part of it.
    pub fn holds(&self, other: &VarPart) -> bool {
        self.root == other.root && other.path.starts_with(&self.path)
    }

    /// The place in `to` that corresponds to this place in `from`.
    pub fn moved(&self, from: &VarPart, to: &VarPart) -> VarPart {
        to.follow(&self.path[from.path.len()..])
    }
}

/// Numbers the variables of a program as roots of places.
#[derive(Default)]
pub(super) struct VarParts {
    roots: HashMap<(u32, u32), u32>,
    numbers: HashMap<VarPart, u32>,
    all: Vec<VarPart>,
}

impl VarParts {
    /// The place of a variable, given its unit and number.
    pub fn root(&mut self, key: (u32, u32)) -> VarPart {
        let next = self.roots.len() as u32;
        VarPart {
            root: *self.roots.entry(key).or_insert(next),
            path: Vec::new(),
        }
    }

    pub fn number(&mut self, place: &VarPart) -> u32 {
        if let Some(number) = self.numbers.get(place) {
            return *number;
        }
        let number = self.all.len() as u32;
        self.all.push(place.clone());
        self.numbers.insert(place.clone(), number);
        number
    }

    pub fn named(&self, number: u32) -> &VarPart {
        &self.all[number as usize]
    }
}

/// Kinds of places with facts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// A header, with its validity.
    Header,
    /// A field of a header, with its value, which is unknown until it is set.
    Field,
    /// A variable outside of headers, with its value, which is 0 until it is set.
    Variable,
}

/// A value, and the facts that it equals each of its constants.
pub(super) struct Value {
    pub kind: Kind,
    pub equals: Vec<(BigUint, u32)>,
}

/// The facts: a header is valid; a value equals a constant that the program compares it with.
///
/// The first walk meets the facts, then they are numbered in the order of their first occurrence: facts that are close in the
/// program are close in a diagram, which keeps it small.
#[derive(Default)]
pub(super) struct Facts {
    /// Headers, and values with the constants that they are set to or compared with.
    met: Vec<(VarPart, Option<BigUint>)>,
    met_before: HashSet<(VarPart, Option<BigUint>)>,
    kinds: HashMap<VarPart, Kind>,
    compared: BTreeMap<VarPart, BTreeSet<BigUint>>,
    copied: BTreeSet<(VarPart, VarPart)>,
    headers: HashMap<VarPart, u32>,
    values: BTreeMap<VarPart, Value>,
    /// For each fact, its initial value; `None` if unknown.
    initial: Vec<Option<bool>>,
}

impl Facts {
    /// Records a place and its kind, in the first walk.
    pub fn meet(&mut self, place: &VarPart, kind: Kind) {
        self.kinds.entry(place.clone()).or_insert(kind);
        if kind == Kind::Header {
            self.meet_fact(place, None);
        }
    }

    fn meet_fact(&mut self, place: &VarPart, constant: Option<&BigUint>) {
        let fact = (place.clone(), constant.cloned());
        if self.met_before.insert(fact.clone()) {
            self.met.push(fact);
        }
    }

    /// Records a constant that a value is set to, in the first walk.
    pub fn set(&mut self, place: &VarPart, constant: &BigUint) {
        self.meet_fact(place, Some(constant));
    }

    /// Records a comparison, in the first walk.
    pub fn compare(&mut self, place: &VarPart, constant: BigUint) {
        self.meet_fact(place, Some(&constant));
        let constants = self.compared.entry(place.clone()).or_default();
        constants.insert(constant);
    }

    /// Records a copy, in the first walk.
    pub fn copy(&mut self, to: &VarPart, from: &VarPart) {
        self.copied.insert((to.clone(), from.clone()));
    }

    /// Numbers the facts, after the first walk.
    pub fn number(&mut self) {
        while self.compare_sources() {}
        for (place, constant) in std::mem::take(&mut self.met) {
            let Some(constant) = constant else {
                self.header(&place);
                continue;
            };
            let compared = self.compared.get(&place);
            if !compared.is_some_and(|constants| constants.contains(&constant)) {
                continue;
            }
            let kind = self.kinds.get(&place).copied().unwrap_or(Kind::Field);
            let at_first = (kind == Kind::Variable).then(|| constant == BigUint::ZERO);
            let fact = self.initial.len() as u32;
            self.initial.push(at_first);
            let equals = Vec::new();
            let value = self.values.entry(place).or_insert(Value { kind, equals });
            value.equals.push((constant, fact));
        }
    }

    /// Adds the constants of each copied value's destination to its source's comparisons; returns whether any is new.
    fn compare_sources(&mut self) -> bool {
        let mut found = Vec::new();
        for (to, from) in &self.copied {
            let parts = self.compared.range(to..).take_while(|(p, _)| to.holds(p));
            for (part, constants) in parts {
                let source = part.moved(to, from);
                let known = self.compared.get(&source);
                if !known.is_some_and(|known| known.is_superset(constants)) {
                    found.push((source, constants.clone()));
                }
            }
        }
        let is_new = !found.is_empty();
        for (place, constants) in found {
            for constant in constants {
                self.compare(&place, constant);
            }
        }
        is_new
    }

    /// The fact that a header is valid.
    pub fn header(&mut self, place: &VarPart) -> u32 {
        let next = self.initial.len() as u32;
        let fact = *self.headers.entry(place.clone()).or_insert(next);
        if fact == next {
            self.initial.push(Some(false));
        }
        fact
    }

    pub fn value(&self, place: &VarPart) -> Option<&Value> {
        self.values.get(place)
    }

    /// The values of a place and its parts.
    pub fn values_in(&self, place: &VarPart) -> impl Iterator<Item = (&VarPart, &Value)> {
        let from = self.values.range(place..);
        from.take_while(|(part, _)| place.holds(part))
    }

    pub fn all_values(&self) -> impl Iterator<Item = &Value> {
        self.values.values()
    }

    pub fn len(&self) -> usize {
        self.initial.len()
    }

    /// The paths at the start, before any value is set.
    pub fn start(&self, diagrams: &mut Diagrams) -> Paths {
        let known = (0..).zip(&self.initial);
        diagrams.cube(
            &known
                .filter_map(|(fact, is)| Some((fact, (*is)?)))
                .collect(),
        )
    }
}

/// The paths that reach a point; by default none, so the point is unreachable.
#[derive(Debug, Clone, Default)]
pub(super) struct State {
    pub paths: Paths,
    /// Places that are set on some path.
    pub set: BTreeSet<u32>,
}

impl State {
    pub fn is_unreachable(&self) -> bool {
        self.paths == Paths::NONE
    }

    /// This state with other paths.
    pub fn on(&self, paths: Paths) -> State {
        State {
            paths,
            set: self.set.clone(),
        }
    }
}

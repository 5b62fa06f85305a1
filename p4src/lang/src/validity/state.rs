//! Variables and their parts, the facts about them that the analysis follows, and the state of the analysis at a program point.

use super::paths::{Diagrams, Paths};
use hashbrown::{HashMap, HashSet};
use num_bigint::BigUint;
use std::collections::{BTreeMap, BTreeSet};

/// A variable, or a part of a variable: a field of it, or a field of a field.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct VarPart {
    root: u32,
    /// Field indices from the variable to the part, the outermost first.
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

    /// Whether `other` is this variable or part, or a field inside it.
    pub fn holds(&self, other: &VarPart) -> bool {
        self.root == other.root && other.path.starts_with(&self.path)
    }

    /// The part of `to` that corresponds to this part of `from`: `a.f.g`, moved from `a` to `b`, is `b.f.g`.
    pub fn moved(&self, from: &VarPart, to: &VarPart) -> VarPart {
        to.follow(&self.path[from.path.len()..])
    }
}

/// Gives numbers to the variables of a program and to their parts.
#[derive(Default)]
pub(super) struct VarParts {
    roots: HashMap<(u32, u32), u32>,
    numbers: HashMap<VarPart, u32>,
    all: Vec<VarPart>,
}

impl VarParts {
    /// A whole variable; `key` is the number of its parser, control or function, and the variable's number there.
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

/// Kinds of variables and parts about which the analysis knows facts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// A header; the fact is its validity.
    Header,
    /// A field of a header, whose value is unknown until the program sets it.
    Field,
    /// A variable outside of headers, whose value is 0 until the program sets it.
    Variable,
}

/// The facts about a value: for each constant in `equals`, the number of the fact that the value equals this constant.
pub(super) struct Value {
    pub kind: Kind,
    pub equals: Vec<(BigUint, u32)>,
}

/// The facts: a header is valid; a value equals a constant that the program compares it with.
///
/// The first walk through the program collects the facts. Then they are numbered in order of first occurrence: facts that are
/// close in the program get close numbers, which keeps decision diagrams small.
#[derive(Default)]
pub(super) struct Facts {
    /// Collected facts in order of first occurrence: (header, `None`), or (value, constant that it is set to or compared with).
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
    /// Records a variable or part and its kind, in the first walk.
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

    /// Records a constant to which a value is set, in the first walk.
    pub fn set(&mut self, place: &VarPart, constant: &BigUint) {
        self.meet_fact(place, Some(constant));
    }

    /// Records a comparison of a value with a constant, in the first walk.
    pub fn compare(&mut self, place: &VarPart, constant: BigUint) {
        self.meet_fact(place, Some(&constant));
        let constants = self.compared.entry(place.clone()).or_default();
        constants.insert(constant);
    }

    /// Records a copy of the value of `from` to `to`, in the first walk.
    pub fn copy(&mut self, to: &VarPart, from: &VarPart) {
        self.copied.insert((to.clone(), from.clone()));
    }

    /// Gives numbers to the recorded facts, after the first walk.
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

    /// If a copied value is compared with constants, counts its source as compared with them too. Returns whether that is new.
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

    /// Number of the fact that a header is valid.
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

    /// The values of a variable or part, and of the fields in it.
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

    /// The set of paths at the start of a parser, before the program sets any value.
    pub fn start(&self, diagrams: &mut Diagrams) -> Paths {
        let known = (0..).zip(&self.initial);
        diagrams.cube(
            &known
                .filter_map(|(fact, is)| Some((fact, (*is)?)))
                .collect(),
        )
    }
}

/// The paths that reach a program point; the default has no path, so the point is unreachable.
#[derive(Debug, Clone, Default)]
pub(super) struct State {
    pub paths: Paths,
    /// Numbers of the variables and parts that the program has set on some path.
    pub set: BTreeSet<u32>,
}

impl State {
    pub fn is_unreachable(&self) -> bool {
        self.paths == Paths::NONE
    }

    /// A copy of this state with other paths.
    pub fn on(&self, paths: Paths) -> State {
        State {
            paths,
            set: self.set.clone(),
        }
    }
}

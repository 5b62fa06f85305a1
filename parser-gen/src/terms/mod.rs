//! Filters as table entries: a disjunction of terms, each a conjunction of one constraint per match key.
//!
//! Negations are pushed down to comparisons, each comparison or its complement becomes a list of terms, `and` multiplies lists,
//! `or` joins them. All entries of a flow have equal actions, so no term depends on another's priority.

mod implied;
mod ranges;
mod text;

use std::collections::BTreeMap;

use crate::filter::{Expr, Node, Test, ValueSet};
use crate::library::max_value;
use crate::library::{Kind, Library, ProtocolId};
pub(crate) use implied::Implications;
pub(crate) use ranges::Ranges;
use text::TextField;

/// Maximum number of terms of a filter, intermediate results included.
pub(crate) const MAX_TERMS: usize = 512;

/// Match key that a term may constrain. The order is that of a diagram's levels and of a table's key fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum MatchKey {
    /// One bit: whether the packet has the protocol.
    Present(ProtocolId),
    /// One bit: whether an element (by its index) of a message was read or, for the text at the end, begun.
    There(ProtocolId, usize),
    /// Value of a field (by its index) of a header, of the metadata, or of a number in a message.
    Field(ProtocolId, usize),
    /// One bit: whether this many bytes (last number) are present from a text's beginning on, in the text or behind it.
    AtLeast(ProtocolId, usize, usize),
    /// Byte of a text: after the text's index, the text's length if parsing depends on it, otherwise 0; and the byte's index.
    Byte(ProtocolId, usize, usize, usize),
}

impl MatchKey {
    /// Largest value that the match key can have.
    pub fn largest(&self, library: &Library) -> u128 {
        match self {
            MatchKey::Field(id, index) => max_of(library, *id, *index),
            MatchKey::Byte(..) => 0xff,
            _ => 1,
        }
    }
}

/// Largest value of a numeric field, by its index.
fn max_of(library: &Library, id: ProtocolId, index: usize) -> u128 {
    let protocol = &library.protocols[id];
    match protocol.elements().get(index).map(|element| &element.kind) {
        Some(Kind::Decimal { max, .. }) => 10_u128.pow(*max as u32) - 1,
        _ => max_value(protocol.fields[index].bits),
    }
}

/// Term: a constraint for each of some match keys. A key without a constraint may have any value.
pub(crate) type Term = BTreeMap<MatchKey, Ranges>;

/// Why a filter cannot be written as terms.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum TermError {
    /// The filter has more than [`MAX_TERMS`] terms.
    TooMany,
    /// The filter was typed with another protocol library, which has this name; this library lacks it.
    Unknown(String),
}

/// Terms of a filter; the filter holds if any of the terms holds.
pub(crate) fn terms(library: &Library, root: &Node) -> Result<Vec<Term>, TermError> {
    Lowering { library }.node(root, true)
}

struct Lowering<'a> {
    library: &'a Library,
}

impl Lowering<'_> {
    fn node(&self, node: &Node, holds: bool) -> Result<Vec<Term>, TermError> {
        match (&node.expr, holds) {
            (Expr::Not(inner), _) => self.node(inner, !holds),
            (Expr::Or(parts), true) | (Expr::And(parts), false) => {
                let mut terms = Vec::new();
                for part in parts {
                    terms.extend(self.node(part, holds)?);
                    terms = without_subsumed(terms)?;
                }
                Ok(terms)
            }
            (Expr::And(parts), true) | (Expr::Or(parts), false) => {
                let mut terms = vec![Term::new()];
                for part in parts {
                    terms = product(&terms, &self.node(part, holds)?)?;
                }
                Ok(terms)
            }
            (Expr::Present { protocol }, _) => {
                let id = self
                    .library
                    .protocol_by_filter(protocol)
                    .ok_or_else(|| TermError::Unknown(protocol.clone()))?;
                Ok(vec![Term::from([bit(MatchKey::Present(id), holds)])])
            }
            (Expr::Test(test), _) => self.test(test, holds),
        }
    }

    /// Terms of a comparison. `!=` and a negation both take the complement; they differ for a packet without the field.
    fn test(&self, test: &Test, holds: bool) -> Result<Vec<Term>, TermError> {
        let field = self
            .library
            .field(&test.field)
            .ok_or_else(|| TermError::Unknown(test.field.clone()))?;
        let within = holds != test.negated;
        let present = self.present(field.protocol, field.index);
        let mut terms = match &test.set {
            ValueSet::Numbers(ranges) => {
                let key = MatchKey::Field(field.protocol, field.index);
                let values = match Ranges::new(ranges.clone()) {
                    Some(inside) if !within => inside.complement(key.largest(self.library)),
                    inside => inside,
                };
                let present = present.clone();
                values
                    .map(|values| present.into_iter().chain([(key, values)]).collect())
                    .into_iter()
                    .collect()
            }
            ValueSet::Texts(patterns) => {
                let text = TextField::new(self.library, field.protocol, field.index, test);
                let mut terms = vec![present.clone().into_iter().collect::<Term>()];
                if within {
                    let equal = patterns.iter().flat_map(|pattern| text.equal(pattern));
                    terms = product(&terms, &without_subsumed(equal.collect())?)?;
                } else {
                    for pattern in patterns {
                        terms = product(&terms, &text.differs(pattern))?;
                    }
                }
                terms
            }
        };
        if !holds {
            // A packet without the field fulfills no comparison, so it fulfills the negation of every comparison.
            terms.extend(present.map(|(key, _)| Term::from([bit(key, false)])));
        }
        without_subsumed(terms)
    }

    /// Constraint that the packet has a field; `None` for a field of the metadata, which every packet has.
    fn present(&self, id: ProtocolId, index: usize) -> Option<(MatchKey, Ranges)> {
        let protocol = &self.library.protocols[id];
        if !protocol.elements().is_empty() {
            return Some(bit(MatchKey::There(id, index), true));
        }
        self.library
            .protocol_by_filter(&protocol.filter)
            .map(|id| bit(MatchKey::Present(id), true))
    }
}

/// Index of the element that holds the length of a counted text: the last element before the text that is not a literal.
pub(crate) fn number_before(library: &Library, id: ProtocolId, index: usize) -> usize {
    let mut before = library.protocols[id].elements()[..index].iter();
    before
        .rposition(|element| !matches!(element.kind, Kind::Literal(_)))
        .unwrap_or(0)
}

fn bit(key: MatchKey, set: bool) -> (MatchKey, Ranges) {
    (key, Ranges::single(u128::from(set)))
}

fn intersect(a: &Term, b: &Term) -> Option<Term> {
    let mut both = a.clone();
    for (key, constraint) in b {
        let merged = match both.get(key) {
            None => constraint.clone(),
            Some(other) => other.and(constraint)?,
        };
        both.insert(*key, merged);
    }
    Some(both)
}

fn product(a: &[Term], b: &[Term]) -> Result<Vec<Term>, TermError> {
    // Both lists are bounded, so there are at most 4 · MAX_TERMS² intersections.
    let mut terms = Vec::new();
    for a in a {
        terms.extend(b.iter().filter_map(|b| intersect(a, b)));
        if terms.len() > 8 * MAX_TERMS {
            return Err(TermError::TooMany);
        }
    }
    without_subsumed(terms)
}

/// Removes every term that implies another term of the list; keeps the order of the others.
fn without_subsumed(terms: Vec<Term>) -> Result<Vec<Term>, TermError> {
    let mut kept: Vec<Term> = Vec::new();
    for term in terms {
        if kept.iter().any(|other| implies(&term, other)) {
            continue;
        }
        kept.retain(|other| !implies(other, &term));
        kept.push(term);
        if kept.len() > MAX_TERMS {
            return Err(TermError::TooMany);
        }
    }
    Ok(kept)
}

fn implies(a: &Term, b: &Term) -> bool {
    b.iter()
        .all(|(key, wide)| a.get(key).is_some_and(|narrow| narrow.is_within(wide)))
}

//! Filters as table entries: a disjunction of terms, each a conjunction of one constraint per match key.
//!
//! Negations are pushed down to comparisons, every comparison and every complement of one becomes a list of terms,
//! `and` multiplies lists, `or` joins them. All entries of a flow do the same, so no term depends on another's
//! priority.

mod implied;
mod ranges;
mod text;

use std::collections::BTreeMap;

use crate::filter::typing::max_value;
use crate::filter::{Expr, Node, Test, TextPattern, ValueSet};
use crate::library::{Library, ProtocolId, RESP_COMMAND};
pub(crate) use implied::Implications;
pub(crate) use ranges::Ranges;
use text::{Command, RespKey, TextKeys};

/// Most terms that a filter may have, in the end and on the way.
pub(crate) const MAX_TERMS: usize = 512;

/// What a term may constrain. The order is that of a diagram's levels, and of a table's key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum MatchKey {
    /// The protocol is there. One bit.
    Present(ProtocolId),
    /// A field of a header or of the metadata.
    Field(ProtocolId, usize),
    /// The command name has this many bytes. One bit.
    CommandLength(usize),
    /// A byte of the command name, if it has so many bytes: length and index.
    CommandByte(usize, usize),
    /// The command has a key. One bit.
    KeyPresent,
    /// The key has at least this many bytes. One bit.
    KeyAtLeast(usize),
    /// First, second and third byte of the key's length as it is written.
    KeyLengthByte(usize),
    /// A byte of the key.
    KeyByte(usize),
}

impl MatchKey {
    /// The largest value that it has.
    pub fn max(&self, library: &Library) -> u128 {
        match self {
            MatchKey::Field(id, index) => max_value(library.protocols[*id].fields[*index].bits),
            MatchKey::CommandByte(..) | MatchKey::KeyLengthByte(_) | MatchKey::KeyByte(_) => 0xff,
            _ => 1,
        }
    }
}

/// One constraint per key. A key that is not named may have any value.
pub(crate) type Term = BTreeMap<MatchKey, Ranges>;

/// Why a filter has no terms.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum TermError {
    /// More than [`MAX_TERMS`].
    TooMany,
    /// The filter was typed against another library.
    Unknown(String),
}

/// The terms of a filter: it holds if one of them does.
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

    /// `!=` and a negation both ask for the complement; they differ for a packet without the field.
    fn test(&self, test: &Test, holds: bool) -> Result<Vec<Term>, TermError> {
        let field = self
            .library
            .field(&test.field)
            .ok_or_else(|| TermError::Unknown(test.field.clone()))?;
        let within = holds != test.negated;
        let mut terms = match &test.set {
            ValueSet::Numbers(ranges) => {
                let inside = Ranges::of(ranges.clone());
                let values = match inside {
                    Some(inside) if !within => inside.complement(field.bits),
                    inside => inside,
                };
                let key = MatchKey::Field(field.protocol, field.index);
                let present = self.present(field.protocol);
                values
                    .map(|values| present.into_iter().chain([(key, values)]).collect())
                    .into_iter()
                    .collect()
            }
            ValueSet::Texts(patterns) if field.index == RESP_COMMAND => self.texts(
                patterns,
                within,
                &Command {
                    protocol: field.protocol,
                    max: field.max_bytes,
                    test,
                },
            )?,
            ValueSet::Texts(patterns) => self.texts(
                patterns,
                within,
                &RespKey {
                    protocol: field.protocol,
                },
            )?,
        };
        if !holds {
            // A packet without the field passes no comparison, so it passes the negation of every comparison.
            if field.ty.is_text() && field.index != RESP_COMMAND {
                terms.push(Term::from([bit(MatchKey::KeyPresent, false)]));
            }
            terms.extend(
                self.present(field.protocol)
                    .map(|(key, _)| Term::from([bit(key, false)])),
            );
        }
        without_subsumed(terms)
    }

    /// The constraint that a header is there; metadata always is.
    fn present(&self, protocol: ProtocolId) -> Option<(MatchKey, Ranges)> {
        let filter = &self.library.protocols[protocol].filter;
        self.library
            .protocol_by_filter(filter)
            .map(|id| bit(MatchKey::Present(id), true))
    }

    fn texts(
        &self,
        patterns: &[TextPattern],
        within: bool,
        text: &dyn TextKeys,
    ) -> Result<Vec<Term>, TermError> {
        let present = vec![text.present()];
        if within {
            let terms = patterns
                .iter()
                .flat_map(|pattern| text.equal(pattern))
                .collect();
            return product(&present, &without_subsumed(terms)?);
        }
        let mut terms = present;
        for pattern in patterns {
            terms = product(&terms, &text.differs(pattern))?;
        }
        Ok(terms)
    }
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
    normalised(both)
}

/// What keys say of one another: a command name has one length, a long key is also long enough for less. Without this,
/// `redis.command != "GET" && redis.command != "PING"` would pair every bit of one with every bit of the other.
fn normalised(mut term: Term) -> Option<Term> {
    let says = |term: &Term, key: &MatchKey, value: u128| {
        term.get(key).is_some_and(|values| values.is(value))
    };
    let mut lengths = term
        .keys()
        .copied()
        .filter(|key| matches!(key, MatchKey::CommandLength(_)) && says(&term, key, 1));
    let length = lengths.next();
    if lengths.next().is_some() {
        return None;
    }
    let longest = term
        .keys()
        .copied()
        .rev()
        .find(|key| matches!(key, MatchKey::KeyAtLeast(_)) && says(&term, key, 1));
    if let Some(MatchKey::KeyAtLeast(longest)) = longest {
        let contradicts = |key: &MatchKey| match key {
            MatchKey::KeyPresent => true,
            MatchKey::KeyAtLeast(length) => *length < longest,
            _ => false,
        };
        if term
            .keys()
            .any(|key| contradicts(key) && says(&term, key, 0))
        {
            return None;
        }
    }
    if let Some(length) = length {
        term.retain(|key, _| !matches!(key, MatchKey::CommandLength(_)) || *key == length);
    }
    Some(term)
}

fn product(a: &[Term], b: &[Term]) -> Result<Vec<Term>, TermError> {
    // 4 · MAX_TERMS² intersections at most: both lists are bounded.
    let mut terms = Vec::new();
    for a in a {
        terms.extend(b.iter().filter_map(|b| intersect(a, b)));
        if terms.len() > 8 * MAX_TERMS {
            return Err(TermError::TooMany);
        }
    }
    without_subsumed(terms)
}

/// Drops every term that implies another one; order is kept.
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

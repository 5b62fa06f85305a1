//! Remainders of terms: the constraints on a diagram's further levels. Equal remainders have one number.

use std::collections::HashMap;

use super::Open;
use crate::terms::{MatchKey, Ranges, Term};

/// Remainders by number; number 0 is the empty remainder: the term holds.
pub(super) struct Remainders {
    all: Vec<Remainder>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Remainder {
    level: usize,
    ranges: Ranges,
    next: u32,
}

impl Remainders {
    /// Collects all remainders of the flows' terms; also returns each whole term of each flow as an open term.
    pub fn new(levels: &[MatchKey], flows: &[Vec<Term>]) -> (Remainders, Vec<Open>) {
        let mut all = Vec::new();
        let mut numbers: HashMap<Remainder, u32> = HashMap::new();
        let mut open = Vec::new();
        for (flow, terms) in (0..).zip(flows) {
            for term in terms {
                let mut next = 0;
                for (key, ranges) in term.iter().rev() {
                    // `levels` contains the keys of all terms, so the search always succeeds.
                    let level = levels.binary_search(key).unwrap_or_default();
                    let remainder = Remainder {
                        level,
                        ranges: ranges.clone(),
                        next,
                    };
                    next = *numbers.entry(remainder).or_insert_with_key(|remainder| {
                        all.push(remainder.clone());
                        all.len() as u32
                    });
                }
                open.push((flow, next));
            }
        }
        (Remainders { all }, open)
    }

    fn at(&self, number: u32) -> Option<&Remainder> {
        self.all.get((number as usize).checked_sub(1)?)
    }

    /// Next level of the diagram that the remainder tests; `None` for the empty remainder.
    pub fn level(&self, number: u32) -> Option<usize> {
        self.at(number).map(|remainder| remainder.level)
    }

    /// Values that the remainder allows at its next level, and the remainder's number after it; `None` if it is empty.
    pub fn step(&self, number: u32) -> Option<(&Ranges, u32)> {
        self.at(number)
            .map(|remainder| (&remainder.ranges, remainder.next))
    }
}

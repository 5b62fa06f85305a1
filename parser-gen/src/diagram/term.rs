//! What is left of a term below a level, as a number: equal remainders of different terms are the same one.

use std::collections::HashMap;

use super::Open;
use crate::terms::{MatchKey, Ranges, Term};

/// Remainders by number; 0 is "nothing is left: the term holds".
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
    /// All remainders of the flows' terms, and each term as a whole.
    pub fn of(levels: &[MatchKey], flows: &[Vec<Term>]) -> (Remainders, Vec<Open>) {
        let mut all = Vec::new();
        let mut numbers: HashMap<Remainder, u32> = HashMap::new();
        let mut open = Vec::new();
        for (flow, terms) in (0..).zip(flows) {
            for term in terms {
                let mut next = 0;
                for (key, ranges) in term.iter().rev() {
                    // The levels are the keys of all terms.
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

    /// The next level that it looks at.
    pub fn level(&self, number: u32) -> Option<usize> {
        self.at(number).map(|remainder| remainder.level)
    }

    /// The values that it lets pass there, and what is left then.
    pub fn step(&self, number: u32) -> Option<(&Ranges, u32)> {
        self.at(number)
            .map(|remainder| (&remainder.ranges, remainder.next))
    }
}

//! What a term's constraints say of other keys: headers exclude each other, a command name has one length.
//!
//! Without it a diagram would have branches that no packet takes, and classes that no packet is in.

use std::collections::BTreeSet;

use super::{MatchKey, Ranges, Term};
use crate::library::{Library, ProtocolId};

/// What presence of one protocol says of another.
pub(crate) struct Implications {
    keys: BTreeSet<MatchKey>,
    protocols: Vec<ProtocolId>,
    /// By positions in `protocols`: a packet with the first has the second too.
    carried_by: Vec<Vec<bool>>,
    /// A packet with the first may have the second.
    coexist: Vec<Vec<bool>>,
}

impl Implications {
    /// For terms that have these keys.
    pub fn new(library: &Library, keys: BTreeSet<MatchKey>) -> Implications {
        let protocols: Vec<ProtocolId> = keys
            .iter()
            .filter_map(|key| match key {
                MatchKey::Present(id) => Some(*id),
                _ => None,
            })
            .collect();
        let name = |id: &ProtocolId| library.protocols[*id].filter.as_str();
        let table = |of: &dyn Fn(&str, &str) -> bool| {
            let row = |a| protocols.iter().map(|b| of(name(a), name(b))).collect();
            protocols.iter().map(row).collect()
        };
        Implications {
            carried_by: table(&|a, b| library.implied_by(a).contains(b)),
            coexist: table(&|a, b| library.coexist(a, b)),
            keys,
            protocols,
        }
    }

    /// The term with all that follows from it; `None` if that contradicts it.
    pub fn close(&self, term: &Term) -> Option<Term> {
        let mut closed = term.clone();
        let bits = term.iter().filter(|(key, _)| is_bit(key));
        let mut said: Vec<(MatchKey, u128)> = bits
            .filter_map(|(key, values)| {
                [0, 1]
                    .into_iter()
                    .find(|v| values.is(*v))
                    .map(|v| (*key, v))
            })
            .collect();
        while let Some((key, value)) = said.pop() {
            for (key, value) in self.follows(key, value == 1) {
                match closed.get(&key) {
                    Some(values) if !values.contains(value) => return None,
                    Some(_) => {}
                    None => {
                        closed.insert(key, Ranges::single(value));
                        said.push((key, value));
                    }
                }
            }
        }
        Some(closed)
    }

    /// What else holds if this bit has this value.
    fn follows(&self, key: MatchKey, value: bool) -> Vec<(MatchKey, u128)> {
        let all = |is: &dyn Fn(&MatchKey) -> bool, value: u128| -> Vec<(MatchKey, u128)> {
            let keys = self.keys.iter().filter(|key| is(key));
            keys.map(|key| (*key, value)).collect()
        };
        match (key, value) {
            (MatchKey::Present(id), _) => self.of_presence(id, value),
            (MatchKey::CommandLength(length), true) => all(
                &|key| matches!(key, MatchKey::CommandLength(other) if *other != length),
                0,
            ),
            (MatchKey::KeyAtLeast(length), true) => all(
                &|key| match key {
                    MatchKey::KeyPresent => true,
                    MatchKey::KeyAtLeast(other) => *other < length,
                    _ => false,
                },
                1,
            ),
            (MatchKey::KeyAtLeast(length), false) => all(
                &|key| matches!(key, MatchKey::KeyAtLeast(other) if *other > length),
                0,
            ),
            (MatchKey::KeyPresent, false) => all(&|key| matches!(key, MatchKey::KeyAtLeast(_)), 0),
            _ => Vec::new(),
        }
    }

    /// Of text nothing follows from presence: a parser may have read some of it before it found that it is something else.
    fn of_presence(&self, id: ProtocolId, present: bool) -> Vec<(MatchKey, u128)> {
        let Some(at) = self.protocols.iter().position(|other| *other == id) else {
            return Vec::new();
        };
        let mut implied = Vec::new();
        for (other, to) in self.protocols.iter().enumerate() {
            let value = if present {
                match (self.carried_by[at][other], self.coexist[at][other]) {
                    (true, _) => 1,
                    (false, false) => 0,
                    _ => continue,
                }
            } else if self.carried_by[other][at] {
                0
            } else {
                continue;
            };
            implied.push((MatchKey::Present(*to), value));
        }
        implied
    }
}

/// Whether a key is one bit that others follow from.
fn is_bit(key: &MatchKey) -> bool {
    matches!(
        key,
        MatchKey::Present(_)
            | MatchKey::CommandLength(_)
            | MatchKey::KeyPresent
            | MatchKey::KeyAtLeast(_)
    )
}

//! Implications of a term's constraints for other keys: headers exclude each other, a command name has one length.
//!
//! Without them a diagram would have branches that no packet takes, and classes that no packet is in.

use std::collections::{BTreeMap, BTreeSet};

use super::{MatchKey, Ranges, Term};
use crate::library::{Library, ProtocolId};

/// Constraints that the presence of each protocol implies.
pub(crate) struct Implications {
    keys: BTreeSet<MatchKey>,
    protocols: Vec<ProtocolId>,
    /// By two indexes into `protocols`: whether every packet with the first protocol has the second too.
    carried_by: Vec<Vec<bool>>,
    /// By two indexes into `protocols`: whether a packet with the first protocol may have the second.
    coexist: Vec<Vec<bool>>,
    /// Values of select fields that every packet with a protocol has; for `ip`, for example, the EtherType of IPv4.
    selected: BTreeMap<ProtocolId, Vec<(MatchKey, Ranges)>>,
}

impl Implications {
    /// Implications for terms whose constraints are on these keys.
    pub fn new(library: &Library, keys: BTreeSet<MatchKey>) -> Implications {
        let protocols: Vec<ProtocolId> = keys
            .iter()
            .filter_map(|key| match key {
                MatchKey::Present(id) | MatchKey::There(id, _) | MatchKey::AtLeast(id, ..) => {
                    Some(*id)
                }
                _ => None,
            })
            .collect::<BTreeSet<_>>()
            .into_iter()
            .collect();
        let name = |id: &ProtocolId| library.protocols[*id].filter.as_str();
        let table = |of: &dyn Fn(&str, &str) -> bool| {
            let row = |a| protocols.iter().map(|b| of(name(a), name(b))).collect();
            protocols.iter().map(row).collect()
        };
        Implications {
            selected: selected(library, &keys),
            carried_by: table(&|a, b| library.implied_by(a).contains(b)),
            coexist: table(&|a, b| library.coexist(a, b)),
            keys,
            protocols,
        }
    }

    /// Adds all implied constraints to a term; `None` if the implied constraints contradict the term.
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
        let present = closed.iter().filter_map(|(key, values)| match key {
            MatchKey::Present(id) if values.is(1) => self.selected.get(id),
            _ => None,
        });
        let selected: Vec<_> = present.flatten().cloned().collect();
        for (key, values) in selected {
            let both = match closed.get(&key) {
                Some(before) => before.and(&values)?,
                None => values,
            };
            closed.insert(key, both);
        }
        Some(closed)
    }

    /// Constraints that follow if the one-bit key `key` has the value `value`.
    fn follows(&self, key: MatchKey, value: bool) -> Vec<(MatchKey, u128)> {
        let all = |is: &dyn Fn(&MatchKey) -> bool, value: u128| -> Vec<(MatchKey, u128)> {
            let keys = self.keys.iter().filter(|key| is(key));
            keys.map(|key| (*key, value)).collect()
        };
        match (key, value) {
            (MatchKey::Present(id), _) => self.of_presence(id, value),
            // Elements of a message are read in order from its beginning.
            (MatchKey::There(id, index), true) => {
                let mut before = all(
                    &|key| match key {
                        MatchKey::Present(other) => *other == id,
                        MatchKey::There(other, before) => *other == id && *before < index,
                        _ => false,
                    },
                    1,
                );
                before.extend(self.of_presence(id, true));
                before
            }
            (MatchKey::There(id, index), false) => all(
                &|key| match key {
                    MatchKey::There(other, behind) => *other == id && *behind > index,
                    MatchKey::AtLeast(other, behind, _) => *other == id && *behind >= index,
                    _ => false,
                },
                0,
            ),
            (MatchKey::AtLeast(id, index, count), true) => all(
                &|key| match key {
                    MatchKey::AtLeast(other, of, fewer) => {
                        *other == id && *of == index && *fewer < count
                    }
                    _ => false,
                },
                1,
            ),
            (MatchKey::AtLeast(id, index, count), false) => all(
                &|key| match key {
                    MatchKey::AtLeast(other, of, more) => {
                        *other == id && *of == index && *more > count
                    }
                    _ => false,
                },
                0,
            ),
            _ => Vec::new(),
        }
    }

    fn of_presence(&self, id: ProtocolId, present: bool) -> Vec<(MatchKey, u128)> {
        let Some(at) = self.protocols.iter().position(|other| *other == id) else {
            return Vec::new();
        };
        let mut implied = Vec::new();
        for (other, to) in self.protocols.iter().enumerate() {
            let has_too = present && self.carried_by[at][other];
            let lacks_too = if present {
                !self.coexist[at][other]
            } else {
                self.carried_by[other][at]
            };
            let of_other = self.keys.iter().filter(|key| match key {
                MatchKey::Present(of) => of == to,
                // The presence of a message does not imply how much of it is present.
                MatchKey::There(of, _) | MatchKey::AtLeast(of, ..) => of == to && lacks_too,
                _ => false,
            });
            if has_too || lacks_too {
                implied.extend(of_other.map(|key| (*key, u128::from(has_too))));
            }
        }
        implied
    }
}

/// Values of the select fields before each protocol whose presence some term tests, as far as terms test those fields.
fn selected(
    library: &Library,
    keys: &BTreeSet<MatchKey>,
) -> BTreeMap<ProtocolId, Vec<(MatchKey, Ranges)>> {
    let of_protocol = |id: ProtocolId| {
        let implied = library.implied_by(&library.protocols[id].filter);
        let carriers =
            (0..id).filter(|before| implied.contains(library.protocols[*before].filter.as_str()));
        let fields = carriers.flat_map(|before| {
            let fields = library.selecting(before, id).into_iter();
            fields.map(move |(index, values)| (MatchKey::Field(before, index), values))
        });
        let asked = fields.filter(|(key, _)| keys.contains(key));
        let ranges = asked.filter_map(|(key, values)| {
            let ranges = values.into_iter().map(|value| value..=value);
            Some((key, Ranges::new(ranges.collect())?))
        });
        (id, ranges.collect())
    };
    let protocols = keys.iter().filter_map(|key| match key {
        MatchKey::Present(id) => Some(*id),
        _ => None,
    });
    protocols.map(of_protocol).collect()
}

/// Whether a match key is one bit whose value implies other constraints.
fn is_bit(key: &MatchKey) -> bool {
    matches!(
        key,
        MatchKey::Present(_) | MatchKey::There(..) | MatchKey::AtLeast(..)
    )
}

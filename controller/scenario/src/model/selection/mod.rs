//! Selections: on which packets of a flow a fault fires. This model is the reference for the switch's P4.

mod counted;
mod psn;
mod share;

use std::fmt;

pub use counted::Counted;
pub use psn::{Psn, Ranges};
pub use share::Share;

use parser_gen::psn::{Connection, PsnPosition};

use crate::model::decision::{Draws, Words, coarse, probability};

/// A selection of packets, with its parameters in the form that the switch takes.
///
/// A random selection selects a packet if the random draw is at most a limit: p·2³² − 1 for the probability p
/// ([`crate::model::decision::limit`]).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Selection {
    /// Selects no packet (probability 0). The switch gets no table entry.
    Never,
    /// Selects every packet.
    Always,
    /// Selects packets by their ordinal in the flow.
    Counted(Counted),
    /// Selects each packet with the same probability, independently.
    Probability {
        /// Greatest random draw with which a packet is selected.
        limit: u32,
    },
    /// Selects at random with two states, each with its own loss rate (Gilbert 1960, Elliott 1963).
    GilbertElliott(GilbertElliott),
    /// Selects all packets of a random share of the keys.
    Share(Share),
    /// Selects packets by sequence number and round of their RDMA connection.
    Psn(Psn),
}

/// The parameters of the Gilbert-Elliott model of bursty loss: a channel with a good and a bad state. All are limits of draws.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GilbertElliott {
    /// Greatest random draw with which the channel goes from its good to its bad state.
    pub to_bad: u32,
    /// Greatest random draw with which the channel goes from its bad to its good state.
    pub to_good: u32,
    /// Greatest random draw with which a packet is selected while the channel is in its bad state.
    pub loss_bad: u32,
    /// Greatest random draw with which a packet is selected while the channel is in its good state; `None`: no packet is.
    pub loss_good: Option<u32>,
}

/// The state of a fault on a switch for one flow, or for one key of a flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Cell {
    /// For a selection by ordinal: number of packets so far in the current cycle.
    pub index: u32,
    /// Number of packets so far, if a random word is drawn for each packet; otherwise 0.
    pub turn: u32,
    /// Whether the channel of the Gilbert-Elliott model is in its bad state.
    pub bad: bool,
    /// For a selection by sequence number: the state of the RDMA connection.
    pub connection: Connection,
}

/// The inputs of the decision about a packet, apart from the state of its flow or key ([`Cell`]).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Turn {
    /// The decision key of fault and flow, combined with the packet's key (such as its connection) if packets have one.
    pub key: u32,
    /// Hash of the packet's key (such as its connection), which only a selection by `share` uses.
    pub hash: u32,
    /// Position of the packet in its RDMA connection, which only a selection by `psn` uses.
    pub place: Option<PsnPosition>,
    /// Whether the effect needs random words.
    pub draws_words: bool,
}

impl Selection {
    /// Whether the selection draws random words for packets.
    #[must_use]
    #[inline]
    pub fn is_by_chance(&self) -> bool {
        matches!(
            self,
            Selection::Probability { .. } | Selection::GilbertElliott(_) | Selection::Share(_)
        )
    }

    /// Whether the selection selects every packet.
    #[must_use]
    pub fn is_always(&self) -> bool {
        match self {
            Selection::Always | Selection::Probability { limit: u32::MAX } => true,
            Selection::Counted(counted) => counted.is_all(),
            _ => false,
        }
    }

    /// Decides whether the fault fires on the next packet of a flow or key, and updates the cell. Returns the packet's random
    /// words if it fires. Fields of the cell that the selection does not use stay unchanged, because states are compared.
    #[inline]
    pub fn take(
        &self,
        draws: &Draws,
        Turn {
            key,
            hash,
            place,
            draws_words,
        }: Turn,
        cell: &mut Cell,
    ) -> Option<Words> {
        let mut words = Words::default();
        if *self == Selection::Never {
            return None;
        }
        if let Selection::Share(share) = self {
            return share.fires_on(draws, key, hash).then_some(words);
        }
        if self.is_by_chance() || draws_words {
            words = draws.words(key, cell.turn);
            cell.turn = cell.turn.wrapping_add(1);
        }
        let fires = match self {
            Selection::Never | Selection::Share(_) => false,
            Selection::Always => true,
            Selection::Psn(psn) => place.is_some_and(|place| psn.fires_at(place)),
            Selection::Counted(counted) => {
                let fires = counted.fires_at(cell.index);
                cell.index = match cell.index {
                    index if index == counted.last() => 0,
                    index => index + 1,
                };
                fires
            }
            Selection::Probability { limit } => words.u <= *limit,
            Selection::GilbertElliott(chain) => chain.step(words, &mut cell.bad),
        };
        fires.then_some(words)
    }

    /// For each packet of a flow from the first on, whether the fault fires on it; an infinite iterator.
    pub fn decisions<'a>(&'a self, draws: &'a Draws, key: u32) -> impl Iterator<Item = bool> + 'a {
        let mut cell = Cell::default();
        let turn = Turn {
            key,
            ..Turn::default()
        };
        std::iter::from_fn(move || Some(self.take(draws, turn, &mut cell).is_some()))
    }

    /// This selection for a switch whose draws have only `bits` bits: nearest probabilities. `Err`: a probability that becomes
    /// 0.
    pub fn rounded(&self, bits: u32) -> Result<Selection, f64> {
        let round = |limit: u32| coarse(limit, bits).ok_or_else(|| probability(limit));
        Ok(match self {
            Selection::Probability { limit } => Selection::Probability {
                limit: round(*limit)?,
            },
            Selection::GilbertElliott(chain) => Selection::GilbertElliott(GilbertElliott {
                to_bad: round(chain.to_bad)?,
                to_good: round(chain.to_good)?,
                loss_bad: round(chain.loss_bad)?,
                loss_good: chain.loss_good.map(round).transpose()?,
            }),
            Selection::Share(share) => Selection::Share(Share {
                limit: round(share.limit)?,
                ..share.clone()
            }),
            other => other.clone(),
        })
    }

    /// The limits with which the selection compares random draws; empty if it draws none.
    pub fn limits(&self) -> Vec<u32> {
        match self {
            Selection::Probability { limit } => vec![*limit],
            Selection::Share(share) => vec![share.limit],
            Selection::GilbertElliott(chain) => [chain.to_bad, chain.to_good, chain.loss_bad]
                .into_iter()
                .chain(chain.loss_good)
                .collect(),
            _ => Vec::new(),
        }
    }
}

impl GilbertElliott {
    fn step(&self, words: Words, bad: &mut bool) -> bool {
        *bad = if *bad {
            words.u > self.to_good
        } else {
            words.u <= self.to_bad
        };
        if *bad {
            words.v <= self.loss_bad
        } else {
            self.loss_good.is_some_and(|limit| words.v <= limit)
        }
    }
}

/// For users: `every 5th`, `1 %`, `bursts, 1 % in, 33 % out`.
impl fmt::Display for Selection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Selection::Never => f.write_str("none"),
            Selection::Always => f.write_str("all"),
            Selection::Counted(counted) => counted.fmt(f),
            Selection::Share(share) => share.fmt(f),
            Selection::Psn(psn) => psn.fmt(f),
            Selection::Probability { limit } => f.write_str(&percent(*limit)),
            Selection::GilbertElliott(chain) => {
                let (to_bad, to_good) = (percent(chain.to_bad), percent(chain.to_good));
                write!(f, "bursts, {to_bad} in, {to_good} out")
            }
        }
    }
}

/// Text for users: the probability that a random draw is at most `limit`, in percent with four digits.
pub(crate) fn percent(limit: u32) -> String {
    let percent = probability(limit) * 100.0;
    let digits = (3 - percent.log10().floor() as i32).max(0) as usize;
    let text = format!("{percent:.digits$}");
    let text = match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.'),
        false => &text,
    };
    format!("{text} %")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::decision::limit;

    #[test]
    fn selections_are_told_in_few_words() {
        assert_eq!(Selection::Always.to_string(), "all");
        for (probability, told) in [
            (0.01, "1 %"),
            (0.33, "33 %"),
            (0.000_012_34, "0.001234 %"),
            (1.0, "100 %"),
        ] {
            let Some(limit) = limit(probability) else {
                panic!("{probability} selects nothing")
            };
            assert_eq!(Selection::Probability { limit }.to_string(), told);
        }
    }

    #[test]
    fn a_selection_that_counts_draws_words_by_a_count_of_its_own() {
        let (draws, key) = (Draws::of_seed(1), 7);
        let every = Selection::Counted(Counted::every(3));
        let mut cell = Cell::default();
        let taken: Vec<Option<Words>> = (0..9)
            .map(|_| {
                let turn = Turn {
                    key,
                    draws_words: true,
                    ..Turn::default()
                };
                every.take(&draws, turn, &mut cell)
            })
            .collect();
        let words = |turn| Some(draws.words(key, turn));
        let expected = [2, 5, 8].map(words);
        assert_eq!([taken[2], taken[5], taken[8]], expected);
        assert_eq!(taken.iter().flatten().count(), 3);
        assert_ne!(expected[0], expected[1]);
    }
}

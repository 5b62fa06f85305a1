//! Which packets of a flow a fault fires on: the model that the switch is held against.

use crate::decision::decide;

/// A way to select packets, with its parameters as the switch takes them.
///
/// Limits are inclusive: `limit` is p·2³² − 1 ([`crate::decision::limit`]).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Selection {
    /// No packet (probability 0). The switch gets no entry.
    Never,
    /// Every packet.
    Always,
    /// The packet with this ordinal (from 1), once.
    Nth(u32),
    /// Ordinals n, 2n, 3n …
    Every(u32),
    /// Each packet with the same probability, independently.
    Probability {
        /// Greatest decision that fires.
        limit: u32,
    },
    /// Two states with a loss rate each (Gilbert 1960, Elliott 1963).
    GilbertElliott(GilbertElliott),
}

/// The two-state chain's limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GilbertElliott {
    /// Good → bad.
    pub to_bad: u32,
    /// Bad → good.
    pub to_good: u32,
    /// Fires in the bad state.
    pub loss_bad: u32,
    /// Fires in the good state; `None` = never.
    pub loss_good: Option<u32>,
}

impl Selection {
    /// The decisions for one flow of one fault, from ordinal 1 on.
    #[must_use]
    pub fn decisions(self, key: u32, flow_key: u32) -> Decisions {
        Decisions {
            selection: self,
            key,
            flow_key,
            ordinal: 0,
            bad: false,
        }
    }
}

/// Whether the fault fires, packet by packet; never ends. Holds what the switch holds in a cell.
#[derive(Debug, Clone)]
pub struct Decisions {
    selection: Selection,
    key: u32,
    flow_key: u32,
    ordinal: u32,
    bad: bool,
}

impl Decisions {
    fn word(&self, draw: u32) -> u32 {
        decide(self.key, self.flow_key, draw)
    }

    fn step(&mut self, chain: GilbertElliott) -> bool {
        let draw = self.ordinal.wrapping_mul(2);
        let (u, v) = (self.word(draw), self.word(draw.wrapping_add(1)));
        self.bad = if self.bad {
            u > chain.to_good
        } else {
            u <= chain.to_bad
        };
        if self.bad {
            v <= chain.loss_bad
        } else {
            chain.loss_good.is_some_and(|limit| v <= limit)
        }
    }
}

impl Iterator for Decisions {
    type Item = bool;

    fn next(&mut self) -> Option<bool> {
        self.ordinal = self.ordinal.wrapping_add(1);
        Some(match self.selection {
            Selection::Never => false,
            Selection::Always => true,
            Selection::Nth(n) => self.ordinal == n,
            Selection::Every(n) => n != 0 && self.ordinal.is_multiple_of(n),
            Selection::Probability { limit } => self.word(self.ordinal) <= limit,
            Selection::GilbertElliott(chain) => self.step(chain),
        })
    }
}

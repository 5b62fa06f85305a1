//! Which packets of a flow a fault fires on: the model that the switch is held against.

use std::fmt;

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

/// For people: `every 5th`, `1 %`, `bursts 1 % to 33 %`.
impl fmt::Display for Selection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Selection::Never => f.write_str("none"),
            Selection::Always => f.write_str("all"),
            Selection::Nth(n) => write!(f, "the {n}{}", ordinal_suffix(*n)),
            Selection::Every(n) => write!(f, "every {n}{}", ordinal_suffix(*n)),
            Selection::Probability { limit } => f.write_str(&percent(*limit)),
            Selection::GilbertElliott(chain) => {
                let (to_bad, to_good) = (percent(chain.to_bad), percent(chain.to_good));
                write!(f, "bursts, {to_bad} in, {to_good} out")
            }
        }
    }
}

fn ordinal_suffix(n: u32) -> &'static str {
    match (n % 100, n % 10) {
        (11..=13, _) => "th",
        (_, 1) => "st",
        (_, 2) => "nd",
        (_, 3) => "rd",
        _ => "th",
    }
}

/// The probability that a decision is at most `limit`, to four digits.
fn percent(limit: u32) -> String {
    let percent = (f64::from(limit) + 1.0) / 4_294_967_296.0 * 100.0;
    let digits = (3 - percent.log10().floor() as i32).max(0) as usize;
    let text = format!("{percent:.digits$}");
    let text = match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.'),
        false => &text,
    };
    format!("{text} %")
}

/// Whether the fault fires, packet by packet; never ends. Holds what the switch holds in a cell.
#[derive(Debug, Clone, PartialEq, Eq)]
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
        // What does not count stays as it is: states are compared.
        if !matches!(self.selection, Selection::Never | Selection::Always) {
            self.ordinal = self.ordinal.wrapping_add(1);
        }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decision::limit;

    #[test]
    fn selections_are_told_in_few_words() {
        for (selection, told) in [
            (Selection::Always, "all"),
            (Selection::Nth(21), "the 21st"),
            (Selection::Every(13), "every 13th"),
            (Selection::Every(2), "every 2nd"),
        ] {
            assert_eq!(selection.to_string(), told);
        }
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
}

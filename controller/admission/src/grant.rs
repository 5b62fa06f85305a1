//! What a job holds.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use crate::QUARANTINE_NS;

/// What a job holds of a switch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Grant {
    /// Its number on the wire.
    pub number: u16,
    /// Its name, unique among those that run.
    pub name: String,
    /// In whose partition it is; in what no tenant has, if none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tenant: Option<String>,
    /// The first of its slots.
    pub base: u32,
    /// Its slots, a power of two: chunks that a rank may have under way.
    pub window: u32,
    /// What all its frames together may be, in bits a second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate_bps: Option<u64>,
    /// The port that each rank is behind, by rank.
    pub ports: Vec<u32>,
    /// When its lease runs out, on the switch's clock; without one it runs until it is released.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until_ns: Option<u64>,
}

/// What a grant is worth at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// It holds its slots and its ports.
    Running,
    /// It holds nothing; its number waits until frames of it are gone.
    Ended,
    /// Not even that.
    Gone,
}

impl Grant {
    /// What it is worth at a time.
    #[must_use]
    pub fn state(&self, now_ns: u64) -> State {
        match self.until_ns {
            Some(until) if until.saturating_add(QUARANTINE_NS) <= now_ns => State::Gone,
            Some(until) if until <= now_ns => State::Ended,
            _ => State::Running,
        }
    }

    /// Whether it holds its slots.
    #[must_use]
    pub fn runs(&self, now_ns: u64) -> bool {
        self.state(now_ns) == State::Running
    }

    /// Its slots.
    #[must_use]
    pub fn slots(&self) -> Range<u32> {
        self.base..self.base.saturating_add(self.window)
    }

    /// What tells a program that it is to be this rank (docs/pytorch.md, "The job"); empty if there is no such rank.
    #[must_use]
    pub fn environment(&self, rank: usize) -> Vec<(&'static str, String)> {
        let ranks = self.ports.len();
        if rank >= ranks {
            return Vec::new();
        }
        vec![
            ("WEIR_JOB", self.number.to_string()),
            ("WEIR_RANK", rank.to_string()),
            ("WEIR_RANKS", ranks.to_string()),
            ("WEIR_WINDOW", self.window.to_string()),
            // One switch sums all.
            ("WEIR_PLACE", format!("{rank}/{ranks}/{ranks}")),
        ]
    }
}

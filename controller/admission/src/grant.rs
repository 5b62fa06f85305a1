//! The grant of a job.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use crate::QUARANTINE_NS;

/// The resources of a switch that a job holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Grant {
    /// The job's number on the wire.
    pub number: u16,
    /// The job's name, unique among the running jobs.
    pub name: String,
    /// The tenant in whose partition the job's slots are; `None` for the slots without a tenant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tenant: Option<String>,
    /// First slot of the job.
    pub base: u32,
    /// Number of slots, a power of two: the number of chunks that a rank may have in flight.
    pub window: u32,
    /// Maximum rate of all its frames together, in bits per second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate_bps: Option<u64>,
    /// The port that each rank is behind, by rank.
    pub ports: Vec<u32>,
    /// When the lease runs out, on the switch's clock in nanoseconds; without a lease the job runs until it is released.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until_ns: Option<u64>,
}

/// State of a grant at one time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// The job holds its slots and its ports.
    Running,
    /// The job holds nothing; its number is reserved until its frames are gone.
    Ended,
    /// The job's number is free as well.
    Gone,
}

impl Grant {
    /// State of the grant at a time.
    #[must_use]
    pub fn state(&self, now_ns: u64) -> State {
        match self.until_ns {
            Some(until) if until.saturating_add(QUARANTINE_NS) <= now_ns => State::Gone,
            Some(until) if until <= now_ns => State::Ended,
            _ => State::Running,
        }
    }

    /// Whether the job holds its slots.
    #[must_use]
    pub fn runs(&self, now_ns: u64) -> bool {
        self.state(now_ns) == State::Running
    }

    /// The job's slots.
    #[must_use]
    pub fn slots(&self) -> Range<u32> {
        self.base..self.base.saturating_add(self.window)
    }

    /// Environment variables that make a program this rank (docs/pytorch.md, "The job"); empty if there is no such rank.
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
            // One switch sums all ranks.
            ("WEIR_PLACE", format!("{rank}/{ranks}/{ranks}")),
        ]
    }
}

//! A grant: the slots, ports and rate that a switch has given to a job, and until when.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use crate::QUARANTINE_NS;

/// The resources of a switch that a job holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Grant {
    /// Number of the job in its packets' headers.
    pub number: u16,
    /// Name of the job, unique among the running jobs.
    pub name: String,
    /// The tenant in whose partition the job's slots are; `None` for the slots without a tenant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tenant: Option<String>,
    /// Index of the job's first aggregation slot in the switch; its slots are contiguous.
    pub base: u32,
    /// Number of the job's aggregation slots, a power of two: the number of chunks that a rank may have in flight.
    pub window: u32,
    /// Maximum rate of all frames of the job together, in bits per second; `None` for no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate_bps: Option<u64>,
    /// Switch port of each rank: element 0 is the port that rank 0 is behind.
    pub ports: Vec<u32>,
    /// Time at which the lease ends, on the switch's clock in nanoseconds; `None` if the job runs until it is released.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until_ns: Option<u64>,
}

/// State of a job's grant at a given time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// The job runs: it holds its aggregation slots and its ports.
    Running,
    /// The job's slots and ports are free; its number is reserved until its last frames have left the network.
    Ended,
    /// The job's slots, ports and number are all free.
    Gone,
}

impl Grant {
    /// State of the grant at time `now_ns` of the switch's clock.
    #[must_use]
    pub fn state(&self, now_ns: u64) -> State {
        match self.until_ns {
            Some(until) if until.saturating_add(QUARANTINE_NS) <= now_ns => State::Gone,
            Some(until) if until <= now_ns => State::Ended,
            _ => State::Running,
        }
    }

    /// Whether the job still holds its slots at time `now_ns` of the switch's clock.
    #[must_use]
    pub fn runs(&self, now_ns: u64) -> bool {
        self.state(now_ns) == State::Running
    }

    /// Indices of the job's aggregation slots in the switch.
    #[must_use]
    pub fn slots(&self) -> Range<u32> {
        self.base..self.base.saturating_add(self.window)
    }

    /// Environment variables that tell a program that it is this rank of the job (docs/pytorch.md, "The job"); empty if the job
    /// has no such rank.
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

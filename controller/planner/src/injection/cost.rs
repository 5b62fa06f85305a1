//! What a placement is judged by.

use std::cmp::Ordering;

/// A part of something: exact, so that equal loads are equal.
#[derive(Debug, Clone, Copy)]
pub struct Utilisation {
    /// What is taken.
    pub taken: u64,
    /// Of so much; at least 1.
    pub of: u64,
}

impl Utilisation {
    /// Nothing is taken.
    pub const NONE: Utilisation = Utilisation { taken: 0, of: 1 };
    /// All is taken.
    pub const ALL: Utilisation = Utilisation { taken: 1, of: 1 };

    /// As a fraction: 1 is all.
    #[must_use]
    pub fn fraction(self) -> f64 {
        self.taken as f64 / self.of as f64
    }
}

impl Ord for Utilisation {
    fn cmp(&self, other: &Self) -> Ordering {
        let a = u128::from(self.taken) * u128::from(other.of);
        a.cmp(&(u128::from(other.taken) * u128::from(self.of)))
    }
}

impl PartialOrd for Utilisation {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Utilisation {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Utilisation {}

/// What a placement costs, and less is better: the first field that differs decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Cost {
    /// The worst of what binds, over switches and resources.
    pub worst: Utilisation,
    /// The worst of what does not bind: it may be more than 1.
    pub slowest: Utilisation,
    /// Switches at which anything stands.
    pub touched: usize,
    /// Switches that packets cross before they meet what stands on their way, over all flows.
    pub hops: u64,
}

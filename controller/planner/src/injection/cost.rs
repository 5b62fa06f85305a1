//! Cost by which placements of faults are compared.

use std::cmp::Ordering;

/// Share of an amount that is taken, as an exact fraction, so that equal loads compare equal.
#[derive(Debug, Clone, Copy)]
pub struct Utilisation {
    /// Amount that faults take.
    pub taken: u64,
    /// Amount that is available; at least 1.
    pub of: u64,
}

impl Utilisation {
    /// Utilization 0: faults take nothing.
    pub const NONE: Utilisation = Utilisation { taken: 0, of: 1 };
    /// Utilization 1: faults take all that is available.
    pub const ALL: Utilisation = Utilisation { taken: 1, of: 1 };

    /// The utilization as a number; 1 means that everything is taken.
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

/// Cost of a placement of faults. Less is better; the first field that differs decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Cost {
    /// Worst utilization, over all switches, of resources with a hard limit.
    pub worst: Utilisation,
    /// Worst utilization, over all switches, of resources without a hard limit; may exceed 1.
    pub slowest: Utilisation,
    /// Number of switches at which at least one fault is placed.
    pub touched: usize,
    /// Number of switches that packets cross before they meet their faults, summed over all flows.
    pub hops: u64,
}

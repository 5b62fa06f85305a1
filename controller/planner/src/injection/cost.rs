//! Cost by which placements are compared.

use std::cmp::Ordering;

/// Fraction of an amount that is taken: exact, so that equal loads compare equal.
#[derive(Debug, Clone, Copy)]
pub struct Utilisation {
    /// Amount taken.
    pub taken: u64,
    /// Amount available; at least 1.
    pub of: u64,
}

impl Utilisation {
    /// Utilization 0.
    pub const NONE: Utilisation = Utilisation { taken: 0, of: 1 };
    /// Utilization 1.
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

/// Cost of a placement. Less is better; the first field that differs decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Cost {
    /// Worst utilization of binding resources, over all switches.
    pub worst: Utilisation,
    /// Worst utilization of resources that do not bind; may exceed 1.
    pub slowest: Utilisation,
    /// Number of switches at which any fault is placed.
    pub touched: usize,
    /// Number of switches that packets cross before they meet their faults, summed over all flows.
    pub hops: u64,
}

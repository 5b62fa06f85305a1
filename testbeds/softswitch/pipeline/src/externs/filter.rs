//! Tofino's low-pass filters and weighted random early detection, which share the meters' memory.
//!
//! A filter that was never configured lets its input through; a detector never drops.

use super::random::Random;

/// How a cell works.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FilterConfig {
    /// Time constant while the input is above the average; at least 1 ns.
    pub gain_ns: u64,
    /// Time constant while it is below.
    pub decay_ns: u64,
    /// Of a detector: below this average nothing is dropped.
    pub low: u64,
    /// From this average on all is dropped.
    pub high: u64,
    /// Of 1,000,000 at `high`: how many are dropped just before it.
    pub probability_ppm: u32,
}

/// What a filter gives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// The average.
    LowPass,
    /// One of two values.
    EarlyDetection {
        /// To be dropped.
        drop: u64,
        /// To be kept.
        keep: u64,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Cell {
    config: Option<FilterConfig>,
    average: u64,
    updated_ns: u64,
}

/// A filter's cells.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Filter {
    /// Fully qualified name.
    pub name: String,
    kind: Kind,
    cells: Vec<Cell>,
    random: Random,
}

/// Fixed point of the decay.
const ONE: u128 = 1 << 32;

impl Filter {
    /// All cells unconfigured.
    pub fn new(name: String, kind: Kind, size: usize, random: Random) -> Filter {
        Filter {
            name,
            kind,
            cells: vec![Cell::default(); size],
            random,
        }
    }

    /// Sets or removes a cell's configuration; its average starts at 0. `None`: no such cell.
    pub fn configure(
        &mut self,
        index: u64,
        config: Option<FilterConfig>,
        now_ns: u64,
    ) -> Option<()> {
        let cell = self.cells.get_mut(usize::try_from(index).ok()?)?;
        *cell = Cell {
            config,
            average: 0,
            updated_ns: now_ns,
        };
        Some(())
    }

    /// One sample; gives what the program sees.
    pub fn execute(&mut self, index: u64, value: u64, now_ns: u64) -> u64 {
        let cell = usize::try_from(index)
            .ok()
            .and_then(|i| self.cells.get_mut(i));
        let (average, config) = match cell {
            Some(cell) => match cell.config {
                Some(config) => (cell.sample(config, value, now_ns), Some(config)),
                None => (value, None),
            },
            None => (value, None),
        };
        match self.kind {
            Kind::LowPass => average,
            Kind::EarlyDetection { drop, keep } => {
                let Some(config) = config else { return keep };
                if average < config.low {
                    return keep;
                }
                if average >= config.high {
                    return drop;
                }
                let over = u128::from(average - config.low);
                let span = u128::from((config.high - config.low).max(1));
                let chance = u128::from(config.probability_ppm) * over / span;
                if u128::from(self.random.between(0, 999_999)) < chance {
                    drop
                } else {
                    keep
                }
            }
        }
    }
}

impl Cell {
    /// average += (value − average) · (1 − 1 / (1 + Δt/τ)), the first-order filter in integers.
    fn sample(&mut self, config: FilterConfig, value: u64, now_ns: u64) -> u64 {
        let elapsed = now_ns.saturating_sub(self.updated_ns);
        self.updated_ns = now_ns.max(self.updated_ns);
        let tau = if value > self.average {
            config.gain_ns
        } else {
            config.decay_ns
        };
        let weight = ONE * u128::from(elapsed) / (u128::from(elapsed) + u128::from(tau.max(1)));
        let moved = |distance: u64| (u128::from(distance) * weight / ONE) as u64;
        if value > self.average {
            self.average += moved(value - self.average);
        } else {
            self.average -= moved(self.average - value);
        }
        self.average
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config() -> FilterConfig {
        FilterConfig {
            gain_ns: 1000,
            decay_ns: 1000,
            low: 100,
            high: 200,
            probability_ppm: 500_000,
        }
    }

    #[test]
    fn a_low_pass_follows_slowly_and_lets_through_unconfigured() {
        let mut filter = Filter::new("f".into(), Kind::LowPass, 1, Random::new(1, 0, 0, 0));
        assert_eq!(filter.execute(0, 77, 0), 77);
        filter.configure(0, Some(config()), 0).unwrap();
        assert_eq!(filter.execute(0, 1000, 1000), 500, "one time constant");
        assert_eq!(filter.execute(0, 1000, 2000), 750);
        assert_eq!(filter.execute(0, 0, 3000), 375);
        assert_eq!(filter.configure(1, None, 0), None);
    }

    #[test]
    fn early_detection_drops_nothing_below_and_all_above() {
        let kind = Kind::EarlyDetection { drop: 1, keep: 0 };
        let mut filter = Filter::new("w".into(), kind, 1, Random::new(1, 0, 0, 0));
        let steady = FilterConfig {
            gain_ns: 1,
            decay_ns: 1,
            ..config()
        };
        filter.configure(0, Some(steady), 0).unwrap();
        let mut drops = |value: u64, from: u64| {
            (1..=1000u64)
                .map(|i| filter.execute(0, value, (from + i) * 1_000_000_000))
                .sum::<u64>()
        };
        assert_eq!(drops(90, 0), 0);
        assert_eq!(drops(300, 2000), 1000);
        let some = drops(151, 4000);
        assert!((150..350).contains(&some), "{some}");
    }
}

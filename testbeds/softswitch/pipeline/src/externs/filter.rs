//! Tofino's low-pass filters and weighted random early detection, which share memory with the meters.
//!
//! An unconfigured filter passes its input on; an unconfigured detector never drops.

use super::random::Random;

/// Configuration of a cell of a low-pass filter or random early detection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FilterConfig {
    /// Time constant while the input is above the average, in nanoseconds; at least 1.
    pub gain_ns: u64,
    /// Time constant while the input is below the average, in nanoseconds.
    pub decay_ns: u64,
    /// For random early detection: average below which no packet is dropped.
    pub low: u64,
    /// For random early detection: average from which on every packet is dropped.
    pub high: u64,
    /// For random early detection: drop probability for an average just below `high`, in parts per million.
    pub probability_ppm: u32,
}

/// Kind of a filter: what the program gets as its result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FilterKind {
    /// The result is the average of the input.
    LowPass,
    /// The result is a decision to drop or keep the packet, expressed as one of two values.
    EarlyDetection {
        /// Result for a packet to be dropped.
        drop: u64,
        /// Result for a packet to be kept.
        keep: u64,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct FilterCell {
    config: Option<FilterConfig>,
    average: u64,
    updated_ns: u64,
}

/// Position of a direct filter's cells in the entries of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DirectCells {
    /// Index of the table in the state.
    pub table: u32,
    /// Index of the first of the cell's [`CELL_WORDS`] words in the data that the table keeps for each entry.
    pub offset: u32,
}

/// Number of words of a direct filter's cell in a table entry; all zeroes: not configured.
pub const CELL_WORDS: usize = 8;

/// A low-pass filter or random early detection, with its cells.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Filter {
    /// Fully qualified name of the filter.
    pub name: String,
    kind: FilterKind,
    cells: Vec<FilterCell>,
    random: Random,
    /// The position of the cells in a table's entries; `None` for an indexed filter.
    pub direct: Option<DirectCells>,
}

/// The number 1 in the fixed-point format of the decay.
const ONE: u128 = 1 << 32;

impl Filter {
    /// Memory that a filter's cell takes, in bytes.
    pub const CELL_BYTES: usize = size_of::<FilterCell>();

    /// Creates an indexed filter with `size` unconfigured cells.
    pub fn new(name: String, kind: FilterKind, size: usize, random: Random) -> Filter {
        Filter {
            name,
            kind,
            cells: vec![FilterCell::default(); size],
            random,
            direct: None,
        }
    }

    /// The random number generator of the filter's early detection, mutable.
    pub fn random_mut(&mut self) -> &mut Random {
        &mut self.random
    }

    /// Sets a cell's configuration, or removes it; its average starts at 0. Returns `None` if the cell does not exist.
    pub fn configure(
        &mut self,
        index: u64,
        config: Option<FilterConfig>,
        now_ns: u64,
    ) -> Option<()> {
        let cell = self.cells.get_mut(usize::try_from(index).ok()?)?;
        *cell = FilterCell {
            config,
            average: 0,
            updated_ns: now_ns,
        };
        Some(())
    }

    /// Adds a sample to the cell at `index`; returns the filter's result for the program.
    pub fn execute(&mut self, index: u64, value: u64, now_ns: u64) -> u64 {
        let index = usize::try_from(index).ok();
        let cell = index.and_then(|i| self.cells.get_mut(i));
        let sampled = cell.and_then(|cell| cell.sampled(value, now_ns));
        self.given(value, sampled)
    }

    /// Adds a sample to the cell of a table entry, which consists of `words`; returns the filter's result for the program.
    pub fn execute_direct(
        &mut self,
        words: &mut [u64; CELL_WORDS],
        value: u64,
        now_ns: u64,
    ) -> u64 {
        let mut cell = FilterCell::from_words(words);
        let sampled = cell.sampled(value, now_ns);
        if sampled.is_some() {
            *words = cell.words();
        }
        self.given(value, sampled)
    }

    /// The filter's result for the program. `sampled`: new average and the cell's configuration; `None`: not configured.
    fn given(&mut self, value: u64, sampled: Option<(u64, FilterConfig)>) -> u64 {
        let (average, config) = match sampled {
            Some((average, config)) => (average, Some(config)),
            None => (value, None),
        };
        match self.kind {
            FilterKind::LowPass => average,
            FilterKind::EarlyDetection { drop, keep } => {
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

/// The words of a direct filter's cell with this configuration and without samples.
pub fn cell_words(config: Option<FilterConfig>, now_ns: u64) -> [u64; CELL_WORDS] {
    let cell = FilterCell {
        config,
        average: 0,
        updated_ns: now_ns,
    };
    cell.words()
}

impl FilterCell {
    fn words(self) -> [u64; CELL_WORDS] {
        let Some(config) = self.config else {
            return [0; CELL_WORDS];
        };
        [
            1,
            config.gain_ns,
            config.decay_ns,
            config.low,
            config.high,
            config.probability_ppm.into(),
            self.average,
            self.updated_ns,
        ]
    }

    fn from_words(words: &[u64; CELL_WORDS]) -> FilterCell {
        let [set, gain_ns, decay_ns, low, high, ppm, average, updated_ns] = *words;
        let config = FilterConfig {
            gain_ns,
            decay_ns,
            low,
            high,
            probability_ppm: ppm as u32,
        };
        FilterCell {
            config: (set != 0).then_some(config),
            average,
            updated_ns,
        }
    }

    /// Adds a sample to the cell; returns the new average and the configuration, or `None` if the cell is not configured.
    fn sampled(&mut self, value: u64, now_ns: u64) -> Option<(u64, FilterConfig)> {
        let config = self.config?;
        Some((self.sample(config, value, now_ns), config))
    }

    /// Updates the average: average += (value − average) · (1 − 1 / (1 + Δt/τ)), the first-order filter in integers.
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
        let mut filter = Filter::new("f".into(), FilterKind::LowPass, 1, Random::new(1, 0, 0, 0));
        assert_eq!(filter.execute(0, 77, 0), 77);
        filter.configure(0, Some(config()), 0).unwrap();
        assert_eq!(filter.execute(0, 1000, 1000), 500, "one time constant");
        assert_eq!(filter.execute(0, 1000, 2000), 750);
        assert_eq!(filter.execute(0, 0, 3000), 375);
        assert_eq!(filter.configure(1, None, 0), None);
    }

    #[test]
    fn early_detection_drops_nothing_below_and_all_above() {
        let kind = FilterKind::EarlyDetection { drop: 1, keep: 0 };
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

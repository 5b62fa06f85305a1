//! Distributions of random delays: map a drawn word to a time.
//!
//! A switch cannot compute a quantile, so it looks one up: the upper ten bits of the word select one of 1,024 equally likely
//! values. The table is computed here, with arithmetic that gives the same bits on every machine.

use std::fmt;

use crate::units::show_duration;

/// Number of quantiles in the table of a distribution.
pub const QUANTILES: usize = 1024;
/// Number of upper bits of the drawn word that select a quantile.
pub const QUANTILE_BITS: u32 = QUANTILES.ilog2();

/// Index of the quantile that a drawn random word selects: the upper bits of the word.
pub(super) fn quantile_index(w: u32) -> usize {
    (w >> (32 - QUANTILE_BITS)) as usize
}

/// A distribution of random delays, as a table of quantiles.
#[derive(Debug, Clone, PartialEq)]
pub struct Distribution {
    /// Description of the distribution as in the file: `uniform 5ms to 15ms`.
    told: String,
    /// The delays of the table in nanoseconds, ascending: the midpoint of each of the 1,024 quantile intervals.
    quantiles: Box<[u64]>,
}

// The numbers come from a file and are finite.
impl Eq for Distribution {}

/// Maximum delay in nanoseconds, a day and a half: deadlines have 48 bits, and comparing two of them takes one bit.
pub(crate) const MAX_DELAY_NS: u64 = (1 << 47) - 1;

impl Distribution {
    /// Builds the table of quantiles from an inverse distribution function. Negative values become zero.
    fn from_inverse(told: String, inverse: impl Fn(f64) -> f64) -> Distribution {
        let middle = |step: usize| (step as f64 + 0.5) / QUANTILES as f64;
        let quantile = |step| inverse(middle(step)).round().clamp(0.0, u64::MAX as f64) as u64;
        Distribution {
            told,
            quantiles: (0..QUANTILES).map(quantile).collect(),
        }
    }

    /// The uniform distribution: all times from `least_ns` to `most_ns` are equally likely.
    #[must_use]
    pub fn uniform(least_ns: u64, most_ns: u64) -> Distribution {
        let (least, most) = (least_ns as f64, most_ns as f64);
        let told = format!(
            "uniform {} to {}",
            show_duration(least_ns),
            show_duration(most_ns)
        );
        Distribution::from_inverse(told, |p| least + (most - least) * p)
    }

    /// The normal distribution with this mean and standard deviation.
    #[must_use]
    pub fn normal(mean_ns: u64, sd_ns: u64) -> Distribution {
        let told = format!(
            "normal {} ± {}",
            show_duration(mean_ns),
            show_duration(sd_ns)
        );
        Distribution::from_inverse(told, |p| mean_ns as f64 + sd_ns as f64 * standard_normal(p))
    }

    /// The Pareto distribution of the first kind: P(X > x) = (scale / x)^shape.
    #[must_use]
    pub fn pareto(scale_ns: u64, shape: f64) -> Distribution {
        let told = format!("pareto from {}, shape {shape}", show_duration(scale_ns));
        Distribution::from_inverse(told, |p| scale_ns as f64 * standard_pareto(p, shape))
    }

    /// The distribution through these quantiles, in nanoseconds, at equal steps of probability from 0 to 1, joined by lines.
    #[must_use]
    pub fn through(points: &[u64]) -> Distribution {
        let last = points.len().saturating_sub(1);
        let at = |index: usize| points.get(index).copied().unwrap_or(0) as f64;
        let told = format!(
            "through {} quantiles, {} to {}",
            points.len(),
            show_duration(at(0) as u64),
            show_duration(at(last) as u64)
        );
        Distribution::from_inverse(told, |p| {
            let place = p * last as f64;
            let below = place.floor() as usize;
            at(below) + (at((below + 1).min(last)) - at(below)) * (place - place.floor())
        })
    }

    /// netem's distribution: latency plus or minus jitter, in the shape of its tables (iproute2, `netem/`).
    pub(crate) fn jittered(latency_ns: u64, jitter_ns: u64, shape: &str) -> Distribution {
        let (latency, jitter) = (latency_ns as f64, jitter_ns as f64);
        let told = format!(
            "{} ± {} {shape}",
            show_duration(latency_ns),
            show_duration(jitter_ns)
        );
        // netem's Pareto table has shape 3; its mean of 1.5 is subtracted, and 4/3 is netem's own scale.
        let pareto = |p| (standard_pareto(p, 3.0) - 1.5) * 4.0 / 3.0;
        Distribution::from_inverse(told, |p| {
            latency
                + jitter
                    * match shape {
                        "normal" => standard_normal(p),
                        "pareto" => pareto(p),
                        // netem adds two draws. One draw serves both here, since both grow with p.
                        "paretonormal" => 0.25 * standard_normal(p) + 0.75 * pareto(p),
                        _ => 2.0 * p - 1.0,
                    }
        })
    }

    /// The time in nanoseconds that a drawn random word selects.
    #[must_use]
    pub fn of_word(&self, w: u32) -> u64 {
        self.quantiles[quantile_index(w)]
    }

    /// All quantiles in nanoseconds, indexed by the upper bits of the drawn random word.
    #[must_use]
    pub fn quantiles(&self) -> &[u64] {
        &self.quantiles
    }

    /// The shortest delay of the distribution, in nanoseconds.
    #[must_use]
    pub fn least(&self) -> u64 {
        self.quantiles[0]
    }

    /// The longest delay of the distribution, in nanoseconds.
    #[must_use]
    pub fn most(&self) -> u64 {
        self.quantiles[QUANTILES - 1]
    }
}

/// For users: `uniform 5ms to 15ms`
impl fmt::Display for Distribution {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.told)
    }
}

/// The inverse of the standard normal distribution: P. J. Acklam's rational approximation, relative error below 1.2e-9.
fn standard_normal(p: f64) -> f64 {
    const A: [f64; 6] = [
        -3.969_683_028_665_376e1,
        2.209_460_984_245_205e2,
        -2.759_285_104_469_687e2,
        1.383_577_518_672_69e2,
        -3.066_479_806_614_716e1,
        2.506_628_277_459_239,
    ];
    const B: [f64; 6] = [
        -5.447_609_879_822_406e1,
        1.615_858_368_580_409e2,
        -1.556_989_798_598_866e2,
        6.680_131_188_771_972e1,
        -1.328_068_155_288_572e1,
        1.0,
    ];
    const C: [f64; 6] = [
        -7.784_894_002_430_293e-3,
        -3.223_964_580_411_365e-1,
        -2.400_758_277_161_838,
        -2.549_732_539_343_734,
        4.374_664_141_464_968,
        2.938_163_982_698_783,
    ];
    const D: [f64; 5] = [
        7.784_695_709_041_462e-3,
        3.224_671_290_700_398e-1,
        2.445_134_137_142_996,
        3.754_408_661_907_416,
        1.0,
    ];
    const LOW: f64 = 0.024_25;
    let horner = |terms: &[f64], x: f64| terms.iter().fold(0.0, |sum, term| sum * x + term);
    let tail = |p: f64| {
        let q = (-2.0 * libm::log(p)).sqrt();
        horner(&C, q) / horner(&D, q)
    };
    if p < LOW {
        return tail(p);
    }
    if p > 1.0 - LOW {
        return -tail(1.0 - p);
    }
    let (q, r) = (p - 0.5, (p - 0.5) * (p - 0.5));
    horner(&A, r) * q / horner(&B, r)
}

/// The inverse of the Pareto distribution with scale 1.
fn standard_pareto(p: f64, shape: f64) -> f64 {
    libm::pow(1.0 - p, -1.0 / shape)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_quantiles_are_met() {
        for (p, z) in [
            (0.5, 0.0),
            (0.841_344_746_068_543, 1.0),
            (0.022_750_131_948_179_2, -2.0),
            (0.998_650_101_968_37, 3.0),
        ] {
            assert!((standard_normal(p) - z).abs() < 1e-7, "{p}");
        }
        assert!((standard_pareto(0.875, 3.0) - 2.0).abs() < 1e-12);
        let uniform = Distribution::uniform(0, 1024);
        assert_eq!(uniform.quantiles()[..3], [1, 2, 3]);
        assert_eq!((uniform.of_word(0), uniform.of_word(u32::MAX)), (1, 1024));
        let bent = Distribution::through(&[0, 1024, 4096]);
        assert_eq!((bent.least(), bent.most()), (1, 4093));
        assert_eq!(bent.quantiles()[512], 1027);
    }

    #[test]
    fn quantiles_ascend_and_are_never_negative() {
        let all = [
            Distribution::normal(10, 1_000_000),
            Distribution::pareto(1_000, 0.7),
            Distribution::jittered(100, 1_000_000, "paretonormal"),
            Distribution::jittered(100, 1_000_000, "uniform"),
        ];
        for distribution in all {
            assert!(distribution.quantiles().is_sorted(), "{distribution}");
        }
        assert_eq!(Distribution::normal(10, 1_000_000).least(), 0);
    }
}

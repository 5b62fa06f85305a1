//! Axes of charts: their ticks, the units of their values, and the height at which a value is drawn.

use crate::report::grouped;

/// Unit of a panel's values; the panel shows a fitting multiple of it, such as ms for nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// Time in nanoseconds.
    Time,
    /// Size in bytes.
    Size,
    /// Bit rate in bits per second.
    Rate,
    /// Throughput in bytes per second.
    Throughput,
    /// Packet rate in packets per second.
    Packets,
    /// Numbers without a unit.
    Number,
}

impl Unit {
    /// The multiple of the unit in which values up to `most` are shown: its size (`1e6` for ms) and its name (`ms`).
    pub(super) fn shown(self, most: f64) -> (f64, &'static str) {
        let steps: &[(f64, &str)] = match self {
            Unit::Time => &[(1e3, "µs"), (1e6, "ms"), (1e9, "s")],
            Unit::Size => &[(1.0, "B"), (1e3, "kB"), (1e6, "MB"), (1e9, "GB")],
            Unit::Rate => &[
                (1.0, "bit/s"),
                (1e3, "kbit/s"),
                (1e6, "Mbit/s"),
                (1e9, "Gbit/s"),
            ],
            Unit::Throughput => &[(1.0, "B/s"), (1e3, "kB/s"), (1e6, "MB/s"), (1e9, "GB/s")],
            Unit::Packets => &[(1.0, "packets/s")],
            Unit::Number => &[(1.0, "")],
        };
        let fitting = steps.iter().rev().find(|(of, _)| most >= *of);
        *fitting.unwrap_or(&steps[0])
    }
}

/// A vertical axis of a panel, which maps values to heights.
pub(super) struct Scale {
    low: f64,
    high: f64,
    /// Distance between two ticks; 0 for a logarithmic axis.
    step: f64,
}

impl Scale {
    /// Creates a linear axis from 0 to a round number of at least `most`, with at most `steps` ticks above 0.
    pub fn linear(most: f64, steps: u32) -> Scale {
        let step = step(most, steps);
        let high = (most / step - 1e-9).ceil().max(1.0) * step;
        Scale {
            low: 0.0,
            high,
            step,
        }
    }

    /// Creates an axis that fits the values; also returns the multiple of the unit in which they are shown, and its name. The
    /// axis is logarithmic if the highest value is so high that most others would all lie at the bottom.
    pub fn fit(mut values: Vec<f64>, unit: Unit) -> (Scale, f64, &'static str) {
        values.sort_by(f64::total_cmp);
        let (Some(least), Some(most)) = (values.first(), values.last()) else {
            let (of, name) = unit.shown(0.0);
            return (Scale::linear(1.0, 4), of, name);
        };
        let median = values[values.len() / 2];
        if *least > 0.0 && *most > 20.0 * median {
            // The multiple that fits most values.
            let (of, name) = unit.shown(median);
            let scale = Scale::decades([least / of, most / of].into_iter());
            return (scale, of, name);
        }
        let (of, name) = unit.shown(*most);
        (Scale::linear(most / of, 4), of, name)
    }

    /// Creates a logarithmic axis of whole powers of ten around the values.
    pub fn decades(values: impl Iterator<Item = f64>) -> Scale {
        let (low, high) = values.fold((f64::INFINITY, 0.0), |(low, high), value| {
            (value.min(low), value.max(high))
        });
        let low = if low.is_finite() { low } else { 1.0 };
        let low = low.log10().floor();
        Scale {
            low: 10_f64.powf(low),
            high: 10_f64.powf(high.log10().ceil().max(low + 1.0)),
            step: 0.0,
        }
    }

    pub fn is_log(&self) -> bool {
        self.step == 0.0
    }

    /// Height of a value, from 0 at the bottom to 1 at the top.
    pub fn share(&self, value: f64) -> f64 {
        let share = match self.is_log() {
            true => (value / self.low).log10() / (self.high / self.low).log10(),
            false => (value - self.low) / (self.high - self.low),
        };
        share.clamp(0.0, 1.0)
    }

    pub fn ticks(&self) -> Vec<f64> {
        if self.is_log() {
            let decades = (self.high / self.low).log10().round() as i32;
            let every = (decades / 4).max(1);
            let ticks = (0..=decades).filter(|decade| decade % every == 0);
            return ticks.map(|decade| self.low * 10_f64.powi(decade)).collect();
        }
        let count = (self.high / self.step).round() as usize;
        (0..=count)
            .map(|number| number as f64 * self.step)
            .collect()
    }
}

/// The smallest round distance between ticks for which at most `count` ticks are needed from 0 to `whole`.
pub(super) fn step(whole: f64, count: u32) -> f64 {
    let least = whole / f64::from(count);
    if least <= 0.0 || !least.is_finite() {
        return 1.0;
    }
    let decade = 10_f64.powf(least.log10().floor());
    let fitting = [1.0, 2.0, 2.5, 5.0]
        .into_iter()
        .find(|of| of * decade >= least * (1.0 - 1e-9));
    fitting.unwrap_or(10.0) * decade
}

/// Formats the number at a tick: 20, 0.25, 15,000.
pub(super) fn tick(value: f64) -> String {
    match value {
        value if value >= 10_000.0 => grouped(value.round() as u64),
        _ => ((value * 1e6).round() / 1e6).to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn axes_end_at_round_numbers() {
        for (most, high, marks) in [
            (0.0, 1.0, 2),
            (7.3, 7.5, 4),
            (100.0, 100.0, 3),
            (0.031, 0.04, 3),
            (1234.0, 1500.0, 4),
        ] {
            let scale = Scale::linear(most, 3);
            let found = (scale.high, scale.ticks().len());
            assert!(
                (found.0 - high).abs() < 1e-9 && found.1 == marks,
                "{most}: {found:?}"
            );
        }
        let (log, of, unit) = Scale::fit(vec![0.3e6, 3e6, 5e6, 2e9], Unit::Time);
        assert_eq!((of, unit), (1e6, "ms"));
        assert!((log.low - 0.1).abs() < 1e-9 && (log.high - 10_000.0).abs() < 1e-6 && log.is_log());
        assert_eq!(log.ticks().len(), 6);
        let (linear, of, unit) = Scale::fit(vec![0.3e6, 3e6, 5e6, 2e7], Unit::Time);
        assert_eq!(
            (linear.high, of, unit, linear.is_log()),
            (20.0, 1e6, "ms", false)
        );
        assert_eq!(
            [tick(0.25), tick(20.0), tick(15_000.0)],
            ["0.25", "20", "15,000"]
        );
    }
}

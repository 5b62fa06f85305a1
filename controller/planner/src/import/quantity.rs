//! Parses numbers with units, such as rates and delays, as other tools write them.

/// Kind of a quantity: rate, delay or size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dimension {
    /// A rate in bits per second.
    Rate,
    /// A delay in nanoseconds.
    Delay,
    /// A size in bytes.
    Size,
}

/// Why a text is not a valid quantity.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bad {
    /// The text is a number without a unit.
    NoUnit,
    /// The text is not a number, is negative, has a unit of another dimension, or exceeds 10¹⁸ of the smallest unit.
    Value,
}

/// Largest quantity, in the smallest unit: above all real devices, and exact as a float to 0.01 %.
const MOST: f64 = 1e18;

impl Dimension {
    /// Description of valid quantities of this kind, for messages.
    #[must_use]
    pub fn wanted(self) -> &'static str {
        match self {
            Dimension::Rate => "a rate, such as 10Gbit/s",
            Dimension::Delay => "a delay, such as 5us",
            Dimension::Size => "a size, such as 64MiB",
        }
    }

    /// Description of valid units of this kind, for messages.
    pub(super) fn wanted_unit(self) -> &'static str {
        match self {
            Dimension::Rate => "a unit of rates, such as Gbit/s",
            Dimension::Delay => "a unit of delays, such as us",
            Dimension::Size => "a unit of sizes, such as MiB",
        }
    }

    /// Example of a quantity of this kind, as a user writes it.
    #[must_use]
    pub fn example(self) -> &'static str {
        match self {
            Dimension::Rate => "10Gbit/s",
            Dimension::Delay => "5us",
            Dimension::Size => "64MiB",
        }
    }

    /// Suffix of an attribute's name, such as `bps`, that says that its numbers are in the smallest unit.
    pub(super) fn suffix(self) -> &'static str {
        self.suffixes()[0].0
    }

    /// All suffixes of attribute names that stand for a unit, and the value of each unit in the smallest unit.
    pub(super) fn suffixes(self) -> &'static [(&'static str, u64)] {
        match self {
            Dimension::Rate => &[
                ("bps", 1),
                ("kbps", 1_000),
                ("mbps", 1_000_000),
                ("gbps", 1_000_000_000),
                ("tbps", 1_000_000_000_000),
            ],
            Dimension::Delay => &[
                ("ns", 1),
                ("us", 1_000),
                ("ms", 1_000_000),
                ("s", 1_000_000_000),
            ],
            Dimension::Size => &[
                ("bytes", 1),
                ("kib", 1 << 10),
                ("mib", 1 << 20),
                ("gib", 1 << 30),
            ],
        }
    }

    /// Value of a unit in the smallest unit; `None` if the unit is unknown, such as bytes in rates: rates count bits.
    pub(super) fn unit(self, unit: &str) -> Option<u64> {
        let lower = unit.to_ascii_lowercase();
        match self {
            Dimension::Rate if unit.contains('B') => None,
            Dimension::Rate => {
                let ends = ["bit/s", "bits/s", "b/s", "bps"];
                let prefix = ends.iter().find_map(|end| lower.strip_suffix(end))?;
                Some(match prefix {
                    "" => 1,
                    "k" => 1_000,
                    "m" => 1_000_000,
                    "g" => 1_000_000_000,
                    "t" => 1_000_000_000_000,
                    _ => return None,
                })
            }
            Dimension::Delay if lower == "µs" => Some(1_000),
            Dimension::Delay => self.suffixed(&lower),
            Dimension::Size => Some(match unit {
                "B" => 1,
                "kB" | "KB" => 1_000,
                "MB" => 1_000_000,
                "GB" => 1_000_000_000,
                _ => return self.suffixed(&lower),
            }),
        }
    }

    fn suffixed(self, suffix: &str) -> Option<u64> {
        let mut all = self.suffixes().iter();
        all.find(|(known, _)| *known == suffix)
            .map(|(_, unit)| *unit)
    }

    /// Reads a number with a unit; a number without a unit is in `unit_of_numbers`. Rounds the result to the smallest unit.
    pub(super) fn read(self, text: &str, unit_of_numbers: Option<u64>) -> Result<u64, Bad> {
        let text = text.trim();
        if let Ok(number) = text.parse::<f64>() {
            // `inf` and `nan` parse as numbers.
            let unit = unit_of_numbers.filter(|_| number.is_finite());
            let otherwise = if number.is_finite() {
                Bad::NoUnit
            } else {
                Bad::Value
            };
            return whole(number, unit.ok_or(otherwise)?);
        }
        let digits = |c: char| c.is_ascii_digit() || c == '.';
        let split = text.find(|c| !digits(c)).unwrap_or(text.len());
        let (number, unit) = text.split_at(split);
        let number = number.parse().map_err(|_| Bad::Value)?;
        whole(number, self.unit(unit.trim()).ok_or(Bad::Value)?)
    }
}

fn whole(number: f64, unit: u64) -> Result<u64, Bad> {
    let value = (number * unit as f64).round();
    if (0.0..=MOST).contains(&value) {
        Ok(value as u64)
    } else {
        Err(Bad::Value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_tools_write() {
        let rate = |text| Dimension::Rate.read(text, None);
        assert_eq!(rate("10Gbit/s"), Ok(10_000_000_000));
        assert_eq!(rate(" 2.5 Gbps "), Ok(2_500_000_000));
        assert_eq!(rate("155 Mb/s"), Ok(155_000_000));
        assert_eq!(rate("64kbps"), Ok(64_000));
        assert_eq!(rate("1GB/s"), Err(Bad::Value));
        assert_eq!(rate("10"), Err(Bad::NoUnit));
        assert_eq!(rate("1e10"), Err(Bad::NoUnit));
        assert_eq!(Dimension::Rate.read("1e1", Some(1_000)), Ok(10_000));
        for bad in ["-1Gbit/s", "inf", "NaN", "fast", "", "1..5Gbit/s", "10 G"] {
            assert_eq!(rate(bad), Err(Bad::Value), "{bad}");
        }
        assert_eq!(Dimension::Rate.read("-1", Some(1)), Err(Bad::Value));
        assert_eq!(Dimension::Rate.read("1e300", Some(1)), Err(Bad::Value));
        assert_eq!(Dimension::Delay.read("0.5ms", None), Ok(500_000));
        assert_eq!(Dimension::Delay.read("3µs", None), Ok(3_000));
        assert_eq!(Dimension::Size.read("64MiB", None), Ok(64 << 20));
        assert_eq!(Dimension::Size.read("1kB", None), Ok(1_000));
    }
}

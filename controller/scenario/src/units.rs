//! Quantities as users write them: `20ms`, `1Gbit/s`, `64KiB`, `0.01`, `1%`.
//!
//! A number without a unit is refused where a unit is needed; the unit is never guessed.

mod spelling;

use std::fmt;
use std::ops::RangeInclusive;

use thiserror::Error;

pub(crate) use spelling::rate_unit;

/// The dimension of a quantity: duration, rate or size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dimension {
    /// Durations, in nanoseconds.
    Duration,
    /// Rates, in bits per second.
    Rate,
    /// Sizes, in bytes.
    Size,
}

const DIMENSIONS: [Dimension; 3] = [Dimension::Duration, Dimension::Rate, Dimension::Size];

impl Dimension {
    /// The units of the dimension in ascending order, each with its factor to the smallest unit.
    fn units(self) -> &'static [(&'static str, u64)] {
        match self {
            Self::Duration => &[
                ("ns", 1),
                ("us", 1_000),
                ("µs", 1_000),
                ("ms", 1_000_000),
                ("s", 1_000_000_000),
                ("m", 60_000_000_000),
                ("h", 3_600_000_000_000),
            ],
            Self::Rate => &[
                ("bit/s", 1),
                ("kbit/s", 1_000),
                ("Mbit/s", 1_000_000),
                ("Gbit/s", 1_000_000_000),
                ("Tbit/s", 1_000_000_000_000),
            ],
            Self::Size => &[
                ("B", 1),
                ("kB", 1_000),
                ("KiB", 1 << 10),
                ("MB", 1_000_000),
                ("MiB", 1 << 20),
                ("GB", 1_000_000_000),
                ("GiB", 1 << 30),
            ],
        }
    }

    /// Text of a value of this dimension for users; the value is in the smallest unit.
    pub(crate) fn show(self, value: u64) -> String {
        match self {
            Self::Duration => show_duration(value),
            Self::Rate => show_rate(value),
            Self::Size => show_binary(value).unwrap_or_else(|| show_size(value)),
        }
    }

    /// An example of a quantity of this dimension, for messages.
    pub(crate) fn example(self) -> &'static str {
        match self {
            Self::Duration => "20ms",
            Self::Rate => "1Gbit/s",
            Self::Size => "64KiB",
        }
    }

    pub(crate) fn unit_names(self) -> String {
        let names = self
            .units()
            .iter()
            .map(|(name, _)| *name)
            .filter(|name| *name != "µs");
        names.collect::<Vec<_>>().join(", ")
    }

    /// The units that a user most likely means by a number without a unit. For sizes only bytes, as in all other tools.
    fn bare_units(self) -> &'static [&'static str] {
        match self {
            Self::Duration => &["s", "ms"],
            Self::Rate => &["bit/s", "kbit/s", "Mbit/s"],
            Self::Size => &["B"],
        }
    }
}

impl fmt::Display for Dimension {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Duration => "duration",
            Self::Rate => "rate",
            Self::Size => "size",
        })
    }
}

/// The reason why a text is not a quantity of the expected dimension.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum UnitError {
    /// The text does not start with a number.
    #[error("`{text}` is not a {dimension}")]
    NotANumber {
        /// The text that should be a quantity, as the user wrote it.
        text: String,
        /// The dimension that the quantity must have: duration, rate or size.
        dimension: Dimension,
    },
    /// The text is a number without a unit.
    #[error("`{text}` has no unit")]
    NoUnit {
        /// The text that should be a quantity, as the user wrote it.
        text: String,
        /// The dimension that the quantity must have: duration, rate or size.
        dimension: Dimension,
    },
    /// The text has a unit that the dimension does not have.
    #[error("`{unit}` is not a unit of {dimension}")]
    UnknownUnit {
        /// The number, as written in the text.
        number: String,
        /// The text after the number, which is not a unit.
        unit: String,
        /// The dimension that the quantity must have: duration, rate or size.
        dimension: Dimension,
    },
    /// The quantity is finer than 1 ns, 1 bit/s or 1 byte.
    #[error("`{text}` is not a whole number of {}", .dimension.units()[0].0)]
    TooFine {
        /// The text that should be a quantity, as the user wrote it.
        text: String,
        /// The dimension that the quantity must have: duration, rate or size.
        dimension: Dimension,
    },
    /// The quantity is 2⁶⁴ or more.
    #[error("`{text}` is too large: 2^64 {} or more", .dimension.units()[0].0)]
    TooLarge {
        /// The text that should be a quantity, as the user wrote it.
        text: String,
        /// The dimension that the quantity must have: duration, rate or size.
        dimension: Dimension,
    },
}

impl UnitError {
    /// The hint on what to write instead; `None` if there is no suggestion.
    #[must_use]
    pub fn hint(&self) -> Option<String> {
        self.hint_within(&(0..=u64::MAX))
    }

    /// The hint on what to write instead, for a range of quantities in the dimension's smallest unit; `None` if there is none.
    pub(crate) fn hint_within(&self, range: &RangeInclusive<u64>) -> Option<String> {
        match self {
            Self::NotANumber { text, dimension } => {
                let example = dimension.example();
                Some(match text.strip_prefix('-') {
                    Some(_) => {
                        format!("a {dimension} cannot be negative: write for example `{example}`")
                    }
                    None => format!("write a number and a unit, such as `{example}`"),
                })
            }
            Self::NoUnit { text, dimension } => {
                Some(spelling::bare(text, *dimension, range).to_string())
            }
            Self::UnknownUnit {
                number,
                unit,
                dimension,
            } => Some(match spelling::meaning(number, unit, *dimension) {
                Some(meaning) => meaning.to_string(),
                None => format!("units are {}", dimension.unit_names()),
            }),
            Self::TooFine { .. } => Some("write a smaller unit, or round the number".to_owned()),
            Self::TooLarge { .. } => None,
        }
    }
}

/// Converts a quantity in another tool's notation to weir's notation. The second text is a question for the user if the
/// quantity is ambiguous. `None` if the text is no quantity.
pub(crate) fn mended(text: &str, dimension: Dimension) -> Option<(String, Option<String>)> {
    let meaning = match parse(text, dimension) {
        Ok(_) => return Some((text.trim().to_owned(), None)),
        Err(UnitError::UnknownUnit { number, unit, .. }) => {
            spelling::meaning(&number, &unit, dimension)?
        }
        // A rate below the minimum of any effect cannot be meant.
        Err(UnitError::NoUnit { text, .. }) if dimension == Dimension::Rate => {
            spelling::bare(&text, dimension, &(1_000..=u64::MAX))
        }
        Err(UnitError::NoUnit { text, .. }) => spelling::bare(&text, dimension, &(0..=u64::MAX)),
        Err(_) => return None,
    };
    meaning.quantity()
}

/// Splits a range (`10ms-20ms`, `10-20ms`, `10ms..20ms`) into its two ends; `None` if the text is no range or ambiguous.
pub(crate) fn ends(text: &str, dimension: Dimension) -> Option<[String; 2]> {
    let split = ["..", "-", " to ", ","].into_iter();
    let (low, high) = split.filter_map(|sign| text.split_once(sign)).next()?;
    let (low, high) = (low.trim(), high.trim());
    let (high, None) = mended(high, dimension)? else {
        return None;
    };
    let unit = high.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
    let low = match low.parse::<f64>() {
        Ok(_) => format!("{low}{unit}"),
        Err(_) => low.to_owned(),
    };
    let (low, None) = mended(&low, dimension)? else {
        return None;
    };
    Some([low, high])
}

/// The hint for a text that is a quantity in another tool's unit, where no dimension is known; `None` for other texts.
pub(crate) fn hint_for(text: &str) -> Option<String> {
    let all = [Dimension::Duration, Dimension::Size, Dimension::Rate];
    all.into_iter()
        .find_map(|dimension| match parse(text, dimension) {
            Err(UnitError::UnknownUnit { number, unit, .. }) => {
                Some(spelling::meaning(&number, &unit, dimension)?.to_string())
            }
            _ => None,
        })
}

/// The dimension of a unit such as `ms`, and its factor to the dimension's smallest unit; `None` for an unknown unit.
#[must_use]
pub fn unit(name: &str) -> Option<(Dimension, u64)> {
    DIMENSIONS.into_iter().find_map(|dimension| {
        let mut units = dimension.units().iter();
        let (_, factor) = units.find(|(unit, _)| *unit == name)?;
        Some((dimension, *factor))
    })
}

/// The names of the units of all dimensions.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    let all = DIMENSIONS.into_iter().flat_map(Dimension::units);
    all.map(|(name, _)| *name).filter(|name| *name != "µs")
}

/// Reads a quantity, and returns it in its dimension's smallest unit. White space may stand before the unit.
pub fn parse(text: &str, dimension: Dimension) -> Result<u64, UnitError> {
    let text = text.trim();
    let split = text
        .find(|c: char| !c.is_ascii_digit() && c != '.' && c != '_')
        .unwrap_or(text.len());
    let (number, unit) = (text[..split].replace('_', ""), text[split..].trim_start());
    let digits = number.bytes().filter(u8::is_ascii_digit).count();
    if digits == 0 || number.matches('.').count() > 1 || number.ends_with('.') {
        return Err(UnitError::NotANumber {
            text: text.to_owned(),
            dimension,
        });
    }
    if unit.is_empty() {
        return Err(UnitError::NoUnit {
            text: text.to_owned(),
            dimension,
        });
    }
    let Some((_, factor)) = dimension.units().iter().find(|(name, _)| *name == unit) else {
        return Err(UnitError::UnknownUnit {
            number,
            unit: unit.to_owned(),
            dimension,
        });
    };
    scale(&number, *factor, text, dimension)
}

/// Multiplies a decimal number by a factor, exactly: `0.1s` is exactly 100,000,000 ns.
fn scale(number: &str, factor: u64, text: &str, dimension: Dimension) -> Result<u64, UnitError> {
    let too_large = || UnitError::TooLarge {
        text: text.to_owned(),
        dimension,
    };
    let too_fine = || UnitError::TooFine {
        text: text.to_owned(),
        dimension,
    };
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let fraction = fraction.trim_end_matches('0');
    if fraction.len() > 18 {
        return Err(too_fine());
    }
    let parse = |digits: &str| -> Result<u128, UnitError> {
        if digits.is_empty() {
            Ok(0)
        } else {
            digits.parse().map_err(|_| too_large())
        }
    };
    let denominator = 10_u128.pow(fraction.len() as u32);
    let numerator = parse(fraction)? * u128::from(factor);
    if numerator % denominator != 0 {
        return Err(too_fine());
    }
    let value = parse(whole)?
        .checked_mul(u128::from(factor))
        .and_then(|value| value.checked_add(numerator / denominator))
        .ok_or_else(too_large)?;
    u64::try_from(value).map_err(|_| too_large())
}

/// Text of a duration in nanoseconds for users, in the largest unit in which it is short.
#[must_use]
pub fn show_duration(ns: u64) -> String {
    let (factor, unit) = match ns {
        0 => return "0s".to_owned(),
        1_000_000_000.. => (1_000_000_000, "s"),
        1_000_000.. => (1_000_000, "ms"),
        1_000.. => (1_000, "us"),
        _ => (1, "ns"),
    };
    show(ns, factor, unit)
}

/// Text of a rate in bits per second for users.
#[must_use]
pub fn show_rate(bps: u64) -> String {
    let (factor, unit) = match bps {
        1_000_000_000.. => (1_000_000_000, "Gbit/s"),
        1_000_000.. => (1_000_000, "Mbit/s"),
        1_000.. => (1_000, "kbit/s"),
        _ => (1, "bit/s"),
    };
    show(bps, factor, unit)
}

/// Text of a size in bytes for users.
#[must_use]
pub fn show_size(bytes: u64) -> String {
    let (factor, unit) = match bytes {
        1_000_000_000.. => (1_000_000_000, "GB"),
        1_000_000.. => (1_000_000, "MB"),
        1_000.. => (1_000, "kB"),
        _ => (1, "B"),
    };
    show(bytes, factor, unit)
}

/// Text of a size that is a whole number of KiB, MiB or GiB, but not of kB; `None` for other sizes.
fn show_binary(bytes: u64) -> Option<String> {
    let units = [(1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];
    let mut units = units.into_iter().filter(|_| !bytes.is_multiple_of(1000));
    let (factor, unit) = units.find(|(factor, _)| bytes.is_multiple_of(*factor))?;
    Some(format!("{}{unit}", bytes / factor))
}

fn show(value: u64, factor: u64, unit: &str) -> String {
    let (whole, rest) = (value / factor, value % factor);
    if rest == 0 {
        return format!("{whole}{unit}");
    }
    let width = factor.ilog10() as usize;
    let fraction = format!("{rest:0width$}");
    format!("{whole}.{}{unit}", fraction.trim_end_matches('0'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exact_values() {
        assert_eq!(parse("20ms", Dimension::Duration), Ok(20_000_000));
        assert_eq!(parse("1.5 us", Dimension::Duration), Ok(1_500));
        assert_eq!(parse("0.1s", Dimension::Duration), Ok(100_000_000));
        assert_eq!(parse("10m", Dimension::Duration), Ok(600_000_000_000));
        assert_eq!(parse("1.5h", Dimension::Duration), Ok(5_400_000_000_000));
        assert_eq!(parse("2.5Gbit/s", Dimension::Rate), Ok(2_500_000_000));
        assert_eq!(parse("64KiB", Dimension::Size), Ok(65_536));
        assert_eq!(parse("1_000ns", Dimension::Duration), Ok(1_000));
    }

    #[test]
    fn errors_name_what_is_wrong() {
        let error = |text, dimension| {
            let error = parse(text, dimension).unwrap_err();
            format!("{error}; {}", error.hint().unwrap_or_default())
        };
        let told = [
            ("20", "`20` has no unit; which unit? write `20s` or `20ms`"),
            ("20 min", "`min` is not a unit of duration; write `20m`"),
            ("1m30s", "`m30s` is not a unit of duration; write `90s`"),
            (
                "2 Days",
                "`Days` is not a unit of duration; write `172800s`",
            ),
            (
                "5Gbit/s",
                "`Gbit/s` is not a unit of duration; units are ns, us, ms, s, m, h",
            ),
            (
                "0.5ns",
                "`0.5ns` is not a whole number of ns; write a smaller unit, or round the number",
            ),
            (
                "99999999999999s",
                "`99999999999999s` is too large: 2^64 ns or more; ",
            ),
            (
                "-1ms",
                "`-1ms` is not a duration; a duration cannot be negative: write for example `20ms`",
            ),
            (
                "1..5s",
                "`1..5s` is not a duration; write a number and a unit, such as `20ms`",
            ),
        ];
        for (text, message) in told {
            assert_eq!(error(text, Dimension::Duration), message);
        }
    }

    #[test]
    fn bits_and_bytes_of_other_tools_are_told_apart_or_asked_for() {
        let hint = |text, dimension| {
            parse(text, dimension)
                .unwrap_err()
                .hint()
                .unwrap_or_default()
        };
        let asked = "bits or bytes? write `10Mbit/s` for megabits, `80Mbit/s` for megabytes";
        let told = [
            (
                "10mbps",
                &*format!("{asked}, which tc and Chaos Mesh mean by `mbps`"),
            ),
            (
                "10 Mbps",
                &format!("{asked}, which tc and Chaos Mesh mean by `Mbps`"),
            ),
            ("10mb/s", asked),
            ("10mbit", "write `10Mbit/s`"),
            ("10M", "write `10Mbit/s`"),
            ("10MBps", "a rate is in bits: write `80Mbit/s`"),
            ("1.5KB/s", "a rate is in bits: write `12kbit/s`"),
            ("1KiB/s", "a rate is in bits: write `8.192kbit/s`"),
            ("10MB", "a rate is in bits: write `80Mbit/s`"),
            (
                "10parsec",
                "units are bit/s, kbit/s, Mbit/s, Gbit/s, Tbit/s",
            ),
        ];
        for (text, message) in told {
            assert_eq!(hint(text, Dimension::Rate), message, "{text}");
        }
        let sizes = [
            ("64kb", "write `64kB` for 64000 bytes, `64KiB` for 65536"),
            ("2m", "write `2MB` for 2000000 bytes, `2MiB` for 2097152"),
            ("64bytes", "write `64B`"),
            ("1mib", "write `1MiB`"),
            ("1Mbit", "units are B, kB, KiB, MB, MiB, GB, GiB"),
        ];
        for (text, message) in sizes {
            assert_eq!(hint(text, Dimension::Size), message, "{text}");
        }
        let mended = |text, dimension| mended(text, dimension).unwrap_or_default();
        let certain = |text: &str| (text.to_owned(), None);
        assert_eq!(mended("1mbit", Dimension::Rate), certain("1Mbit/s"));
        let (first, asked) = mended("1mbps", Dimension::Rate);
        assert_eq!(first, "1Mbit/s");
        assert!(asked.is_some_and(|asked| asked.contains("`8Mbit/s` for megabytes")));
        assert_eq!(mended("1000", Dimension::Size), certain("1000B"));
    }

    #[test]
    fn a_bare_number_is_asked_for_its_unit_among_those_that_fit() {
        let hint = |text, dimension, range| {
            let error = parse(text, dimension).unwrap_err();
            error.hint_within(&range).unwrap_or_default()
        };
        let all = 0..=u64::MAX;
        for (text, dimension, range, told) in [
            (
                "5",
                Dimension::Duration,
                all.clone(),
                "which unit? write `5s` or `5ms`",
            ),
            (
                "100",
                Dimension::Duration,
                0..=10_000_000_000,
                "write `100ms`, or another unit: ns, us, ms, s, m, h",
            ),
            (
                "10",
                Dimension::Size,
                all.clone(),
                "write `10B`, or another unit: B, kB, KiB, MB, MiB, GB, GiB",
            ),
            (
                "1000",
                Dimension::Rate,
                all,
                "which unit? write `1000bit/s`, `1000kbit/s` or `1000Mbit/s`",
            ),
            (
                "10",
                Dimension::Rate,
                1_000..=100_000_000_000,
                "which unit? write `10kbit/s` or `10Mbit/s`",
            ),
        ] {
            assert_eq!(hint(text, dimension, range), told, "{text}");
        }
    }

    #[test]
    fn ranges_of_other_tools_have_two_ends() {
        let shown = |text| ends(text, Dimension::Duration).map(|ends| ends.join(" "));
        for text in [
            "10ms-20ms",
            "10-20ms",
            "10ms..20ms",
            "10 to 20 msec",
            "10ms, 20ms",
        ] {
            assert_eq!(shown(text).as_deref(), Some("10ms 20ms"), "{text}");
        }
        for text in ["10ms", "10-20", "a-b", "10ms-20kB"] {
            assert_eq!(shown(text), None, "{text}");
        }
    }

    proptest::proptest! {
        #[test]
        fn shown_durations_read_back(ns in 0..u64::MAX) {
            proptest::prop_assert_eq!(parse(&show_duration(ns), Dimension::Duration), Ok(ns));
        }

        #[test]
        fn shown_rates_read_back(bps in 0..u64::MAX) {
            proptest::prop_assert_eq!(parse(&show_rate(bps), Dimension::Rate), Ok(bps));
        }

        #[test]
        fn shown_sizes_read_back(bytes in 0..u64::MAX) {
            proptest::prop_assert_eq!(parse(&show_size(bytes), Dimension::Size), Ok(bytes));
        }
    }
}

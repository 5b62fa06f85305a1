//! Unit spellings of tc, Chaos Mesh, Toxiproxy, Go and iperf, and the quantity in weir's units that each means.

use std::fmt;
use std::ops::RangeInclusive;

use super::{Dimension, parse, scale, show_duration, show_rate};

/// The possible meanings of a number with another tool's unit, as quantities in weir's units.
pub(super) enum Meaning {
    /// The number has only one meaning: this quantity.
    One(String),
    /// The number is a rate in bytes per second; the text is the same rate in bits per second.
    Bytes(String),
    /// The number may be a rate in bits or in bytes per second: both rates, the name of the unit's prefix (`mega`), the unit.
    BitsOrBytes {
        bits: String,
        bytes: String,
        kind: &'static str,
        unit: String,
    },
    /// The number is a size whose prefix may mean a power of 1000 or of 1024. Each of the two quantities comes with its bytes.
    Either([(String, u64); 2]),
    /// The number has no unit: the number with each unit that the user may mean.
    Bare(Vec<String>, Dimension),
}

const DURATIONS: [(&[&str], u64); 7] = [
    (&["nsec", "nsecs", "nanoseconds"], 1),
    (&["usec", "usecs", "micros", "microseconds", "μs"], 1_000),
    (&["msec", "msecs", "millis", "milliseconds"], 1_000_000),
    (&["sec", "secs", "second", "seconds"], 1_000_000_000),
    (&["min", "mins", "minute", "minutes"], 60_000_000_000),
    (&["hr", "hrs", "hour", "hours"], 3_600_000_000_000),
    (&["d", "day", "days"], 86_400_000_000_000),
];

/// The prefixes of units: letter, name, factor as a power of 1000, factor as a power of 1024.
const PREFIXES: [(char, &str, u64, u64); 4] = [
    ('k', "kilo", 1_000, 1 << 10),
    ('m', "mega", 1_000_000, 1 << 20),
    ('g', "giga", 1_000_000_000, 1 << 30),
    ('t', "tera", 1_000_000_000_000, 1 << 40),
];

pub(super) fn meaning(number: &str, unit: &str, dimension: Dimension) -> Option<Meaning> {
    match dimension {
        Dimension::Duration => duration(number, unit).map(Meaning::One),
        Dimension::Rate => rate(number, unit),
        Dimension::Size => size(number, unit),
    }
}

/// The possible meanings of a number without a unit. Tries the usual units that give a quantity in `range`, then the other
/// units that do. If no unit does, all usual units are returned.
pub(super) fn bare(number: &str, dimension: Dimension, range: &RangeInclusive<u64>) -> Meaning {
    let with = |unit: &str| format!("{number}{unit}");
    let is_within = |text: &String| parse(text, dimension).is_ok_and(|one| range.contains(&one));
    let usual: Vec<String> = dimension
        .bare_units()
        .iter()
        .map(|unit| with(unit))
        .collect();
    let others = dimension.units().iter().map(|(unit, _)| *unit);
    let others = others.filter(|unit| *unit != "µs").map(with);
    let mut within: Vec<String> = usual
        .iter()
        .filter(|text| is_within(text))
        .cloned()
        .collect();
    if within.is_empty() {
        within = others.filter(is_within).collect();
    }
    Meaning::Bare(if within.is_empty() { usual } else { within }, dimension)
}

/// The hint for a rate unit of another tool, such as `mbps` without a number; `None` if the word is no rate unit.
pub(crate) fn rate_unit(unit: &str) -> Option<String> {
    let own = |one: &str| {
        let unit = one.strip_prefix('1')?;
        Dimension::Rate
            .units()
            .iter()
            .any(|(own, _)| *own == unit)
            .then(|| unit.to_owned())
    };
    Some(match rate("1", unit)? {
        Meaning::One(quantity) => format!("write `{}`", own(&quantity)?),
        Meaning::BitsOrBytes { bits, .. } => format!(
            "bits or bytes? `{}` counts bits; for bytes per second leave `unit` out",
            own(&bits)?
        ),
        Meaning::Bytes(_) | Meaning::Either(_) | Meaning::Bare(..) => {
            "rates are in bits; for bytes per second leave `unit` out".to_owned()
        }
    })
}

/// Converts a duration with a unit such as `min` or `Secs`, or a sum as Go writes it (`1m30s`), to weir's units.
fn duration(number: &str, unit: &str) -> Option<String> {
    let lower = unit.to_ascii_lowercase();
    let of = Dimension::Duration;
    let mut known = DURATIONS.iter();
    if let Some((names, factor)) = known.find(|(names, _)| names.contains(&lower.as_str())) {
        let own = of.units().iter().find(|(_, own)| own == factor);
        return Some(match own {
            Some((name, _)) => format!("{number}{name}"),
            None => show_duration(scale(number, *factor, names[0], of).ok()?),
        });
    }
    let (mut total, mut rest) = (0_u64, format!("{number}{unit}"));
    while !rest.is_empty() {
        let letters = rest.find(|c: char| c.is_alphabetic())?;
        let length = rest[letters..].find(|c: char| c.is_ascii_digit());
        let next = length.map_or(rest.len(), |length| letters + length);
        if rest[..next].contains(char::is_whitespace) {
            return None;
        }
        total = total.checked_add(parse(&rest[..next], of).ok()?)?;
        rest.drain(..next);
    }
    Some(show_duration(total))
}

/// Splits a unit such as `Kibit` into `kilo`, its factors (powers of 1000 and 1024), whether it is binary (`Ki`), and `bit`.
fn prefixed(unit: &str) -> (&'static str, [u64; 2], bool, &str) {
    let first = unit.chars().next().map(|c| c.to_ascii_lowercase());
    let mut known = PREFIXES.iter();
    let Some((_, kind, decimal, binary)) = known.find(|(prefix, ..)| Some(*prefix) == first) else {
        return ("", [1, 1], false, unit);
    };
    let rest = &unit[1..];
    match rest.strip_prefix(['i', 'I']) {
        Some(rest) => (kind, [*decimal, *binary], true, rest),
        None => (kind, [*decimal, *binary], false, rest),
    }
}

fn rate(number: &str, unit: &str) -> Option<Meaning> {
    let (kind, [decimal, binary], is_binary, rest) = prefixed(unit);
    let factor = if is_binary { binary } else { decimal };
    let shown = |factor: u64| {
        let bps = scale(number, factor, unit, Dimension::Rate).ok()?;
        Some(show_rate(bps))
    };
    let is_bytes = rest.starts_with('B');
    Some(match rest.to_ascii_lowercase().as_str() {
        "bit" | "bits" | "bit/s" | "bits/s" | "bit/sec" | "bitps" => Meaning::One(shown(factor)?),
        "" if !kind.is_empty() => Meaning::One(shown(factor)?),
        "byte" | "bytes" | "byte/s" | "bytes/s" => Meaning::Bytes(shown(factor * 8)?),
        "b" | "b/s" | "bps" if is_bytes => Meaning::Bytes(shown(factor * 8)?),
        "b" | "b/s" | "bps" => Meaning::BitsOrBytes {
            bits: shown(factor)?,
            bytes: shown(factor * 8)?,
            kind,
            unit: unit.to_owned(),
        },
        _ => return None,
    })
}

fn size(number: &str, unit: &str) -> Option<Meaning> {
    let (kind, [decimal, binary], is_binary, rest) = prefixed(unit);
    if !matches!(
        rest.to_ascii_lowercase().as_str(),
        "" | "b" | "byte" | "bytes"
    ) {
        return None;
    }
    let of = |factor| {
        let units = Dimension::Size.units();
        let (name, _) = units.iter().find(|(_, own)| *own == factor)?;
        let bytes = scale(number, factor, unit, Dimension::Size).ok()?;
        Some((format!("{number}{name}"), bytes))
    };
    if kind.is_empty() || is_binary {
        let (one, _) = of(if is_binary { binary } else { decimal })?;
        return Some(Meaning::One(one));
    }
    Some(Meaning::Either([of(decimal)?, of(binary)?]))
}

impl Meaning {
    /// The most likely meaning in weir's units, with a question for the user if there are several; `None` if there is none.
    pub fn quantity(self) -> Option<(String, Option<String>)> {
        let asked = self.to_string();
        Some(match self {
            Meaning::One(quantity) | Meaning::Bytes(quantity) => (quantity, None),
            Meaning::BitsOrBytes { bits, .. } => (bits, Some(asked)),
            Meaning::Either([(decimal, _), _]) => (decimal, Some(asked)),
            Meaning::Bare(mut all, _) if all.len() == 1 => (all.remove(0), None),
            // Tools that write no unit mean the smaller one.
            Meaning::Bare(mut all, Dimension::Duration) => (all.pop()?, Some(asked)),
            Meaning::Bare(mut all, _) => (all.remove(0), Some(asked)),
        })
    }
}

/// Writes the suggestion on what the user should write instead.
impl fmt::Display for Meaning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Meaning::One(quantity) => write!(f, "write `{quantity}`"),
            Meaning::Bytes(bits) => write!(f, "a rate is in bits: write `{bits}`"),
            Meaning::BitsOrBytes {
                bits,
                bytes,
                kind,
                unit,
            } => {
                write!(
                    f,
                    "bits or bytes? write `{bits}` for {kind}bits, `{bytes}` for {kind}bytes"
                )?;
                match unit.to_ascii_lowercase().ends_with("bps") {
                    true => write!(f, ", which tc and Chaos Mesh mean by `{unit}`"),
                    false => Ok(()),
                }
            }
            Meaning::Bare(all, dimension) => match all.split_last() {
                Some((one, [])) => {
                    write!(
                        f,
                        "write `{one}`, or another unit: {}",
                        dimension.unit_names()
                    )
                }
                Some((last, rest)) => {
                    write!(f, "which unit? write `{}` or `{last}`", rest.join("`, `"))
                }
                None => Ok(()),
            },
            Meaning::Either([(decimal, thousands), (binary, bytes)]) => write!(
                f,
                "write `{decimal}` for {thousands} bytes, `{binary}` for {bytes}"
            ),
        }
    }
}

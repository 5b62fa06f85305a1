//! Words of tc netem, Toxiproxy, Chaos Mesh, Pumba, Jepsen and Lumina, and what is written here for each: the hint behind an
//! unknown key or alternative. The table is foreign.txt.

use crate::units::{self, Dimension};

const TABLE: &str = include_str!("foreign.txt");

/// The hint for a word that `at` does not have, with the first of `values` that fits it. `at` is the object or the alternative as
/// messages call it: `a fault`.
pub(super) fn hint(at: &str, word: &str, values: &[String]) -> Option<String> {
    let rows = TABLE.lines().filter_map(|line| {
        let (places, rest) = line.split_once(" | ")?;
        Some((places, rest.split_once(" | ")?))
    });
    let (_, (_, write)) = rows.into_iter().find(|(places, (words, _))| {
        let mut words = words.split(' ');
        places.split(", ").any(|place| place == at)
            && words.any(|known| known.eq_ignore_ascii_case(word))
    })?;
    let Some((before, (example, after))) = write
        .split_once('<')
        .and_then(|(before, rest)| Some((before, rest.split_once('>')?)))
    else {
        return Some(write.to_owned());
    };
    let value = values.iter().find_map(|value| like(value, example));
    let value = value.as_deref().unwrap_or(example);
    Some(format!("{before}{value}{after}"))
}

/// A user's value, if it is of the example's kind: a share of packets, a quantity, a number, or any word.
fn like(value: &str, example: &str) -> Option<String> {
    if example.ends_with('%') {
        return share(value);
    }
    let all = [Dimension::Duration, Dimension::Rate, Dimension::Size];
    if let Some(dimension) = all
        .into_iter()
        .find(|of| units::parse(example, *of).is_ok())
    {
        return units::mended(value, dimension);
    }
    let is_number = |text: &str| text.parse::<u64>().is_ok();
    (!is_number(example) || is_number(value)).then(|| value.to_owned())
}

/// A text as a share of packets: `5%`, `0.05%`; `5` is five percent. A bare number up to 1 may be either, and is none.
pub(super) fn share(text: &str) -> Option<String> {
    let text = text.trim();
    let number = text.strip_suffix('%').unwrap_or(text).trim();
    let value: f64 = number.parse().ok()?;
    let is_share = match number == text {
        true => value > 1.0 && value <= 100.0,
        false => (0.0..=100.0).contains(&value),
    };
    is_share.then(|| format!("{number}%"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_of_the_table_is_a_row() {
        for line in TABLE.lines() {
            let is_row = line.split(" | ").count() == 3;
            assert!(line.is_empty() || line.starts_with('#') || is_row, "{line}");
        }
    }

    #[test]
    fn hints_have_the_users_own_value_where_it_fits() {
        let told = |at, word, value: &str| hint(at, word, &[value.to_owned()]).unwrap_or_default();
        let loss = told("a fault", "loss", "25");
        assert_eq!(
            loss,
            "write `effect: drop` and `select: {probability: 25%}`"
        );
        assert!(told("an effect", "Bandwidth", "1mbit").contains("limit: 1Mbit/s,"));
        // Bits or bytes, a fraction or percent: what may be either is not guessed.
        assert!(told("an effect", "bandwidth", "1mbps").contains("limit: 10Mbit/s,"));
        assert!(told("a fault", "loss", "0.5").contains("probability: 1%"));
        assert_eq!(told("a step", "duration", "1m30s"), "write `for: 90s`");
        assert_eq!(told("a step", "repeat", "often"), "write `times: 3`");
        assert_eq!(hint("a fault", "colour", &[]), None);
        assert_eq!(hint("a trigger", "loss", &[]), None);
    }
}

//! Hints for users of tc netem, Toxiproxy, Chaos Mesh, Pumba, Jepsen and Lumina: translates a key or word of these tools that a
//! file uses into weir's equivalent. The table of translations is foreign.txt.

use crate::units::{self, Dimension};

const TABLE: &str = include_str!("foreign.txt");

/// The hint for a word of another tool, with the user's `values` in weir's notation. `at` is the kind of mapping in which the
/// word occurs, as in messages: `a fault`. `None` if the table does not have the word.
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
    Some(filled(write, values))
}

/// Replaces the examples `<…>` in a hint by the user's values, in order. If an example remains, the hint calls it an example.
fn filled(write: &str, values: &[String]) -> String {
    let mut text = String::new();
    let mut asked = None;
    let mut is_example = false;
    let mut left: Vec<&String> = values.iter().collect();
    let mut rest = write;
    while let Some((before, (example, after))) = rest
        .split_once('<')
        .and_then(|(before, rest)| Some((before, rest.split_once('>')?)))
    {
        text.push_str(before);
        match take(&mut left, example) {
            Some((value, ask)) => {
                text.push_str(&value);
                asked = asked.or(ask);
            }
            None => {
                text.push_str(example);
                is_example |= example.contains(|c: char| c.is_ascii_digit());
            }
        }
        rest = after;
    }
    text.push_str(rest);
    if let (true, Some(code)) = (is_example, text.strip_prefix("write `")) {
        text = format!("write for example `{code}");
    }
    match asked {
        Some(asked) => format!("{text}; {asked}"),
        None => text,
    }
}

/// Removes from `values` the user's value that fits an example, preferably one with a unit. Returns the value in weir's
/// notation, with a question for the user if the value is ambiguous.
fn take(values: &mut Vec<&String>, example: &str) -> Option<(String, Option<String>)> {
    let has_unit = |value: &str| value.parse::<f64>().is_err();
    let of = |sure: bool| {
        let mut all = values.iter().enumerate();
        all.find_map(|(at, value)| {
            let found = like(value, example)?;
            (!sure || has_unit(value)).then_some((at, found))
        })
    };
    let (at, found) = of(true).or_else(|| of(false))?;
    values.remove(at);
    Some(found)
}

/// Converts a user's value to weir's notation if it is of the example's kind: a share of packets (`0.01`, or `1%` where percent
/// is allowed), a quantity, a number or a word. The second text is a question for the user if the value is ambiguous.
fn like(value: &str, example: &str) -> Option<(String, Option<String>)> {
    if example.ends_with('%') {
        return percent(value);
    }
    if example.starts_with("0.") {
        return Some((share(value)?, None));
    }
    let all = [Dimension::Duration, Dimension::Rate, Dimension::Size];
    if let Some(dimension) = all
        .into_iter()
        .find(|of| units::parse(example, *of).is_ok())
    {
        // Of several possible units, the example's is the likeliest.
        let unit = example.trim_start_matches(|c: char| c.is_ascii_digit());
        let as_example = format!("{value}{unit}");
        let (first, asked) = units::mended(value, dimension)?;
        let is_bare = asked.is_some() && units::parse(&as_example, dimension).is_ok();
        return Some((if is_bare { as_example } else { first }, asked));
    }
    let is_number = |text: &str| text.parse::<u64>().is_ok();
    (!is_number(example) || is_number(value)).then(|| (value.to_owned(), None))
}

/// Converts a share of packets to weir's notation. Only the first word counts: in netem's `5% 25%`, the second is a
/// correlation. A number up to 1 may be a fraction or percent, so a question for the user is added.
fn percent(text: &str) -> Option<(String, Option<String>)> {
    let first = text.split_whitespace().next()?;
    let share = share(first)?;
    let asked = match first.parse::<f64>() {
        Ok(value) if value > 0.0 && value <= 1.0 => {
            let whole = (value * 1e8).round() / 1e6;
            Some(format!(
                "a fraction or percent? write `{whole}%` for the fraction, `{first}%` for percent"
            ))
        }
        _ => None,
    };
    Some((share, asked))
}

/// A text as a share of packets in weir's notation: `5` becomes `5%`. Up to 1, a number without `%` is a fraction: `0.1` means
/// ten percent, because other tools do not mean 0.1 %. `None` for other texts.
pub(super) fn share(text: &str) -> Option<String> {
    let text = text.split_whitespace().next()?;
    let number = text.strip_suffix('%').unwrap_or(text);
    let value: f64 = number.parse().ok()?;
    let is_fraction = number == text && value <= 1.0;
    (0.0..=100.0).contains(&value).then(|| match is_fraction {
        true => number.to_owned(),
        false => format!("{number}%"),
    })
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
        let loss = told("a fault", "loss", "5% 25%");
        assert!(loss.contains("probability: 5%}"), "{loss}");
        // A value that may be bits or bytes, or a fraction or percent, becomes a question.
        let loss = told("a fault", "loss", "0.3");
        assert!(loss.contains("probability: 0.3}"), "{loss}");
        assert!(loss.ends_with("write `30%` for the fraction, `0.3%` for percent"));
        assert!(told("an effect", "Bandwidth", "1mbit").contains("limit: 1Mbit/s,"));
        let rate = told("an effect", "bandwidth", "8mbps");
        assert!(rate.contains("limit: 8Mbit/s,"), "{rate}");
        assert!(rate.contains("`64Mbit/s` for megabytes, which tc and Chaos Mesh mean"));
        let rate = told("an effect", "bandwidth", "1000");
        assert!(rate.contains("limit: 1000Mbit/s,") && rate.contains("which unit?"));
        assert_eq!(told("a step", "duration", "1m30s"), "write `for: 90s`");
        let repeat = told("a step", "repeat", "often");
        assert_eq!(repeat, "write for example `times: 3`");
        assert_eq!(hint("a fault", "colour", &[]), None);
        assert_eq!(hint("a trigger", "loss", &[]), None);
    }

    /// Chaos Mesh's rate comes with further numbers, and Toxiproxy's latency with a jitter.
    #[test]
    fn several_values_take_their_places_in_order() {
        let told = |word, values: &[&str]| {
            let values: Vec<String> = values.iter().map(|text| (*text).to_owned()).collect();
            hint("an effect", word, &values).unwrap_or_default()
        };
        let rate = told("bandwidth", &["20971520", "10000", "1mbps"]);
        assert!(rate.contains("limit: 1Mbit/s,"), "{rate}");
        let latency = told("latency", &["1000", "100"]);
        assert!(latency.contains("{delay: 1000ms}"), "{latency}");
        assert!(latency.contains("`1000s` or `1000ms`"), "{latency}");
    }

    /// A number in backquotes is the user's own, or the text marks it as an example. Exceptions are the version of a file
    /// and values of header fields with a fixed meaning.
    #[test]
    fn numbers_that_are_nobodys_are_examples() {
        let meant = ["weir: 1", "effect: {set: {ip.ecn: 3}}"];
        for line in TABLE.lines().filter(|line| !line.starts_with('#')) {
            let write = line.rsplit(" | ").next().unwrap_or_default();
            let mut rest = write.split('`');
            while let (Some(before), Some(code)) = (rest.next(), rest.next()) {
                let fixed: String = code
                    .split('<')
                    .map(|part| part.rsplit('>').next().unwrap_or_default())
                    .collect();
                let has_number = fixed.contains(|c: char| c.is_ascii_digit());
                let says_so = ["for example ", "such as ", "there are "];
                let is_example = says_so.iter().any(|words| write.contains(words));
                assert!(
                    !has_number || is_example || meant.contains(&code),
                    "{before}`{code}`: {line}"
                );
            }
        }
    }
}

//! Names of faults, flows, hosts and so on in metrics, in natural order: `h2` comes before `h10`.

use std::cmp::Ordering;
use std::fmt;

/// A name in a metric, such as that of a fault; names are in natural order: `h2` comes before `h10`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Name(String);

impl Name {
    /// The name as the file writes it.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<&str> for Name {
    fn from(name: &str) -> Name {
        Name(name.to_owned())
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Ord for Name {
    fn cmp(&self, other: &Name) -> Ordering {
        compare(&self.0, &other.0)
    }
}

impl PartialOrd for Name {
    fn partial_cmp(&self, other: &Name) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// Compares two names in natural order: consecutive digits count as a number. Names that differ only in leading zeroes are
/// ordered by their bytes, so the order is total.
fn compare(a: &str, b: &str) -> Ordering {
    let (mut left, mut right) = (a, b);
    loop {
        let (Some(first), Some(second)) = (left.chars().next(), right.chars().next()) else {
            return left.len().cmp(&right.len()).then_with(|| a.cmp(b));
        };
        if first.is_ascii_digit() && second.is_ascii_digit() {
            let (digits, rest) = number(left);
            let (others, other_rest) = number(right);
            match (digits.len(), digits).cmp(&(others.len(), others)) {
                Ordering::Equal => (left, right) = (rest, other_rest),
                unequal => return unequal,
            }
        } else if first == second {
            left = &left[first.len_utf8()..];
            right = &right[second.len_utf8()..];
        } else {
            return first.cmp(&second);
        }
    }
}

/// Splits a text into its leading digits, without leading zeroes, and the rest.
fn number(text: &str) -> (&str, &str) {
    let end = text
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(text.len());
    (text[..end].trim_start_matches('0'), &text[end..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_count_as_numbers() {
        let mut names = [
            "h10", "h2", "h1", "host", "h2.w10", "h2.w9", "h02", "h", "a",
        ];
        names.sort_by(|a, b| compare(a, b));
        assert_eq!(
            names,
            [
                "a", "h", "h1", "h02", "h2", "h2.w9", "h2.w10", "h10", "host"
            ]
        );
    }

    proptest::proptest! {
        #[test]
        fn it_is_an_order(a in "[a-b0-2é]{0,6}", b in "[a-b0-2é]{0,6}", c in "[a-b0-2é]{0,6}") {
            proptest::prop_assert_eq!(compare(&a, &b), compare(&b, &a).reverse());
            proptest::prop_assert_eq!(compare(&a, &b) == Ordering::Equal, a == b);
            if compare(&a, &b).is_le() && compare(&b, &c).is_le() {
                proptest::prop_assert!(compare(&a, &c).is_le());
            }
        }
    }
}

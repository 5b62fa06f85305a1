//! Turns ranges of numbers into ranges of their written digits, for table rows.

use super::{MAX_NUMERAL, Numeral, Style};

/// Numerals (numbers in written form) that together match the numbers from `low` to `high`.
pub(super) fn between(low: u128, high: u128, style: Style) -> Vec<Numeral> {
    let (base, max) = match style {
        Style::Decimal { max, .. } => (10, max),
        Style::Varint { max } => (128, max),
        _ => return Vec::new(),
    };
    let mut numerals = Vec::new();
    for count in 1..=max.min(MAX_NUMERAL) {
        // Numbers with `count` digits, without leading zeros.
        let first = if count == 1 {
            0
        } else {
            base_to(base, count - 1)
        };
        let last = base_to(base, count) - 1;
        let (low, high) = (low.max(first), high.min(last));
        if low <= high {
            let all = digits(low, high, base, count);
            numerals.extend(all.into_iter().map(|digits| numeral(&digits, style)));
        }
    }
    numerals
}

fn base_to(base: u128, count: usize) -> u128 {
    base.pow(count as u32)
}

/// Ranges of digits, highest digit first, that form the numbers from `low` to `high` with `count` digits.
fn digits(low: u128, high: u128, base: u128, count: usize) -> Vec<Vec<(u128, u128)>> {
    if count == 0 {
        return vec![Vec::new()];
    }
    let unit = base_to(base, count - 1);
    let (mut first, mut last) = (low / unit, high / unit);
    let with = |digit: (u128, u128), rest: Vec<Vec<(u128, u128)>>| {
        let joined = move |rest: Vec<(u128, u128)>| [vec![digit], rest].concat();
        rest.into_iter().map(joined).collect::<Vec<_>>()
    };
    if first == last {
        return with(
            (first, last),
            digits(low % unit, high % unit, base, count - 1),
        );
    }
    let mut all = Vec::new();
    if !low.is_multiple_of(unit) {
        all.extend(with(
            (first, first),
            digits(low % unit, unit - 1, base, count - 1),
        ));
        first += 1;
    }
    if high % unit != unit - 1 {
        all.extend(with((last, last), digits(0, high % unit, base, count - 1)));
        // The first digits differ, so `last` is at least 1.
        last -= 1;
    }
    if first <= last {
        all.push([vec![(first, last)], vec![(0, base - 1); count - 1]].concat());
    }
    all
}

fn numeral(digits: &[(u128, u128)], style: Style) -> Numeral {
    let mut bytes = [(0, 0); MAX_NUMERAL];
    let mut length = digits.len();
    match style {
        Style::Decimal { end, .. } => {
            for (byte, (low, high)) in bytes.iter_mut().zip(digits) {
                *byte = (b'0' + *low as u8, b'0' + *high as u8);
            }
            bytes[length] = (end, end);
            length += 1;
        }
        _ => {
            // Lowest group first; the top bit of all bytes but the last announces another byte.
            for (index, (low, high)) in digits.iter().rev().enumerate() {
                let more = if index + 1 < length { 0x80 } else { 0 };
                bytes[index] = (more | *low as u8, more | *high as u8);
            }
        }
    }
    Numeral { length, bytes }
}

#[cfg(test)]
impl Numeral {
    /// Whether the numeral matches a number in its written form.
    pub fn fits(&self, number: u128, style: Style) -> bool {
        let mut written = Vec::new();
        match style {
            Style::Decimal { end, .. } => {
                written.extend(number.to_string().into_bytes());
                written.push(end);
            }
            _ => {
                let mut left = number;
                while left >= 0x80 {
                    written.push(left as u8 | 0x80);
                    left >>= 7;
                }
                written.push(left as u8);
            }
        }
        let within = |(byte, (low, high)): (&u8, &(u8, u8))| (low..=high).contains(&byte);
        written.len() == self.length && written.iter().zip(&self.bytes).all(within)
    }
}

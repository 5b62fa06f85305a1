//! Turns the outcomes for the values of a diagram's level into rows of a table, in order: the first row that matches decides.

mod cubes;
mod numerals;
mod prefixes;

use std::cmp::Reverse;
use std::collections::BTreeMap;

use crate::library::max_value;

/// How a table matches the values of a level.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Style {
    /// The table matches by ranges of at most 16 bits (Tofino's limit is 20).
    Range,
    /// The table matches by prefixes.
    Prefix,
    /// The table matches one byte of a longer text, by masks.
    Byte,
    /// The table matches decimal digits in at most `max` columns, the last of them for the byte `end`, which ends the number.
    Decimal { max: usize, end: u8 },
    /// The table matches groups of seven bits of a varint in at most `max` columns.
    Varint { max: usize },
}

/// Maximum number of bytes of a written number, the byte that ends it included.
pub(super) const MAX_NUMERAL: usize = 5;

/// Numbers that are written with `length` bytes, each byte within a range.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Numeral {
    pub length: usize,
    pub bytes: [(u8, u8); MAX_NUMERAL],
}

/// Values of one level of the diagram that a row matches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Piece {
    /// All values of the level.
    Any,
    /// Values from the first to the second number, both included.
    Range(u128, u128),
    /// Value and mask: the values that equal the value in the mask's bits.
    Mask(u128, u128),
    /// Numbers in written form, by ranges of their bytes.
    Numeral(Numeral),
}

/// Code for the outcome of some values; [`SKIP`] for the outcome that values have without a row.
pub(super) type Code = u32;

/// Code of the outcome that needs no row.
pub(super) const SKIP: Code = 0;

/// Values from the first to the second, both included, and their outcome.
pub(super) type Span = (u128, u128, Code);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Row {
    pub piece: Piece,
    pub code: Code,
    /// Code of the next row that matches all values of this one; [`SKIP`] if there is none.
    pub around: Code,
}

/// Rows for spans that cover all values of `bits` bits. `may_nest`: a row may also match what an earlier row decides.
pub(super) fn rows(spans: &[Span], bits: u32, style: Style, may_nest: bool) -> Vec<Row> {
    let max = max_value(bits);
    match style {
        Style::Range => by_ranges(spans, may_nest),
        Style::Byte => by_masks(spans, may_nest),
        Style::Decimal { .. } | Style::Varint { .. } => by_numerals(spans, style, may_nest),
        Style::Prefix => {
            by_values(spans, max, may_nest).unwrap_or_else(|| prefixes::rows(spans, bits, may_nest))
        }
    }
}

/// Rows that exclude each other, and a last row with code `rest` for all other values.
fn with_rest(rows: impl Iterator<Item = (Piece, Code)>, rest: Code) -> Vec<Row> {
    let row = |piece, code, around| Row {
        piece,
        code,
        around,
    };
    let mut rows: Vec<Row> = rows.map(|(piece, code)| row(piece, code, rest)).collect();
    rows.extend((rest != SKIP).then(|| row(Piece::Any, rest, SKIP)));
    rows
}

/// Rows by ranges, one for each span. The most frequent code gets one last row for the rest if that saves rows.
fn by_ranges(spans: &[Span], may_nest: bool) -> Vec<Row> {
    let mut counts: BTreeMap<Code, usize> = BTreeMap::new();
    for (.., code) in spans {
        *counts.entry(*code).or_default() += 1;
    }
    let skipped = counts.remove(&SKIP).unwrap_or(0);
    let most = counts
        .iter()
        .max_by_key(|(code, count)| (**count, Reverse(**code)));
    let rest = most.filter(|(_, count)| may_nest && **count > 1 + skipped);
    let rest = rest.map_or(SKIP, |(code, _)| *code);
    let others = spans.iter().filter(|(.., code)| *code != rest);
    with_rest(
        others.map(|(low, high, code)| (Piece::Range(*low, *high), *code)),
        rest,
    )
}

/// Rows by masks of one byte. The most frequent code gets the last row; the values of the other codes become masks.
fn by_masks(spans: &[Span], may_nest: bool) -> Vec<Row> {
    let mut values: BTreeMap<Code, Vec<u8>> = BTreeMap::new();
    for (low, high, code) in spans {
        // Values of such a level are bytes.
        values
            .entry(*code)
            .or_default()
            .extend(*low as u8..=*high as u8);
    }
    let most = values
        .iter()
        .max_by_key(|(code, values)| (values.len(), Reverse(**code)));
    let rest = most.filter(|_| may_nest).map_or(SKIP, |(code, _)| *code);
    values.remove(&rest);
    let rows = values.into_iter().flat_map(|(code, values)| {
        let cubes = cubes::cover(&values).into_iter();
        cubes.map(move |(value, mask)| (Piece::Mask(value.into(), mask.into()), code))
    });
    with_rest(rows, rest)
}

/// Rows by written numbers. The code that would take the most numerals gets the last row, for the rest.
fn by_numerals(spans: &[Span], style: Style, may_nest: bool) -> Vec<Row> {
    let mut numerals: BTreeMap<Code, Vec<Numeral>> = BTreeMap::new();
    for (low, high, code) in spans {
        let of_code = numerals.entry(*code).or_default();
        of_code.extend(numerals::between(*low, *high, style));
    }
    let most = numerals
        .iter()
        .max_by_key(|(code, of)| (of.len(), Reverse(**code)));
    let rest = most.filter(|_| may_nest).map_or(SKIP, |(code, _)| *code);
    numerals.remove(&rest);
    let rows = numerals.into_iter().flat_map(|(code, of)| {
        let pieces = of.into_iter().map(Piece::Numeral);
        pieces.map(move |piece| (piece, code))
    });
    with_rest(rows, rest)
}

/// Rows for single values, and a last row for the rest; `None` if several codes have spans of more than one value.
fn by_values(spans: &[Span], max: u128, may_nest: bool) -> Option<Vec<Row>> {
    let mut wide = spans.iter().filter(|(low, high, _)| low != high);
    let (.., rest) = wide.next()?;
    if (*rest != SKIP && !may_nest) || wide.any(|(.., code)| code != rest) {
        return None;
    }
    let others = spans.iter().filter(|(.., code)| code != rest);
    Some(with_rest(
        others.map(|(low, _, code)| (Piece::Mask(*low, max), *code)),
        *rest,
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// For random spans in every style, rows give each value its span's code, and each row's `around` is right.
    #[test]
    fn rows_mean_what_spans_mean() {
        let mut seed = 1_u64;
        let mut random = |below: u64| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (seed >> 33) % below
        };
        for round in 0..test_support::cases(2000) {
            let mut lows: Vec<u128> = (0..random(12)).map(|_| u128::from(random(256))).collect();
            lows.push(0);
            lows.sort_unstable();
            lows.dedup();
            let mut spans: Vec<Span> = Vec::new();
            for (index, low) in lows.iter().enumerate() {
                let high = lows.get(index + 1).map_or(255, |next| next - 1);
                spans.push((*low, high, random(4) as Code));
            }
            for (style, may_nest) in [
                (Style::Range, true),
                (Style::Range, false),
                (Style::Prefix, true),
                (Style::Prefix, false),
                (Style::Byte, true),
                (Style::Byte, false),
                (Style::Decimal { max: 3, end: b'\r' }, true),
                (Style::Decimal { max: 3, end: b'\r' }, false),
                (Style::Varint { max: 2 }, true),
                (Style::Varint { max: 2 }, false),
            ] {
                let rows = rows(&spans, 8, style, may_nest);
                let shown = format!("round {round}, {style:?}, {may_nest}: {spans:?} {rows:?}");
                assert!(
                    may_nest || rows.iter().all(|row| row.around == SKIP),
                    "{shown}"
                );
                for value in 0..256_u128 {
                    let fits = |row: &&Row| match row.piece {
                        Piece::Any => true,
                        Piece::Range(low, high) => (low..=high).contains(&value),
                        Piece::Mask(bits, mask) => value & mask == bits,
                        Piece::Numeral(numeral) => numeral.fits(value, style),
                    };
                    let expected = spans.iter().find(|span| (span.0..=span.1).contains(&value));
                    let mut matching = rows.iter().filter(fits);
                    let first = matching.next();
                    assert_eq!(
                        first.map_or(SKIP, |row| row.code),
                        expected.unwrap().2,
                        "{value} {shown}"
                    );
                    if let Some(first) = first {
                        let next = matching.find(|row| row.code != first.code);
                        let next = next.map_or(SKIP, |row| row.code);
                        assert!(next == SKIP || next == first.around, "{value} {shown}");
                    }
                }
            }
        }
    }
}

//! Finds the fewest prefixes whose longest match gives each value its outcome (Draves et al.,
//! INFOCOM 1999: "optimal routing table constructor").

use super::{Code, Piece, Row, SKIP, Span};
use crate::library::max_value;

/// Rows by prefixes for spans that cover all values of `bits` bits.
pub(super) fn rows(spans: &[Span], bits: u32, may_nest: bool) -> Vec<Row> {
    let mut prefixes = Vec::new();
    if may_nest {
        let trie = Trie::new(spans, 0, bits);
        let rest = if trie.candidates.contains(&SKIP) {
            SKIP
        } else {
            trie.candidates[0]
        };
        if rest != SKIP {
            prefixes.push(Prefix {
                value: 0,
                free: bits,
                code: rest,
                around: SKIP,
            });
        }
        trie.choose(rest, (0, bits), &mut prefixes);
    } else {
        apart(spans, (0, bits), &mut prefixes);
    }
    // Longer prefixes first; prefixes of equal length exclude each other.
    prefixes.sort_unstable_by_key(|prefix| (prefix.free, prefix.value));
    let rows = prefixes.iter().map(|prefix| Row {
        piece: if prefix.free == bits {
            Piece::Any
        } else {
            Piece::Mask(prefix.value, max_value(bits) & !low_bits(prefix.free))
        },
        code: prefix.code,
        around: prefix.around,
    });
    rows.collect()
}

fn low_bits(count: u32) -> u128 {
    if count == 0 { 0 } else { max_value(count) }
}

struct Prefix {
    value: u128,
    /// Number of low bits that the prefix does not match.
    free: u32,
    code: Code,
    /// Code of the next wider prefix that contains this prefix.
    around: Code,
}

/// Spans that overlap the lower half of a prefix, spans that overlap the upper half, and the first value of the upper half.
fn halves(spans: &[Span], base: u128, free: u32) -> (&[Span], &[Span], u128) {
    let middle = base + (1_u128 << (free - 1));
    let upper = spans.partition_point(|(_, high, _)| *high < middle);
    let lower = spans.partition_point(|(low, ..)| *low < middle);
    (&spans[..lower], &spans[upper..], middle)
}

fn is_one(spans: &[Span]) -> bool {
    spans.windows(2).all(|pair| pair[0].2 == pair[1].2)
}

/// Appends prefixes that exclude each other and give each value the code of its span.
fn apart(spans: &[Span], (base, free): (u128, u32), chosen: &mut Vec<Prefix>) {
    if free == 0 || is_one(spans) {
        let code = spans.first().map_or(SKIP, |(.., code)| *code);
        if code != SKIP {
            chosen.push(Prefix {
                value: base,
                free,
                code,
                around: SKIP,
            });
        }
        return;
    }
    let (low, high, middle) = halves(spans, base, free);
    apart(low, (base, free - 1), chosen);
    apart(high, (middle, free - 1), chosen);
}

/// Node for a prefix: the codes with which the prefix takes the fewest rows, and its two halves if their codes differ.
struct Trie {
    candidates: Vec<Code>,
    halves: Option<Box<(Trie, Trie)>>,
}

impl Trie {
    /// Trie of the prefix at `base` that leaves `free` bits open; `spans` are those that overlap it.
    fn new(spans: &[Span], base: u128, free: u32) -> Trie {
        if free == 0 || is_one(spans) {
            return Trie {
                candidates: spans.iter().take(1).map(|(.., code)| *code).collect(),
                halves: None,
            };
        }
        let (low, high, middle) = halves(spans, base, free);
        let (low, high) = (
            Trie::new(low, base, free - 1),
            Trie::new(high, middle, free - 1),
        );
        let common: Vec<Code> = low
            .candidates
            .iter()
            .filter(|code| high.candidates.binary_search(code).is_ok())
            .copied()
            .collect();
        let candidates = if common.is_empty() {
            let mut all = [low.candidates.as_slice(), &high.candidates].concat();
            all.sort_unstable();
            all
        } else {
            common
        };
        Trie {
            candidates,
            halves: Some(Box::new((low, high))),
        }
    }

    /// Appends the prefixes needed within this prefix if a wider prefix gives its values the code `around`.
    fn choose(&self, around: Code, (base, free): (u128, u32), chosen: &mut Vec<Prefix>) {
        let mut code = around;
        if self.candidates.binary_search(&around).is_err() {
            code = self.candidates[0];
            chosen.push(Prefix {
                value: base,
                free,
                code,
                around,
            });
        }
        if let Some(halves) = &self.halves {
            halves.0.choose(code, (base, free - 1), chosen);
            halves
                .1
                .choose(code, (base + (1_u128 << (free - 1)), free - 1), chosen);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nested_networks_take_a_row_each() {
        let ten = 0x0a00_0000_u128;
        let spans = [
            (0, ten - 1, SKIP),
            (ten, ten + 0xff_ffff, 1),
            (ten + 0x100_0000, 0xffff_ffff, SKIP),
        ];
        assert_eq!(rows(&spans, 32, true).len(), 1);
        let inner = ten + 0x01_0000;
        let spans = [
            (0, ten - 1, SKIP),
            (ten, inner - 1, 1),
            (inner, inner + 0xffff, 2),
            (inner + 0x1_0000, ten + 0xff_ffff, 1),
            (ten + 0x100_0000, 0xffff_ffff, SKIP),
        ];
        let nested = rows(&spans, 32, true);
        assert_eq!(nested.len(), 2, "{nested:?}");
        assert_eq!((nested[0].code, nested[0].around), (2, 1));
        assert_eq!(rows(&spans, 32, false).len(), 9);
    }
}

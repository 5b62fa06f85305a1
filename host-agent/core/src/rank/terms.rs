//! Terms of an operation (element type, reduction, length, root), which all ranks must have in common.
//!
//! The first word of an operation's first chunk with values is a digest of its terms. Switches sum it as they sum values: the
//! sum of n equal digests is n times one of them, so the first answer shows every rank whether all gave the same terms,
//! before any sum of the operation is delivered. This costs the space of one value, and no extra frame unless the values fill
//! their last one.

use std::fmt;

use super::Values;

/// Version of the mapping from an operation to its chunks and digest. It increases with each change of the mapping: ranks with
/// different layouts would not sum alike, whatever their program version is.
pub const LAYOUT: u32 = 3;

/// Names of the element types, by their number on the wire minus 1. Switches sum only the first five types.
const TYPES: [&str; 13] = [
    "float32",
    "float16",
    "bfloat16",
    "int32",
    "int8",
    "float64",
    "int64",
    "int16",
    "uint8",
    "bool",
    "complex64",
    "complex128",
    OTHER_TYPE,
];
const OTHER_TYPE: &str = "of another type";
/// Names of the reductions, by their number on the wire. Switches perform sums, averages and broadcasts only.
const DEEDS: [&str; 10] = [
    "sum",
    "average",
    BROADCAST,
    "product",
    "minimum",
    "maximum",
    "bitwise and",
    "bitwise or",
    "exclusive or",
    OTHER_DEED,
];
const BROADCAST: &str = "broadcast";
const OTHER_DEED: &str = "another reduction";
/// Number of 32-bit words that describe an operation in a frame: type, reduction and root in one word, then the length in two.
const WORDS: usize = 3;

/// Terms of an operation, which all ranks must have in common.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Terms {
    /// Element type, as index in [`TYPES`] plus 1; reduction, as index in [`DEEDS`].
    dtype: u8,
    deed: u8,
    /// Rank that is the root of a broadcast or reduce; `None` if the operation has no root.
    root: Option<u16>,
    length: u64,
}

impl Terms {
    /// Terms of an operation that sums or averages these values.
    pub fn new(values: &Values, average: bool) -> Self {
        let dtype = match values {
            Values::Floats(_) => 1,
            Values::Float16s(_) => 2,
            Values::Bfloat16s(_) => 3,
            Values::Integers(_) => 4,
            Values::Int8s(_) => 5,
        };
        Self {
            dtype,
            deed: u8::from(average),
            root: None,
            length: values.len() as u64,
        }
    }

    /// Terms of an operation that switches may not support, by names such as `int64` and `maximum`; unknown names count as
    /// another type or reduction.
    pub fn named(dtype: &str, deed: &str, root: Option<u16>, length: u64) -> Self {
        let at = |names: &[&str], name| names.iter().position(|known| *known == name);
        Self {
            dtype: at(&TYPES, dtype).unwrap_or(TYPES.len() - 1) as u8 + 1,
            deed: at(&DEEDS, deed).unwrap_or(DEEDS.len() - 1) as u8,
            root: root.filter(|root| *root < wire::MAX_WORKERS),
            length,
        }
    }

    /// The terms as 32-bit words of a frame: type, reduction and root in one, then the length in two.
    pub fn words(self) -> [u32; WORDS] {
        let root = self.root.map_or(0, |root| u32::from(root) + 1);
        let kind = root << 16 | u32::from(self.dtype) << 8 | u32::from(self.deed);
        [kind, (self.length >> 32) as u32, self.length as u32]
    }

    /// Reads all operations' terms in a DIFFER frame; `None` for terms with an unknown type or reduction.
    pub(super) fn of_words(bytes: &[u8]) -> impl Iterator<Item = Option<Self>> {
        let words = bytes.as_chunks::<4>().0.as_chunks::<WORDS>().0.iter();
        words.map(|words| Self::from_words(words.map(u32::from_be_bytes)))
    }

    /// Reads terms that [`words`](Self::words) wrote; `None` if this version does not know their type or reduction.
    pub fn from_words([kind, high, low]: [u32; WORDS]) -> Option<Self> {
        let [_, _, dtype, deed] = kind.to_be_bytes();
        let root = ((kind >> 16) as u16).checked_sub(1);
        let is_known = (1..=TYPES.len()).contains(&dtype.into())
            && usize::from(deed) < DEEDS.len()
            && root.is_none_or(|root| root < wire::MAX_WORKERS);
        is_known.then_some(Self {
            dtype,
            deed,
            root,
            length: u64::from(high) << 32 | u64::from(low),
        })
    }

    /// Digest of the terms. Switches sum digests: it is odd, so that sums of n equal digests differ for different n below 2³².
    pub(super) fn digest(self) -> u32 {
        let [kind, ..] = self.words();
        // Finalizer of SplitMix64: each bit of the digest depends on all terms.
        let mut mixed = self.length.wrapping_mul(0x9E37_79B9_7F4A_7C15)
            ^ u64::from(kind).wrapping_mul(0xD6E8_FEB8_6659_FD93);
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        (mixed ^ mixed >> 31) as u32 | 1
    }

    /// Whether a word in a sum is what the digests of `shares` ranks with these terms add up to.
    pub(super) fn is_agreed(self, shares: u16, word: [u8; 4]) -> bool {
        u32::from_be_bytes(word) == self.digest().wrapping_mul(shares.into())
    }
}

impl fmt::Display for Terms {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = |names: &[&'static str], at: usize| names.get(at).copied().unwrap_or("?");
        let (dtype, deed) = (usize::from(self.dtype), usize::from(self.deed));
        let (dtype, deed) = (name(&TYPES, dtype.wrapping_sub(1)), name(&DEEDS, deed));
        write!(f, "{dtype} x {}, {deed}", self.length)?;
        match self.root {
            Some(root) if deed == BROADCAST => write!(f, " of rank {root}"),
            Some(root) => write!(f, " to rank {root}"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn different_terms_change_the_digest() {
        let terms = |dtype, average, length| Terms {
            dtype,
            deed: u8::from(average),
            root: None,
            length,
        };
        let mut seen = std::collections::BTreeMap::new();
        for dtype in 1..=5 {
            for average in [false, true] {
                for length in (0..3000).chain((12..40).map(|bits| 1 << bits)) {
                    let own = terms(dtype, average, length);
                    let words = own.words().map(u32::to_be_bytes);
                    let read: Vec<_> = Terms::of_words(words.as_flattened()).collect();
                    assert_eq!(read, [Some(own)]);
                    assert_eq!(seen.insert(own.digest(), own), None, "{own}");
                }
            }
        }
        let (own, other) = (terms(1, false, 1000), terms(1, false, 1001));
        for ranks in 2..=1024_u16 {
            let all = own.digest().wrapping_mul(ranks.into());
            assert!(own.is_agreed(ranks, all.to_be_bytes()));
            let others = all.wrapping_sub(own.digest()).wrapping_add(other.digest());
            assert!(!own.is_agreed(ranks, others.to_be_bytes()), "{ranks}");
            assert!(!other.is_agreed(ranks, others.to_be_bytes()), "{ranks}");
            // One digest is missing.
            let fewer = all.wrapping_sub(own.digest());
            assert!(!own.is_agreed(ranks, fewer.to_be_bytes()), "{ranks}");
        }
        assert_eq!(own.to_string(), "float32 x 1000, sum");
        assert_eq!(terms(5, true, 7).to_string(), "int8 x 7, average");
        // Terms of other operations, and of roots.
        let mut seen = std::collections::BTreeSet::new();
        for length in [1, 2, 256, 257, 1 << 20, 1 << 40] {
            for (dtype, deed) in TYPES
                .iter()
                .flat_map(|dtype| DEEDS.map(|deed| (dtype, deed)))
            {
                for root in [None].into_iter().chain((0..wire::MAX_WORKERS).map(Some)) {
                    let own = Terms::named(dtype, deed, root, length);
                    assert_eq!(Terms::from_words(own.words()), Some(own));
                    assert!(root > Some(7) || seen.insert(own.digest()), "{own}");
                }
            }
        }
        let said = |deed, root| Terms::named("int64", deed, root, 9).to_string();
        assert_eq!(said("maximum", None), "int64 x 9, maximum");
        assert_eq!(said("broadcast", Some(2)), "int64 x 9, broadcast of rank 2");
        assert_eq!(said("sum", Some(0)), "int64 x 9, sum to rank 0");
        let unknown = Terms::named("quint4", "premul", None, 9).to_string();
        assert_eq!(unknown, "of another type x 9, another reduction");
        for unknown in [0, 14 << 8, 1 << 8 | 10, 1026 << 16 | 1 << 8] {
            let words = [unknown, 0, 1].map(u32::to_be_bytes);
            assert_eq!(Terms::of_words(words.as_flattened()).next(), Some(None));
        }
    }
}

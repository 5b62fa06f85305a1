//! Keys of entries: how the control plane's matches become values, and when two entries are the same.

use crate::error::TableError;
use crate::exec::alu::limbs;
use p4lang::runtime::Match;

/// `match_kind`
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// `exact`
    Exact,
    /// `lpm`
    Lpm,
    /// `ternary`
    Ternary,
    /// `range`
    Range,
    /// `optional`
    Optional,
}

impl Kind {
    /// From its P4 name.
    pub fn named(name: &str) -> Option<Kind> {
        Some(match name {
            // The partition of an algorithmic TCAM is part of what must be equal.
            "exact" | "atcam_partition_index" | "dleft_hash" => Kind::Exact,
            "lpm" => Kind::Lpm,
            "ternary" => Kind::Ternary,
            "range" => Kind::Range,
            "optional" => Kind::Optional,
            _ => return None,
        })
    }

    /// Entries may overlap, so that they want a priority.
    pub fn wants_priority(self) -> bool {
        matches!(self, Kind::Ternary | Kind::Range | Kind::Optional)
    }
}

/// A key field of a table.
#[derive(Debug, Clone)]
pub struct FieldSpec {
    /// As P4Info names it.
    pub name: String,
    /// How it matches.
    pub kind: Kind,
    /// Width in bits, at most 128.
    pub width: u32,
}

impl FieldSpec {
    /// Slots that the field takes.
    pub fn slots(&self) -> u32 {
        limbs(self.width)
    }

    /// A match in canonical form.
    pub fn key(&self, given: &Match) -> Result<FieldKey, TableError> {
        field_key(self, given)
    }

    /// The key of a field that an entry leaves out; an exact one cannot be.
    pub fn dont_care(&self) -> Result<FieldKey, TableError> {
        dont_care(self)
    }

    /// Back from the canonical form; `None` for a don't-care.
    pub fn match_of(&self, key: &FieldKey) -> Option<Match> {
        to_match(self, key)
    }

    /// The largest value.
    pub fn max(&self) -> u128 {
        if self.width >= 128 {
            u128::MAX
        } else {
            (1 << self.width) - 1
        }
    }
}

/// A key field of an entry in canonical form: equal entries have equal keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FieldKey {
    /// Bits under the mask are equal; exact, LPM, ternary and optional fields.
    Masked {
        /// Bits outside the mask are 0.
        value: u128,
        /// All ones for exact.
        mask: u128,
    },
    /// Within, inclusive.
    Range {
        /// Smallest.
        low: u128,
        /// Largest.
        high: u128,
    },
}

impl FieldKey {
    /// Whether the value is meant.
    pub fn matches(&self, v: u128) -> bool {
        match *self {
            FieldKey::Masked { value, mask } => v & mask == value,
            FieldKey::Range { low, high } => (low..=high).contains(&v),
        }
    }
}

/// A field's match in canonical form.
pub fn field_key(spec: &FieldSpec, given: &Match) -> Result<FieldKey, TableError> {
    let max = spec.max();
    let fits = |v: u128| {
        if v <= max {
            Ok(v)
        } else {
            Err(TableError::ValueTooWide(spec.name.clone()))
        }
    };
    let bad = || TableError::BadMatch(spec.name.clone());
    let masked = |value: u128, mask: u128| {
        if value & !mask == 0 {
            Ok(FieldKey::Masked { value, mask })
        } else {
            Err(bad())
        }
    };
    match (spec.kind, *given) {
        (Kind::Exact, Match::Exact(v)) | (Kind::Optional, Match::Optional(v)) => {
            masked(fits(v)?, max)
        }
        (Kind::Lpm, Match::Lpm { value, prefix_len }) => {
            if prefix_len > spec.width {
                return Err(bad());
            }
            masked(fits(value)?, prefix_mask(spec, prefix_len))
        }
        (Kind::Ternary, Match::Ternary { value, mask }) => masked(fits(value)?, fits(mask)?),
        (Kind::Range, Match::Range { low, high }) => {
            if fits(low)? > fits(high)? {
                return Err(bad());
            }
            Ok(FieldKey::Range { low, high })
        }
        _ => Err(TableError::WrongMatchKind(spec.name.clone())),
    }
}

/// The key of a field that an entry leaves out.
pub fn dont_care(spec: &FieldSpec) -> Result<FieldKey, TableError> {
    match spec.kind {
        Kind::Exact => Err(TableError::MissingField(spec.name.clone())),
        Kind::Range => Ok(FieldKey::Range {
            low: 0,
            high: spec.max(),
        }),
        _ => Ok(FieldKey::Masked { value: 0, mask: 0 }),
    }
}

fn prefix_mask(spec: &FieldSpec, prefix_len: u32) -> u128 {
    let host = spec.width - prefix_len;
    if host >= 128 {
        0
    } else {
        spec.max() >> host << host
    }
}

/// Back to the control plane's form; `None` for a don't-care, which P4Runtime omits.
pub fn to_match(spec: &FieldSpec, key: &FieldKey) -> Option<Match> {
    match (*key, spec.kind) {
        (FieldKey::Masked { value, .. }, Kind::Exact) => Some(Match::Exact(value)),
        (FieldKey::Masked { mask: 0, .. }, _) => None,
        (FieldKey::Masked { value, .. }, Kind::Optional) => Some(Match::Optional(value)),
        (FieldKey::Masked { value, mask }, Kind::Lpm) => Some(Match::Lpm {
            value,
            prefix_len: mask.count_ones(),
        }),
        (FieldKey::Masked { value, mask }, _) => Some(Match::Ternary { value, mask }),
        (FieldKey::Range { low, high }, _) if low == 0 && high == spec.max() => None,
        (FieldKey::Range { low, high }, _) => Some(Match::Range { low, high }),
    }
}

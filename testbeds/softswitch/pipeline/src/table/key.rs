//! Keys of table entries: converts the control plane's matches to values, so that equal entries have equal keys.

use crate::bits::limbs;
use crate::error::TableError;
use p4lang::ir::Type;
pub use p4lang::runtime::MatchKind as Kind;
use p4lang::runtime::{Match, Value};
use std::cmp::Ordering;

/// The declaration of a key field of a table.
#[derive(Debug, Clone)]
pub struct FieldSpec {
    /// Name of the field in P4Info.
    pub name: String,
    /// Match kind of the field: exact, LPM, ternary, range or optional.
    pub kind: Kind,
    /// Width of the field in bits.
    pub width: u32,
    /// Whether the field is a range of signed numbers (`int<W>`). Then bounds are stored, and packets' values looked up, with
    /// the sign bit inverted: compared as unsigned numbers, they have the order of the signed ones.
    pub flips_sign: bool,
}

impl FieldSpec {
    /// The declaration of a key field with this type and match kind; `None`: the match kind is unknown.
    pub fn new(name: &str, kind: &str, ty: &Type, width: u32) -> Option<FieldSpec> {
        let kind = match kind {
            // The partition of an algorithmic TCAM must be equal, like an exact field.
            "atcam_partition_index" => Kind::Exact,
            kind => Kind::named(kind)?,
        };
        Some(FieldSpec {
            name: name.to_owned(),
            kind,
            width,
            flips_sign: kind == Kind::Range && matches!(ty, Type::Int(_)),
        })
    }

    /// Mask of the sign bit in the uppermost limb, if the field inverts it; otherwise `None`.
    pub fn sign(&self) -> Option<u64> {
        self.flips_sign.then(|| 1 << ((self.width - 1) % 64))
    }

    /// Converts a range's bound between two's complement and the stored form.
    fn flipped(&self, bound: &Value) -> Value {
        let Some(sign) = self.sign() else {
            return bound.clone();
        };
        let mut limbs: Vec<u64> = (0..self.slots() as usize).map(|i| bound.limb(i)).collect();
        if let Some(top) = limbs.last_mut() {
            *top ^= sign;
        }
        Value::from_limbs(&limbs)
    }

    /// Number of 64-bit slots of the field.
    pub fn slots(&self) -> u32 {
        limbs(self.width)
    }

    /// Converts a control plane's match of this field to its canonical form.
    pub fn key(&self, given: &Match) -> Result<FieldKey, TableError> {
        field_key(self, given)
    }

    /// The canonical form of a field that an entry omits; an error for an exact field.
    pub fn dont_care(&self) -> Result<FieldKey, TableError> {
        dont_care(self)
    }

    /// Converts a canonical form to the control plane's match; `None` for a field that matches all values.
    pub fn match_of(&self, key: &FieldKey) -> Option<Match> {
        to_match(self, key)
    }

    /// The largest value of the field, all bits set.
    pub fn max(&self) -> Value {
        Value::ones(self.width)
    }
}

/// The match of a key field in canonical form: equal entries have equal keys.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FieldKey {
    /// The bits under the mask must be equal: for exact, LPM, ternary and optional fields.
    Masked {
        /// The value to match; bits outside the mask are 0.
        value: Value,
        /// The mask of the compared bits; all ones for an exact field.
        mask: Value,
    },
    /// The value must be in an inclusive range; for signed numbers see [`FieldSpec::flips_sign`].
    Range {
        /// Lower bound of the range.
        low: Value,
        /// Upper bound of the range.
        high: Value,
    },
}

impl FieldKey {
    /// Whether the field's value in these slots, the lowest bits first, matches.
    pub fn matches(&self, slots: &[u64]) -> bool {
        match self {
            FieldKey::Masked { value, mask } => {
                let mut slots = slots.iter().enumerate();
                slots.all(|(i, slot)| slot & mask.limb(i) == value.limb(i))
            }
            FieldKey::Range { low, high } => {
                let of = |bound: &Value| {
                    let slots = slots.iter().enumerate().rev();
                    let mut orders = slots.map(|(i, slot)| slot.cmp(&bound.limb(i)));
                    orders.find(|o| o.is_ne()).unwrap_or(Ordering::Equal)
                };
                of(low).is_ge() && of(high).is_le()
            }
        }
    }
}

/// Converts a match of this field to its canonical form.
pub fn field_key(spec: &FieldSpec, given: &Match) -> Result<FieldKey, TableError> {
    let fits = |v: &Value| {
        if v.fits(spec.width) {
            Ok(v.clone())
        } else {
            Err(TableError::ValueTooWide(spec.name.clone(), spec.width))
        }
    };
    let bad = |why| TableError::BadMatch(spec.name.clone(), why);
    let masked = |value: Value, mask: Value, outside| {
        if value.is_within(&mask) {
            Ok(FieldKey::Masked { value, mask })
        } else {
            Err(bad(outside))
        }
    };
    match (spec.kind, given) {
        (Kind::Exact, Match::Exact(v)) | (Kind::Optional, Match::Optional(v)) => {
            let (value, mask) = (fits(v)?, spec.max());
            Ok(FieldKey::Masked { value, mask })
        }
        (Kind::Lpm, Match::Lpm { value, prefix_len }) => {
            if *prefix_len > spec.width {
                return Err(bad("the prefix is longer than the field"));
            }
            let mask = Value::prefix(spec.width, *prefix_len);
            masked(fits(value)?, mask, "the value has bits after its prefix")
        }
        (Kind::Ternary, Match::Ternary { value, mask }) => masked(
            fits(value)?,
            fits(mask)?,
            "the value has bits outside its mask",
        ),
        (Kind::Range, Match::Range { low, high }) => {
            let (low, high) = (spec.flipped(&fits(low)?), spec.flipped(&fits(high)?));
            if low > high {
                return Err(bad("the range is empty"));
            }
            Ok(FieldKey::Range { low, high })
        }
        _ => Err(TableError::WrongMatchKind(spec.name.clone(), spec.kind)),
    }
}

/// The canonical form of a field that a table entry omits; an error for an exact field.
pub fn dont_care(spec: &FieldSpec) -> Result<FieldKey, TableError> {
    match spec.kind {
        Kind::Exact => Err(TableError::MissingField(spec.name.clone())),
        Kind::Range => Ok(FieldKey::Range {
            low: Value::ZERO,
            high: spec.max(),
        }),
        _ => Ok(FieldKey::Masked {
            value: Value::ZERO,
            mask: Value::ZERO,
        }),
    }
}

/// Converts a canonical form to the control plane's match; `None` for a field that matches all values, which P4Runtime omits.
pub fn to_match(spec: &FieldSpec, key: &FieldKey) -> Option<Match> {
    match (key.clone(), spec.kind) {
        (FieldKey::Masked { value, .. }, Kind::Exact) => Some(Match::Exact(value)),
        (FieldKey::Masked { mask, .. }, _) if mask.is_zero() => None,
        (FieldKey::Masked { value, .. }, Kind::Optional) => Some(Match::Optional(value)),
        (FieldKey::Masked { value, mask }, Kind::Lpm) => Some(Match::Lpm {
            value,
            prefix_len: mask.count_ones(),
        }),
        (FieldKey::Masked { value, mask }, _) => Some(Match::Ternary { value, mask }),
        (FieldKey::Range { low, high }, _) if low.is_zero() && high == spec.max() => None,
        (FieldKey::Range { low, high }, _) => Some(Match::Range {
            low: spec.flipped(&low),
            high: spec.flipped(&high),
        }),
    }
}

//! Converts key fields between matches of the control plane and matches of the program.

use super::{NewName, Sdn, invalid};
use p4lang::p4info::{MatchField, MatchType};
use p4lang::runtime::{Match, MatchKind, Value};
use p4rt::rpc::Code;
use p4rt::status::UpdateError;
use p4rt::translate::matches::{match_from_proto, match_to_proto};
use p4rt::translate::{TranslateError, key_field};
use p4rt::{bytes, v1};
use pipeline::{FieldKey, FieldSpec};
use v1::field_match::{self, FieldMatchType};

/// Format of a field's or parameter's values in P4Runtime messages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Form {
    /// The values are byte strings that encode numbers.
    Number,
    /// The values are strings, which the switch translates to numbers; the variant has the URI of the translation.
    Text(String),
}

/// A key field of a table or value set.
pub(super) struct Field {
    pub(super) info: MatchField,
    spec: FieldSpec,
    form: Form,
}

impl Field {
    pub(super) fn new(info: &MatchField, spec: &FieldSpec, form: Form) -> Self {
        Self {
            info: info.clone(),
            spec: spec.clone(),
            form,
        }
    }

    /// Converts a match of a P4Runtime message to the program's key field.
    pub(super) fn key(
        &self,
        owner: &str,
        given: &v1::FieldMatch,
        sdn: &Sdn,
        new: NewName,
    ) -> Result<FieldKey, UpdateError> {
        // The common case; errors in values are reported below.
        if let (Some(FieldMatchType::Exact(exact)), MatchKind::Exact, Form::Number) =
            (&given.field_match_type, self.spec.kind, &self.form)
            && let Ok(value) = bytes::decode(&exact.value, self.info.bitwidth.min(self.spec.width))
        {
            let mask = self.spec.max();
            return Ok(FieldKey::Masked { value, mask });
        }
        let value = match &self.form {
            Form::Number => match &given.field_match_type {
                Some(FieldMatchType::Range(range)) if self.spec.flips_sign => {
                    self.signed(owner, range)?
                }
                _ => {
                    let value = match_from_proto(owner, &self.info, given)?;
                    self.narrowed(value)?
                }
            },
            Form::Text(uri) => {
                let (text, value): (_, fn(Value) -> Match) = match &given.field_match_type {
                    Some(FieldMatchType::Exact(exact)) => (&exact.value, Match::Exact),
                    Some(FieldMatchType::Optional(optional)) => (&optional.value, Match::Optional),
                    _ => return Err(self.untranslatable()),
                };
                value(sdn.value(uri, text, self.spec.width, new)?)
            }
        };
        let key = self.spec.key(&value);
        key.map_err(|error| {
            UpdateError::new(crate::server::errors::of_table(&error), error.to_string())
        })
    }

    /// Converts a range of an `int<W>`. P4Runtime has no signed keys, so the bounds are transferred like other keys, as
    /// unsigned bits; but they are compared as signed numbers.
    fn signed(&self, owner: &str, range: &field_match::Range) -> Result<Match, UpdateError> {
        let decode = |value: &[u8]| {
            bytes::decode(value, self.info.bitwidth).map_err(|source| TranslateError::Value {
                field: self.info.name.clone(),
                source,
            })
        };
        let (low, high) = (decode(&range.low)?, decode(&range.high)?);
        let value = Match::Range { low, high };
        // An empty range is refused as in other tables.
        if let Ok(key) = self.spec.key(&value)
            && self.spec.match_of(&key).is_none()
        {
            return Err(TranslateError::Match {
                table: owner.to_owned(),
                field: self.info.name.clone(),
                reason: "this matches every value: leave the field out".to_owned(),
            }
            .into());
        }
        Ok(value)
    }

    /// The match of a field that the client left out: any value; an error if the field is required.
    pub(super) fn left_out(&self, owner: &str) -> Result<FieldKey, UpdateError> {
        self.spec.dont_care().map_err(|_| {
            // The only field of a value set of numbers has no name.
            if self.info.name.is_empty() {
                return invalid(format!("{owner}: a member lacks its value"));
            }
            let missing = TranslateError::Missing {
                owner: owner.to_owned(),
                kind: "key field",
                field: self.info.name.clone(),
            };
            missing.into()
        })
    }

    /// Converts a key field of the program to P4Runtime; `None`: the field matches any value, so the message omits it.
    pub(super) fn to_proto(
        &self,
        owner: &str,
        key: &FieldKey,
        sdn: &Sdn,
    ) -> Result<Option<v1::FieldMatch>, TranslateError> {
        let Some(value) = self.spec.match_of(key) else {
            return Ok(None);
        };
        if let (Match::Range { low, high }, true) = (&value, self.spec.flips_sign) {
            let range = field_match::Range {
                low: low.to_be_bytes().into(),
                high: high.to_be_bytes().into(),
            };
            return Ok(Some(v1::FieldMatch {
                field_id: self.info.id,
                field_match_type: Some(FieldMatchType::Range(range)),
            }));
        }
        let Form::Text(uri) = &self.form else {
            return match_to_proto(owner, &self.info, &self.widened(value));
        };
        let kind = match value {
            Match::Exact(value) => FieldMatchType::Exact(field_match::Exact {
                value: sdn.text(uri, &value).into(),
            }),
            Match::Optional(value) => FieldMatchType::Optional(field_match::Optional {
                value: sdn.text(uri, &value).into(),
            }),
            _ => {
                let what = "masks and ranges of translated values".to_owned();
                return Err(TranslateError::Unsupported { what });
            }
        };
        Ok(Some(v1::FieldMatch {
            field_id: self.info.id,
            field_match_type: Some(kind),
        }))
    }

    /// Converts a match from the field's width in P4Runtime to its width in the program; an error if it matches several values.
    fn narrowed(&self, value: Match) -> Result<Match, UpdateError> {
        let (theirs, ours) = (self.info.bitwidth, self.spec.width);
        if theirs == ours {
            return Ok(value);
        }
        match value {
            Match::Exact(_) | Match::Optional(_) => Ok(value),
            Match::Lpm { value, prefix_len } if prefix_len == theirs => Ok(Match::Lpm {
                value,
                prefix_len: ours,
            }),
            Match::Ternary { value, mask } if mask == Value::ones(theirs) => {
                Ok(Match::ternary(value, Value::ones(ours)))
            }
            Match::Range { ref low, ref high } if low == high => Ok(value),
            _ => Err(self.untranslatable()),
        }
    }

    fn widened(&self, value: Match) -> Match {
        let (theirs, ours) = (self.info.bitwidth, self.spec.width);
        match value {
            Match::Lpm { value, prefix_len } if prefix_len == ours => Match::Lpm {
                value,
                prefix_len: theirs,
            },
            Match::Ternary { value, mask } if mask == Value::ones(ours) => {
                Match::ternary(value, Value::ones(theirs))
            }
            value => value,
        }
    }

    fn untranslatable(&self) -> UpdateError {
        let field = key_field(&self.info.name);
        if matches!(
            self.info.match_type,
            MatchType::Standard(MatchKind::Exact | MatchKind::Optional)
        ) {
            return invalid(format!("{field} has another match kind in the program"));
        }
        let message =
            format!("{field} is translated: a mask or range of several values is not supported");
        UpdateError::new(Code::Unimplemented, message)
    }
}

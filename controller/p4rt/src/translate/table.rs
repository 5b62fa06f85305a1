//! Table entries and default actions (P4Runtime 1.4, section 9.1).

use super::{Item, Part, TranslateError};
use crate::bytes;
use crate::p4info::Index;
use crate::v1;
use crate::v1::field_match::{self, FieldMatchType};
use crate::v1::table_action::Type as ActionKind;
use p4lang::p4info::{Action, ActionScope, MatchField, MatchType, Table};
use p4lang::runtime::{ActionCall, FieldMatch, Match, TableEntry};

type Result<T> = std::result::Result<T, TranslateError>;

/// Where an action is to stand.
#[derive(Clone, Copy)]
enum Place {
    Entry,
    Default,
}

pub(super) fn entry_to_proto(entry: &TableEntry, index: &Index) -> Result<v1::TableEntry> {
    let table = table_named(&entry.table, index)?;
    check_priority(table, entry.priority)?;
    let mut matches = Vec::new();
    for field in &table.match_fields {
        let mut given = entry.key.iter().filter(|given| given.field == field.name);
        match (given.next(), given.next()) {
            (Some(_), Some(_)) => return Err(twice(table, field)),
            (Some(given), None) => matches.extend(match_to_proto(table, field, given.value)?),
            (None, _) if field.match_type == MatchType::Exact => return Err(missing(table, field)),
            (None, _) => {}
        }
    }
    if let Some(stray) = entry
        .key
        .iter()
        .find(|given| table.match_fields.iter().all(|f| f.name != given.field))
    {
        return Err(unknown_key(table, format!("`{}`", stray.field)));
    }
    Ok(v1::TableEntry {
        table_id: table.preamble.id,
        r#match: matches,
        priority: entry.priority,
        action: Some(action_to_proto(table, &entry.action, Place::Entry, index)?),
        ..Default::default()
    })
}

pub(super) fn default_to_proto(
    name: &str,
    action: Option<&ActionCall>,
    index: &Index,
) -> Result<v1::TableEntry> {
    let table = table_named(name, index)?;
    let action = action
        .map(|action| action_to_proto(table, action, Place::Default, index))
        .transpose()?;
    Ok(v1::TableEntry {
        table_id: table.preamble.id,
        is_default_action: true,
        action,
        ..Default::default()
    })
}

pub(super) fn entry_from_proto(
    entry: &v1::TableEntry,
    index: &Index,
    part: Part,
) -> Result<TableEntry> {
    let table = table_with_id(entry.table_id, index)?;
    check_priority(table, entry.priority)?;
    if let Some(stray) = entry
        .r#match
        .iter()
        .find(|m| table.match_fields.iter().all(|f| f.id != m.field_id))
    {
        return Err(unknown_key(table, stray.field_id.to_string()));
    }
    let mut key = Vec::new();
    for field in &table.match_fields {
        let mut given = entry
            .r#match
            .iter()
            .filter(|given| given.field_id == field.id);
        match (given.next(), given.next()) {
            (Some(_), Some(_)) => return Err(twice(table, field)),
            (Some(given), None) => {
                let value = match_from_proto(table, field, given)?;
                key.push(FieldMatch {
                    field: field.name.clone(),
                    value,
                });
            }
            (None, _) if field.match_type == MatchType::Exact => return Err(missing(table, field)),
            (None, _) => {}
        }
    }
    let action = match part {
        Part::Key => ActionCall {
            name: String::new(),
            params: Vec::new(),
        },
        Part::Whole => {
            let action = entry
                .action
                .as_ref()
                .ok_or(TranslateError::Unset { what: "action" })?;
            action_from_proto(table, action, Place::Entry, index)?
        }
    };
    Ok(TableEntry {
        table: table.preamble.name.clone(),
        key,
        priority: entry.priority,
        action,
    })
}

pub(super) fn default_from_proto(
    entry: &v1::TableEntry,
    index: &Index,
    part: Part,
) -> Result<Item> {
    let table = table_with_id(entry.table_id, index)?;
    if !entry.r#match.is_empty() || entry.priority != 0 {
        let name = &table.preamble.name;
        return Err(TranslateError::Malformed(format!(
            "{name}: the default entry has neither key nor priority"
        )));
    }
    let action = match (part, &entry.action) {
        (Part::Whole, Some(action)) => {
            Some(action_from_proto(table, action, Place::Default, index)?)
        }
        _ => None,
    };
    Ok(Item::DefaultAction {
        table: table.preamble.name.clone(),
        action,
    })
}

fn table_named<'a>(name: &str, index: &'a Index) -> Result<&'a Table> {
    index
        .tables
        .named(name)
        .ok_or_else(|| TranslateError::unknown_name::<Table>(name))
}

fn table_with_id(id: u32, index: &Index) -> Result<&Table> {
    index
        .tables
        .with_id(id)
        .ok_or_else(|| TranslateError::unknown_id::<Table>(id))
}

fn check_priority(table: &Table, priority: i32) -> Result<()> {
    let ordered = |field: &MatchField| {
        matches!(
            field.match_type,
            MatchType::Ternary | MatchType::Range | MatchType::Optional
        )
    };
    let reason = match (table.match_fields.iter().any(ordered), priority) {
        (true, i32::MIN..=0) => {
            "a key with a ternary, range or optional field needs one greater than 0"
        }
        (false, i32::MIN..=-1 | 1..) => "a key without a ternary, range or optional field has none",
        _ => return Ok(()),
    };
    Err(TranslateError::Priority {
        table: table.preamble.name.clone(),
        priority,
        reason,
    })
}

fn match_to_proto(
    table: &Table,
    field: &MatchField,
    value: Match,
) -> Result<Option<v1::FieldMatch>> {
    if is_dont_care(field, value) {
        return Ok(None);
    }
    check_match(table, field, value)?;
    let encode = bytes::encode;
    let kind = match value {
        Match::Exact(value) => FieldMatchType::Exact(field_match::Exact {
            value: encode(value),
        }),
        Match::Optional(value) => FieldMatchType::Optional(field_match::Optional {
            value: encode(value),
        }),
        Match::Lpm { value, prefix_len } => FieldMatchType::Lpm(field_match::Lpm {
            value: encode(value),
            prefix_len: prefix_len.cast_signed(),
        }),
        Match::Ternary { value, mask } => FieldMatchType::Ternary(field_match::Ternary {
            value: encode(value),
            mask: encode(mask),
        }),
        Match::Range { low, high } => FieldMatchType::Range(field_match::Range {
            low: encode(low),
            high: encode(high),
        }),
    };
    Ok(Some(v1::FieldMatch {
        field_id: field.id,
        field_match_type: Some(kind),
    }))
}

fn match_from_proto(table: &Table, field: &MatchField, given: &v1::FieldMatch) -> Result<Match> {
    let decode = |value: &[u8]| {
        bytes::decode(value, field.bitwidth).map_err(|source| TranslateError::Value {
            field: field.name.clone(),
            source,
        })
    };
    let unset = TranslateError::Unset {
        what: "field_match_type",
    };
    let value = match given.field_match_type.as_ref().ok_or(unset)? {
        FieldMatchType::Exact(exact) => Match::Exact(decode(&exact.value)?),
        FieldMatchType::Optional(optional) => Match::Optional(decode(&optional.value)?),
        FieldMatchType::Lpm(lpm) => Match::Lpm {
            value: decode(&lpm.value)?,
            prefix_len: u32::try_from(lpm.prefix_len).map_err(|_| {
                match_error(table, field, format!("prefix length {}", lpm.prefix_len))
            })?,
        },
        FieldMatchType::Ternary(ternary) => Match::Ternary {
            value: decode(&ternary.value)?,
            mask: decode(&ternary.mask)?,
        },
        FieldMatchType::Range(range) => Match::Range {
            low: decode(&range.low)?,
            high: decode(&range.high)?,
        },
        FieldMatchType::Other(_) => {
            return Err(TranslateError::Unsupported {
                what: "match kinds of other architectures".to_owned(),
            });
        }
    };
    check_match(table, field, value)?;
    if is_dont_care(field, value) {
        return Err(match_error(
            table,
            field,
            "a don't-care is left out, not spelt out".to_owned(),
        ));
    }
    Ok(value)
}

fn is_dont_care(field: &MatchField, value: Match) -> bool {
    match value {
        Match::Exact(_) | Match::Optional(_) => false,
        Match::Lpm { prefix_len, .. } => prefix_len == 0,
        Match::Ternary { mask, .. } => mask == 0,
        Match::Range { low, high } => low == 0 && high == bytes::max(field.bitwidth),
    }
}

/// Of the field's kind, within its width, and without bits that are not compared.
fn check_match(table: &Table, field: &MatchField, value: Match) -> Result<()> {
    let (given, declared) = (match_kind(value), declared_kind(&field.match_type));
    if given != declared {
        let table = table.preamble.name.clone();
        return Err(TranslateError::MatchKind {
            table,
            field: field.name.clone(),
            declared,
            given,
        });
    }
    let numbers = match value {
        Match::Exact(value) | Match::Optional(value) | Match::Lpm { value, .. } => [value, 0],
        Match::Ternary { value, mask } => [value, mask],
        Match::Range { low, high } => [low, high],
    };
    for number in numbers {
        check_width(&field.name, number, field.bitwidth)?;
    }
    let reason = match value {
        Match::Lpm { prefix_len, .. } if prefix_len > field.bitwidth => {
            format!(
                "prefix length {prefix_len} in a field of {} bits",
                field.bitwidth
            )
        }
        Match::Lpm { value, prefix_len }
            if value & (bytes::max(field.bitwidth - prefix_len)) != 0 =>
        {
            format!("bits after the first {prefix_len} are set")
        }
        Match::Ternary { value, mask } if value & !mask != 0 => {
            "bits outside the mask are set".to_owned()
        }
        Match::Range { low, high } if low > high => format!("{low} is greater than {high}"),
        _ => return Ok(()),
    };
    Err(match_error(table, field, reason))
}

fn match_kind(value: Match) -> &'static str {
    match value {
        Match::Exact(_) => "exact",
        Match::Optional(_) => "optional",
        Match::Lpm { .. } => "lpm",
        Match::Ternary { .. } => "ternary",
        Match::Range { .. } => "range",
    }
}

fn declared_kind(declared: &MatchType) -> &'static str {
    match declared {
        MatchType::Exact => "exact",
        MatchType::Lpm => "lpm",
        MatchType::Ternary => "ternary",
        MatchType::Range => "range",
        MatchType::Optional => "optional",
        MatchType::Other(_) => "in a way of the architecture",
    }
}

fn action_to_proto(
    table: &Table,
    call: &ActionCall,
    place: Place,
    index: &Index,
) -> Result<v1::TableAction> {
    let action = index
        .actions
        .named(&call.name)
        .ok_or_else(|| TranslateError::unknown_name::<Action>(&call.name))?;
    check_offered(table, action, place)?;
    let owner = &action.preamble.name;
    let mut params = Vec::new();
    for param in &action.params {
        let mut given = call.params.iter().filter(|(name, _)| *name == param.name);
        match (given.next(), given.next()) {
            (Some(_), Some(_)) => return Err(twice_param(owner, &param.name)),
            (None, _) => return Err(missing_param(owner, &param.name)),
            (Some((name, value)), None) => {
                check_width(name, *value, param.bitwidth)?;
                params.push(v1::action::Param {
                    param_id: param.id,
                    value: bytes::encode(*value),
                });
            }
        }
    }
    if let Some((stray, _)) = call
        .params
        .iter()
        .find(|(name, _)| action.params.iter().all(|p| p.name != *name))
    {
        return Err(unknown_param(owner, format!("`{stray}`")));
    }
    let action = v1::Action {
        action_id: action.preamble.id,
        params,
    };
    Ok(v1::TableAction {
        r#type: Some(ActionKind::Action(action)),
    })
}

fn action_from_proto(
    table: &Table,
    action: &v1::TableAction,
    place: Place,
    index: &Index,
) -> Result<ActionCall> {
    let call = match action.r#type.as_ref().ok_or(TranslateError::Unset {
        what: "action type",
    })? {
        ActionKind::Action(call) => call,
        _ => {
            return Err(TranslateError::Unsupported {
                what: "action profiles".to_owned(),
            });
        }
    };
    let action =
        index
            .actions
            .with_id(call.action_id)
            .ok_or_else(|| TranslateError::ActionNotOffered {
                table: table.preamble.name.clone(),
                action: format!("{:#010x}", call.action_id),
            })?;
    check_offered(table, action, place)?;
    let owner = &action.preamble.name;
    if let Some(stray) = call
        .params
        .iter()
        .find(|p| action.params.iter().all(|param| param.id != p.param_id))
    {
        return Err(unknown_param(owner, stray.param_id.to_string()));
    }
    let mut params = Vec::new();
    for param in &action.params {
        let mut given = call
            .params
            .iter()
            .filter(|given| given.param_id == param.id);
        match (given.next(), given.next()) {
            (Some(_), Some(_)) => return Err(twice_param(owner, &param.name)),
            (None, _) => return Err(missing_param(owner, &param.name)),
            (Some(given), None) => {
                let value = bytes::decode(&given.value, param.bitwidth).map_err(|source| {
                    TranslateError::Value {
                        field: param.name.clone(),
                        source,
                    }
                })?;
                params.push((param.name.clone(), value));
            }
        }
    }
    Ok(ActionCall {
        name: owner.clone(),
        params,
    })
}

fn check_offered(table: &Table, action: &Action, place: Place) -> Result<()> {
    let (table_name, action_name) = (table.preamble.name.clone(), action.preamble.name.clone());
    let Some(offered) = table
        .action_refs
        .iter()
        .find(|offered| offered.id == action.preamble.id)
    else {
        return Err(TranslateError::ActionNotOffered {
            table: table_name,
            action: action_name,
        });
    };
    let allowed = match (place, offered.scope) {
        (Place::Entry, ActionScope::DefaultOnly) => "as default action",
        (Place::Default, ActionScope::TableOnly) => "in entries",
        _ => return Ok(()),
    };
    Err(TranslateError::ActionScope {
        table: table_name,
        action: action_name,
        allowed,
    })
}

pub(super) fn check_width(field: &str, value: u128, bitwidth: u32) -> Result<()> {
    let source = match bitwidth {
        129.. => bytes::BytesError::Unsupported { bitwidth },
        _ if bytes::fits(value, bitwidth) => return Ok(()),
        _ => bytes::BytesError::TooWide { bitwidth },
    };
    Err(TranslateError::Value {
        field: field.to_owned(),
        source,
    })
}

fn match_error(table: &Table, field: &MatchField, reason: String) -> TranslateError {
    TranslateError::Match {
        table: table.preamble.name.clone(),
        field: field.name.clone(),
        reason,
    }
}

fn twice(table: &Table, field: &MatchField) -> TranslateError {
    let (owner, field) = (table.preamble.name.clone(), field.name.clone());
    TranslateError::Twice {
        owner,
        kind: "key field",
        field,
    }
}

fn missing(table: &Table, field: &MatchField) -> TranslateError {
    let (owner, field) = (table.preamble.name.clone(), field.name.clone());
    TranslateError::Missing {
        owner,
        kind: "key field",
        field,
    }
}

fn unknown_key(table: &Table, field: String) -> TranslateError {
    TranslateError::UnknownField {
        owner: table.preamble.name.clone(),
        kind: "key field",
        field,
    }
}

fn twice_param(owner: &str, field: &str) -> TranslateError {
    TranslateError::Twice {
        owner: owner.to_owned(),
        kind: "parameter",
        field: field.to_owned(),
    }
}

fn missing_param(owner: &str, field: &str) -> TranslateError {
    TranslateError::Missing {
        owner: owner.to_owned(),
        kind: "parameter",
        field: field.to_owned(),
    }
}

fn unknown_param(owner: &str, field: String) -> TranslateError {
    TranslateError::UnknownField {
        owner: owner.to_owned(),
        kind: "parameter",
        field,
    }
}

//! Translates table entries and default actions (P4Runtime 1.4, section 9.1).

use super::action::{self, ActionUse};
use super::matches::{EXACT, match_from_proto, match_to_proto};
use super::profile::{Choice, choice_from_proto, choice_to_proto};
use super::{Item, Part, TranslateError};
use crate::p4info::Index;
use crate::v1;
use crate::v1::table_action::Type as ActionKind;
use p4lang::p4info::{MatchField, MatchType, Table};
use p4lang::runtime::{ActionCall, FieldMatch, TableEntry};

type Result<T> = std::result::Result<T, TranslateError>;

/// The identity of a table entry, whatever its action.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EntryAt {
    /// The table entry with this key.
    Key {
        /// Fully qualified name of the table.
        table: String,
        /// Matches of the key fields; an omitted key field is a don't-care.
        key: Vec<FieldMatch>,
        /// Priority of the entry, if the table requires one; else 0.
        priority: i32,
    },
    /// The default entry, which applies to packets that match no entry.
    Default {
        /// Fully qualified name of the table.
        table: String,
    },
}

pub(super) fn entry_to_proto(entry: &TableEntry, index: &Index) -> Result<v1::TableEntry> {
    let table = table_named(&entry.table, index)?;
    let action = action_to_proto(table, &entry.action, ActionUse::Entry, index)?;
    Ok(v1::TableEntry {
        action: Some(action),
        ..key_to_proto(table, &entry.key, entry.priority)?
    })
}

pub(super) fn indirect_to_proto(
    at: &EntryAt,
    choice: &Choice,
    index: &Index,
) -> Result<v1::TableEntry> {
    let EntryAt::Key { table, .. } = at else {
        return Err(TranslateError::Malformed(
            "the default entry takes an action, not a member or group".to_owned(),
        ));
    };
    let action = choice_to_proto(table_named(table, index)?, choice, index)?;
    Ok(v1::TableEntry {
        action: Some(action),
        ..at_to_proto(at, index)?
    })
}

/// Encodes the identity of a table entry as a P4Runtime message.
pub(crate) fn at_to_proto(at: &EntryAt, index: &Index) -> Result<v1::TableEntry> {
    match at {
        EntryAt::Key {
            table,
            key,
            priority,
        } => key_to_proto(table_named(table, index)?, key, *priority),
        EntryAt::Default { table } => Ok(v1::TableEntry {
            table_id: table_named(table, index)?.preamble.id,
            is_default_action: true,
            ..Default::default()
        }),
    }
}

/// Decodes the identity of a table entry from a P4Runtime message.
pub(super) fn at_from_proto(entry: &v1::TableEntry, index: &Index) -> Result<EntryAt> {
    let table = table_with_id(entry.table_id, index)?;
    let name = table.preamble.name.clone();
    if entry.is_default_action {
        return Ok(EntryAt::Default { table: name });
    }
    Ok(EntryAt::Key {
        table: name,
        key: key_from_proto(table, entry)?,
        priority: entry.priority,
    })
}

/// Decodes a table entry that names a member or group, or has several actions; `None` if it has a direct action.
pub(super) fn indirect_from_proto(
    entry: &v1::TableEntry,
    index: &Index,
    part: Part,
) -> Result<Option<Item>> {
    let kind = entry
        .action
        .as_ref()
        .and_then(|action| action.r#type.as_ref());
    let (Part::Whole, Some(kind)) = (part, kind) else {
        return Ok(None);
    };
    let table = table_with_id(entry.table_id, index)?;
    let choice = choice_from_proto(table, kind, index)?;
    let item = choice.map(|choice| {
        let at = at_from_proto(entry, index)?;
        Ok(Item::IndirectEntry { at, choice })
    });
    item.transpose()
}

fn key_to_proto(table: &Table, key: &[FieldMatch], priority: i32) -> Result<v1::TableEntry> {
    check_priority(table, priority)?;
    let mut matches = Vec::new();
    for field in &table.match_fields {
        let mut given = key.iter().filter(|given| given.field == field.name);
        match (given.next(), given.next()) {
            (Some(_), Some(_)) => return Err(twice(table, field)),
            (Some(given), None) => {
                matches.extend(match_to_proto(&table.preamble.name, field, &given.value)?)
            }
            (None, _) if field.match_type == EXACT => return Err(missing(table, field)),
            (None, _) => {}
        }
    }
    if let Some(stray) = key
        .iter()
        .find(|given| table.match_fields.iter().all(|f| f.name != given.field))
    {
        return Err(unknown_key(table, format!("`{}`", stray.field)));
    }
    Ok(v1::TableEntry {
        table_id: table.preamble.id,
        r#match: matches,
        priority,
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
        .map(|action| action_to_proto(table, action, ActionUse::Default, index))
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
    let key = key_from_proto(table, entry)?;
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
            action_from_proto(table, action, ActionUse::Entry, index)?
        }
    };
    Ok(TableEntry {
        table: table.preamble.name.clone(),
        key,
        priority: entry.priority,
        action,
    })
}

fn key_from_proto(table: &Table, entry: &v1::TableEntry) -> Result<Vec<FieldMatch>> {
    check_priority(table, entry.priority)?;
    if let Some(stray) = entry
        .r#match
        .iter()
        .find(|m| table.match_fields.iter().all(|f| f.id != m.field_id))
    {
        return Err(unknown_key(table, format!("with id {}", stray.field_id)));
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
                let value = match_from_proto(&table.preamble.name, field, given)?;
                key.push(FieldMatch {
                    field: field.name.clone(),
                    value,
                });
            }
            (None, _) if field.match_type == EXACT => return Err(missing(table, field)),
            (None, _) => {}
        }
    }
    Ok(key)
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
            Some(action_from_proto(table, action, ActionUse::Default, index)?)
        }
        _ => None,
    };
    Ok(Item::DefaultAction {
        table: table.preamble.name.clone(),
        action,
    })
}

fn action_to_proto(
    table: &Table,
    call: &ActionCall,
    used_as: ActionUse,
    index: &Index,
) -> Result<v1::TableAction> {
    let call = action::action_to_proto(table, call, used_as, index)?;
    Ok(v1::TableAction {
        r#type: Some(ActionKind::Action(call)),
    })
}

fn action_from_proto(
    table: &Table,
    action: &v1::TableAction,
    used_as: ActionUse,
    index: &Index,
) -> Result<ActionCall> {
    match action.r#type.as_ref().ok_or(TranslateError::Unset {
        what: "action type",
    })? {
        ActionKind::Action(call) => action::action_from_proto(table, call, used_as, index),
        _ => Err(TranslateError::Unsupported {
            what: "entries that name members, groups or action sets, by name".to_owned(),
        }),
    }
}

fn table_named<'a>(name: &str, index: &'a Index) -> Result<&'a Table> {
    index
        .tables
        .named(name)
        .ok_or_else(|| TranslateError::unknown_name::<Table>(name))
}

/// The table with this id; an error if the program has none.
pub fn table_with_id(id: u32, index: &Index) -> Result<&Table> {
    index
        .tables
        .with_id(id)
        .ok_or_else(|| TranslateError::unknown_id::<Table>(id))
}

/// Checks that entries of the table may have this priority.
pub fn check_priority(table: &Table, priority: i32) -> Result<()> {
    let ordered = |field: &MatchField| matches!(field.match_type, MatchType::Standard(kind) if kind.wants_priority());
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

//! Translates actions and their parameters (P4Runtime 1.4, section 9.1.2).

use super::TranslateError;
use super::matches::check_width;
use crate::bytes;
use crate::p4info::Index;
use crate::v1;
use p4lang::p4info::{Action, ActionScope, Table};
use p4lang::runtime::ActionCall;

type Result<T> = std::result::Result<T, TranslateError>;

/// How a table uses an action.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ActionUse {
    /// As the action of a table entry.
    Entry,
    /// As the default action of the table.
    Default,
}

/// Encodes an action with its parameters as a P4Runtime message.
pub fn action_to_proto(
    table: &Table,
    call: &ActionCall,
    used_as: ActionUse,
    index: &Index,
) -> Result<v1::Action> {
    let action = index
        .actions
        .named(&call.name)
        .ok_or_else(|| TranslateError::unknown_name::<Action>(&call.name))?;
    check_offered(table, action, used_as)?;
    let owner = &action.preamble.name;
    let mut params = Vec::new();
    for param in &action.params {
        let mut given = call.params.iter().filter(|(name, _)| *name == param.name);
        match (given.next(), given.next()) {
            (Some(_), Some(_)) => return Err(twice_param(owner, &param.name)),
            (None, _) => return Err(missing_param(owner, &param.name)),
            (Some((name, value)), None) => {
                check_width(name, value, param.bitwidth)?;
                params.push(v1::action::Param {
                    param_id: param.id,
                    value: value.to_be_bytes().into(),
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
    Ok(v1::Action {
        action_id: action.preamble.id,
        params,
    })
}

/// Decodes an action, if the table offers it for this use.
pub fn action_from_proto(
    table: &Table,
    call: &v1::Action,
    used_as: ActionUse,
    index: &Index,
) -> Result<ActionCall> {
    let action =
        index
            .actions
            .with_id(call.action_id)
            .ok_or_else(|| TranslateError::ActionNotOffered {
                table: table.preamble.name.clone(),
                action: format!("{:#010x}", call.action_id),
            })?;
    check_offered(table, action, used_as)?;
    let owner = &action.preamble.name;
    if let Some(stray) = call
        .params
        .iter()
        .find(|p| action.params.iter().all(|param| param.id != p.param_id))
    {
        return Err(unknown_param(owner, format!("with id {}", stray.param_id)));
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

/// Checks that the table offers the action for this use (in entries, or as the default action).
pub fn check_offered(table: &Table, action: &Action, used_as: ActionUse) -> Result<()> {
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
    let allowed = match (used_as, offered.scope) {
        (ActionUse::Entry, ActionScope::DefaultOnly) => "as default action",
        (ActionUse::Default, ActionScope::TableOnly) => "in entries",
        _ => return Ok(()),
    };
    Err(TranslateError::ActionScope {
        table: table_name,
        action: action_name,
        allowed,
    })
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

//! Translates action profiles: members, groups, and table entries that name them (P4Runtime 1.4, sections 9.1.2 and 9.2).

use super::action::{ActionUse, action_from_proto, action_to_proto};
use super::{Item, Part, TranslateError};
use crate::bytes;
use crate::p4info::Index;
use crate::v1;
use crate::v1::table_action::Type as ActionKind;
use p4lang::p4info::{ActionProfile, Table};
use p4lang::runtime::ActionCall;

type Result<T> = std::result::Result<T, TranslateError>;

/// How a table entry takes its action from an action profile.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Choice {
    /// The action of the member with this id.
    Member(u32),
    /// The action of one of the members of the group with this id.
    Group(u32),
    /// One of these actions of the table entry itself.
    Actions(Vec<WeightedAction>),
}

/// One of several actions that a table entry itself contains.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WeightedAction {
    /// The action with its parameters.
    pub action: ActionCall,
    /// Relative frequency with which the action is selected, at least 1.
    pub weight: u32,
    /// The action is not selected while this port is down; `None` watches no port.
    pub watch_port: Option<u32>,
}

/// A member of a group of an action selector.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GroupMember {
    /// Id of the member in the action profile.
    pub member: u32,
    /// Relative frequency with which the member is selected, at least 1.
    pub weight: u32,
    /// The member is not selected while this port is down; `None` watches no port.
    pub watch_port: Option<u32>,
}

/// Encodes a table entry's choice of member, group or actions as a P4Runtime message.
pub(super) fn choice_to_proto(
    table: &Table,
    choice: &Choice,
    index: &Index,
) -> Result<v1::TableAction> {
    use v1::action_profile_action::WatchKind;
    let kind = match choice {
        Choice::Member(id) => ActionKind::ActionProfileMemberId(*id),
        Choice::Group(id) => ActionKind::ActionProfileGroupId(*id),
        Choice::Actions(actions) => {
            let action = |a: &WeightedAction| {
                Ok(v1::ActionProfileAction {
                    action: Some(action_to_proto(table, &a.action, ActionUse::Entry, index)?),
                    weight: weight_to_proto(a.weight)?,
                    watch_kind: a
                        .watch_port
                        .map(|port| WatchKind::WatchPort(bytes::encode(port.into()))),
                })
            };
            ActionKind::ActionProfileActionSet(v1::ActionProfileActionSet {
                action_profile_actions: actions.iter().map(action).collect::<Result<_>>()?,
            })
        }
    };
    Ok(v1::TableAction { r#type: Some(kind) })
}

/// Decodes a table entry's choice of member, group or actions; `None` if the entry has a direct action.
pub(super) fn choice_from_proto(
    table: &Table,
    kind: &ActionKind,
    index: &Index,
) -> Result<Option<Choice>> {
    use v1::action_profile_action::WatchKind;
    Ok(Some(match kind {
        ActionKind::Action(_) => return Ok(None),
        ActionKind::ActionProfileMemberId(id) => Choice::Member(*id),
        ActionKind::ActionProfileGroupId(id) => Choice::Group(*id),
        ActionKind::ActionProfileActionSet(set) => {
            let action = |a: &v1::ActionProfileAction| {
                let unset = TranslateError::Unset { what: "action" };
                let call = a.action.as_ref().ok_or(unset)?;
                Ok(WeightedAction {
                    action: action_from_proto(table, call, ActionUse::Entry, index)?,
                    weight: weight_from_proto(a.weight)?,
                    watch_port: match &a.watch_kind {
                        Some(WatchKind::WatchPort(port)) => port_from_proto(port)?,
                        #[allow(deprecated)]
                        Some(WatchKind::Watch(port)) => deprecated_port(*port),
                        None => None,
                    },
                })
            };
            let actions = set.action_profile_actions.iter().map(action);
            Choice::Actions(actions.collect::<Result<_>>()?)
        }
    }))
}

pub(super) fn member_to_proto(
    profile: &str,
    id: u32,
    action: Option<&ActionCall>,
    index: &Index,
) -> Result<v1::ActionProfileMember> {
    let profile = named(profile, index)?;
    let action = action
        .map(|call| action_to_proto(table_of(profile, index)?, call, ActionUse::Entry, index));
    Ok(v1::ActionProfileMember {
        action_profile_id: profile.preamble.id,
        member_id: id,
        action: action.transpose()?,
    })
}

pub(super) fn member_from_proto(
    member: &v1::ActionProfileMember,
    index: &Index,
    part: Part,
) -> Result<Item> {
    let profile = with_id(member.action_profile_id, index)?;
    let action = member.action.as_ref().filter(|_| part == Part::Whole);
    let action = action
        .map(|call| action_from_proto(table_of(profile, index)?, call, ActionUse::Entry, index));
    Ok(Item::Member {
        profile: profile.preamble.name.clone(),
        id: member.member_id,
        action: action.transpose()?,
    })
}

pub(super) fn group_to_proto(
    profile: &str,
    id: u32,
    max_size: u32,
    members: &[GroupMember],
    index: &Index,
) -> Result<v1::ActionProfileGroup> {
    use v1::action_profile_group::{Member, member::WatchKind};
    let member = |m: &GroupMember| {
        Ok(Member {
            member_id: m.member,
            weight: weight_to_proto(m.weight)?,
            watch_kind: m
                .watch_port
                .map(|port| WatchKind::WatchPort(bytes::encode(port.into()))),
        })
    };
    let too_large = |_| TranslateError::Malformed(format!("max_size {max_size} is too large"));
    Ok(v1::ActionProfileGroup {
        action_profile_id: named(profile, index)?.preamble.id,
        group_id: id,
        members: members.iter().map(member).collect::<Result<_>>()?,
        max_size: i32::try_from(max_size).map_err(too_large)?,
    })
}

pub(super) fn group_from_proto(
    group: &v1::ActionProfileGroup,
    index: &Index,
    part: Part,
) -> Result<Item> {
    use v1::action_profile_group::{Member, member::WatchKind};
    let member = |m: &Member| {
        Ok(GroupMember {
            member: m.member_id,
            weight: weight_from_proto(m.weight)?,
            watch_port: match &m.watch_kind {
                Some(WatchKind::WatchPort(port)) => port_from_proto(port)?,
                #[allow(deprecated)]
                Some(WatchKind::Watch(port)) => deprecated_port(*port),
                None => None,
            },
        })
    };
    let members = match part {
        Part::Key => Vec::new(),
        Part::Whole => group.members.iter().map(member).collect::<Result<_>>()?,
    };
    let negative = |_| TranslateError::Malformed("max_size is negative".to_owned());
    Ok(Item::Group {
        profile: with_id(group.action_profile_id, index)?
            .preamble
            .name
            .clone(),
        id: group.group_id,
        max_size: u32::try_from(group.max_size).map_err(negative)?,
        members,
    })
}

fn named<'a>(name: &str, index: &'a Index) -> Result<&'a ActionProfile> {
    let profile = index.action_profiles.named(name);
    profile.ok_or_else(|| TranslateError::unknown_name::<ActionProfile>(name))
}

fn with_id(id: u32, index: &Index) -> Result<&ActionProfile> {
    let profile = index.action_profiles.with_id(id);
    profile.ok_or_else(|| TranslateError::unknown_id::<ActionProfile>(id))
}

/// A table that uses the action profile, any of them: all offer the same actions. An error if no table uses the profile.
fn table_of<'a>(profile: &ActionProfile, index: &'a Index) -> Result<&'a Table> {
    let mut tables = profile.table_ids.iter();
    let table = tables.find_map(|id| index.tables.with_id(*id));
    table.ok_or_else(|| {
        TranslateError::Malformed(format!("no table uses {}", profile.preamble.name))
    })
}

fn weight_to_proto(weight: u32) -> Result<i32> {
    match i32::try_from(weight) {
        Ok(0) | Err(_) => Err(TranslateError::Malformed(format!("weight {weight} < 1"))),
        Ok(weight) => Ok(weight),
    }
}

fn weight_from_proto(weight: i32) -> Result<u32> {
    match u32::try_from(weight) {
        Ok(0) | Err(_) => Err(TranslateError::Malformed(format!("weight {weight} < 1"))),
        Ok(weight) => Ok(weight),
    }
}

/// Decodes a port to watch; `None` for an empty string, which means no port.
fn port_from_proto(port: &[u8]) -> Result<Option<u32>> {
    if port.is_empty() {
        return Ok(None);
    }
    let value = bytes::decode(port, u32::BITS).map_err(|source| TranslateError::Value {
        field: "watch_port".to_owned(),
        source,
    })?;
    Ok(value.to())
}

/// Decodes a port to watch in the form before P4Runtime 1.3, in which 0 means no port.
fn deprecated_port(port: i32) -> Option<u32> {
    Some(port.cast_unsigned()).filter(|port| *port != 0)
}

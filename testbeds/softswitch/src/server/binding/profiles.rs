//! Converts members and groups of action profiles between P4Runtime messages and the program (P4Runtime 1.4, section 9.2).

use super::{Binding, invalid};
use p4lang::p4info::{ActionProfile, SelectorSize};
use p4lang::runtime::ActionCall;
use p4rt::status::UpdateError;
use p4rt::translate::TranslateError;
use p4rt::v1;
use pipeline::ProfileGroup;
use v1::update::Type;

type Result<T> = std::result::Result<T, UpdateError>;

pub(in crate::server) fn profile(id: u32, binding: &Binding) -> Result<&ActionProfile> {
    let profile = binding.index.action_profiles.with_id(id);
    profile.ok_or_else(|| TranslateError::unknown_id::<ActionProfile>(id).into())
}

/// Converts a member from P4Runtime: its profile's name, and its action (`None`: the update deletes the member).
pub(in crate::server) fn member(
    kind: Type,
    member: &v1::ActionProfileMember,
    binding: &Binding,
) -> Result<(String, Option<ActionCall>)> {
    let profile = profile(member.action_profile_id, binding)?;
    if member.member_id == 0 {
        return Err(invalid(
            "member id 0 is reserved for reads of all members; use 1 or more",
        ));
    }
    let name = profile.preamble.name.clone();
    if kind == Type::Delete {
        return Ok((name, None));
    }
    let call = member.action.as_ref();
    let call = call.ok_or(TranslateError::Unset { what: "action" })?;
    // Tables that share a profile have the same actions.
    let mut tables = profile
        .table_ids
        .iter()
        .filter_map(|id| binding.table(*id).ok());
    let table = tables.next();
    let table = table.ok_or_else(|| invalid(format!("{name} belongs to no table")))?;
    Ok((name, Some(table.member_call(call, binding)?)))
}

/// Converts a member to P4Runtime.
pub(in crate::server) fn member_to_proto(
    profile: &ActionProfile,
    id: u32,
    call: &ActionCall,
    binding: &Binding,
) -> v1::ActionProfileMember {
    let mut tables = profile
        .table_ids
        .iter()
        .filter_map(|id| binding.table(*id).ok());
    v1::ActionProfileMember {
        action_profile_id: profile.preamble.id,
        member_id: id,
        action: tables.find_map(|table| table.member_to_proto(call, binding)),
    }
}

/// Converts a group from P4Runtime: its profile's name, and its members (`None`: the update deletes the group).
pub(in crate::server) fn group(
    kind: Type,
    group: &v1::ActionProfileGroup,
    binding: &Binding,
) -> Result<(String, Option<ProfileGroup>)> {
    let profile = profile(group.action_profile_id, binding)?;
    if group.group_id == 0 {
        return Err(invalid(
            "group id 0 is reserved for reads of all groups; use 1 or more",
        ));
    }
    let name = profile.preamble.name.clone();
    if kind == Type::Delete {
        return Ok((name, None));
    }
    if !profile.with_selector {
        return Err(invalid(format!("{name} has no selector, so no groups")));
    }
    let max_size = u32::try_from(group.max_size).map_err(|_| invalid("max_size is negative"))?;
    let most = u32::try_from(profile.max_group_size).unwrap_or(0);
    if most > 0 && !(1..=most).contains(&max_size) {
        return Err(invalid(format!(
            "max_size is {max_size}; {name} permits 1 to {most}"
        )));
    }
    let members = group.members.iter().map(|m| binding.group_member(m));
    let members = members.collect::<Result<Vec<_>>>()?;
    check_size(profile, members.iter().map(|m| m.weight), 0)?;
    Ok((name, Some(ProfileGroup { members, max_size })))
}

/// Converts a group to P4Runtime.
pub(in crate::server) fn group_to_proto(
    profile: &ActionProfile,
    id: u32,
    group: &ProfileGroup,
    binding: &Binding,
) -> v1::ActionProfileGroup {
    use v1::action_profile_group::{Member, member::WatchKind};
    let member = |member: &pipeline::GroupMember| Member {
        member_id: member.member,
        weight: member.weight.cast_signed(),
        watch_kind: member
            .watch_port
            .map(|port| WatchKind::WatchPort(binding.port_to_proto(port))),
    };
    v1::ActionProfileGroup {
        action_profile_id: profile.preamble.id,
        group_id: id,
        members: group.members.iter().map(member).collect(),
        max_size: group.max_size.cast_signed(),
    }
}

/// Checks the weights of a group's members against P4Info; `most` is `max_group_size`, 0 for no limit.
pub(super) fn check_size(
    profile: &ActionProfile,
    weights: impl Iterator<Item = u32>,
    most: i32,
) -> Result<()> {
    let most = u64::try_from(most).unwrap_or(0);
    let (mut members, mut sum) = (0u64, 0u64);
    let heaviest = match profile.selector_size {
        Some(SelectorSize::SumOfMembers { max_member_weight }) => max_member_weight,
        _ => 0,
    };
    for weight in weights {
        members += 1;
        sum += u64::from(weight);
        if heaviest > 0 && weight > heaviest.cast_unsigned() {
            return Err(invalid(format!(
                "the weight is {weight}; the maximum is {heaviest}"
            )));
        }
    }
    let size = match profile.selector_size {
        Some(SelectorSize::SumOfMembers { .. }) => members,
        _ => sum,
    };
    if most > 0 && size > most {
        return Err(invalid(format!(
            "the group's size is {size}; the maximum is {most}"
        )));
    }
    Ok(())
}

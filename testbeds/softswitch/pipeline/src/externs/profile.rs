//! Action profiles and selectors: actions that entries share by a member's or group's number.

use crate::error::ProfileError;
use crate::externs::hash::Algorithm;
use crate::table::Bound;
use p4lang::runtime::ActionCall;
use std::collections::BTreeMap;

/// What an entry names instead of an action.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Indirect {
    /// A member of its table's profile.
    Member(u32),
    /// A group, of which the selector picks a member.
    Group(u32),
}

/// What a profile is, apart from its members.
#[derive(Debug, Clone)]
pub struct ProfileSpec {
    /// Fully qualified name.
    pub name: String,
    /// Members at most; with a selector also the weights of all groups together.
    pub size: u64,
    /// It is a selector: it has groups.
    pub selector: bool,
}

/// Weights of one group together, at most.
const GROUP_LIMIT: u64 = 65_536;

#[derive(Debug, Clone)]
struct Member {
    call: ActionCall,
    /// For each table, if that offers the action.
    bound: Vec<Option<Bound>>,
}

/// A group's members with their weights; and each as often as it weighs, to be picked from.
#[derive(Debug, Clone)]
struct Group {
    members: Vec<(u32, u32)>,
    weighed: Vec<u32>,
}

/// How a selector turns key fields into a pick.
#[derive(Debug, Clone, Copy)]
pub struct Selector {
    /// Of the hash.
    pub algorithm: Algorithm,
    /// Bits of the hash that count.
    pub width: u32,
}

/// A profile and its members.
#[derive(Debug)]
pub struct Profile {
    /// What it is.
    pub spec: ProfileSpec,
    /// With a selector.
    pub selector: Option<Selector>,
    /// The tables that use it: indices into the state's.
    pub tables: Vec<u32>,
    members: BTreeMap<u32, Member>,
    groups: BTreeMap<u32, Group>,
}

/// A member as it was, to be put back.
#[derive(Debug)]
pub struct OldMember(Option<Member>);

/// A group as it was, to be put back.
#[derive(Debug)]
pub struct OldGroup(Option<Group>);

impl Profile {
    /// Without members.
    pub fn new(name: String, size: u64, selector: Option<Selector>) -> Profile {
        Profile {
            spec: ProfileSpec {
                name,
                size,
                selector: selector.is_some(),
            },
            selector,
            tables: Vec::new(),
            members: BTreeMap::new(),
            groups: BTreeMap::new(),
        }
    }

    /// The action for the table at `place` of [`Profile::tables`]; `None` if the group is empty.
    pub fn action(&self, place: usize, indirect: Indirect, hash: u64) -> Option<&Bound> {
        let member = match indirect {
            Indirect::Member(id) => id,
            Indirect::Group(id) => {
                let weighed = &self.groups.get(&id)?.weighed;
                let pick = hash.checked_rem(weighed.len() as u64)?;
                *weighed.get(pick as usize)?
            }
        };
        self.members.get(&member)?.bound.get(place)?.as_ref()
    }

    /// Whether an entry of the table at `place` may name it.
    pub fn offers(&self, place: usize, indirect: Indirect) -> Result<(), ProfileError> {
        let fits = |id: &u32| {
            let member = self.members.get(id).ok_or(ProfileError::NotFound)?;
            match member.bound.get(place) {
                Some(Some(_)) => Ok(()),
                _ => Err(ProfileError::ActionNotOffered),
            }
        };
        match indirect {
            Indirect::Member(id) => fits(&id),
            Indirect::Group(id) => {
                let group = self.groups.get(&id).ok_or(ProfileError::NotFound)?;
                group.members.iter().try_for_each(|(id, _)| fits(id))
            }
        }
    }

    /// All members by number.
    pub fn members(&self) -> Vec<(u32, ActionCall)> {
        let members = self.members.iter();
        members.map(|(id, m)| (*id, m.call.clone())).collect()
    }

    /// All groups by number: members and weights.
    pub fn groups(&self) -> Vec<(u32, Vec<(u32, u32)>)> {
        let groups = self.groups.iter();
        groups.map(|(id, g)| (*id, g.members.clone())).collect()
    }

    /// Adds a member, or changes it. `bound`: the action in each table.
    pub fn put_member(
        &mut self,
        id: u32,
        call: ActionCall,
        bound: Vec<Option<Bound>>,
        change: bool,
    ) -> Result<OldMember, ProfileError> {
        match (self.members.get(&id), change) {
            (Some(_), false) => return Err(ProfileError::Duplicate),
            (None, true) => return Err(ProfileError::NotFound),
            (None, false) if self.members.len() as u64 >= self.spec.size => {
                return Err(ProfileError::Full(self.spec.size));
            }
            _ => {}
        }
        let member = Member { call, bound };
        Ok(OldMember(self.members.insert(id, member)))
    }

    /// Takes a member out that no group names. Entries are the caller's to look at.
    pub fn delete_member(&mut self, id: u32) -> Result<OldMember, ProfileError> {
        let named = |g: &Group| g.members.iter().any(|(member, _)| *member == id);
        if self.groups.values().any(named) {
            return Err(ProfileError::InUse);
        }
        let member = self.members.remove(&id).ok_or(ProfileError::NotFound)?;
        Ok(OldMember(Some(member)))
    }

    /// Adds a group, or changes it.
    pub fn put_group(
        &mut self,
        id: u32,
        members: &[(u32, u32)],
        change: bool,
    ) -> Result<OldGroup, ProfileError> {
        if self.selector.is_none() {
            return Err(ProfileError::NoSelector);
        }
        match (self.groups.contains_key(&id), change) {
            (true, false) => return Err(ProfileError::Duplicate),
            (false, true) => return Err(ProfileError::NotFound),
            _ => {}
        }
        let sum: u64 = members.iter().map(|(_, weight)| u64::from(*weight)).sum();
        if members.iter().any(|(_, weight)| *weight == 0) {
            return Err(ProfileError::BadWeight);
        }
        let others = self.groups.iter().filter(|(other, _)| **other != id);
        let taken: u64 = others.map(|(_, g)| g.weighed.len() as u64).sum();
        let limit = if self.spec.size == 0 {
            GROUP_LIMIT
        } else {
            self.spec.size
        };
        if sum > GROUP_LIMIT || taken + sum > limit {
            return Err(ProfileError::Full(limit));
        }
        for (i, (member, _)) in members.iter().enumerate() {
            if !self.members.contains_key(member) {
                return Err(ProfileError::NotFound);
            }
            if members[..i].iter().any(|(before, _)| before == member) {
                return Err(ProfileError::Duplicate);
            }
        }
        let weighed = members
            .iter()
            .flat_map(|(member, weight)| std::iter::repeat_n(*member, *weight as usize));
        let group = Group {
            members: members.to_vec(),
            weighed: weighed.collect(),
        };
        Ok(OldGroup(self.groups.insert(id, group)))
    }

    /// Takes a group out. Entries are the caller's to look at.
    pub fn delete_group(&mut self, id: u32) -> Result<OldGroup, ProfileError> {
        let group = self.groups.remove(&id).ok_or(ProfileError::NotFound)?;
        Ok(OldGroup(Some(group)))
    }

    /// Puts back what was there.
    pub fn restore_member(&mut self, id: u32, old: OldMember) {
        match old.0 {
            Some(member) => self.members.insert(id, member),
            None => self.members.remove(&id),
        };
    }

    /// Puts back what was there.
    pub fn restore_group(&mut self, id: u32, old: OldGroup) {
        match old.0 {
            Some(group) => self.groups.insert(id, group),
            None => self.groups.remove(&id),
        };
    }
}

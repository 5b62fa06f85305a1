//! Action profiles and selectors: actions that table entries share by the number of a member or group.

mod written;

use crate::error::ProfileError;
use crate::externs::hash::Algorithm;
use crate::table::Bound;
use p4lang::runtime::ActionCall;
use std::collections::{BTreeMap, BTreeSet};
pub use written::{GroupMember, Indirect, OneShotAction, ProfileGroup, ProfileSpec};

/// Maximum sum of the weights of a group's members.
const GROUP_LIMIT: u64 = 65_536;

#[derive(Debug, Clone)]
struct BoundMember {
    call: ActionCall,
    /// For each table that uses the profile, the bound action; `None` if the table does not offer the action.
    bound: Vec<Option<Bound>>,
}

/// A selector's group. `weighed` contains each member as often as its weight, to pick one.
#[derive(Debug, Clone)]
struct WeighedGroup {
    written: ProfileGroup,
    weighed: Vec<u32>,
    /// Positions in the group that the program has removed (by TNA's `SelectorAction`). A member of weight n has n positions.
    out: BTreeSet<u32>,
}

/// The actions of a one-shot table entry. `weighed` contains the number of each as often as its weight, to pick one.
#[derive(Debug, Clone)]
struct OneShot {
    actions: Vec<OneShotAction>,
    bound: Vec<Bound>,
    weighed: Vec<u32>,
}

/// Lists each number in `choices` (number, weight, watched port) as often as its weight, but not those `out` or `down`.
fn weigh(
    choices: impl Iterator<Item = (u32, u32, Option<u32>)>,
    down: &BTreeSet<u32>,
    out: &BTreeSet<u32>,
) -> Vec<u32> {
    let places = choices
        .flat_map(|(number, weight, port)| std::iter::repeat_n((number, port), weight as usize));
    (0..)
        .zip(places)
        .filter(|(place, _)| !out.contains(place))
        .filter(|(_, (_, port))| port.is_none_or(|port| !down.contains(&port)))
        .map(|(_, (number, _))| number)
        .collect()
}

impl WeighedGroup {
    fn new(written: ProfileGroup, down: &BTreeSet<u32>) -> WeighedGroup {
        let mut group = WeighedGroup {
            weighed: Vec::new(),
            written,
            out: BTreeSet::new(),
        };
        group.weigh(down);
        group
    }

    fn weigh(&mut self, down: &BTreeSet<u32>) {
        let choices = self.written.members.iter();
        let choices = choices.map(|m| (m.member, m.weight, m.watch_port));
        self.weighed = weigh(choices, down, &self.out);
    }

    fn size(&self) -> u64 {
        self.written
            .members
            .iter()
            .map(|m| u64::from(m.weight))
            .sum()
    }
}

impl OneShot {
    fn new(actions: Vec<OneShotAction>, bound: Vec<Bound>, down: &BTreeSet<u32>) -> OneShot {
        let choices = (0..).zip(&actions);
        OneShot {
            weighed: weigh(
                choices.map(|(i, a)| (i, a.weight, a.watch_port)),
                down,
                &BTreeSet::new(),
            ),
            actions,
            bound,
        }
    }

    fn size(actions: &[OneShotAction]) -> u64 {
        actions.iter().map(|a| u64::from(a.weight)).sum()
    }
}

/// The hash by which a selector picks a member for a packet.
#[derive(Debug, Clone, Copy)]
pub struct Selector {
    /// Algorithm that hashes the key fields.
    pub algorithm: Algorithm,
    /// Number of bits of the hash that count.
    pub width: u32,
    /// Maximum sum of the weights of a group, as TNA's constructor gives it; 0: not given.
    pub max_group_size: u32,
}

/// An action profile or selector with its members and groups.
#[derive(Debug, Clone)]
pub struct Profile {
    /// Name, size and kind of the profile.
    pub spec: ProfileSpec,
    /// The hash by which members are picked; `None`: the profile has no selector.
    pub selector: Option<Selector>,
    /// Name of the selector, if it is an object separate from the profile (TNA).
    pub alias: Option<String>,
    /// Indices, into the state's tables, of the tables that use the profile.
    pub tables: Vec<u32>,
    /// For each table, the action for a group that has no member to pick (PSA's `psa_empty_group_action`).
    pub empty: Vec<Option<Bound>>,
    members: BTreeMap<u32, BoundMember>,
    groups: BTreeMap<u32, WeighedGroup>,
    one_shots: BTreeMap<u32, OneShot>,
    /// Sum of the weights in all groups and one-shot entries.
    weights: u64,
    next_one_shot: u32,
    down: BTreeSet<u32>,
}

/// The previous actions of a one-shot entry, for rolling a write back.
#[derive(Debug)]
pub struct OldOneShot(OneShot);

/// The previous state of a member, for rolling a write back; `None`: it did not exist.
#[derive(Debug)]
pub struct OldMember(Option<BoundMember>);

/// The previous state of a group, for rolling a write back; `None`: it did not exist.
#[derive(Debug)]
pub struct OldGroup(Option<WeighedGroup>);

impl Profile {
    /// Creates an action profile without members.
    pub fn new(name: String, size: u64, selector: Option<Selector>) -> Profile {
        Profile {
            spec: ProfileSpec {
                name,
                size,
                selector: selector.is_some(),
            },
            selector,
            alias: None,
            tables: Vec::new(),
            empty: Vec::new(),
            members: BTreeMap::new(),
            groups: BTreeMap::new(),
            one_shots: BTreeMap::new(),
            weights: 0,
            next_one_shot: 0,
            down: BTreeSet::new(),
        }
    }

    /// The action that `indirect` selects for the table with index `place` in [`Profile::tables`]; `None`: it selects none.
    pub fn action(&self, place: usize, indirect: Indirect, hash: u64) -> Option<&Bound> {
        let pick = |weighed: &[u32]| {
            let pick = hash.checked_rem(weighed.len() as u64)?;
            weighed.get(pick as usize).copied()
        };
        let empty = || self.empty.get(place)?.as_ref();
        let member = match indirect {
            Indirect::Member(id) => id,
            Indirect::Group(id) => match pick(&self.groups.get(&id)?.weighed) {
                Some(member) => member,
                None => return empty(),
            },
            Indirect::OneShot(id) => {
                let one_shot = self.one_shots.get(&id)?;
                return match pick(&one_shot.weighed) {
                    Some(number) => one_shot.bound.get(number as usize),
                    None => empty(),
                };
            }
        };
        self.members.get(&member)?.bound.get(place)?.as_ref()
    }

    /// Checks that an entry of the table at index `place` may refer to a member or group.
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
                let mut members = group.written.members.iter();
                members.try_for_each(|m| fits(&m.member))
            }
            Indirect::OneShot(id) if self.one_shots.contains_key(&id) => Ok(()),
            Indirect::OneShot(_) => Err(ProfileError::NotFound),
        }
    }

    pub fn members(&self) -> Vec<(u32, ActionCall)> {
        let members = self.members.iter();
        members.map(|(id, m)| (*id, m.call.clone())).collect()
    }

    pub fn groups(&self) -> Vec<(u32, ProfileGroup)> {
        let groups = self.groups.iter();
        groups.map(|(id, g)| (*id, g.written.clone())).collect()
    }

    /// The actions of the one-shot entry with this number; `None` if there is none.
    pub fn one_shot(&self, id: u32) -> Option<&[OneShotAction]> {
        Some(&self.one_shots.get(&id)?.actions)
    }

    /// Replaces a group, or removes it for `None`; returns the previous group.
    fn set_group(&mut self, id: u32, group: Option<WeighedGroup>) -> Option<WeighedGroup> {
        self.weights += group.as_ref().map_or(0, WeighedGroup::size);
        let old = match group {
            Some(group) => self.groups.insert(id, group),
            None => self.groups.remove(&id),
        };
        self.weights -= old.as_ref().map_or(0, WeighedGroup::size);
        old
    }

    /// Replaces the actions of a one-shot entry, or removes them for `None`; returns the previous actions.
    fn set_one_shot(&mut self, id: u32, one_shot: Option<OneShot>) -> Option<OneShot> {
        let size = |one_shot: &OneShot| OneShot::size(&one_shot.actions);
        self.weights += one_shot.as_ref().map_or(0, size);
        let old = match one_shot {
            Some(one_shot) => self.one_shots.insert(id, one_shot),
            None => self.one_shots.remove(&id),
        };
        self.weights -= old.as_ref().map_or(0, size);
        old
    }

    fn limit(&self) -> u64 {
        match self.spec.size {
            0 => GROUP_LIMIT,
            size => size,
        }
    }

    /// Adds the actions of a one-shot entry; returns the entry's number. `bound`: these actions, bound for the entry's table.
    pub fn put_one_shot(
        &mut self,
        actions: Vec<OneShotAction>,
        bound: Vec<Bound>,
    ) -> Result<u32, ProfileError> {
        if self.selector.is_none() {
            return Err(ProfileError::NoSelector);
        }
        // A selector is programmed either with groups or with one-shots (section 9.2.3).
        if !self.members.is_empty() || !self.groups.is_empty() {
            return Err(ProfileError::Mixed);
        }
        if actions.iter().any(|a| a.weight == 0) {
            return Err(ProfileError::BadWeight);
        }
        // Checked before weights are expanded: one may be 2^31.
        let size = OneShot::size(&actions);
        if size > GROUP_LIMIT || self.weights + size > self.limit() {
            return Err(ProfileError::Full(self.limit()));
        }
        let one_shot = OneShot::new(actions, bound, &self.down);
        // Numbers repeat only after 2^32 writes, when the first ones are free again.
        while self.one_shots.contains_key(&self.next_one_shot) {
            self.next_one_shot = self.next_one_shot.wrapping_add(1);
        }
        let id = self.next_one_shot;
        self.next_one_shot = id.wrapping_add(1);
        self.set_one_shot(id, Some(one_shot));
        Ok(id)
    }

    /// Removes the actions of the one-shot entry with this number; returns them for a rollback.
    pub fn delete_one_shot(&mut self, id: u32) -> Option<OldOneShot> {
        self.set_one_shot(id, None).map(OldOneShot)
    }

    /// Restores the previous actions of a one-shot entry.
    pub fn restore_one_shot(&mut self, id: u32, old: OldOneShot) {
        self.set_one_shot(id, Some(old.0));
    }

    /// Handles a port that goes down or comes up: members that watch the port are not picked while it is down.
    pub fn port_is(&mut self, port: u32, up: bool) {
        let changed = if up {
            self.down.remove(&port)
        } else {
            self.down.insert(port)
        };
        if !changed {
            return;
        }
        for group in self.groups.values_mut() {
            group.weigh(&self.down);
        }
        for one_shot in self.one_shots.values_mut() {
            let actions = std::mem::take(&mut one_shot.actions);
            let bound = std::mem::take(&mut one_shot.bound);
            *one_shot = OneShot::new(actions, bound, &self.down);
        }
    }

    /// Whether packets have had equal effects on both profiles: removed the same positions from groups.
    pub fn same_effects(&self, other: &Profile) -> bool {
        let out = |of: &Profile| {
            let groups = of.groups.iter();
            groups
                .map(|(id, group)| (*id, group.out.clone()))
                .collect::<Vec<_>>()
        };
        out(self) == out(other)
    }

    /// Converts a selector's position (each group has `max_group_size`) to group and position in it; `None`: no member there.
    fn place(&self, index: u64) -> Option<(u32, u32)> {
        let size = u64::from(self.selector?.max_group_size);
        let group = u32::try_from(index.checked_div(size)?).ok()?;
        let place = u32::try_from(index % size).ok()?;
        (u64::from(place) < self.groups.get(&group)?.size()).then_some((group, place))
    }

    /// Whether the program lets the selector pick the member at this position; false if no member is there.
    pub fn is_in(&self, index: u64) -> bool {
        self.place(index)
            .is_some_and(|(group, place)| !self.groups[&group].out.contains(&place))
    }

    /// Lets the selector pick, or not, the member at this position, as the program requests; no effect if no member is there.
    /// When the control plane writes the group, all its members may be picked again.
    pub fn put_in(&mut self, index: u64, is_in: bool) {
        let Some((group, place)) = self.place(index) else {
            return;
        };
        let Some(group) = self.groups.get_mut(&group) else {
            return;
        };
        let changed = if is_in {
            group.out.remove(&place)
        } else {
            group.out.insert(place)
        };
        if changed {
            group.weigh(&self.down);
        }
    }

    /// Adds a member, or changes it if `change`. `bound`: its action in each table.
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
        if !self.one_shots.is_empty() {
            return Err(ProfileError::Mixed);
        }
        let member = BoundMember { call, bound };
        Ok(OldMember(self.members.insert(id, member)))
    }

    /// Removes a member that no group refers to. The caller checks that no table entry refers to it.
    pub fn delete_member(&mut self, id: u32) -> Result<OldMember, ProfileError> {
        let named = |g: &WeighedGroup| g.written.members.iter().any(|m| m.member == id);
        if self.groups.values().any(named) {
            return Err(ProfileError::InUse);
        }
        let member = self.members.remove(&id).ok_or(ProfileError::NotFound)?;
        Ok(OldMember(Some(member)))
    }

    /// Adds a group, or changes it if `change`.
    pub fn put_group(
        &mut self,
        id: u32,
        group: ProfileGroup,
        change: bool,
    ) -> Result<OldGroup, ProfileError> {
        if self.selector.is_none() {
            return Err(ProfileError::NoSelector);
        }
        match (self.groups.get(&id), change) {
            (Some(_), false) => return Err(ProfileError::Duplicate),
            (None, true) => return Err(ProfileError::NotFound),
            (Some(old), true) if old.written.max_size != group.max_size => {
                return Err(ProfileError::MaxSize);
            }
            _ => {}
        }
        if !self.one_shots.is_empty() {
            return Err(ProfileError::Mixed);
        }
        if group.members.iter().any(|m| m.weight == 0) {
            return Err(ProfileError::BadWeight);
        }
        let sum: u64 = group.members.iter().map(|m| u64::from(m.weight)).sum();
        let limit = self.limit();
        let others = self.weights - self.groups.get(&id).map_or(0, WeighedGroup::size);
        if sum > GROUP_LIMIT || others + sum > limit {
            return Err(ProfileError::Full(limit));
        }
        if group.max_size > 0 && sum > u64::from(group.max_size) {
            return Err(ProfileError::Full(group.max_size.into()));
        }
        let mut seen = BTreeSet::new();
        for GroupMember { member, .. } in &group.members {
            if !self.members.contains_key(member) {
                return Err(ProfileError::NotFound);
            }
            if !seen.insert(*member) {
                return Err(ProfileError::MemberTwice(*member));
            }
        }
        let group = WeighedGroup::new(group, &self.down);
        Ok(OldGroup(self.set_group(id, Some(group))))
    }

    /// Removes a group. The caller checks that no table entry refers to it.
    pub fn delete_group(&mut self, id: u32) -> Result<OldGroup, ProfileError> {
        let group = self.set_group(id, None).ok_or(ProfileError::NotFound)?;
        Ok(OldGroup(Some(group)))
    }

    /// Restores the previous state of a member.
    pub fn restore_member(&mut self, id: u32, old: OldMember) {
        match old.0 {
            Some(member) => self.members.insert(id, member),
            None => self.members.remove(&id),
        };
    }

    /// Restores the previous state of a group.
    pub fn restore_group(&mut self, id: u32, old: OldGroup) {
        self.set_group(id, old.0);
    }
}

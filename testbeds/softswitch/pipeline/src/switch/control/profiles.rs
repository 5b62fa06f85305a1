//! Control plane operations on action profiles and selectors, by fully qualified names.

use super::Undo;
use crate::error::ProfileError;
use crate::switch::Switch;
use crate::table::profile::{
    GroupMember, Indirect, OneShotAction, Profile, ProfileGroup, ProfileSpec,
};
use crate::table::{Bound, EntryAction};
use p4lang::runtime::{ActionCall, TableEntry};

impl Switch {
    /// Specifications of the program's profiles, in order of declaration.
    pub fn profiles(&self) -> impl Iterator<Item = &ProfileSpec> {
        self.core.state.profiles.iter().map(|p| &p.spec)
    }

    fn profile_index(&self, name: &str) -> Result<usize, ProfileError> {
        let mut profiles = self.core.state.profiles.iter();
        profiles
            .position(|p| p.spec.name == name || p.alias.as_deref() == Some(name))
            .ok_or(ProfileError::NoSuchProfile)
    }

    fn profile(&self, name: &str) -> Result<&Profile, ProfileError> {
        Ok(&self.core.state.profiles[self.profile_index(name)?])
    }

    /// All members of a profile: number and action of each.
    pub fn members(&self, profile: &str) -> Result<Vec<(u32, ActionCall)>, ProfileError> {
        Ok(self.profile(profile)?.members())
    }

    /// All groups of a selector: number and members of each.
    pub fn groups(&self, profile: &str) -> Result<Vec<(u32, ProfileGroup)>, ProfileError> {
        Ok(self.profile(profile)?.groups())
    }

    /// Handles a port that goes down or comes up: selectors do not pick members that watch the port while it is down.
    pub fn set_port_up(&mut self, port: u32, up: bool) {
        for profile in self.core.state.profiles.iter_mut() {
            profile.port_is(port, up);
        }
    }

    /// Adds a member to a profile.
    pub fn insert_member(
        &mut self,
        profile: &str,
        id: u32,
        action: &ActionCall,
    ) -> Result<(), ProfileError> {
        self.put_member(profile, id, action, false)
    }

    /// Changes the action of a profile's member.
    pub fn modify_member(
        &mut self,
        profile: &str,
        id: u32,
        action: &ActionCall,
    ) -> Result<(), ProfileError> {
        self.put_member(profile, id, action, true)
    }

    fn put_member(
        &mut self,
        profile: &str,
        id: u32,
        action: &ActionCall,
        change: bool,
    ) -> Result<(), ProfileError> {
        let index = self.profile_index(profile)?;
        let state = &mut self.core.state;
        let profile = &mut state.profiles[index];
        let tables = profile.tables.iter().map(|t| &state.tables[*t as usize]);
        let bound: Vec<_> = tables.map(|t| t.bind(action, false)).collect();
        // Tables that share a profile may offer different actions; at least one must offer this one.
        let fault = bound.iter().find_map(|b| b.as_ref().err()).cloned();
        let bound: Vec<Option<Bound>> = bound.into_iter().map(Result::ok).collect();
        if let (true, Some(fault)) = (bound.iter().all(Option::is_none), fault) {
            return Err(ProfileError::Action(fault));
        }
        let old = profile.put_member(id, action.clone(), bound, change)?;
        self.record(|| Undo::Member(index, id, old));
        Ok(())
    }

    /// Removes a profile's member that no group or table entry refers to.
    pub fn delete_member(&mut self, profile: &str, id: u32) -> Result<(), ProfileError> {
        let index = self.profile_index(profile)?;
        self.unused(index, Indirect::Member(id))?;
        let old = self.core.state.profiles[index].delete_member(id)?;
        self.record(|| Undo::Member(index, id, old));
        Ok(())
    }

    /// Adds a group of members with weights to a selector.
    pub fn insert_group<M: Copy + Into<GroupMember>>(
        &mut self,
        profile: &str,
        id: u32,
        members: &[M],
    ) -> Result<(), ProfileError> {
        self.put_group(profile, id, group_of(members), false)
    }

    /// Changes the members and weights of a selector's group.
    pub fn modify_group<M: Copy + Into<GroupMember>>(
        &mut self,
        profile: &str,
        id: u32,
        members: &[M],
    ) -> Result<(), ProfileError> {
        self.put_group(profile, id, group_of(members), true)
    }

    /// Adds or changes a group of a selector.
    pub fn put_group(
        &mut self,
        profile: &str,
        id: u32,
        group: ProfileGroup,
        change: bool,
    ) -> Result<(), ProfileError> {
        let index = self.profile_index(profile)?;
        self.check_watched(group.members.iter().map(|m| m.watch_port))?;
        let old = self.core.state.profiles[index].put_group(id, group, change)?;
        self.record(|| Undo::ProfileGroup(index, id, old));
        Ok(())
    }

    /// Removes a selector's group that no table entry refers to.
    pub fn delete_group(&mut self, profile: &str, id: u32) -> Result<(), ProfileError> {
        let index = self.profile_index(profile)?;
        self.unused(index, Indirect::Group(id))?;
        let old = self.core.state.profiles[index].delete_group(id)?;
        self.record(|| Undo::ProfileGroup(index, id, old));
        Ok(())
    }

    fn check_watched(&self, ports: impl Iterator<Item = Option<u32>>) -> Result<(), ProfileError> {
        let absent = ports.flatten().find(|port| !self.core.is_port(*port));
        absent.map_or(Ok(()), |port| Err(ProfileError::NoSuchPort(port)))
    }

    fn unused(&self, profile: usize, indirect: Indirect) -> Result<(), ProfileError> {
        let state = &self.core.state;
        let mut tables = state.profiles[profile].tables.iter();
        if tables.any(|t| state.tables[*t as usize].names(indirect)) {
            return Err(ProfileError::InUse);
        }
        Ok(())
    }

    /// Adds a table entry that refers to a member or group; the action in `entry` is ignored.
    pub fn insert_indirect(
        &mut self,
        entry: &TableEntry,
        indirect: Indirect,
    ) -> Result<(), ProfileError> {
        let table = self.table_index(&entry.table)?;
        self.check_offered(table, indirect)?;
        let key = self.core.state.tables[table].insert_indirect(entry, indirect)?;
        self.record(|| Undo::Inserted(table, key));
        Ok(())
    }

    /// Lets a table entry refer to another member or group.
    pub fn modify_indirect(
        &mut self,
        entry: &TableEntry,
        indirect: Indirect,
    ) -> Result<(), ProfileError> {
        let index = self.table_index(&entry.table)?;
        self.check_offered(index, indirect)?;
        let old = self.core.state.tables[index].replace_indirect(entry, indirect)?;
        let had = old.indirect();
        self.record(|| Undo::Deleted(index, old));
        self.release(index, had);
        Ok(())
    }

    /// The member or group that a table entry refers to; `None` if the entry has an action of its own.
    pub fn indirect(&self, entry: &TableEntry) -> Result<Option<Indirect>, ProfileError> {
        let table = self.table_index(&entry.table)?;
        Ok(self.core.state.tables[table].indirect(entry)?)
    }

    fn profile_of(&self, table: usize) -> Result<usize, ProfileError> {
        let mut profiles = self.core.state.profiles.iter();
        profiles
            .position(|p| p.tables.contains(&(table as u32)))
            .ok_or(ProfileError::NoSuchProfile)
    }

    /// Checks that an entry of the table may refer to the member or group: that the table's profile has it.
    fn check_offered(&self, table: usize, indirect: Indirect) -> Result<(), ProfileError> {
        let profile = &self.core.state.profiles[self.profile_of(table)?];
        let place = profile.tables.iter().position(|t| *t as usize == table);
        profile.offers(place.unwrap_or(0), indirect)
    }

    /// The member or group to which a table entry refers. An entry with one-shot actions (its own, of which a selector picks
    /// one) refers to these, which are added to the profile.
    pub(crate) fn named_by(
        &mut self,
        table: usize,
        action: &mut EntryAction,
    ) -> Result<Option<Indirect>, ProfileError> {
        let profile = self.profile_of(table);
        match action {
            EntryAction::Keep => Ok(None),
            EntryAction::Own(_) if profile.is_ok() => Err(ProfileError::Direct),
            EntryAction::Own(_) => Ok(None),
            EntryAction::Named(indirect) => {
                self.check_offered(table, *indirect)?;
                Ok(Some(*indirect))
            }
            EntryAction::OneShot(actions) => {
                self.check_watched(actions.iter().map(|a| a.watch_port))?;
                let bind = |a: &OneShotAction| self.core.state.tables[table].bind(&a.call, false);
                let bound = actions.iter().map(bind).collect::<Result<Vec<_>, _>>();
                let bound = bound.map_err(ProfileError::Action)?;
                let profile = &mut self.core.state.profiles[profile?];
                let id = profile.put_one_shot(std::mem::take(actions), bound)?;
                Ok(Some(Indirect::OneShot(id)))
            }
        }
    }

    /// Removes the one-shot actions of a table entry that was removed or changed.
    pub(crate) fn release(&mut self, table: usize, had: Option<Indirect>) {
        let (Some(Indirect::OneShot(id)), Ok(profile)) = (had, self.profile_of(table)) else {
            return;
        };
        if let Some(old) = self.core.state.profiles[profile].delete_one_shot(id) {
            self.record(|| Undo::OneShot(profile, id, Some(old)));
        }
    }

    /// Removes the one-shot actions of a table entry that could not be added, without recording the removal in the batch.
    pub(crate) fn forget(&mut self, table: usize, named: Option<Indirect>) {
        if let (Some(Indirect::OneShot(id)), Ok(profile)) = (named, self.profile_of(table)) {
            self.core.state.profiles[profile].delete_one_shot(id);
        }
    }

    /// Records the one-shot actions that were added for a table entry, so that a rollback of the batch removes them.
    pub(crate) fn record_one_shot(&mut self, table: usize, named: Option<Indirect>) {
        if let (Some(Indirect::OneShot(id)), Ok(profile)) = (named, self.profile_of(table)) {
            self.record(|| Undo::OneShot(profile, id, None));
        }
    }

    /// The one-shot actions to which an entry of the table refers by this number; `None` if there are none.
    pub(crate) fn one_shot_actions(&self, table: usize, id: u32) -> Option<Vec<OneShotAction>> {
        let profile = &self.core.state.profiles[self.profile_of(table).ok()?];
        profile.one_shot(id).map(<[_]>::to_vec)
    }
}

fn group_of<M: Copy + Into<GroupMember>>(members: &[M]) -> ProfileGroup {
    ProfileGroup {
        members: members.iter().map(|m| (*m).into()).collect(),
        max_size: 0,
    }
}

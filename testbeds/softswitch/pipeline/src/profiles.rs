//! What the control plane may do with action profiles and selectors, by fully qualified names.

use crate::control::Undo;
use crate::error::ProfileError;
use crate::externs::profile::{Indirect, Profile, ProfileSpec};
use crate::switch::Switch;
use crate::table::Bound;
use p4lang::runtime::{ActionCall, TableEntry};

impl Switch {
    /// What the program's profiles are, in order of declaration.
    pub fn profiles(&self) -> impl Iterator<Item = &ProfileSpec> {
        self.core.state.profiles.iter().map(|p| &p.spec)
    }

    fn profile_index(&self, name: &str) -> Result<usize, ProfileError> {
        let mut profiles = self.core.state.profiles.iter();
        profiles
            .position(|p| p.spec.name == name)
            .ok_or(ProfileError::NoSuchProfile)
    }

    fn profile(&self, name: &str) -> Result<&Profile, ProfileError> {
        Ok(&self.core.state.profiles[self.profile_index(name)?])
    }

    /// All members of a profile by number.
    pub fn members(&self, profile: &str) -> Result<Vec<(u32, ActionCall)>, ProfileError> {
        Ok(self.profile(profile)?.members())
    }

    /// All groups of a selector by number: members and weights.
    #[allow(clippy::type_complexity)]
    pub fn groups(&self, profile: &str) -> Result<Vec<(u32, Vec<(u32, u32)>)>, ProfileError> {
        Ok(self.profile(profile)?.groups())
    }

    /// Adds a member.
    pub fn insert_member(
        &mut self,
        profile: &str,
        id: u32,
        action: &ActionCall,
    ) -> Result<(), ProfileError> {
        self.put_member(profile, id, action, false)
    }

    /// Changes a member's action.
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
        // Tables that share a profile may differ in their actions; one of them must have this.
        let fault = bound.iter().find_map(|b| b.as_ref().err()).cloned();
        let bound: Vec<Option<Bound>> = bound.into_iter().map(Result::ok).collect();
        if let (true, Some(fault)) = (bound.iter().all(Option::is_none), fault) {
            return Err(ProfileError::Action(fault));
        }
        let old = profile.put_member(id, action.clone(), bound, change)?;
        self.record(Undo::Member(index, id, old));
        Ok(())
    }

    /// Takes a member out that neither a group nor an entry names.
    pub fn delete_member(&mut self, profile: &str, id: u32) -> Result<(), ProfileError> {
        let index = self.profile_index(profile)?;
        self.unused(index, Indirect::Member(id))?;
        let old = self.core.state.profiles[index].delete_member(id)?;
        self.record(Undo::Member(index, id, old));
        Ok(())
    }

    /// Adds a group: members and weights.
    pub fn insert_group(
        &mut self,
        profile: &str,
        id: u32,
        members: &[(u32, u32)],
    ) -> Result<(), ProfileError> {
        self.put_group(profile, id, members, false)
    }

    /// Changes a group's members and weights.
    pub fn modify_group(
        &mut self,
        profile: &str,
        id: u32,
        members: &[(u32, u32)],
    ) -> Result<(), ProfileError> {
        self.put_group(profile, id, members, true)
    }

    fn put_group(
        &mut self,
        profile: &str,
        id: u32,
        members: &[(u32, u32)],
        change: bool,
    ) -> Result<(), ProfileError> {
        let index = self.profile_index(profile)?;
        let old = self.core.state.profiles[index].put_group(id, members, change)?;
        self.record(Undo::ProfileGroup(index, id, old));
        Ok(())
    }

    /// Takes a group out that no entry names.
    pub fn delete_group(&mut self, profile: &str, id: u32) -> Result<(), ProfileError> {
        let index = self.profile_index(profile)?;
        self.unused(index, Indirect::Group(id))?;
        let old = self.core.state.profiles[index].delete_group(id)?;
        self.record(Undo::ProfileGroup(index, id, old));
        Ok(())
    }

    fn unused(&self, profile: usize, indirect: Indirect) -> Result<(), ProfileError> {
        let state = &self.core.state;
        let mut tables = state.profiles[profile].tables.iter();
        if tables.any(|t| state.tables[*t as usize].names(indirect)) {
            return Err(ProfileError::InUse);
        }
        Ok(())
    }

    /// Adds an entry that names a member or group; its own action is not looked at.
    pub fn insert_indirect(
        &mut self,
        entry: &TableEntry,
        indirect: Indirect,
    ) -> Result<(), ProfileError> {
        let table = self.offering(entry, indirect)?;
        self.core.state.tables[table].insert_indirect(entry, indirect)?;
        self.record(Undo::Inserted(entry.clone()));
        Ok(())
    }

    /// Lets an entry name another member or group.
    pub fn modify_indirect(
        &mut self,
        entry: &TableEntry,
        indirect: Indirect,
    ) -> Result<(), ProfileError> {
        let index = self.offering(entry, indirect)?;
        let old = self.core.state.tables[index].replace_indirect(entry, indirect)?;
        self.record(Undo::Deleted(index, old));
        Ok(())
    }

    /// What an entry names, if not an action of its own.
    pub fn indirect(&self, entry: &TableEntry) -> Result<Option<Indirect>, ProfileError> {
        let table = self.table_index(&entry.table)?;
        Ok(self.core.state.tables[table].indirect(entry)?)
    }

    /// The entry's table, whose profile has what it wants to name.
    fn offering(&self, entry: &TableEntry, indirect: Indirect) -> Result<usize, ProfileError> {
        let table = self.table_index(&entry.table)?;
        let state = &self.core.state;
        let find = |p: &&Profile| p.tables.contains(&(table as u32));
        let Some(profile) = state.profiles.iter().find(find) else {
            return Err(ProfileError::NoSuchProfile);
        };
        let place = profile.tables.iter().position(|t| *t as usize == table);
        profile.offers(place.unwrap_or(0), indirect)?;
        Ok(table)
    }
}

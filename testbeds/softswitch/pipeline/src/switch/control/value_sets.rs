//! Control plane operations on parsers' value sets, by fully qualified names.

use super::Undo;
use crate::error::ExternError;
use crate::switch::Switch;
use crate::table::key::{FieldKey, FieldSpec};
use crate::table::value_set::ValueSet;
use p4lang::runtime::Match;

impl Switch {
    /// Adds a member to a parser's value set.
    pub fn value_set_insert(&mut self, name: &str, member: &[Match]) -> Result<(), ExternError> {
        self.change_value_set(name, |set| set.insert(member))
    }

    /// Removes the member with these field values from a parser's value set.
    pub fn value_set_delete(&mut self, name: &str, member: &[Match]) -> Result<(), ExternError> {
        self.change_value_set(name, |set| set.delete(member))
    }

    /// Replaces all members of a parser's value set.
    pub fn value_set_assign(
        &mut self,
        name: &str,
        members: &[Vec<FieldKey>],
    ) -> Result<(), ExternError> {
        self.change_value_set(name, |set| set.assign(members))
    }

    /// Copies the members of another program's value set to the value set of the same name.
    pub(crate) fn value_set_take(&mut self, old: &ValueSet) -> Result<(), ExternError> {
        self.change_value_set(&old.name, |set| {
            let members = set.translated(old)?;
            set.assign(&members)
        })
    }

    /// The members of a parser's value set, in order of insertion.
    pub fn value_set_members(&self, name: &str) -> Result<&[Vec<FieldKey>], ExternError> {
        let set = self.names.value_sets.get(name);
        let set = &self.core.state.value_sets[*set.ok_or(ExternError::NotFound)?];
        Ok(&set.members)
    }

    /// The specifications of a value set's fields, in order.
    pub fn value_set_fields(&self, name: &str) -> Result<&[FieldSpec], ExternError> {
        let set = self.names.value_sets.get(name);
        let set = &self.core.state.value_sets[*set.ok_or(ExternError::NotFound)?];
        Ok(&set.fields)
    }

    fn change_value_set(
        &mut self,
        name: &str,
        change: impl FnOnce(&mut ValueSet) -> Result<(), ExternError>,
    ) -> Result<(), ExternError> {
        let index = *self
            .names
            .value_sets
            .get(name)
            .ok_or(ExternError::NotFound)?;
        let set = &mut self.core.state.value_sets[index];
        let old = set.members.clone();
        change(set)?;
        self.record(|| Undo::ValueSet(index, old));
        Ok(())
    }
}

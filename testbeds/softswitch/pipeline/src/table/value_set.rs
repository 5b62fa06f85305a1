//! Value sets of parsers, whose members the control plane writes.

use crate::bits::limbs;
use crate::error::{ExternError, TableError};
use crate::table::key::{self, FieldKey, FieldSpec};
use p4lang::runtime::Match;

/// A value set of a parser, with its members.
#[derive(Debug, Clone)]
pub struct ValueSet {
    /// Fully qualified name of the value set.
    pub name: String,
    /// Declarations of the fields of a member.
    pub fields: Vec<FieldSpec>,
    /// Maximum number of members of the value set.
    pub size: u64,
    /// Members, in order of insertion: each a match for each field.
    pub members: Vec<Vec<FieldKey>>,
}

impl ValueSet {
    /// Whether the key matches a member; `keys`: first slot and width in bits of each field.
    pub fn contains(&self, frame: &[u64], keys: &[(u32, u32)]) -> bool {
        self.members.iter().any(|member| {
            member.iter().zip(keys).all(|(field, (slot, width))| {
                let slot = *slot as usize;
                field.matches(&frame[slot..slot + limbs(*width) as usize])
            })
        })
    }

    fn member(&self, fields: &[Match]) -> Result<Vec<FieldKey>, ExternError> {
        if fields.len() != self.fields.len() {
            return Err(ExternError::WrongShape);
        }
        let parse = |(spec, value): (&FieldSpec, &Match)| {
            key::field_key(spec, value).map_err(|_| ExternError::ValueTooWide)
        };
        self.fields.iter().zip(fields).map(parse).collect()
    }

    /// Adds a member, given as a match for each field.
    pub fn insert(&mut self, fields: &[Match]) -> Result<(), ExternError> {
        let member = self.member(fields)?;
        if self.members.contains(&member) {
            return Err(ExternError::Duplicate);
        }
        if self.members.len() as u64 >= self.size {
            return Err(ExternError::Full);
        }
        self.members.push(member);
        Ok(())
    }

    /// Replaces all members of the value set.
    pub fn assign(&mut self, members: &[Vec<FieldKey>]) -> Result<(), ExternError> {
        if members.len() as u64 > self.size {
            return Err(ExternError::Full);
        }
        if members.iter().any(|m| m.len() != self.fields.len()) {
            return Err(ExternError::WrongShape);
        }
        let mut sorted: Vec<_> = members.iter().collect();
        sorted.sort_unstable();
        if sorted.windows(2).any(|pair| pair[0] == pair[1]) {
            return Err(ExternError::Duplicate);
        }
        self.members = members.to_vec();
        Ok(())
    }

    /// Converts the members of another program's value set to the fields of this value set.
    pub fn translated(&self, from: &ValueSet) -> Result<Vec<Vec<FieldKey>>, ExternError> {
        if self.fields.len() != from.fields.len() {
            return Err(ExternError::WrongShape);
        }
        let member = |member: &Vec<FieldKey>| {
            let fields = self.fields.iter().zip(&from.fields).zip(member);
            let fields = fields.map(|((to, from), key)| match from.match_of(key) {
                Some(given) => to.key(&given),
                None => to.dont_care(),
            });
            fields
                .collect::<Result<_, _>>()
                .map_err(|error| match error {
                    TableError::ValueTooWide(..) => ExternError::ValueTooWide,
                    _ => ExternError::WrongShape,
                })
        };
        from.members.iter().map(member).collect()
    }

    /// Removes a member, given as a match for each field.
    pub fn delete(&mut self, fields: &[Match]) -> Result<(), ExternError> {
        let member = self.member(fields)?;
        let at = self
            .members
            .iter()
            .position(|m| *m == member)
            .ok_or(ExternError::NotFound)?;
        self.members.remove(at);
        Ok(())
    }
}

//! Profiles, groups and members as a control plane writes and reads them.

use p4lang::runtime::ActionCall;

/// What an entry names instead of an action.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Indirect {
    /// A member of its table's profile.
    Member(u32),
    /// A group, of which the selector picks a member.
    Group(u32),
    /// Actions of the entry's own, of which the selector picks one; the number is the switch's.
    OneShot(u32),
}

/// A member of a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GroupMember {
    /// Its number.
    pub member: u32,
    /// How often it is picked, at least 1.
    pub weight: u32,
    /// It is not picked while this port is down.
    pub watch_port: Option<u32>,
}

impl From<(u32, u32)> for GroupMember {
    /// From number and weight.
    fn from((member, weight): (u32, u32)) -> Self {
        GroupMember {
            member,
            weight,
            watch_port: None,
        }
    }
}

/// A group as it was written.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProfileGroup {
    /// In order.
    pub members: Vec<GroupMember>,
    /// Weights together, at most; 0: as the profile allows.
    pub max_size: u32,
}

/// An action of an entry that has several to select from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OneShotAction {
    /// What it does.
    pub call: ActionCall,
    /// How often it is picked, at least 1.
    pub weight: u32,
    /// It is not picked while this port is down.
    pub watch_port: Option<u32>,
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

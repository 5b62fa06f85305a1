//! Profiles, groups and members as the control plane writes and reads them.

use p4lang::runtime::ActionCall;

/// The member, group or one-shot actions that a table entry refers to instead of an action of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Indirect {
    /// The member of the table's profile with this number.
    Member(u32),
    /// The group of the table's profile with this number, from which the selector picks a member.
    Group(u32),
    /// One-shot actions of the entry, from which the selector picks one; the switch assigns this number.
    OneShot(u32),
}

/// A member of a selector's group, with its weight.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GroupMember {
    /// Number of the member in the profile.
    pub member: u32,
    /// Weight of the member when the selector picks, at least 1.
    pub weight: u32,
    /// Port that the member watches: it is not picked while the port is down. `None`: no port.
    pub watch_port: Option<u32>,
}

impl From<(u32, u32)> for GroupMember {
    /// Converts a pair of member number and weight to a group member without a watched port.
    fn from((member, weight): (u32, u32)) -> Self {
        GroupMember {
            member,
            weight,
            watch_port: None,
        }
    }
}

/// A selector's group as the control plane wrote it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProfileGroup {
    /// Members of the group, in order.
    pub members: Vec<GroupMember>,
    /// Maximum sum of the members' weights; 0: limited by the profile only.
    pub max_size: u32,
}

/// An action of a one-shot table entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OneShotAction {
    /// The action with its named parameters.
    pub call: ActionCall,
    /// Weight of the action when the selector picks, at least 1.
    pub weight: u32,
    /// Port that the action watches: it is not picked while the port is down. `None`: no port.
    pub watch_port: Option<u32>,
}

/// The declaration of an action profile or selector.
#[derive(Debug, Clone)]
pub struct ProfileSpec {
    /// Fully qualified name of the profile.
    pub name: String,
    /// Maximum number of members of the profile; with a selector also the maximum sum of all groups' weights.
    pub size: u64,
    /// Whether the profile is a selector, which has groups.
    pub selector: bool,
}

//! Profiles, groups and members in the control plane's form.

use p4lang::runtime::ActionCall;

/// The object that an entry refers to instead of an action.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Indirect {
    /// A member of its table's profile.
    Member(u32),
    /// A group, from which the selector picks a member.
    Group(u32),
    /// One-shot actions of the entry, from which the selector picks one; the switch assigns the number.
    OneShot(u32),
}

/// A member of a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GroupMember {
    /// Number of the member.
    pub member: u32,
    /// Weight of the member in picks, at least 1.
    pub weight: u32,
    /// The member is not picked while this port is down.
    pub watch_port: Option<u32>,
}

impl From<(u32, u32)> for GroupMember {
    /// Converts number and weight.
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
    /// Members, in order.
    pub members: Vec<GroupMember>,
    /// Maximum sum of weights; 0: limited by the profile only.
    pub max_size: u32,
}

/// An action of a one-shot entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OneShotAction {
    /// The action with its parameters.
    pub call: ActionCall,
    /// Weight of the action in picks, at least 1.
    pub weight: u32,
    /// The action is not picked while this port is down.
    pub watch_port: Option<u32>,
}

/// The specification of a profile.
#[derive(Debug, Clone)]
pub struct ProfileSpec {
    /// Fully qualified name.
    pub name: String,
    /// Maximum number of members; with a selector also the maximum sum of all groups' weights.
    pub size: u64,
    /// Whether the profile is a selector, which has groups.
    pub selector: bool,
}

//! Reasons why faults cannot be placed at switches.

use super::problem::{ChoiceId, PathId, Problem, ProblemError, ResourceId, SwitchId};

/// Why faults cannot be placed. Numbers are indices into the problem's lists; [`Refusal::describe`] gives names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refusal {
    /// The problem is invalid.
    Malformed(ProblemError),
    /// No switch meets every packet of a choice exactly once.
    NoCandidate {
        /// The choice that cannot be placed.
        choice: ChoiceId,
        /// Two paths of the choice without a common switch, if there are any.
        apart: Option<(PathId, PathId)>,
    },
    /// The switch that the scenario file names for a choice is not on all paths of the choice.
    OffPath {
        /// Choice for which the file names the switch.
        choice: ChoiceId,
        /// Switch that the file names.
        switch: SwitchId,
        /// A path of the choice that does not cross the switch.
        path: PathId,
        /// Whether another path of the choice crosses the switch.
        crossed: bool,
    },
    /// Choices that share state have no common switch. If [`Conflict::least`] is set, all but any one of them have one.
    Tied(Box<Conflict>),
    /// The switches' resources do not suffice for these choices.
    Capacity(Box<Conflict>),
    /// Packets would meet a later fault before an earlier one, wherever both are placed.
    Order {
        /// Choice that packets must meet first.
        before: ChoiceId,
        /// Choice that packets must meet later.
        after: ChoiceId,
    },
    /// Rules of two tenants match the same packets, and neither can be placed at another switch.
    Clash {
        /// Choice for the rule of one tenant.
        first: ChoiceId,
        /// Choice for the rule of the other tenant.
        second: ChoiceId,
    },
    /// Constraints of several kinds contradict each other.
    Conflict(Box<Conflict>),
    /// Neither a placement was found nor a proof that there is none: the problem is too large for a complete search.
    NotFound,
}

/// Constraints on the placement of faults that contradict each other.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Conflict {
    /// Choices that cannot all be placed.
    pub choices: Vec<ChoiceId>,
    /// Choices whose switches, as named in the file, are part of the conflict.
    pub pins: Vec<ChoiceId>,
    /// Limits that are part of the conflict, each as a switch and a resource.
    pub limits: Vec<(SwitchId, ResourceId)>,
    /// Orders of two choices that are part of the conflict.
    pub orders: Vec<(ChoiceId, ChoiceId)>,
    /// Pairs of choices that must share no switch, as part of the conflict.
    pub clashes: Vec<(ChoiceId, ChoiceId)>,
    /// Lists of choices that share state, as part of the conflict.
    pub ties: Vec<Vec<ChoiceId>>,
    /// Whether the conflict is minimal: without any one of its constraints, a placement is known to exist.
    pub least: bool,
}

impl Refusal {
    /// The most specific refusal for a set of constraints that contradict each other.
    pub(super) fn from_conflict(conflict: Conflict) -> Refusal {
        let Conflict {
            limits,
            orders,
            clashes,
            ties,
            ..
        } = &conflict;
        match (&limits[..], &orders[..], &clashes[..], &ties[..]) {
            ([], [(before, after)], [], []) => Refusal::Order {
                before: *before,
                after: *after,
            },
            ([], [], [(first, second)], []) => Refusal::Clash {
                first: *first,
                second: *second,
            },
            ([], [], [], [_, ..]) => Refusal::Tied(Box::new(conflict)),
            ([_, ..], [], [], []) => Refusal::Capacity(Box::new(conflict)),
            _ => Refusal::Conflict(Box::new(conflict)),
        }
    }

    /// Text for users that describes the refusal, with the names in the refused problem.
    #[must_use]
    pub fn describe(&self, problem: &Problem) -> String {
        let choice = |choice: &ChoiceId| format!("`{}`", problem.choices[*choice].name);
        let switch = |switch: &SwitchId| format!("`{}`", problem.switches[*switch].name);
        let path = |path: &PathId| {
            let switches = problem.paths[*path].iter().map(switch);
            switches.collect::<Vec<_>>().join(" → ")
        };
        let choices = |all: &[ChoiceId]| all.iter().map(choice).collect::<Vec<_>>().join(", ");
        match self {
            Refusal::Malformed(error) => error.to_string(),
            Refusal::NoCandidate { choice: of, apart } => {
                let why = apart.map_or_else(String::new, |(a, b)| {
                    format!(": {} and {} have no switch in common", path(&a), path(&b))
                });
                format!("no switch meets every packet of {} once{why}", choice(of))
            }
            Refusal::OffPath {
                choice: of,
                switch: at,
                path: around,
                ..
            } => format!(
                "{} is pinned to {}, which the path {} does not cross",
                choice(of),
                switch(at),
                path(around)
            ),
            Refusal::Tied(conflict) => format!(
                "no single switch meets every packet of {}, which share state",
                choices(&conflict.choices)
            ),
            Refusal::Capacity(conflict) => {
                let limits = conflict.limits.iter().map(|(at, resource)| {
                    let limit = problem.limit(*at, *resource);
                    let name = &problem.resources[*resource].name;
                    format!("{limit} {name} of {}", switch(at))
                });
                format!(
                    "{} take more than {}",
                    choices(&conflict.choices),
                    limits.collect::<Vec<_>>().join(" and ")
                )
            }
            Refusal::Order { before, after } => format!(
                "packets meet {} before {}, which they must meet first",
                choice(after),
                choice(before)
            ),
            Refusal::Clash { first, second } => format!(
                "{} and {} match the same packets at the only switches where they can be placed",
                choice(first),
                choice(second)
            ),
            Refusal::Conflict(conflict) => format!(
                "{} cannot all be placed: {}",
                choices(&conflict.choices),
                conflict.kinds().join(", ")
            ),
            Refusal::NotFound => {
                "the search found neither a placement nor a proof that there is none".to_owned()
            }
        }
    }
}

impl Conflict {
    /// Kinds of constraints in the conflict, in words for users.
    fn kinds(&self) -> Vec<&'static str> {
        let all = [
            (!self.pins.is_empty(), "pinned switches"),
            (!self.limits.is_empty(), "limits of switches"),
            (!self.orders.is_empty(), "the order of faults"),
            (!self.clashes.is_empty(), "rules of other tenants"),
            (!self.ties.is_empty(), "shared state"),
        ];
        let there = all.into_iter().filter(|(there, _)| *there);
        there.map(|(_, kind)| kind).collect()
    }
}

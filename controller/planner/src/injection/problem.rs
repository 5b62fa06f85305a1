//! What is to be placed, where it may stand, and what it takes there.

use super::candidates::Candidates;

/// A resource's number: its place in [`Problem::resources`].
pub type ResourceId = usize;
/// A switch's number: its place in [`Problem::switches`].
pub type SwitchId = usize;
/// A path's number: its place in [`Problem::paths`].
pub type PathId = usize;
/// A charge's number: its place in [`Problem::charges`].
pub type ChargeId = usize;
/// A choice's number: its place in [`Problem::choices`].
pub type ChoiceId = usize;

/// The part of a resource that faults may take where nothing else is said, in millionths.
pub const DEFAULT_SHARE_PPM: u32 = 100_000;

/// Faults to be placed on switches. All numbers are places in its lists.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Problem {
    /// What switches have a limited amount of.
    pub resources: Vec<Resource>,
    /// Where faults can stand.
    pub switches: Vec<Switch>,
    /// The switches that packets cross, from the sender on. None is crossed twice.
    pub paths: Vec<Vec<SwitchId>>,
    /// What choices take.
    pub charges: Vec<Charge>,
    /// The decisions.
    pub choices: Vec<Choice>,
    /// No packet may meet the second before the first, on any path that both have.
    pub orders: Vec<(ChoiceId, ChoiceId)>,
    /// Choices that share a trigger's or a fault's state: all of each list stand at one switch.
    pub ties: Vec<Vec<ChoiceId>>,
    /// Rules of two tenants that match the same packets: they share no switch.
    pub clashes: Vec<(ChoiceId, ChoiceId)>,
}

/// Something that switches have a limited amount of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resource {
    /// For people: `units in ingress`.
    pub name: String,
    /// Whether there is an end to it. What does not bind makes things slow instead, as a recirculation port does: it is planned
    /// for behind all that binds.
    pub binds: bool,
    /// The part of each switch's capacity that faults may take, in millionths; without it, all that is free.
    pub share_ppm: Option<u32>,
}

/// A switch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Switch {
    /// For people.
    pub name: String,
    /// What it has of each resource.
    pub capacity: Vec<u64>,
    /// What is taken of that before any fault stands there.
    pub used: Vec<u64>,
    /// What the first fault there takes beside its own charges, such as what keeps protected flows apart.
    pub opening: Vec<u64>,
}

/// Something that a switch holds once, however many choices at it need it: a fault's unit, a flow to be told apart.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Charge {
    /// How much of which resource. No resource stands here twice.
    pub cost: Vec<(ResourceId, u64)>,
}

/// One decision: where a fault meets flows that take the same paths.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Choice {
    /// For people.
    pub name: String,
    /// All that its packets can take. Each has to be met exactly once.
    pub paths: Vec<PathId>,
    /// Whether it may stand at several switches, of which each path crosses one: it keeps no state.
    pub spreads: bool,
    /// The switches at which it may stand, if these are not all of its paths.
    pub only: Option<Vec<SwitchId>>,
    /// The switch that the file names for it.
    pub pin: Option<SwitchId>,
    /// Whether it acts as packets leave a switch: behind all that act there as packets enter.
    pub leaving: bool,
    /// Flows: each counts its hops.
    pub weight: u64,
    /// What it takes at each of its switches. No charge stands here twice.
    pub charges: Vec<ChargeId>,
}

/// A problem that makes no sense.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProblemError {
    /// A number points at nothing.
    #[error("{what} {number} of {whose} is not declared")]
    Unknown {
        /// `resource`, `switch`, `path`, `charge`, `choice`.
        what: &'static str,
        /// The number.
        number: usize,
        /// What names it.
        whose: String,
    },
    /// A switch does not say of each resource what it has.
    #[error("switch `{switch}` tells of {told} resources, and there are {declared}")]
    Resources {
        /// Its name.
        switch: String,
        /// How many it tells of.
        told: usize,
        /// How many there are.
        declared: usize,
    },
    /// Costs or hops that do not add up to a number of 64 bits.
    #[error("costs or hops add up to more than 2^64")]
    TooMuch,
    /// A choice without a path, which would stand nowhere.
    #[error("`{choice}` has no path")]
    NoPath {
        /// Its name.
        choice: String,
    },
}

impl Problem {
    /// Whether all numbers point at something.
    pub fn check(&self) -> Result<(), ProblemError> {
        let known = |what: &'static str, number: usize, of: usize, whose: &dyn Fn() -> String| {
            if number < of {
                return Ok(());
            }
            Err(ProblemError::Unknown {
                what,
                number,
                whose: whose(),
            })
        };
        for switch in &self.switches {
            for list in [&switch.capacity, &switch.used, &switch.opening] {
                if list.len() != self.resources.len() {
                    return Err(ProblemError::Resources {
                        switch: switch.name.clone(),
                        told: list.len(),
                        declared: self.resources.len(),
                    });
                }
            }
        }
        for (number, path) in self.paths.iter().enumerate() {
            for &switch in path {
                let whose = || format!("path {number}");
                known("switch", switch, self.switches.len(), &whose)?;
            }
        }
        for (number, charge) in self.charges.iter().enumerate() {
            for &(resource, _) in &charge.cost {
                let whose = || format!("charge {number}");
                known("resource", resource, self.resources.len(), &whose)?;
            }
        }
        for choice in &self.choices {
            let whose = || format!("`{}`", choice.name);
            if choice.paths.is_empty() {
                return Err(ProblemError::NoPath {
                    choice: choice.name.clone(),
                });
            }
            for &path in &choice.paths {
                known("path", path, self.paths.len(), &whose)?;
            }
            for &charge in &choice.charges {
                known("charge", charge, self.charges.len(), &whose)?;
            }
            for &switch in choice.pin.iter().chain(choice.only.iter().flatten()) {
                known("switch", switch, self.switches.len(), &whose)?;
            }
        }
        let pairs = self.orders.iter().chain(&self.clashes);
        let pairs = pairs.flat_map(|(a, b)| [*a, *b]);
        for choice in pairs.chain(self.ties.iter().flatten().copied()) {
            let whose = || "an order, a tie or a clash".to_owned();
            known("choice", choice, self.choices.len(), &whose)?;
        }
        self.adds_up()
    }

    /// Whether all that can be taken at one switch, and all hops, are numbers of 64 bits.
    fn adds_up(&self) -> Result<(), ProblemError> {
        let costs = self.charges.iter().flat_map(|charge| &charge.cost);
        let openings = self.switches.iter().flat_map(|switch| &switch.opening);
        let costs = costs.map(|(_, cost)| u128::from(*cost));
        let most: u128 = costs.sum::<u128>() + openings.copied().map(u128::from).sum::<u128>();
        let weights: u128 = self.choices.iter().map(|c| u128::from(c.weight)).sum();
        let longest = self.paths.iter().map(Vec::len).max().unwrap_or(0) as u128;
        let hops = weights.saturating_mul(longest * self.switches.len() as u128);
        match most.max(hops) > u128::from(u64::MAX) {
            true => Err(ProblemError::TooMuch),
            false => Ok(()),
        }
    }

    /// What faults may take of a resource of a switch.
    #[must_use]
    pub fn limit(&self, switch: SwitchId, resource: ResourceId) -> u64 {
        let (at, of) = (&self.switches[switch], &self.resources[resource]);
        let free = at.capacity[resource].saturating_sub(at.used[resource]);
        let share = of.share_ppm.map_or(u64::MAX, |ppm| {
            let part = u128::from(at.capacity[resource]) * u128::from(ppm) / 1_000_000;
            u64::try_from(part).unwrap_or(u64::MAX)
        });
        match of.binds {
            true => free.min(share),
            false => share,
        }
    }

    /// What there is of a resource before any fault stands there: what utilisation is measured by.
    #[must_use]
    pub fn free(&self, switch: SwitchId, resource: ResourceId) -> u64 {
        let at = &self.switches[switch];
        (at.capacity[resource].saturating_sub(at.used[resource])).max(1)
    }

    /// Where a choice stands on a path: the first switch of a set that the path crosses.
    pub(super) fn position(&self, path: PathId, set: &[SwitchId]) -> Option<usize> {
        self.paths[path].iter().position(|at| set.contains(at))
    }

    /// The hops of a choice at a set of switches: for each of them, the nearest that a sender is, and that for each flow.
    pub(super) fn hops(&self, choice: ChoiceId, set: &[SwitchId]) -> u64 {
        let choice = &self.choices[choice];
        let of_switch = |switch: &SwitchId| {
            let paths = choice.paths.iter();
            let hops = paths.filter_map(|path| self.position(*path, &[*switch]));
            hops.min().unwrap_or(0) as u64
        };
        set.iter()
            .map(of_switch)
            .sum::<u64>()
            .saturating_mul(choice.weight)
    }

    /// Whether no packet meets `after` before `before`.
    pub(super) fn in_order(
        &self,
        (before, first): (ChoiceId, &[SwitchId]),
        (after, second): (ChoiceId, &[SwitchId]),
    ) -> bool {
        let (before, after) = (&self.choices[before], &self.choices[after]);
        let shared = before
            .paths
            .iter()
            .filter(|path| after.paths.contains(path));
        shared.into_iter().all(|path| {
            match (self.position(*path, first), self.position(*path, second)) {
                (Some(a), Some(b)) => (a, before.leaving) <= (b, after.leaving),
                _ => true,
            }
        })
    }

    /// Of each choice, where it may stand.
    pub(super) fn candidates(&self) -> Vec<Candidates> {
        let choices = 0..self.choices.len();
        choices.map(|choice| Candidates::of(self, choice)).collect()
    }
}

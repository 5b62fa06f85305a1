//! Problem: choices to be placed, the switches that they may have, and the resources that they take.

/// Index into [`Problem::resources`].
pub type ResourceId = usize;
/// Index into [`Problem::switches`].
pub type SwitchId = usize;
/// Index into [`Problem::paths`].
pub type PathId = usize;
/// Index into [`Problem::charges`].
pub type ChargeId = usize;
/// Index into [`Problem::choices`].
pub type ChoiceId = usize;

/// Default share of a resource that faults may take, in millionths.
pub const DEFAULT_SHARE_PPM: u32 = 100_000;

/// Faults to be placed at switches. All numbers are indexes into its lists.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Problem {
    /// Resources of which switches have limited amounts.
    pub resources: Vec<SwitchResource>,
    /// Switches at which faults can be placed.
    pub switches: Vec<InjectionSwitch>,
    /// Paths as lists of switches, from the sender on. A path crosses no switch twice.
    pub paths: Vec<Vec<SwitchId>>,
    /// Charges of the choices.
    pub charges: Vec<Charge>,
    /// Choices to be placed.
    pub choices: Vec<Choice>,
    /// Orders: on any common path, packets must not meet the second choice before the first.
    pub orders: Vec<(ChoiceId, ChoiceId)>,
    /// Choices that share a trigger's or a fault's state: all of a list are placed at one switch.
    pub ties: Vec<Vec<ChoiceId>>,
    /// Rules of two tenants that match the same packets: they must share no switch.
    pub clashes: Vec<(ChoiceId, ChoiceId)>,
}

/// Resource of which switches have a limited amount.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SwitchResource {
    /// Name for people: `units in ingress`.
    pub name: String,
    /// Whether its limit is hard. Other resources, such as a recirculation port, make traffic slow instead: they are optimized
    /// after all binding ones.
    pub binds: bool,
    /// Share of each switch's capacity that faults may take, in millionths; `None`: all that is free.
    pub share_ppm: Option<u32>,
}

/// A switch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InjectionSwitch {
    /// Name for people.
    pub name: String,
    /// Capacity of each resource.
    pub capacity: Vec<u64>,
    /// Amount of each resource that is used before any fault is placed.
    pub used: Vec<u64>,
    /// Amount that the first fault at the switch takes besides its own charges, for example to separate protected flows.
    pub opening: Vec<u64>,
}

/// Charge: a part that a switch holds once, however many choices at it need it, such as a fault's unit or a flow's entries.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Charge {
    /// Amounts by resource; each resource at most once.
    pub cost: Vec<(ResourceId, u64)>,
}

/// Choice: where a fault meets flows that take the same paths.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Choice {
    /// Name for people.
    pub name: String,
    /// All paths that its packets can take. Each must be met exactly once.
    pub paths: Vec<PathId>,
    /// Whether it keeps no state, so that it may be placed at several switches, of which each path crosses exactly one.
    pub spreads: bool,
    /// Allowed switches; `None`: all switches of its paths.
    pub only: Option<Vec<SwitchId>>,
    /// Switch that the file names for it.
    pub pin: Option<SwitchId>,
    /// Whether it acts when packets leave a switch: after all choices that act there when packets enter.
    pub leaving: bool,
    /// Number of flows; each counts its hops.
    pub weight: u64,
    /// Charges at each of its switches; each charge at most once.
    pub charges: Vec<ChargeId>,
}

/// Error in a problem.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProblemError {
    /// An index is out of range.
    #[error("{what} {number} of {whose} is not declared")]
    Unknown {
        /// Kind: `resource`, `switch`, `path`, `charge`, `choice`.
        what: &'static str,
        /// The index.
        number: usize,
        /// Name of the item that contains the index.
        whose: String,
    },
    /// A switch does not have exactly one amount per resource.
    #[error("switch `{switch}` has amounts for {given} resources; {declared} are declared")]
    Resources {
        /// Name of the switch.
        switch: String,
        /// Number of amounts that the switch has.
        given: usize,
        /// Number of resources.
        declared: usize,
    },
    /// The sum of costs or hops exceeds 64 bits.
    #[error("costs or hops add up to more than 2^64")]
    TooMuch,
    /// A choice without a path.
    #[error("`{choice}` has no path")]
    NoPath {
        /// Name of the choice.
        choice: String,
    },
}

impl Problem {
    /// Checks that all indexes are in range and that sums fit in 64 bits.
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
                        given: list.len(),
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

    /// Checks that the sum of all costs at one switch, and of all hops, fits in 64 bits.
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

    /// Amount of a switch's resource that faults may take.
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

    /// Amount of a switch's resource that is free before any fault is placed; utilization is relative to it. At least 1.
    #[must_use]
    pub fn free(&self, switch: SwitchId, resource: ResourceId) -> u64 {
        let at = &self.switches[switch];
        (at.capacity[resource].saturating_sub(at.used[resource])).max(1)
    }

    /// Position of a choice on a path: index of the first switch that is in the set.
    pub(super) fn position(&self, path: PathId, set: &[SwitchId]) -> Option<usize> {
        self.paths[path].iter().position(|at| set.contains(at))
    }

    /// Hops of a choice at a set of switches: the sum over the switches of the distance to the nearest sender, times the flows.
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
}

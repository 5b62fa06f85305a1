//! Describes a problem of placing faults: choices to be placed, their possible switches, and the resources that they take.

/// Index of a resource in [`Problem::resources`].
pub type ResourceId = usize;
/// Index of a switch in [`Problem::switches`].
pub type SwitchId = usize;
/// Index of a path in [`Problem::paths`].
pub type PathId = usize;
/// Index of a charge (amounts of resources that choices may share) in [`Problem::charges`].
pub type ChargeId = usize;
/// Index of a choice in [`Problem::choices`].
pub type ChoiceId = usize;

/// Default share of a resource that faults may take, in millionths.
pub const DEFAULT_SHARE_PPM: u32 = 100_000;

/// Faults to be placed at switches. Every number in it is an index into one of its lists.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Problem {
    /// Resources of which switches have limited amounts.
    pub resources: Vec<SwitchResource>,
    /// Switches at which faults can be placed.
    pub switches: Vec<InjectionSwitch>,
    /// Paths of packets, each as a list of switches from the sender on. A path crosses no switch twice.
    pub paths: Vec<Vec<SwitchId>>,
    /// Charges (amounts of resources) that the choices need at their switches.
    pub charges: Vec<Charge>,
    /// Choices to be placed.
    pub choices: Vec<Choice>,
    /// Pairs of choices: on any common path, packets must not meet the second choice before the first.
    pub orders: Vec<(ChoiceId, ChoiceId)>,
    /// Lists of choices that share the state of a trigger or fault: all choices of a list are placed at one switch.
    pub ties: Vec<Vec<ChoiceId>>,
    /// Pairs of choices by two tenants that match the same packets: they must share no switch.
    pub clashes: Vec<(ChoiceId, ChoiceId)>,
}

/// Resource of which switches have a limited amount.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SwitchResource {
    /// Name of the resource in messages, such as `units in ingress`.
    pub name: String,
    /// Whether the resource's limit is hard. Other resources, such as a recirculation port, make traffic slow instead: they are
    /// optimized after all with a hard limit.
    pub binds: bool,
    /// Share of each switch's capacity that faults may take, in millionths; `None`: all that is free.
    pub share_ppm: Option<u32>,
}

/// A switch at which faults can be placed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InjectionSwitch {
    /// Name of the switch in messages.
    pub name: String,
    /// Capacity of the switch for each resource.
    pub capacity: Vec<u64>,
    /// Amount of each resource that is used before any fault is placed.
    pub used: Vec<u64>,
    /// Amount that the first fault at the switch takes besides its own charges, for example to separate protected flows.
    pub opening: Vec<u64>,
}

/// A part that a switch holds once, however many of the choices placed there need it: a fault's table or a flow's entries.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Charge {
    /// Amounts that the charge takes, by resource; each resource at most once.
    pub cost: Vec<(ResourceId, u64)>,
}

/// A fault and flows with the same paths, for which the planner chooses the switches where their packets meet the fault.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Choice {
    /// Name of the choice in messages.
    pub name: String,
    /// All paths that the packets can take. Packets on each path must be met exactly once.
    pub paths: Vec<PathId>,
    /// Whether the fault keeps no state, so that it may be placed at several switches, of which each path crosses exactly one.
    pub spreads: bool,
    /// Switches at which the choice may be placed; `None`: all switches of its paths.
    pub only: Option<Vec<SwitchId>>,
    /// Switch that the scenario file names for the choice; `None`: any switch.
    pub pin: Option<SwitchId>,
    /// Whether the fault acts when packets leave a switch: after all faults that act there when packets enter.
    pub leaving: bool,
    /// Number of flows of the choice; the hops of each count.
    pub weight: u64,
    /// Charges that the choice needs at each of its switches; each charge at most once.
    pub charges: Vec<ChargeId>,
}

/// Error in the description of a placement problem.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProblemError {
    /// An index is out of range.
    #[error("{what} {number} of {whose} is not declared")]
    Unknown {
        /// Kind of the item: `resource`, `switch`, `path`, `charge` or `choice`.
        what: &'static str,
        /// The index that is out of range.
        number: usize,
        /// Name of the item that contains the index.
        whose: String,
    },
    /// A switch does not have exactly one amount per resource.
    #[error("switch `{switch}` has amounts for {given} resources; {declared} are declared")]
    Resources {
        /// Name of the switch.
        switch: String,
        /// Number of amounts that the switch gives.
        given: usize,
        /// Number of resources of the problem.
        declared: usize,
    },
    /// The sum of costs or hops exceeds 64 bits.
    #[error("costs or hops add up to more than 2^64")]
    TooMuch,
    /// A choice has no path.
    #[error("`{choice}` has no path")]
    NoPath {
        /// Name of the choice.
        choice: String,
    },
}

impl Problem {
    /// Checks that all indices are in range and that sums fit in 64 bits.
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

    /// Position of a choice on a path: index of the path's first switch that is in `set`; `None` if the path crosses none.
    pub(super) fn position(&self, path: PathId, set: &[SwitchId]) -> Option<usize> {
        self.paths[path].iter().position(|at| set.contains(at))
    }

    /// Hops of a choice at a set of switches: each switch's distance to the nearest sender, summed, times the number of flows.
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

    /// Whether no packet meets the choice `after` before the choice `before`, if they are placed at these switches.
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

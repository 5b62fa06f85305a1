//! Describes a problem of robust placement: the decisions to make, and their constraints.

use super::RobustRefusal;

/// Index of a point (a switch that can be lost) in [`RobustProblem::points`].
pub type PointId = usize;
/// Index of a user (a training) in [`RobustProblem::users`].
pub type UserId = usize;
/// Index of a decision in [`RobustProblem::decisions`].
pub type DecisionId = usize;
/// Index of a resource limit in [`RobustProblem::limits`].
pub type LimitId = usize;
/// Index of a charge (amounts of resources that options may share) in [`RobustProblem::charges`].
pub type OptionChargeId = usize;

/// Decisions about the needs of users (trainings). Every number in it is an index into one of its lists.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct RobustProblem {
    /// Names of the points that can be lost: switches.
    pub points: Vec<String>,
    /// Names of the users that a loss touches: trainings or tenants.
    pub users: Vec<String>,
    /// The decisions to make.
    pub decisions: Vec<Decision>,
    /// The limits of resources.
    pub limits: Vec<ResourceLimit>,
    /// Charges on resources: each is held once, however many options need it.
    pub charges: Vec<OptionCharge>,
    /// Pairs of incompatible options, each as a decision and the index of its option.
    pub excluded: Vec<[(DecisionId, usize); 2]>,
    /// Maximum number of points (switches) on which each user (training) may depend (Reveal's k); `None`: no maximum.
    pub most_points: Option<usize>,
    /// Maximum number of users (trainings) that depend on each point, a switch (Reveal's p); `None`: to be minimized.
    pub most_users: Option<usize>,
}

/// A decision for some users (trainings): exactly one of its options is taken.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Decision {
    /// Name of the decision in messages.
    pub name: String,
    /// Users that need the decision.
    pub users: Vec<UserId>,
    /// Options among which the planner chooses.
    pub options: Vec<DecisionOption>,
}

/// An option of a decision.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct DecisionOption {
    /// Points (switches) whose loss touches the decision's users (trainings) if this option is chosen.
    pub points: Vec<PointId>,
    /// Amounts of resources that the option takes, by limit.
    pub takes: Vec<(LimitId, f64)>,
    /// Charges that the option needs, possibly shared with other options.
    pub charges: Vec<OptionChargeId>,
    /// Cost of the option, 0 or more.
    pub cost: f64,
}

/// Limited amount of a resource.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ResourceLimit {
    /// Name of the resource in messages.
    pub name: String,
    /// Amount of the resource that is available.
    pub most: f64,
}

/// Charge on resources that is held once, however many chosen options need it.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct OptionCharge {
    /// Amounts of resources that the charge takes, by limit.
    pub takes: Vec<(LimitId, f64)>,
}

impl RobustProblem {
    /// Checks that all indices in the problem are in range.
    pub(super) fn check(&self) -> Result<(), RobustRefusal> {
        let known = |what, number: usize, of: usize| match number < of {
            true => Ok(()),
            false => Err(RobustRefusal::Unknown(what, number)),
        };
        for (number, decision) in self.decisions.iter().enumerate() {
            if decision.options.is_empty() {
                return Err(RobustRefusal::NoOption(number));
            }
            for user in &decision.users {
                known("user", *user, self.users.len())?;
            }
            for option in &decision.options {
                for point in &option.points {
                    known("point", *point, self.points.len())?;
                }
                for charge in &option.charges {
                    known("charge", *charge, self.charges.len())?;
                }
            }
        }
        let options = self.decisions.iter().flat_map(|decision| &decision.options);
        let own = options.flat_map(|option| &option.takes);
        let held = self.charges.iter().flat_map(|charge| &charge.takes);
        for (limit, _) in own.chain(held) {
            known("limit", *limit, self.limits.len())?;
        }
        for (decision, option) in self.excluded.iter().flatten() {
            let of = self.decisions.get(*decision);
            known("option", *option, of.map_or(0, |of| of.options.len()))?;
        }
        Ok(())
    }
}

//! Problem: decisions and constraints.

use super::RobustRefusal;

/// Index into [`RobustProblem::points`].
pub type PointId = usize;
/// Index into [`RobustProblem::users`].
pub type UserId = usize;
/// Index into [`RobustProblem::decisions`].
pub type DecisionId = usize;
/// Index into [`RobustProblem::limits`].
pub type LimitId = usize;
/// Index into [`RobustProblem::charges`].
pub type OptionChargeId = usize;

/// Decisions about the needs of users. All numbers are indexes into its lists.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct RobustProblem {
    /// Names of the points that can be lost: switches.
    pub points: Vec<String>,
    /// Names of the users that a loss touches: trainings, tenants.
    pub users: Vec<String>,
    /// Decisions to make.
    pub decisions: Vec<Decision>,
    /// Limits of resources.
    pub limits: Vec<ResourceLimit>,
    /// Charges, each held once however many options need it.
    pub charges: Vec<OptionCharge>,
    /// Pairs of incompatible options of two decisions.
    pub excluded: Vec<[(DecisionId, usize); 2]>,
    /// Maximum number of points on which each user may depend: Reveal's k.
    pub most_points: Option<usize>,
    /// Maximum number of users of each point: Reveal's p.
    pub most_users: Option<usize>,
}

/// Decision: exactly one of its options is taken.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Decision {
    /// Name for people.
    pub name: String,
    /// Users that need it.
    pub users: Vec<UserId>,
    /// Options among which to choose.
    pub options: Vec<DecisionOption>,
}

/// An option of a decision.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct DecisionOption {
    /// Points whose loss touches the decision's users.
    pub points: Vec<PointId>,
    /// Amounts that it takes, by limit.
    pub takes: Vec<(LimitId, f64)>,
    /// Charges that it needs, possibly shared with others.
    pub charges: Vec<OptionChargeId>,
    /// Cost, 0 or more.
    pub cost: f64,
}

/// Limit of a resource.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ResourceLimit {
    /// Name for people.
    pub name: String,
    /// Amount available.
    pub most: f64,
}

/// Charge: an amount that is held once.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct OptionCharge {
    /// Amounts by limit.
    pub takes: Vec<(LimitId, f64)>,
}

impl RobustProblem {
    /// Checks that all indexes are in range.
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

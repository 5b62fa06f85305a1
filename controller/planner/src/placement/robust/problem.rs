//! What is open, and what binds.

use super::Refusal;

/// A point's number: its place in [`Problem::points`].
pub type PointId = usize;
/// A user's number: its place in [`Problem::users`].
pub type UserId = usize;
/// A decision's number: its place in [`Problem::decisions`].
pub type DecisionId = usize;
/// A limit's number: its place in [`Problem::limits`].
pub type LimitId = usize;
/// A charge's number: its place in [`Problem::charges`].
pub type ChargeId = usize;

/// Decisions over what users need. All numbers are places in its lists.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Problem {
    /// What can be lost, by name: switches.
    pub points: Vec<String>,
    /// Who is touched by that, by name: trainings, tenants.
    pub users: Vec<String>,
    /// What is open.
    pub decisions: Vec<Decision>,
    /// What there is.
    pub limits: Vec<Limit>,
    /// What is held once, however many options need it.
    pub charges: Vec<Charge>,
    /// Options of two decisions that do not go together.
    pub excluded: Vec<[(DecisionId, usize); 2]>,
    /// Points that each user may depend on, at most: Reveal's k.
    pub most_points: Option<usize>,
    /// Users that each point may have, at most: Reveal's p.
    pub most_users: Option<usize>,
}

/// One of several options is to be taken.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Decision {
    /// For people.
    pub name: String,
    /// Who needs it.
    pub users: Vec<UserId>,
    /// What there is to choose from.
    pub options: Vec<Choice>,
}

/// An option of a decision.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Choice {
    /// The loss of any of them touches the decision's users.
    pub points: Vec<PointId>,
    /// How much of which limit it takes for itself.
    pub takes: Vec<(LimitId, f64)>,
    /// What it needs besides, maybe with others.
    pub charges: Vec<ChargeId>,
    /// What it costs, 0 or more.
    pub cost: f64,
}

/// Something of which there is only so much.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Limit {
    /// For people.
    pub name: String,
    /// How much there is.
    pub most: f64,
}

/// Something that is held once.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Charge {
    /// How much of which limit.
    pub takes: Vec<(LimitId, f64)>,
}

impl Problem {
    /// Whether all numbers point at something.
    pub(super) fn check(&self) -> Result<(), Refusal> {
        let known = |what, number: usize, of: usize| match number < of {
            true => Ok(()),
            false => Err(Refusal::Unknown(what, number)),
        };
        for (number, decision) in self.decisions.iter().enumerate() {
            if decision.options.is_empty() {
                return Err(Refusal::NoOption(number));
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

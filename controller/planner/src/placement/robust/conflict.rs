//! Finds the constraints that contradict each other in an infeasible problem of robust placement.

use super::super::deletion::thin;
use super::RobustRefusal;
use super::exact;
use super::problem::{DecisionId, LimitId, RobustProblem};

/// Constraints of a robust placement that contradict each other.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RobustConflict {
    /// Decisions that are part of the conflict.
    pub decisions: Vec<DecisionId>,
    /// Limits that are part of the conflict.
    pub limits: Vec<LimitId>,
    /// Pairs of incompatible options: indexes into [`RobustProblem::excluded`].
    pub excluded: Vec<usize>,
    /// Whether the limit [`RobustProblem::most_points`] is part of the conflict.
    pub most_points: bool,
    /// Whether the limit [`RobustProblem::most_users`] is part of the conflict.
    pub most_users: bool,
    /// Whether the conflict is minimal: without any one of its constraints, the rest is known to be feasible.
    pub least: bool,
}

impl RobustConflict {
    /// Text for users that describes the conflict, with the names in the refused problem.
    #[must_use]
    pub fn describe(&self, problem: &RobustProblem) -> String {
        let names = |names: Vec<&str>| {
            let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
            names.join(", ")
        };
        let decisions = self
            .decisions
            .iter()
            .map(|decision| &problem.decisions[*decision]);
        let decisions = names(decisions.map(|decision| decision.name.as_str()).collect());
        let mut reasons = Vec::new();
        if !self.limits.is_empty() {
            let limits = self
                .limits
                .iter()
                .map(|limit| problem.limits[*limit].name.as_str());
            reasons.push(format!("the limits of {}", names(limits.collect())));
        }
        if !self.excluded.is_empty() {
            reasons.push("incompatible options".to_owned());
        }
        if let Some(most) = problem.most_points.filter(|_| self.most_points) {
            reasons.push(format!("{most} points for each user"));
        }
        if let Some(most) = problem.most_users.filter(|_| self.most_users) {
            reasons.push(format!("{most} users for each point"));
        }
        format!("{decisions} cannot all be placed: {}", reasons.join(", "))
    }
}

/// Finds the contradicting constraints of a problem that is known to be infeasible.
pub(super) fn explain(problem: &RobustProblem) -> RobustRefusal {
    let mut held = RobustConflict {
        decisions: (0..problem.decisions.len()).collect(),
        limits: (0..problem.limits.len()).collect(),
        excluded: (0..problem.excluded.len()).collect(),
        most_points: problem.most_points.is_some(),
        most_users: problem.most_users.is_some(),
        least: true,
    };
    let is_open = |held: &RobustConflict| exact::is_open(&part(problem, held)).ok();
    // First remove decisions: a problem with few decisions is quick to test.
    let mut is_known = thin(&mut held, |held| &mut held.decisions, is_open);
    for flag in [
        (|held| &mut held.most_points) as fn(&mut RobustConflict) -> &mut bool,
        |held| &mut held.most_users,
    ] {
        let mut without = held.clone();
        if std::mem::take(flag(&mut without)) {
            match is_open(&without) {
                Some(false) => held = without,
                Some(true) => {}
                None => is_known = false,
            }
        }
    }
    is_known &= thin(&mut held, |held| &mut held.excluded, is_open);
    is_known &= thin(&mut held, |held| &mut held.limits, is_open);
    held.least = is_known;
    RobustRefusal::Conflict(Box::new(held))
}

/// The problem with only the constraints in `held`. Decisions outside `held` may be made in any way.
fn part(problem: &RobustProblem, held: &RobustConflict) -> RobustProblem {
    let mut part = problem.clone();
    for (number, decision) in part.decisions.iter_mut().enumerate() {
        if !held.decisions.contains(&number) {
            decision.options.push(Default::default());
        }
    }
    for (number, limit) in part.limits.iter_mut().enumerate() {
        if !held.limits.contains(&number) {
            limit.most = 1e19;
        }
    }
    let excluded = held.excluded.iter();
    part.excluded = excluded.map(|pair| problem.excluded[*pair]).collect();
    part.most_points = problem.most_points.filter(|_| held.most_points);
    part.most_users = problem.most_users.filter(|_| held.most_users);
    part
}

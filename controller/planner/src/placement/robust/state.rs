//! A choice of options in progress, and what follows from it: loads, the charges that are held, and the users that are touched.

use std::collections::BTreeMap;

use super::problem::{DecisionId, DecisionOption, RobustProblem, UserId};

/// Relative tolerance for loads above a resource's limit, since loads are sums of rounded numbers.
const SLACK: f64 = 1e-9;

#[derive(Clone)]
pub(super) struct State<'p> {
    problem: &'p RobustProblem,
    chosen: Vec<Option<usize>>,
    /// Amount taken of each resource, by limit.
    loads: Vec<f64>,
    /// For each charge, the number of chosen options that need it.
    holders: Vec<usize>,
    /// For each point (switch) and user (training), the number of decisions for which the loss of the point touches the user.
    touches: Vec<BTreeMap<UserId, usize>>,
    /// For each user (training), the number of points (switches) on which the user depends.
    points: Vec<usize>,
    /// For each decision and its option: the incompatible options of other decisions.
    excluded: Vec<BTreeMap<usize, Vec<(DecisionId, usize)>>>,
}

impl<'p> State<'p> {
    /// State in which no option is chosen yet.
    pub fn new(problem: &'p RobustProblem) -> State<'p> {
        let mut excluded = vec![BTreeMap::new(); problem.decisions.len()];
        for [a, b] in &problem.excluded {
            for (own, other) in [(a, b), (b, a)] {
                let of: &mut Vec<_> = excluded[own.0].entry(own.1).or_default();
                of.push(*other);
            }
        }
        State {
            problem,
            chosen: vec![None; problem.decisions.len()],
            loads: vec![0.0; problem.limits.len()],
            holders: vec![0; problem.charges.len()],
            touches: vec![BTreeMap::new(); problem.points.len()],
            points: vec![0; problem.users.len()],
            excluded,
        }
    }

    /// State in which the option of every decision is chosen.
    pub fn with_chosen(problem: &'p RobustProblem, chosen: &[usize]) -> State<'p> {
        let mut state = State::new(problem);
        for (decision, option) in chosen.iter().enumerate() {
            state.put(decision, *option);
        }
        state
    }

    fn option(&self, decision: DecisionId, option: usize) -> &'p DecisionOption {
        &self.problem.decisions[decision].options[option]
    }

    /// Chooses an option for a decision.
    pub fn put(&mut self, decision: DecisionId, option: usize) {
        let of = self.option(decision, option);
        self.chosen[decision] = Some(option);
        for (limit, amount) in &of.takes {
            self.loads[*limit] += amount;
        }
        for charge in &of.charges {
            self.holders[*charge] += 1;
            if self.holders[*charge] == 1 {
                for (limit, amount) in &self.problem.charges[*charge].takes {
                    self.loads[*limit] += amount;
                }
            }
        }
        for point in &of.points {
            for user in &self.problem.decisions[decision].users {
                let count = self.touches[*point].entry(*user).or_default();
                *count += 1;
                self.points[*user] += usize::from(*count == 1);
            }
        }
    }

    /// Reverts the choice for a decision. Returns the option that was chosen, or `None` if there was none.
    pub fn lift(&mut self, decision: DecisionId) -> Option<usize> {
        let option = self.chosen[decision].take()?;
        let of = self.option(decision, option);
        for (limit, amount) in &of.takes {
            self.loads[*limit] -= amount;
        }
        for charge in &of.charges {
            self.holders[*charge] -= 1;
            if self.holders[*charge] == 0 {
                for (limit, amount) in &self.problem.charges[*charge].takes {
                    self.loads[*limit] -= amount;
                }
            }
        }
        for point in &of.points {
            for user in &self.problem.decisions[decision].users {
                if let Some(count) = self.touches[*point].get_mut(user) {
                    *count -= 1;
                    if *count == 0 {
                        self.touches[*point].remove(user);
                        self.points[*user] -= 1;
                    }
                }
            }
        }
        Some(option)
    }

    /// Whether all constraints hold for the choices made so far.
    pub fn is_valid(&self) -> bool {
        let limits = self.problem.limits.iter().zip(&self.loads);
        let within = |most: Option<usize>, count: usize| most.is_none_or(|most| count <= most);
        let mut places = self.touches.iter();
        limits
            .clone()
            .all(|(limit, load)| *load <= limit.most + SLACK * limit.most.abs().max(1.0))
            && places.all(|users| within(self.problem.most_users, users.len()))
            && self
                .points
                .iter()
                .all(|count| within(self.problem.most_points, *count))
            && (0..self.chosen.len()).all(|decision| self.goes_with_others(decision))
    }

    fn goes_with_others(&self, decision: DecisionId) -> bool {
        let Some(option) = self.chosen[decision] else {
            return true;
        };
        let excluded = self.excluded[decision].get(&option);
        let mut excluded = excluded.into_iter().flatten();
        excluded.all(|(other, option)| self.chosen[*other] != Some(*option))
    }

    /// Number of users (trainings) that the loss of the worst point (switch) touches, by the choices so far.
    pub fn worst(&self) -> usize {
        self.touches.iter().map(BTreeMap::len).max().unwrap_or(0)
    }

    /// Total cost of the options chosen so far.
    pub fn cost(&self) -> f64 {
        let chosen = self.chosen.iter().enumerate();
        let options = chosen.filter_map(|(decision, option)| {
            let option = self.option(decision, (*option)?);
            Some(option.cost)
        });
        options.sum()
    }

    /// Quantity to minimize: the users touched by the loss of the worst point, the number of equally bad points, the cost.
    pub fn merit(&self) -> (usize, usize, f64) {
        let worst = self.worst();
        let as_bad = self.touches.iter().filter(|users| users.len() == worst);
        (worst, as_bad.count(), self.cost())
    }

    /// For each point (switch), the users (trainings) that its loss touches.
    pub fn touched(&self) -> Vec<Vec<UserId>> {
        let of_point = |users: &BTreeMap<UserId, usize>| users.keys().copied().collect();
        self.touches.iter().map(of_point).collect()
    }

    /// Index of the chosen option of each decision; `None` if a decision has no option yet.
    pub fn chosen(&self) -> Option<Vec<usize>> {
        self.chosen.iter().copied().collect()
    }
}

/// Whether quantity `a` of [`State::merit`] is less than `b` by more than rounding errors.
pub(super) fn is_less(a: (usize, usize, f64), b: (usize, usize, f64)) -> bool {
    (a.0, a.1) < (b.0, b.1) || (a.0, a.1) == (b.0, b.1) && a.2 < b.2 - 1e-9 * b.2.abs()
}

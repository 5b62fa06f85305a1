//! Finds the sets of switches at which a choice may be placed: those that meet each of its packets exactly once.

use std::collections::BTreeMap;

use super::problem::{ChoiceId, PathId, Problem, SwitchId};

/// Maximum number of sets of several switches that are considered for one choice.
const MAX_SPREADS: usize = 64;

/// Sets of switches at which a choice may be placed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Candidates {
    /// All sets of switches: single switches first, nearest to the sender first.
    pub sets: Vec<Vec<SwitchId>>,
    /// The sets that the scenario file allows, which may name a switch for the choice; all sets if it names none.
    pub pinned: Vec<Vec<SwitchId>>,
    /// Whether there may be more sets of switches than were considered.
    pub cut: bool,
}

impl Candidates {
    /// Finds the sets of switches at which a choice may be placed.
    pub fn find(problem: &Problem, choice: ChoiceId) -> Candidates {
        let wanted = &problem.choices[choice];
        let paths = &wanted.paths;
        let mut sets: Vec<Vec<SwitchId>> = match paths.first() {
            Some(first) => common(problem, *first, paths),
            None => Vec::new(),
        };
        let mut cut = false;
        if wanted.spreads {
            let mut spreads = Spreads::new(problem, paths);
            spreads.descend();
            cut = spreads.cut;
            spreads.found.sort_by_key(Vec::len);
            sets.extend(spreads.found.into_iter().filter(|set| set.len() > 1));
        }
        if let Some(only) = &wanted.only {
            sets.retain(|set| set.iter().all(|switch| only.contains(switch)));
        }
        let pinned = match wanted.pin {
            Some(pin) => sets.iter().filter(|set| **set == [pin]).cloned().collect(),
            None => sets.clone(),
        };
        Candidates { sets, pinned, cut }
    }
}

/// Single switches that all given paths cross, in the order of the first path.
fn common(problem: &Problem, first: PathId, paths: &[PathId]) -> Vec<Vec<SwitchId>> {
    let on_all = |switch: &&SwitchId| {
        let mut paths = paths.iter();
        paths.all(|path| problem.paths[*path].contains(switch))
    };
    let of_first = problem.paths[first].iter();
    of_first
        .filter(on_all)
        .map(|switch| vec![*switch])
        .collect()
}

/// The first two paths of a choice without a common switch, which explain why no single switch works; `None` if all have one.
pub(super) fn apart(problem: &Problem, choice: ChoiceId) -> Option<(PathId, PathId)> {
    let paths = &problem.choices[choice].paths;
    paths.iter().enumerate().find_map(|(i, b)| {
        let shares = |a: &PathId| {
            let of_b = &problem.paths[*b];
            problem.paths[*a].iter().any(|switch| of_b.contains(switch))
        };
        let a = paths[..i].iter().find(|a| !shares(a))?;
        Some((*a, *b))
    })
}

/// Search for sets of switches such that every path crosses exactly one of them (exact covers).
struct Spreads<'p> {
    problem: &'p Problem,
    paths: &'p [PathId],
    /// For each switch, the indices of the paths that cross it.
    crossing: BTreeMap<SwitchId, Vec<usize>>,
    /// For each path, by index, whether it crosses a chosen switch.
    crossed: Vec<bool>,
    chosen: Vec<SwitchId>,
    found: Vec<Vec<SwitchId>>,
    cut: bool,
}

impl<'p> Spreads<'p> {
    fn new(problem: &'p Problem, paths: &'p [PathId]) -> Spreads<'p> {
        let mut crossing: BTreeMap<SwitchId, Vec<usize>> = BTreeMap::new();
        for (place, path) in paths.iter().enumerate() {
            for switch in &problem.paths[*path] {
                crossing.entry(*switch).or_default().push(place);
            }
        }
        Spreads {
            problem,
            paths,
            crossing,
            crossed: vec![false; paths.len()],
            chosen: Vec::new(),
            found: Vec::new(),
            cut: false,
        }
    }

    fn descend(&mut self) {
        let Some(open) = self.crossed.iter().position(|crossed| !crossed) else {
            self.found.push(self.chosen.clone());
            return;
        };
        let problem = self.problem;
        for &switch in &problem.paths[self.paths[open]] {
            if self.found.len() == MAX_SPREADS {
                self.cut = true;
                return;
            }
            // A path that crosses a chosen switch must not cross another.
            let crossing = &self.crossing[&switch];
            if crossing.iter().all(|place| !self.crossed[*place]) {
                self.cross(switch, true);
                self.chosen.push(switch);
                self.descend();
                self.chosen.pop();
                self.cross(switch, false);
            }
        }
    }

    fn cross(&mut self, switch: SwitchId, is_chosen: bool) {
        for place in &self.crossing[&switch] {
            self.crossed[*place] = is_chosen;
        }
    }
}

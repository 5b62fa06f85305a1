//! Counts the communicating pairs of workers between racks while workers are placed one after another.

use std::collections::BTreeMap;

use super::problem::{End, HostId, RackId, WorkerProblem};

pub(super) struct Crossing<'p> {
    problem: &'p WorkerProblem,
    /// For each worker, the communicating pairs to which it belongs: index of the training's step, and the pair's other end.
    pairs: Vec<Vec<(usize, End)>>,
    /// Indices of the limits between two racks, by the racks, the lower number first.
    limits: BTreeMap<(RackId, RackId), Vec<usize>>,
    /// For each limit and step, the number of placed pairs between the limit's racks.
    counts: Vec<Vec<usize>>,
    /// For each worker, its host; `None` if it is not placed yet.
    at: Vec<Option<HostId>>,
}

impl<'p> Crossing<'p> {
    /// State in which no worker is placed.
    pub fn new(problem: &'p WorkerProblem) -> Crossing<'p> {
        let mut pairs = vec![Vec::new(); problem.workers];
        let steps = problem.pattern.steps.len();
        for (step, of_step) in problem.pattern.steps.iter().enumerate() {
            for (from, to) in of_step {
                for (end, other) in [(*from, *to), (*to, *from)] {
                    if let End::Worker(worker) = end {
                        pairs[worker].push((step, other));
                    }
                }
            }
        }
        let mut limits: BTreeMap<(RackId, RackId), Vec<usize>> = BTreeMap::new();
        for (number, limit) in problem.limits.iter().enumerate() {
            let (a, b) = limit.racks;
            // Pairs within a rack do not cross.
            if a != b {
                limits.entry((a.min(b), a.max(b))).or_default().push(number);
            }
        }
        Crossing {
            problem,
            pairs,
            limits,
            counts: vec![vec![0; steps]; problem.limits.len()],
            at: vec![None; problem.workers],
        }
    }

    /// Places a worker, unless that exceeds a limit; returns whether it was placed.
    pub fn place(&mut self, worker: usize, host: HostId) -> bool {
        self.at[worker] = Some(host);
        let rack = self.problem.machines[host].rack;
        let mut added = Vec::new();
        for (step, other) in &self.pairs[worker] {
            // A pair counts once both ends are placed; a pair of a worker with itself does not cross.
            let Some(other) = self.problem.rack_of(*other, &self.at) else {
                continue;
            };
            let limits = self.limits.get(&(rack.min(other), rack.max(other)));
            for limit in limits.into_iter().flatten() {
                self.counts[*limit][*step] += 1;
                added.push((*limit, *step));
            }
        }
        let is_within = added
            .iter()
            .all(|(limit, step)| self.counts[*limit][*step] <= self.problem.limits[*limit].pairs);
        if !is_within {
            for (limit, step) in added {
                self.counts[limit][step] -= 1;
            }
            self.at[worker] = None;
        }
        is_within
    }

    /// For each worker, its host; `None` if the worker was not placed.
    pub fn into_places(self) -> Vec<Option<HostId>> {
        self.at
    }
}

//! Breadth-first search over all global states of a model, so that an error is found by the fewest steps.

use foldhash::fast::FixedState;
use hashbrown::{HashSet, HashTable};
use std::hash::BuildHasher;

use crate::machines::Broken;
use crate::model::{Frame, Model, Status, Wrong};
use crate::space::{Expanded, StateSpace};
use crate::trace::{self, Found};

/// Goals and limits of a search for errors in a model.
#[derive(Debug, Clone, Copy)]
pub struct Search {
    /// Maximum number of global states that the search explores.
    pub max_states: usize,
    /// Whether a wrong sum or an unexpected event ends the search. Otherwise the states after it are not explored.
    pub wrong: bool,
    /// Whether a state in which some task cannot make progress ends the search. Otherwise the state is ignored.
    pub stuck: bool,
    /// Whether a state in which all tasks are done, but a further one does not complete, ends the search. Otherwise it is
    /// ignored.
    pub leaks: bool,
    /// Whether nodes with equal states are tested to behave equally, which takes long.
    pub compares: bool,
}

impl Search {
    /// A search that ends at any error.
    pub const ALL: Self = Self {
        max_states: 1 << 28,
        wrong: true,
        stuck: true,
        leaks: true,
        compares: false,
    };
}

/// Result of a search for errors in a model.
#[derive(Debug, Clone, Default)]
pub struct Report {
    /// Number of distinct global states.
    pub states: usize,
    /// Number of transitions between different global states.
    pub transitions: u64,
    /// Maximum distance of a global state from the initial state, in steps.
    pub depth: usize,
    /// Number of distinct states of single nodes.
    pub machines: usize,
    /// Number of distinct pairs of a single node's state and the frames that it has sent.
    pub parts: usize,
    /// Number of distinct frames, ignoring fields which no node reads.
    pub frames: usize,
    /// Number of global states in which all tasks are done.
    pub ended: usize,
    /// Number of global states in which a node has crashed or was restarted, so that progress is not guaranteed.
    pub broken: usize,
    /// Number of global states in which a node has crashed or was restarted, and no task makes progress.
    pub broken_and_stuck: usize,
    /// Maximum number of times that all timers had to fire, without losses, before a node made progress.
    pub periods: u32,
    /// Whether the search explored all global states.
    pub complete: bool,
    /// The error that the search found; `None` without an error.
    pub found: Option<Found>,
}

/// Explores all global states of a model, within the limits of `search`.
pub fn explore<M: Model>(model: &M, search: Search) -> Result<Report, Broken> {
    let mut matters = HashSet::default();
    loop {
        let mut exploration = Exploration::new(model, search, matters)?;
        let report = exploration.explore()?;
        // A frame that was assumed to have no effect has one, so some states are missing: explore again.
        if exploration.space.parts.is_incomplete {
            matters = exploration.space.parts.matters;
            continue;
        }
        return Ok(report);
    }
}

pub(crate) struct Exploration<'m, M: Model> {
    pub space: StateSpace<'m, M>,
    search: Search,
    states: Vec<u128>,
    parents: Vec<u32>,
    seen: HashTable<u32>,
    hasher: FixedState,
    report: Report,
}

impl<'m, M: Model> Exploration<'m, M> {
    pub fn new(
        model: &'m M,
        search: Search,
        matters: HashSet<Frame, FixedState>,
    ) -> Result<Self, Broken> {
        let mut space = StateSpace::new(model, matters)?;
        space.parts.machines.compares = search.compares;
        space.ends_at_wrong = search.wrong;
        Ok(Self {
            space,
            search,
            states: Vec::new(),
            parents: Vec::new(),
            seen: HashTable::new(),
            hasher: FixedState::default(),
            report: Report::default(),
        })
    }

    pub fn explore(&mut self) -> Result<Report, Broken> {
        let mut state = self.space.parts.first.clone();
        let nodes = state.len();
        let wrong = self
            .space
            .parts
            .saturate(&mut state, None, |_, _| {})?
            .is_some();
        let key = self
            .space
            .symmetry
            .canonical(&mut self.space.parts, &state)?;
        self.insert(key, 0);
        if wrong {
            self.report.found = Some(trace::find(&mut self.space, &[key])?);
            return Ok(self.report.clone());
        }
        let mut at = 0;
        let mut end_of_level = 1;
        self.report.complete = true;
        while at < self.states.len() {
            if at == end_of_level {
                self.report.depth += 1;
                end_of_level = self.states.len();
            }
            if self.states.len() >= self.search.max_states {
                self.report.complete = false;
                break;
            }
            let mut state = vec![0; nodes];
            self.space.symmetry.state(self.states[at], &mut state);
            let mut next = Vec::new();
            let expanded = self.space.expand(&state, |key| next.push(key))?;
            self.report.transitions += next.len() as u64;
            for key in next {
                self.insert(key, at as u32);
            }
            self.space.parts.make_sure()?;
            if self.space.parts.is_incomplete {
                break;
            }
            let found = match expanded {
                Expanded::Wrong(..) => true,
                Expanded::Fine => self.is_stuck(&state)?,
            };
            if found {
                let path = self.path(at);
                self.report.found = Some(trace::find(&mut self.space, &path)?);
                self.report.complete = false;
                break;
            }
            at += 1;
        }
        if self.report.complete && !self.space.parts.is_incomplete {
            self.space.symmetry.verify(&mut self.space.parts)?;
            self.space.parts.make_sure()?;
            self.all_is_sent()?;
            self.no_way_back()?;
        }
        let report = &mut self.report;
        report.states = self.states.len();
        report.machines = self.space.parts.machines.len();
        report.parts = self.space.parts.len();
        report.frames = self.space.parts.machines.frames();
        report.periods = self.space.parts.machines.periods;
        Ok(report.clone())
    }

    /// All explored global states, each as one part number per node.
    #[cfg(test)]
    pub fn all_states(&self) -> Vec<Vec<u32>> {
        let mut state = vec![0; self.space.parts.machines.nodes()];
        let states = self.states.iter().map(|key| {
            self.space.symmetry.state(*key, &mut state);
            state.clone()
        });
        states.collect()
    }

    fn insert(&mut self, key: u128, parent: u32) {
        let hash = self.hasher.hash_one(key);
        let states = &self.states;
        let same = |other: &u32| states[*other as usize] == key;
        if self.seen.find(hash, same).is_some() {
            return;
        }
        let new = self.states.len() as u32;
        self.states.push(key);
        self.parents.push(parent);
        let (states, hasher) = (&self.states, &self.hasher);
        self.seen
            .insert_unique(hash, new, |other| hasher.hash_one(states[*other as usize]));
    }

    /// Whether a global state is stuck: after the loss of all frames in flight, but of no later ones, its tasks make no
    /// progress; or, if all tasks are done, a further task does not complete.
    fn is_stuck(&mut self, state: &[u32]) -> Result<bool, Broken> {
        let machines = &self.space.parts.machines;
        let nodes: Vec<u32> = state
            .iter()
            .map(|part| self.space.parts.machine(*part))
            .collect();
        let model = machines.model;
        let statuses = || nodes.iter().map(|node| model.status(machines.node(*node)));
        let is_broken = statuses().any(|status| status == Status::Broken);
        let is_done = statuses()
            .all(|status| matches!(status, Status::Done | Status::Serves | Status::Broken));
        self.report.broken += usize::from(is_broken);
        self.report.ended += usize::from(is_done);
        let stuck = self.space.parts.machines.stuck(&nodes)?;
        self.report.broken_and_stuck += usize::from(is_broken && stuck.is_some());
        if let Some(Wrong::Sum(_)) = stuck {
            return Ok(self.search.wrong);
        }
        let counts = match stuck {
            Some(Wrong::Leaked) => self.search.leaks,
            stuck => stuck.is_some() && self.search.stuck,
        };
        Ok(counts && !is_broken)
    }

    fn path(&self, mut at: usize) -> Vec<u128> {
        let mut path = vec![self.states[at]];
        while at != 0 {
            at = self.parents[at] as usize;
            path.push(self.states[at]);
        }
        path.reverse();
        path
    }

    /// Verifies that frames which a node sends in the name of another node were already in flight, in every state.
    fn all_is_sent(&self) -> Result<(), Broken> {
        let mut state = vec![0; self.space.parts.machines.nodes()];
        for key in &self.states {
            self.space.symmetry.state(*key, &mut state);
            if !self.space.parts.owes_nothing(&state) {
                return Err(Broken::Borrowed);
            }
        }
        Ok(())
    }

    /// Verifies that no node with a task in progress returns to an earlier state: each step of progress is permanent.
    fn no_way_back(&mut self) -> Result<(), Broken> {
        let machines = &self.space.parts.machines;
        let len = machines.len();
        let serves = |machine: u32| machines.model.status(machines.node(machine)) == Status::Serves;
        let mut edges: Vec<Vec<u32>> = vec![Vec::new(); len];
        let mut entering = vec![0u32; len];
        for (from, to) in machines.edges() {
            if from != to && !serves(from) {
                edges[from as usize].push(to);
                entering[to as usize] += 1;
            }
        }
        let mut free: Vec<u32> = (0..len as u32)
            .filter(|machine| entering[*machine as usize] == 0)
            .collect();
        let mut removed = 0;
        while let Some(machine) = free.pop() {
            removed += 1;
            for to in &edges[machine as usize] {
                entering[*to as usize] -= 1;
                if entering[*to as usize] == 0 {
                    free.push(*to);
                }
            }
        }
        match removed == len {
            true => Ok(()),
            false => Err(Broken::Circle),
        }
    }
}

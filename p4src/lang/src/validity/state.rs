//! What may hold at a place of a program.

use hashbrown::HashMap;
use std::collections::BTreeSet;

/// Combinations of valid headers that are told apart.
const MAX_PATHS: usize = 4096;

/// A variable, or a part of one.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Place {
    root: u32,
    /// Fields, from the outermost.
    pub path: Vec<u32>,
}

impl Place {
    pub fn field(&self, field: u32) -> Place {
        self.follow(&[field])
    }

    pub fn follow(&self, path: &[u32]) -> Place {
        Place {
            root: self.root,
            path: [&self.path[..], path].concat(),
        }
    }

    /// Whether the other is this one, or a part of it.
    pub fn holds(&self, other: &Place) -> bool {
        self.root == other.root && other.path.starts_with(&self.path)
    }
}

/// Numbers of places.
#[derive(Default)]
pub(super) struct Places {
    roots: HashMap<(u32, u32, u32), u32>,
    numbers: HashMap<Place, u32>,
    all: Vec<Place>,
    headers: HashMap<Place, u32>,
}

impl Places {
    /// The variable of that unit in that chain.
    pub fn root(&mut self, key: (u32, u32, u32)) -> Place {
        let next = self.roots.len() as u32;
        Place {
            root: *self.roots.entry(key).or_insert(next),
            path: Vec::new(),
        }
    }

    pub fn number(&mut self, place: &Place) -> u32 {
        if let Some(number) = self.numbers.get(place) {
            return *number;
        }
        let number = self.all.len() as u32;
        self.all.push(place.clone());
        self.numbers.insert(place.clone(), number);
        number
    }

    pub fn named(&self, number: u32) -> &Place {
        &self.all[number as usize]
    }

    /// A header's bit in [`State::paths`].
    pub fn bit(&mut self, header: &Place) -> u32 {
        let next = self.headers.len() as u32;
        *self.headers.entry(header.clone()).or_insert(next)
    }
}

/// What may hold; by default nothing: no path leads here.
#[derive(Debug, Clone, Default)]
pub(super) struct State {
    /// The headers that are valid together, a bit each, on some path.
    pub paths: BTreeSet<u128>,
    /// Places that some path has set.
    pub set: BTreeSet<u32>,
}

impl State {
    /// No header is valid, and nothing is set.
    pub fn start() -> State {
        State {
            paths: BTreeSet::from([0]),
            set: BTreeSet::new(),
        }
    }

    pub fn is_unreachable(&self) -> bool {
        self.paths.is_empty()
    }

    pub fn is_too_large(&self) -> bool {
        self.paths.len() > MAX_PATHS
    }

    /// Adds another's paths; whether any is new.
    pub fn join(&mut self, other: State) -> bool {
        let before = (self.paths.len(), self.set.len());
        self.paths.extend(other.paths);
        self.set.extend(other.set);
        before != (self.paths.len(), self.set.len())
    }

    pub fn joined(mut self, other: State) -> State {
        self.join(other);
        self
    }

    pub fn set_valid(&mut self, bit: u32, valid: bool) {
        let mask = 1 << bit;
        let change = |path: &u128| if valid { path | mask } else { path & !mask };
        self.paths = self.paths.iter().map(change).collect();
    }

    pub fn copy_valid(&mut self, to: u32, from: u32) {
        let change = |path: &u128| (path & !(1 << to)) | ((path >> from & 1) << to);
        self.paths = self.paths.iter().map(change).collect();
    }

    /// Whether the header is valid on some path, and on all.
    pub fn validity(&self, bit: u32) -> (bool, bool) {
        let valid = |path: &u128| path >> bit & 1 == 1;
        (self.paths.iter().any(valid), self.paths.iter().all(valid))
    }

    /// The paths on which the header is valid, and the others.
    pub fn split(self, bit: u32) -> (State, State) {
        let (yes, no) = self
            .paths
            .into_iter()
            .partition(|path| path >> bit & 1 == 1);
        let side = |paths| State {
            paths,
            set: self.set.clone(),
        };
        (side(yes), side(no))
    }
}

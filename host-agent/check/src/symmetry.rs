//! Symmetry of interchangeable nodes: of all global states that differ by a permutation of them, only one is explored.
//!
//! The image of a part under a permutation is found by its history: the same events in the same order, at the permuted nodes.
//! So the content of states and frames need not be interpreted.

use foldhash::fast::FixedState;
use hashbrown::HashMap;

use crate::machines::{Broken, Event, FrameSet};
use crate::model::{MAX_NODES, Model};
use crate::parts::Parts;

const UNKNOWN: u32 = u32::MAX;

struct Permutation {
    /// New index of each node under the permutation.
    to: Vec<u8>,
    parts: Vec<u32>,
    machines: HashMap<u32, u32, FixedState>,
    frames: HashMap<u16, u16, FixedState>,
}

pub struct Symmetry {
    /// All permutations of interchangeable nodes, except the identity.
    permutations: Vec<Permutation>,
    bits: u32,
}

impl Symmetry {
    /// Symmetry of `nodes` nodes under the permutations `orders`, the first of which is the identity.
    pub fn new(nodes: usize, orders: Vec<Vec<u8>>) -> Result<Self, Broken> {
        if nodes > MAX_NODES {
            return Err(Broken::Nodes);
        }
        let permutations = orders.into_iter().skip(1).map(|to| Permutation {
            to,
            parts: Vec::new(),
            machines: HashMap::default(),
            frames: HashMap::default(),
        });
        Ok(Self {
            permutations: permutations.collect(),
            bits: (128 / nodes as u32).min(32),
        })
    }

    /// Encodes a global state (one part number per node) as one number.
    fn key(&self, parts: impl Iterator<Item = u32>) -> Result<u128, Broken> {
        let mut key = 0;
        for part in parts {
            if self.bits < 32 && part >> self.bits != 0 {
                return Err(Broken::Parts);
            }
            key = key << self.bits | u128::from(part);
        }
        Ok(key)
    }

    /// Decodes a global state from its number.
    pub fn state(&self, key: u128, state: &mut [u32]) {
        let mask = (1 << self.bits) - 1;
        for (at, part) in state.iter_mut().rev().enumerate() {
            *part = (key >> (at as u32 * self.bits) & mask) as u32;
        }
    }

    /// The smallest number of a state among all permutations of this global state.
    pub fn canonical<M: Model>(
        &mut self,
        parts: &mut Parts<'_, M>,
        state: &[u32],
    ) -> Result<u128, Broken> {
        let mut least = self.key(state.iter().copied())?;
        for at in 0..self.permutations.len() {
            least = least.min(self.image(parts, state, at)?);
        }
        Ok(least)
    }

    fn image<M: Model>(
        &mut self,
        parts: &mut Parts<'_, M>,
        state: &[u32],
        at: usize,
    ) -> Result<u128, Broken> {
        let mut image = [0; MAX_NODES];
        for (node, part) in state.iter().enumerate() {
            let known = self.permutations[at].parts.get(*part as usize);
            image[usize::from(self.permutations[at].to[node])] = match known {
                Some(known) if *known != UNKNOWN => *known,
                _ => self.permutations[at].part(parts, *part)?,
            };
        }
        self.key(image.iter().copied().take(state.len()))
    }

    /// Number of distinct states among all permutations of this global state.
    #[cfg(test)]
    pub fn orbit<M: Model>(
        &mut self,
        parts: &mut Parts<'_, M>,
        state: &[u32],
    ) -> Result<usize, Broken> {
        let mut orbit = std::collections::BTreeSet::from([self.key(state.iter().copied())?]);
        for at in 0..self.permutations.len() {
            orbit.insert(self.image(parts, state, at)?);
        }
        Ok(orbit.len())
    }

    /// Verifies that permutations are invertible: if nodes are interchangeable, a permutation and then its inverse lead from
    /// each part back to it.
    pub fn verify<M: Model>(&mut self, parts: &mut Parts<'_, M>) -> Result<(), Broken> {
        for at in 0..self.permutations.len() {
            let to = self.permutations[at].to.clone();
            let is_inverse = |other: &Permutation| {
                (0..to.len()).all(|node| usize::from(other.to[usize::from(to[node])]) == node)
            };
            let Some(back) = self.permutations.iter().position(is_inverse) else {
                return Err(Broken::Symmetry);
            };
            let known: Vec<(u32, u32)> = (0u32..)
                .zip(self.permutations[at].parts.iter().copied())
                .filter(|(_, image)| *image != UNKNOWN)
                .collect();
            for (part, image) in known {
                if self.permutations[back].part(parts, image)? != part {
                    return Err(Broken::Symmetry);
                }
            }
        }
        Ok(())
    }
}

impl Permutation {
    fn part<M: Model>(&mut self, parts: &mut Parts<'_, M>, part: u32) -> Result<u32, Broken> {
        let machine = self.machine(parts, parts.machine(part))?;
        let mut sent = FrameSet::default();
        for frame in parts.sent(part).iter() {
            sent.insert(self.frame(parts, frame)?);
        }
        let image = parts.intern(machine, sent);
        if self.parts.len() <= part as usize {
            self.parts.resize(part as usize + 1, UNKNOWN);
        }
        self.parts[part as usize] = image;
        Ok(image)
    }

    fn event<M: Model>(&mut self, parts: &mut Parts<'_, M>, event: Event) -> Result<Event, Broken> {
        match event.as_act() {
            Some(_) => Ok(event),
            None => Ok(Event(self.frame(parts, event.0)?)),
        }
    }

    fn machine<M: Model>(&mut self, parts: &mut Parts<'_, M>, machine: u32) -> Result<u32, Broken> {
        if let Some(image) = self.machines.get(&machine) {
            return Ok(*image);
        }
        let image = match parts.machines.machine_origin(machine) {
            None => {
                let at = self.to[usize::from(parts.machines.at(machine))];
                parts.machines.first[usize::from(at)]
            }
            Some((before, event)) => {
                let before = self.machine(parts, before)?;
                let event = self.event(parts, event)?;
                parts.machines.step(before, event)?.to
            }
        };
        self.machines.insert(machine, image);
        Ok(image)
    }

    fn frame<M: Model>(&mut self, parts: &mut Parts<'_, M>, frame: u16) -> Result<u16, Broken> {
        if let Some(image) = self.frames.get(&frame) {
            return Ok(*image);
        }
        let to = self.to[usize::from(parts.machines.frame(frame).to)];
        let (sender, event, before) = parts.machines.frame_origin(frame);
        let sender = self.machine(parts, sender)?;
        let event = self.event(parts, event)?;
        let sent = parts.machines.step(sender, event)?.sent.clone();
        let image = sent
            .into_iter()
            .filter(|(_, frame)| parts.machines.frame(*frame).to == to)
            .nth(before);
        let Some((_, image)) = image else {
            return Err(Broken::Symmetry);
        };
        self.frames.insert(frame, image);
        Ok(image)
    }
}

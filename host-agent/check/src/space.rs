//! The space of a model's global states: their encoding as numbers, and their direct successors.

use foldhash::fast::FixedState;
use hashbrown::HashSet;

use crate::machines::{Broken, Event};
use crate::model::{Frame, Model};
use crate::parts::Parts;
use crate::symmetry::Symmetry;

pub(crate) struct StateSpace<'m, M: Model> {
    pub parts: Parts<'m, M>,
    pub symmetry: Symmetry,
    /// Whether an error ends the search for successors of a state.
    pub ends_at_wrong: bool,
}

/// Result of computing the successors of a global state.
pub(crate) enum Expanded {
    Fine,
    /// An event reveals an error, perhaps only through events that follow it: index of its node, and the event.
    Wrong(usize, Event),
}

impl<'m, M: Model> StateSpace<'m, M> {
    pub fn new(model: &'m M, matters: HashSet<Frame, FixedState>) -> Result<Self, Broken> {
        let parts = Parts::new(model, matters);
        let nodes = parts.machines.nodes();
        Ok(Self {
            symmetry: Symmetry::new(nodes, model.orders(nodes as u8))?,
            parts,
            ends_at_wrong: true,
        })
    }

    /// Passes the numbers of all direct successors of a global state to `next`.
    pub fn expand(
        &mut self,
        state: &[u32],
        mut next: impl FnMut(u128),
    ) -> Result<Expanded, Broken> {
        for node in 0..state.len() {
            for event in self.parts.events(state, node)? {
                let mut after = state.to_vec();
                let step = self.parts.next(state[node], event)?;
                if step.to == state[node] && !step.wrong {
                    continue;
                }
                after[node] = step.to;
                let before = Some((node, state[node]));
                let wrong = step.wrong
                    || self
                        .parts
                        .saturate(&mut after, before, |_, _| {})?
                        .is_some();
                if wrong && self.ends_at_wrong {
                    return Ok(Expanded::Wrong(node, event));
                }
                if !wrong {
                    next(self.symmetry.canonical(&mut self.parts, &after)?);
                }
            }
        }
        Ok(Expanded::Fine)
    }
}

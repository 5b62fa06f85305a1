//! The steps of a schedule as one graph: checks well-formedness, matches puts and waits, and computes an order.

use std::collections::BTreeMap;

use crate::schedule::{Action, Buffer, Schedule, Signal, Span, Step};

/// Position of a step in a schedule: rank, and index in the rank's program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct At {
    /// Rank whose program has the step.
    pub rank: usize,
    /// Index of the step in the rank's program, from 0.
    pub step: usize,
}

/// Reason why a schedule is not well-formed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FormError {
    /// A step's range extends beyond its buffer.
    #[error("step {} of rank {}: {span:?} exceeds the buffer, which has {has} elements", at.step, at.rank)]
    Outside {
        /// Position of the step in the schedule.
        at: At,
        /// The range of elements that the step uses.
        span: Span,
        /// Length of the range's buffer in elements.
        has: usize,
    },
    /// Source and target of a step differ in length.
    #[error("step {} of rank {}: source and target differ in length", at.step, at.rank)]
    Lengths {
        /// Position of the step in the schedule.
        at: At,
    },
    /// Source and target of a step overlap.
    #[error("step {} of rank {}: source and target overlap", at.step, at.rank)]
    Overlap {
        /// Position of the step in the schedule.
        at: At,
    },
    /// A step writes to the input buffer, which is read-only.
    #[error("step {} of rank {} writes an input", at.step, at.rank)]
    WritesInput {
        /// Position of the step in the schedule.
        at: At,
    },
    /// The peer of a put or wait is not a rank of the schedule, or is the rank itself.
    #[error("step {} of rank {}: rank {peer} is not a peer", at.step, at.rank)]
    Peer {
        /// Position of the put or wait in the schedule.
        at: At,
        /// The rank that the step names as its peer.
        peer: usize,
    },
    /// A step's `after` names a step that is not earlier in the program.
    #[error("step {} of rank {} depends on step {after}, which does not precede it", at.step, at.rank)]
    After {
        /// Position of the step in the schedule.
        at: At,
        /// Index of the step that is not earlier.
        after: usize,
    },
    /// Two puts to one peer have the same signal, or two waits for one peer have the same signal.
    #[error("step {} of rank {} reuses the signal of step {first}", at.step, at.rank)]
    SignalTwice {
        /// Position of the second put or wait in the schedule.
        at: At,
        /// Index of the first put or wait in the same program.
        first: usize,
    },
    /// A wait has no put with its signal.
    #[error("step {} of rank {} waits for a put that no rank makes", at.step, at.rank)]
    NoPut {
        /// Position of the wait in the schedule.
        at: At,
    },
    /// A put has no wait for its signal.
    #[error("no step waits for the put of step {} of rank {}", at.step, at.rank)]
    NoWait {
        /// Position of the put in the schedule.
        at: At,
    },
    /// Steps wait for each other in a cycle, so some ranks never finish.
    #[error("deadlock: ranks {ranks:?} wait for each other")]
    Deadlock {
        /// The ranks that cannot finish their programs.
        ranks: Vec<usize>,
    },
}

/// Graph of a schedule: all steps of all ranks are nodes, numbered rank by rank.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Graph {
    starts: Vec<usize>,
    /// For each node, the wait that matches a put, or the put that matches a wait; `None` for other steps.
    partner: Vec<Option<usize>>,
}

impl Graph {
    /// Builds the graph of a schedule, and checks its form; does not look for deadlocks and races.
    pub fn new(schedule: &Schedule) -> Result<Self, FormError> {
        let mut starts = vec![0];
        for program in &schedule.programs {
            starts.push(starts[starts.len() - 1] + program.steps.len());
        }
        let mut graph = Self {
            partner: vec![None; starts[starts.len() - 1]],
            starts,
        };
        for (at, step) in steps(schedule) {
            well_formed(schedule, at, step)?;
        }
        graph.pair(schedule)?;
        Ok(graph)
    }

    fn pair(&mut self, schedule: &Schedule) -> Result<(), FormError> {
        let mut puts: BTreeMap<(usize, usize, Signal), At> = BTreeMap::new();
        for (at, step) in steps(schedule) {
            if let Action::Put { to, signal, .. } = step.action
                && let Some(first) = puts.insert((at.rank, to, signal), at)
            {
                let first = first.step;
                return Err(FormError::SignalTwice { at, first });
            }
        }
        for (at, step) in steps(schedule) {
            if let Action::Wait { from, signal } = step.action {
                let put = *puts
                    .get(&(from, at.rank, signal))
                    .ok_or(FormError::NoPut { at })?;
                let (put, wait) = (self.node(put), self.node(at));
                if let Some(first) = self.partner[put].replace(wait) {
                    let first = self.at(first).step;
                    return Err(FormError::SignalTwice { at, first });
                }
                self.partner[wait] = Some(put);
            }
        }
        let lonely = puts
            .values()
            .find(|put| self.partner[self.node(**put)].is_none());
        lonely.map_or(Ok(()), |at| Err(FormError::NoWait { at: *at }))
    }

    /// Number of nodes, which is the number of steps of all ranks.
    pub fn len(&self) -> usize {
        self.partner.len()
    }

    /// Whether the graph has no nodes.
    pub fn is_empty(&self) -> bool {
        self.partner.is_empty()
    }

    /// Number of the graph's node for a step.
    pub fn node(&self, at: At) -> usize {
        self.starts[at.rank] + at.step
    }

    /// Position of the step with this node number.
    pub fn at(&self, node: usize) -> At {
        // A rank without steps begins where the next rank does: the last one that begins here has the step.
        let rank = self.starts.partition_point(|start| *start <= node) - 1;
        At {
            rank,
            step: node - self.starts[rank],
        }
    }

    /// Node of the wait that matches a put, or of the put that matches a wait; `None` for other steps.
    pub fn partner(&self, node: usize) -> Option<usize> {
        self.partner[node]
    }

    /// Nodes that must finish before this node; if it is a wait, they include the put for which it waits.
    pub fn before<'s>(
        &'s self,
        schedule: &'s Schedule,
        node: usize,
    ) -> impl Iterator<Item = usize> + 's {
        let at = self.at(node);
        let step = &schedule.programs[at.rank].steps[at.step];
        let is_wait = matches!(step.action, Action::Wait { .. });
        let put = self.partner[node].filter(|_| is_wait);
        let own = step
            .after
            .iter()
            .map(move |step| self.starts[at.rank] + step);
        own.chain(put)
    }

    /// All nodes in a topological order.
    ///
    /// # Errors
    /// [`FormError::Deadlock`], if the graph has a cycle.
    pub fn order(&self, schedule: &Schedule) -> Result<Vec<usize>, FormError> {
        let mut missing = vec![0_usize; self.len()];
        let mut behind = vec![Vec::new(); self.len()];
        for (node, missing) in missing.iter_mut().enumerate() {
            for before in self.before(schedule, node) {
                *missing += 1;
                behind[before].push(node);
            }
        }
        let mut order: Vec<usize> = (0..self.len()).filter(|node| missing[*node] == 0).collect();
        let mut next = 0;
        while let Some(node) = order.get(next) {
            next += 1;
            for after in &behind[*node] {
                missing[*after] -= 1;
                if missing[*after] == 0 {
                    order.push(*after);
                }
            }
        }
        if order.len() == self.len() {
            return Ok(order);
        }
        let stuck = (0..self.len()).filter(|node| missing[*node] > 0);
        let mut ranks: Vec<usize> = stuck.map(|node| self.at(node).rank).collect();
        ranks.dedup();
        Err(FormError::Deadlock { ranks })
    }

    /// Number of messages in the longest chain in which each waits for the one before; textbooks call it the number of steps.
    ///
    /// # Errors
    /// As [`Graph::order`].
    pub fn rounds(&self, schedule: &Schedule) -> Result<usize, FormError> {
        Ok(self.depths(schedule)?.into_iter().max().unwrap_or(0))
    }

    /// For each node, number of messages in the longest chain that ends with it; if the node is a put, its message counts.
    ///
    /// # Errors
    /// As [`Graph::order`].
    pub fn depths(&self, schedule: &Schedule) -> Result<Vec<usize>, FormError> {
        let mut done = vec![0; self.len()];
        for node in self.order(schedule)? {
            let at = self.at(node);
            let before = self.before(schedule, node).map(|node| done[node]).max();
            let is_put = matches!(
                schedule.programs[at.rank].steps[at.step].action,
                Action::Put { .. }
            );
            done[node] = before.unwrap_or(0) + usize::from(is_put);
        }
        Ok(done)
    }
}

/// All steps of a schedule with their positions, rank by rank.
pub fn steps(schedule: &Schedule) -> impl Iterator<Item = (At, &Step)> {
    let ranks = schedule.programs.iter().enumerate();
    ranks.flat_map(|(rank, program)| {
        let steps = program.steps.iter().enumerate();
        steps.map(move |(step, what)| (At { rank, step }, what))
    })
}

fn well_formed(schedule: &Schedule, at: At, step: &Step) -> Result<(), FormError> {
    if let Some(after) = step.after.iter().find(|after| **after >= at.step) {
        return Err(FormError::After { at, after: *after });
    }
    let peer = match step.action {
        Action::Put { to, .. } => Some(to),
        Action::Wait { from, .. } => Some(from),
        Action::Reduce { .. } | Action::Copy { .. } => None,
    };
    if let Some(peer) = peer.filter(|peer| *peer >= schedule.ranks() || *peer == at.rank) {
        return Err(FormError::Peer { at, peer });
    }
    let (Action::Put { source, target, .. }
    | Action::Reduce { source, target }
    | Action::Copy { source, target }) = step.action
    else {
        return Ok(());
    };
    let target_rank = peer.unwrap_or(at.rank);
    for (rank, span) in [(at.rank, source), (target_rank, target)] {
        let has = schedule.programs[rank].lens[span.buffer.index()];
        if span.start.checked_add(span.len).is_none_or(|end| end > has) {
            return Err(FormError::Outside { at, span, has });
        }
    }
    if source.len != target.len {
        return Err(FormError::Lengths { at });
    }
    if target_rank == at.rank && source.meets(target) {
        return Err(FormError::Overlap { at });
    }
    if target.buffer == Buffer::Input && target.len > 0 {
        return Err(FormError::WritesInput { at });
    }
    Ok(())
}

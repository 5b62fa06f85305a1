//! Verification: whether any order that a schedule permits can fail, by its form, a deadlock or a race.
//!
//! *Happens before* follows from the schedule alone: a step follows its `after`, and a wait follows its put. A put reads its
//! source until it completes at the sender, and writes its target at any time from its beginning until its wait finishes. Two
//! accesses to one element, of which at least one writes, race unless one ends before the other begins.

use crate::graph::{At, FormError, Graph, steps};
use crate::schedule::{Action, Buffer, Schedule, Span};

/// Maximum number of steps of a schedule that can be verified. The relation between n steps takes n² bits, here 128 MiB.
pub const MAX_VERIFIED_STEPS: usize = 1 << 15;

/// Reason why some execution of a schedule can fail.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum VerifyError {
    /// The schedule is not well-formed, or deadlocks.
    #[error(transparent)]
    Form(#[from] FormError),
    /// Two steps access the same memory, one of them writes, and nothing orders them.
    #[error(
        "step {} of rank {} and step {} of rank {} both access {span:?} of rank {rank}, one writes, and no dependency orders them",
        steps[0].step, steps[0].rank, steps[1].step, steps[1].rank
    )]
    Race {
        /// Positions of the two steps.
        steps: [At; 2],
        /// Rank whose memory the two steps access.
        rank: usize,
        /// Range that the two steps access.
        span: Span,
    },
    /// The schedule has this many steps, too many to verify.
    #[error("the schedule has {0} steps; at most {MAX_VERIFIED_STEPS} are verified")]
    TooManySteps(usize),
}

/// Checks that no execution of a schedule can deadlock or race; returns the graph of its steps.
pub fn verify(schedule: &Schedule) -> Result<Graph, VerifyError> {
    let graph = Graph::new(schedule)?;
    let order = Order::new(schedule, &graph)?;
    for rank in 0..schedule.ranks() {
        for buffer in Buffer::ALL {
            let accesses = accesses(schedule, &graph, rank, buffer);
            if let Some((steps, span)) = race(&order, accesses) {
                let steps = steps.map(|node| graph.at(node));
                return Err(VerifyError::Race { steps, rank, span });
            }
        }
    }
    Ok(graph)
}

/// The happens-before relation between the steps of a schedule.
#[derive(Debug)]
pub struct Order {
    /// For each node, a bitmap of the nodes that happen before it.
    before: Vec<Vec<u64>>,
}

impl Order {
    /// Computes the happens-before relation of a whole schedule.
    pub fn new(schedule: &Schedule, graph: &Graph) -> Result<Self, VerifyError> {
        if graph.len() > MAX_VERIFIED_STEPS {
            return Err(VerifyError::TooManySteps(graph.len()));
        }
        let words = graph.len().div_ceil(64);
        let mut before: Vec<Vec<u64>> = vec![Vec::new(); graph.len()];
        for node in graph.order(schedule)? {
            let mut bits = vec![0; words];
            for earlier in graph.before(schedule, node) {
                bits[earlier / 64] |= 1 << (earlier % 64);
                for (word, other) in bits.iter_mut().zip(&before[earlier]) {
                    *word |= other;
                }
            }
            before[node] = bits;
        }
        Ok(Self { before })
    }

    /// Whether node `first` finishes before node `second` begins, in every execution.
    pub fn is_before(&self, first: usize, second: usize) -> bool {
        self.before[second][first / 64] >> (first % 64) & 1 == 1
    }
}

/// A memory access: it begins no earlier than node `begin`, and has ended when node `end` finishes.
struct Access {
    begin: usize,
    end: usize,
    span: Span,
    writes: bool,
}

/// All accesses of steps to a rank's buffer, in the order of the first element.
fn accesses(schedule: &Schedule, graph: &Graph, rank: usize, buffer: Buffer) -> Vec<Access> {
    let mut accesses = Vec::new();
    let mut add = |whose: usize, begin, end, span: Span, writes| {
        if whose == rank && span.buffer == buffer && span.len > 0 {
            accesses.push(Access {
                begin,
                end,
                span,
                writes,
            });
        }
    };
    for (at, step) in steps(schedule) {
        let node = graph.node(at);
        match step.action {
            Action::Put {
                to, source, target, ..
            } => {
                add(at.rank, node, node, source, false);
                if let Some(wait) = graph.partner(node) {
                    add(to, node, wait, target, true);
                }
            }
            Action::Reduce { source, target } | Action::Copy { source, target } => {
                add(at.rank, node, node, source, false);
                add(at.rank, node, node, target, true);
            }
            Action::Wait { .. } => {}
        }
    }
    accesses.sort_by_key(|access| access.span.start);
    accesses
}

fn race(order: &Order, accesses: Vec<Access>) -> Option<([usize; 2], Span)> {
    let mut open: Vec<Access> = Vec::new();
    for access in accesses {
        open.retain(|earlier| earlier.span.end() > access.span.start);
        for other in &open {
            let is_first = |a: &Access, b: &Access| order.is_before(a.end, b.begin);
            let is_harmless = !access.writes && !other.writes;
            if !is_harmless && !is_first(&access, other) && !is_first(other, &access) {
                let end = access.span.end().min(other.span.end());
                let span = access
                    .span
                    .buffer
                    .span(access.span.start, end - access.span.start);
                return Some(([other.begin, access.begin], span));
            }
        }
        open.push(access);
    }
    None
}

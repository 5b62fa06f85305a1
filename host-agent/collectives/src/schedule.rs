//! Schedules: the steps of each rank, in terms of one-sided RDMA.
//!
//! | schedule | verbs |
//! |---|---|
//! | [`Action::Put`] | WRITE with immediate; the immediate is the signal |
//! | [`Action::Wait`] | the completion of a receive whose immediate is the signal |
//! | [`Step::after`] a put | the put's completion at the sender: its source may be overwritten |
//! | [`Action::Reduce`], [`Action::Copy`] | work of the rank's own processor |
//!
//! Nothing else orders steps: puts between the same two ranks may overtake each other, so they may use any number of queue
//! pairs and NICs. Steps that neither `after` nor waits order have no conflict ([`crate::verify()`]), so every run gives the
//! same bits, also in floating point.
//!
//! A rank may begin once the ranks that it puts to have their buffers ready: after a barrier, after the previous collective,
//! or with buffers that the previous collective does not use. Signals count from 0 for each pair of ranks: the executor of
//! consecutive schedules adds up [`Schedule::signals`].

use std::collections::BTreeMap;

/// Memory of a rank. A put addresses the peer's buffer by position, independent of the sender.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Buffer {
    /// The rank's contribution; no step writes it.
    Input,
    /// The rank's result.
    Output,
    /// Intermediate data, undefined at the beginning.
    Scratch,
}

impl Buffer {
    /// All buffers, in the order of [`Buffer::index`].
    pub const ALL: [Self; 3] = [Self::Input, Self::Output, Self::Scratch];

    /// The buffer's array index.
    pub fn index(self) -> usize {
        self as usize
    }

    /// The range of `len` elements that begins at `start`.
    pub fn span(self, start: usize, len: usize) -> Span {
        Span {
            buffer: self,
            start,
            len,
        }
    }
}

/// A range of elements of a buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Span {
    /// Buffer of the range.
    pub buffer: Buffer,
    /// Index of its first element.
    pub start: usize,
    /// Number of elements.
    pub len: usize,
}

impl Span {
    /// Index after its last element.
    pub fn end(self) -> usize {
        self.start + self.len
    }

    /// The subrange of `len` elements that begins at `start`, relative to this range.
    ///
    /// # Panics
    /// If the subrange extends beyond this range.
    pub fn part(self, start: usize, len: usize) -> Self {
        assert!(start + len <= self.len, "a part lies inside");
        self.buffer.span(self.start + start, len)
    }

    /// Whether both ranges have a common element.
    pub fn meets(self, other: Self) -> bool {
        let is_apart = self.end() <= other.start || other.end() <= self.start;
        self.buffer == other.buffer && self.len > 0 && other.len > 0 && !is_apart
    }
}

/// Number that distinguishes the puts from one rank to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Signal(pub u32);

/// Action of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// Writes into a peer's buffer, then signals. Without elements, it only signals.
    Put {
        /// The peer.
        to: usize,
        /// Range of this rank.
        source: Span,
        /// Range of the peer.
        target: Span,
        /// Signal that the peer waits for.
        signal: Signal,
    },
    /// Finishes when a peer's put has arrived completely.
    Wait {
        /// Rank of the peer.
        from: usize,
        /// Signal of its put.
        signal: Signal,
    },
    /// Combines each element of the source into that of the target, by the schedule's operation.
    Reduce {
        /// Read.
        source: Span,
        /// Read and written.
        target: Span,
    },
    /// Copies the source to the target.
    Copy {
        /// Read.
        source: Span,
        /// Written.
        target: Span,
    },
}

/// A step of a rank.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// Action of the step.
    pub action: Action,
    /// Indices of earlier steps of the same rank that must finish first, ascending.
    pub after: Vec<usize>,
}

/// Program of one rank. Any order that respects `after` and waits is correct, in particular the order of the list.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Program {
    /// Length of each buffer in elements, by [`Buffer::index`].
    pub lens: [usize; 3],
    /// Steps of the rank.
    pub steps: Vec<Step>,
}

/// Operation that combines elements. All are commutative and, up to rounding, associative, so an algorithm may combine in any
/// order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ReduceOp {
    /// a + b
    Sum,
    /// a · b
    Product,
    /// The smaller value.
    Min,
    /// The larger value.
    Max,
}

/// Programs of all ranks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Schedule {
    /// Length of an element in bytes.
    pub element_bytes: usize,
    /// Operation of [`Action::Reduce`].
    pub op: ReduceOp,
    /// Programs by rank.
    pub programs: Vec<Program>,
}

impl Schedule {
    /// Number of ranks.
    pub fn ranks(&self) -> usize {
        self.programs.len()
    }

    /// All puts as sender, receiver, number of elements.
    pub fn puts(&self) -> impl Iterator<Item = (usize, usize, usize)> {
        let ranks = self.programs.iter().enumerate();
        ranks.flat_map(|(from, program)| {
            program.steps.iter().filter_map(move |step| {
                let Action::Put { to, source, .. } = step.action else {
                    return None;
                };
                Some((from, to, source.len))
            })
        })
    }

    /// Bytes that each rank sends.
    pub fn sent_bytes(&self) -> Vec<u64> {
        let mut sent = vec![0; self.ranks()];
        for (from, _, len) in self.puts() {
            sent[from] += (len * self.element_bytes) as u64;
        }
        sent
    }

    /// Number of puts of each rank.
    pub fn messages(&self) -> Vec<usize> {
        let mut messages = vec![0; self.ranks()];
        for (from, ..) in self.puts() {
            messages[from] += 1;
        }
        messages
    }

    /// Bytes that leave each group of ranks. Ranks in no group form an additional one.
    pub fn crossing_bytes(&self, groups: &[Vec<usize>]) -> Vec<u64> {
        let mut group_of = vec![groups.len(); self.ranks()];
        for (group, members) in groups.iter().enumerate() {
            for member in members {
                group_of[*member] = group;
            }
        }
        let mut crossing = vec![0; groups.len() + 1];
        for (from, to, len) in self.puts() {
            if group_of[from] != group_of[to] {
                crossing[group_of[from]] += (len * self.element_bytes) as u64;
            }
        }
        crossing.truncate(groups.len());
        crossing
    }

    /// Number of signals from one rank to another: the largest plus one.
    pub fn signals(&self) -> BTreeMap<(usize, usize), u32> {
        let mut signals = BTreeMap::new();
        for (from, program) in self.programs.iter().enumerate() {
            for step in &program.steps {
                if let Action::Put { to, signal, .. } = step.action {
                    let used: &mut u32 = signals.entry((from, to)).or_default();
                    *used = (*used).max(signal.0 + 1);
                }
            }
        }
        signals
    }

    /// Number of steps of all ranks.
    pub fn len(&self) -> usize {
        self.programs
            .iter()
            .map(|program| program.steps.len())
            .sum()
    }

    /// Whether no rank has a step.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

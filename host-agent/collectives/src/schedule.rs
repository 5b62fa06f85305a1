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
//! A rank may begin once its peers' buffers are ready for its puts: after a barrier, after the previous collective, or with
//! buffers that the previous collective does not use. Signals count from 0 for each pair of ranks. An executor of several
//! schedules adds the [`Schedule::signals`] of the earlier ones, so that no number occurs twice.

use std::collections::BTreeMap;

/// A memory buffer of a rank. A put names a position in the peer's buffer, which need not be that of the data at the sender.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Buffer {
    /// The rank's contribution to the collective; no step writes it.
    Input,
    /// The rank's result of the collective.
    Output,
    /// Intermediate data; undefined at the beginning.
    Scratch,
}

impl Buffer {
    /// All buffers of a rank, in the order of [`Buffer::index`].
    pub const ALL: [Self; 3] = [Self::Input, Self::Output, Self::Scratch];

    /// Index of the buffer in arrays such as [`Program::lens`].
    pub fn index(self) -> usize {
        self as usize
    }

    /// The range of `len` elements of this buffer that begins at element `start`.
    pub fn span(self, start: usize, len: usize) -> Span {
        Span {
            buffer: self,
            start,
            len,
        }
    }
}

/// A contiguous range of elements in a buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Span {
    /// Buffer that contains the range.
    pub buffer: Buffer,
    /// Index of the range's first element in the buffer.
    pub start: usize,
    /// Number of elements of the range.
    pub len: usize,
}

impl Span {
    /// Index after the range's last element.
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

    /// Whether this range and `other` have a common element.
    pub fn meets(self, other: Self) -> bool {
        let is_apart = self.end() <= other.start || other.end() <= self.start;
        self.buffer == other.buffer && self.len > 0 && other.len > 0 && !is_apart
    }
}

/// Number that distinguishes the puts from one rank to another, from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Signal(pub u32);

/// Action of a step in a rank's program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// Writes the source to a peer's buffer, then signals the peer. Without elements, it only signals.
    Put {
        /// Rank of the peer whose buffer is written.
        to: usize,
        /// Range of this rank that is read.
        source: Span,
        /// Range of the peer's buffer that is written.
        target: Span,
        /// Signal for the peer's wait.
        signal: Signal,
    },
    /// Finishes when a peer's put has arrived completely, with its signal.
    Wait {
        /// Rank of the peer that puts.
        from: usize,
        /// Signal of the peer's put.
        signal: Signal,
    },
    /// Combines each element of the source into the target's element, by the schedule's operation.
    Reduce {
        /// Range that is read.
        source: Span,
        /// Range that is read and written.
        target: Span,
    },
    /// Copies the source range to the target range at this rank.
    Copy {
        /// Range that is read.
        source: Span,
        /// Range that is written.
        target: Span,
    },
}

/// A step in a rank's program: an action, and the earlier steps that it waits for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// Operation of the step: put, wait, reduce or copy.
    pub action: Action,
    /// Indices of earlier steps of the same rank that must finish first, ascending.
    pub after: Vec<usize>,
}

/// Program of one rank. Its steps may run in the order of the list, or in any other order that respects `after` and waits.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Program {
    /// Length of each buffer of the rank in elements, by [`Buffer::index`].
    pub lens: [usize; 3],
    /// Steps of the rank; their indices are used by `after`.
    pub steps: Vec<Step>,
}

/// Operation that combines elements. All operations are commutative and, up to rounding, associative, so an algorithm may
/// combine in any order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ReduceOp {
    /// Sum of the two elements
    Sum,
    /// Product of the two elements
    Product,
    /// The smaller one of the two elements.
    Min,
    /// The larger one of the two elements.
    Max,
}

/// A collective as programs: the steps of all ranks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Schedule {
    /// Length of an element of every buffer, in bytes.
    pub element_bytes: usize,
    /// Operation with which [`Action::Reduce`] combines elements.
    pub op: ReduceOp,
    /// Program of each rank, in rank order.
    pub programs: Vec<Program>,
}

impl Schedule {
    /// Number of ranks that the schedule has programs for.
    pub fn ranks(&self) -> usize {
        self.programs.len()
    }

    /// All puts of the schedule: sending rank, receiving rank, number of elements.
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

    /// Number of bytes that each rank sends, in rank order.
    pub fn sent_bytes(&self) -> Vec<u64> {
        let mut sent = vec![0; self.ranks()];
        for (from, _, len) in self.puts() {
            sent[from] += (len * self.element_bytes) as u64;
        }
        sent
    }

    /// Number of puts of each rank, in rank order.
    pub fn messages(&self) -> Vec<usize> {
        let mut messages = vec![0; self.ranks()];
        for (from, ..) in self.puts() {
            messages[from] += 1;
        }
        messages
    }

    /// Number of bytes that each group of ranks sends to ranks outside of it. Ranks in no group count as outside.
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

    /// Number of signals from one rank to another, by (sender, receiver): the largest signal plus one.
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

    /// Number of steps of all ranks together.
    pub fn len(&self) -> usize {
        self.programs
            .iter()
            .map(|program| program.steps.len())
            .sum()
    }

    /// Whether no rank of the schedule has a step.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

//! What each rank does, step by step, in terms that one-sided RDMA can carry out.
//!
//! | here | with verbs |
//! |---|---|
//! | [`Action::Put`] | WRITE with immediate; the immediate is the signal |
//! | [`Action::Wait`] | the completion of a receive whose immediate is the signal |
//! | [`Step::after`] a put | its completion at the sender: its source may be written again |
//! | [`Action::Reduce`], [`Action::Copy`] | the rank's own processor |
//!
//! Nothing else orders steps: puts of one pair of ranks may overtake each other, so they may use any number of queue pairs and
//! NICs. Whatever is not ordered by `after` and by waits has no conflict ([`crate::verify()`]), so every run gives the same bits,
//! floating point included.
//!
//! A rank may begin when its buffers are there at all ranks that put into them: after a barrier, or the collective before, or
//! with other buffers than that. Signals count from 0 for each pair of ranks: who runs one schedule after another adds up
//! [`Schedule::signals`].

use std::collections::BTreeMap;

/// Memory of a rank. Peers put at the same place of the same buffer whoever they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Buffer {
    /// What the rank contributes. Nothing writes it.
    Input,
    /// What the rank gets.
    Output,
    /// What is on its way. Undefined in the beginning.
    Scratch,
}

impl Buffer {
    /// All, by [`Buffer::index`].
    pub const ALL: [Self; 3] = [Self::Input, Self::Output, Self::Scratch];

    /// As an index of an array.
    pub fn index(self) -> usize {
        self as usize
    }

    /// The part of so many elements that begins at `start`.
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
    /// Which buffer.
    pub buffer: Buffer,
    /// Its first element.
    pub start: usize,
    /// Elements.
    pub len: usize,
}

impl Span {
    /// One behind its last element.
    pub fn end(self) -> usize {
        self.start + self.len
    }

    /// A part of it.
    ///
    /// # Panics
    /// If it has no such part.
    pub fn part(self, start: usize, len: usize) -> Self {
        assert!(start + len <= self.len, "a part lies inside");
        self.buffer.span(self.start + start, len)
    }

    /// Whether both have an element in common.
    pub fn meets(self, other: Self) -> bool {
        let is_apart = self.end() <= other.start || other.end() <= self.start;
        self.buffer == other.buffer && self.len > 0 && other.len > 0 && !is_apart
    }
}

/// What tells puts from one rank to another apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Signal(pub u32);

/// What a step does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// Writes into a peer's buffer, then signals. Without elements it signals only.
    Put {
        /// The peer.
        to: usize,
        /// Of this rank.
        source: Span,
        /// Of the peer.
        target: Span,
        /// What the peer waits for.
        signal: Signal,
    },
    /// Is done when a peer's put is here, all of it.
    Wait {
        /// The peer.
        from: usize,
        /// Of its put.
        signal: Signal,
    },
    /// Combines each element of the source into that of the target, by the schedule's operation.
    Reduce {
        /// Read.
        source: Span,
        /// Read and written.
        target: Span,
    },
    /// Copies.
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
    /// What it does.
    pub action: Action,
    /// Places of earlier steps of the same rank that are done before; ascending.
    pub after: Vec<usize>,
}

/// What one rank does. Any order that respects `after` and waits is right; so is one step after another.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Program {
    /// The length of each buffer in elements, by [`Buffer::index`].
    pub lens: [usize; 3],
    /// Its steps.
    pub steps: Vec<Step>,
}

/// How elements are combined. All are commutative and associative (but for rounding), so an algorithm may combine in any order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ReduceOp {
    /// a + b
    Sum,
    /// a · b
    Product,
    /// The less of both.
    Min,
    /// The more of both.
    Max,
}

/// What all ranks do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Schedule {
    /// Bytes of an element.
    pub element_bytes: usize,
    /// How [`Action::Reduce`] combines.
    pub op: ReduceOp,
    /// By rank.
    pub programs: Vec<Program>,
}

impl Schedule {
    /// How many ranks there are.
    pub fn ranks(&self) -> usize {
        self.programs.len()
    }

    /// All puts: from, to, elements.
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

    /// Puts of each rank.
    pub fn messages(&self) -> Vec<usize> {
        let mut messages = vec![0; self.ranks()];
        for (from, ..) in self.puts() {
            messages[from] += 1;
        }
        messages
    }

    /// Bytes that leave each group of ranks for others. Who is in no group belongs to one more.
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

    /// How many signals each pair of ranks uses: from, to → one more than the largest.
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

    /// Steps of all ranks.
    pub fn len(&self) -> usize {
        self.programs
            .iter()
            .map(|program| program.steps.len())
            .sum()
    }

    /// Whether nobody does anything.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

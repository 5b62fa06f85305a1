//! Builds schedules. An algorithm adds transfers and reductions of element ranges in one possible order; the builder finds out
//! which steps must wait for which others, because they access the same elements.
//!
//! Long ranges are cut into tiles, with a step for each. A step waits only for the tiles that it needs.

mod hazards;

use std::collections::BTreeMap;

use crate::schedule::{Action, Buffer, Program, ReduceOp, Schedule, Signal, Span, Step};
use hazards::Hazards;

/// Maximum number of steps of a schedule, over all ranks.
pub const MAX_STEPS: usize = 1 << 20;

/// Builder of a schedule, which takes transfers and reductions of element ranges, and adds steps with their dependencies.
#[derive(Debug)]
pub struct Builder {
    schedule: Schedule,
    hazards: Vec<[Hazards; 3]>,
    signals: BTreeMap<(usize, usize), u32>,
    tile: usize,
    steps: usize,
}

/// The schedule has more than [`MAX_STEPS`] steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the schedule has more than {MAX_STEPS} steps")]
pub struct TooManySteps;

/// Steps that one [`Builder::send`] generated: for each tile a put of the sender and a wait of the receiver.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Sent {
    /// Indices of the puts in the sender's program.
    pub puts: Vec<usize>,
    /// Indices of the waits in the receiver's program.
    pub waits: Vec<usize>,
}

impl Builder {
    /// A builder for ranks with these (input, output) lengths in elements. `tile`: most elements per step; `None`: no limit.
    pub fn new(
        lens: &[(usize, usize)],
        element_bytes: usize,
        op: ReduceOp,
        tile: Option<usize>,
    ) -> Self {
        let programs = lens.iter().map(|(input, output)| Program {
            lens: [*input, *output, 0],
            steps: Vec::new(),
        });
        Self {
            schedule: Schedule {
                element_bytes,
                op,
                programs: programs.collect(),
            },
            hazards: lens.iter().map(|_| Default::default()).collect(),
            signals: BTreeMap::new(),
            tile: tile.unwrap_or(usize::MAX).max(1),
            steps: 0,
        }
    }

    /// Returns the finished schedule.
    ///
    /// # Errors
    /// If the schedule has too many steps; the builder then has not kept all of them.
    pub fn finish(self) -> Result<Schedule, TooManySteps> {
        if self.steps > MAX_STEPS {
            return Err(TooManySteps);
        }
        Ok(self.schedule)
    }

    /// Allocates `len` more elements in a rank's scratch buffer, and returns their range.
    pub fn scratch(&mut self, rank: usize, len: usize) -> Span {
        let has = &mut self.schedule.programs[rank].lens[Buffer::Scratch.index()];
        let span = Buffer::Scratch.span(*has, len);
        *has += len;
        span
    }

    /// Adds the transfer of a range of rank `from` to an equally long range of rank `to`: puts and waits. Skips an empty range.
    ///
    /// The puts do not wait for steps of rank `to` that access the target before; other messages must ensure the order.
    /// [`crate::verify()`] checks that they do.
    pub fn send(&mut self, from: usize, source: Span, to: usize, target: Span) -> Sent {
        self.send_after(from, source, to, target, &[])
    }

    /// Adds a transfer as [`Builder::send`] does; its puts also wait for the sender's steps `after`.
    pub fn send_after(
        &mut self,
        from: usize,
        source: Span,
        to: usize,
        target: Span,
        after: &[usize],
    ) -> Sent {
        let mut sent = Sent::default();
        if !self.has_room(source.len.div_ceil(self.tile), 2) {
            return sent;
        }
        for (source, target) in tiles(source, target, self.tile) {
            let put = self.put(from, source, to, target, after);
            sent.puts.push(put.0);
            sent.waits.push(put.1);
        }
        sent
    }

    /// Adds transfers of (source, target) ranges between two ranks; merges ranges that are adjacent at both ranks.
    pub fn send_all(&mut self, from: usize, to: usize, pairs: impl IntoIterator<Item = Pair>) {
        for (source, target) in merged(pairs) {
            self.send(from, source, to, target);
        }
    }

    /// Adds a put without elements (a mere signal), after the sender's steps `after`; returns indices of put and wait.
    pub fn signal(&mut self, from: usize, to: usize, after: &[usize]) -> (usize, usize) {
        if !self.has_room(1, 2) {
            return (0, 0);
        }
        let nothing = Buffer::Scratch.span(0, 0);
        self.put(from, nothing, to, nothing, after)
    }

    /// Adds a step of a rank that combines each element of the source into the target, by the schedule's operation.
    pub fn reduce(&mut self, rank: usize, source: Span, target: Span) {
        if !self.has_room(source.len.div_ceil(self.tile), 1) {
            return;
        }
        for (source, target) in tiles(source, target, self.tile) {
            self.local(rank, source, target, Action::Reduce { source, target });
        }
    }

    /// Adds steps of a rank that combine several source ranges into their targets.
    pub fn reduce_all(&mut self, rank: usize, pairs: impl IntoIterator<Item = Pair>) {
        for (source, target) in merged(pairs) {
            self.reduce(rank, source, target);
        }
    }

    /// Adds a step of a rank that copies the source to the target; adds nothing if both are the same range.
    pub fn copy(&mut self, rank: usize, source: Span, target: Span) {
        if source == target || !self.has_room(source.len.div_ceil(self.tile), 1) {
            return;
        }
        for (source, target) in tiles(source, target, self.tile) {
            self.local(rank, source, target, Action::Copy { source, target });
        }
    }

    fn put(
        &mut self,
        from: usize,
        source: Span,
        to: usize,
        target: Span,
        after: &[usize],
    ) -> (usize, usize) {
        debug_assert_ne!(from, to, "nobody puts to itself");
        let used = self.signals.entry((from, to)).or_default();
        let signal = Signal(*used);
        *used += 1;
        let put = self.schedule.programs[from].steps.len();
        let mut needs = self.hazards(from, source.buffer).read(source, put);
        needs.extend_from_slice(after);
        let action = Action::Put {
            to,
            source,
            target,
            signal,
        };
        self.push(from, action, needs);
        let wait = self.schedule.programs[to].steps.len();
        self.hazards(to, target.buffer).write(target, wait);
        self.push(to, Action::Wait { from, signal }, Vec::new());
        (put, wait)
    }

    fn local(&mut self, rank: usize, source: Span, target: Span, action: Action) {
        let step = self.schedule.programs[rank].steps.len();
        let mut needs = self.hazards(rank, source.buffer).read(source, step);
        needs.extend(self.hazards(rank, target.buffer).write(target, step));
        needs.retain(|need| *need != step);
        self.push(rank, action, needs);
    }

    fn push(&mut self, rank: usize, action: Action, mut after: Vec<usize>) {
        after.sort_unstable();
        after.dedup();
        self.schedule.programs[rank]
            .steps
            .push(Step { action, after });
    }

    /// Adds `tiles` · `steps` to the number of steps; returns false if that exceeds [`MAX_STEPS`]: then no more steps are kept.
    fn has_room(&mut self, tiles: usize, steps: usize) -> bool {
        let steps = tiles.saturating_mul(steps);
        self.steps = self.steps.saturating_add(steps);
        self.steps <= MAX_STEPS
    }

    fn hazards(&mut self, rank: usize, buffer: Buffer) -> &mut Hazards {
        &mut self.hazards[rank][buffer.index()]
    }
}

/// A source range and a target range of equal length.
pub type Pair = (Span, Span);

fn tiles(source: Span, target: Span, tile: usize) -> impl Iterator<Item = Pair> {
    debug_assert_eq!(source.len, target.len, "both have the same elements");
    let starts = (0..source.len).step_by(tile);
    starts.map(move |start| {
        let len = tile.min(source.len - start);
        (source.part(start, len), target.part(start, len))
    })
}

fn merged(pairs: impl IntoIterator<Item = Pair>) -> Vec<Pair> {
    let mut merged: Vec<Pair> = Vec::new();
    for (source, target) in pairs {
        if source.len == 0 {
            continue;
        }
        let follows =
            |before: Span, span: Span| before.buffer == span.buffer && before.end() == span.start;
        match merged.last_mut() {
            Some(last) if follows(last.0, source) && follows(last.1, target) => {
                last.0.len += source.len;
                last.1.len += target.len;
            }
            _ => merged.push((source, target)),
        }
    }
    merged
}

//! Computes the cost of a loop iteration or parser state in steps: one step, and more if it moves much data.
//!
//! Steps bound the time of a packet. If each iteration cost one step only, iterations that copy arrays of a megabyte
//! would last for seconds. The cost is known at compile time, so that counting costs nothing at run time.

use super::effects::effects;
use super::{Compiler, Result};
use crate::op::{Code, Op, Target};
use p4lang::source::Span;

/// Number of words that an iteration's instructions must read or write for each additional step that the iteration takes.
const WORDS: u64 = 1024;

/// The loop iterations and parser states that the compiler has met.
#[derive(Debug, Default)]
pub(crate) struct Rounds {
    /// For each iteration or state that is being compiled, the outermost first: number of words that it moves.
    open: Vec<u64>,
    /// Start of each iteration or state in the code, and its position in the source.
    begun: Vec<(Target, Span)>,
}

impl Compiler<'_> {
    /// Compiles a loop iteration or parser state: a `Step`, which jumps to `to` if no steps are left, then `body`. An iteration
    /// within has its own cost.
    pub(crate) fn round(
        &mut self,
        to: Target,
        body: impl FnOnce(&mut Self) -> Result<()>,
    ) -> Result<()> {
        let span = self.span;
        self.rounds
            .begun
            .push((self.code.ops.len() as Target, span));
        self.op(Op::Step { to, cost: 1 })?;
        self.rounds.open.push(0);
        body(self)?;
        let words = self.rounds.open.pop().unwrap_or(0);
        let cost = 1 + u32::try_from(words / WORDS).unwrap_or(u32::MAX - 1);
        if cost > 1 {
            // A text may be inlined several times. It must have one cost everywhere, for both executors.
            let most = self.bindings.rounds.entry(span).or_insert(cost);
            *most = cost.max(*most);
        }
        Ok(())
    }

    /// Adds the words that an instruction moves to the innermost iteration.
    pub(super) fn count_words(&mut self, op: &Op) {
        if let Some(words) = self.rounds.open.last_mut() {
            *words = words.saturating_add(moved(&self.code, op));
        }
    }

    /// Adds words that the innermost iteration moves although no instruction shows it.
    pub(crate) fn moves(&mut self, more: u64) {
        if let Some(words) = self.rounds.open.last_mut() {
            *words = words.saturating_add(more);
        }
    }

    /// Sets the cost of every `Step` instruction.
    pub(super) fn price_rounds(&mut self) {
        for (at, span) in &self.rounds.begun {
            if let Some(price) = self.bindings.rounds.get(span)
                && let Op::Step { cost, .. } = &mut self.code.ops[*at as usize]
            {
                *cost = *price;
            }
        }
    }
}

/// Number of 64-bit words that an instruction reads or writes.
fn moved(code: &Code, op: &Op) -> u64 {
    let element = |e: u32| &code.elements[e as usize];
    let slots = |layout: u32| u64::from(code.layouts[layout as usize].slots);
    match *op {
        // Marks do not change the cost.
        Op::Trace(_) => 0,
        Op::LoadElement { e, .. } | Op::StoreElement { e, .. } => 2 * u64::from(element(e).stride),
        Op::Push { e, .. } | Op::Pop { e, .. } => {
            2 * u64::from(element(e).count) * u64::from(element(e).stride)
        }
        Op::DirectRead { words, .. } | Op::DirectWrite { words, .. } => words.into(),
        Op::Digest { digest, .. } => slots(code.digests[digest as usize].1),
        Op::Capture {
            layout: Some(layout),
            ..
        } => slots(layout),
        _ => {
            let mut words = 0u64;
            effects(code, op, &mut |_, _, n| words += u64::from(n));
            words.max(1)
        }
    }
}

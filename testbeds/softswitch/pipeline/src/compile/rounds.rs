//! What a round of a loop and a parser's state take of a block's steps: one, and more where much is moved.
//!
//! Steps are there so that a packet ends soon. If each round took one alone, rounds that copy arrays of a megabyte would last
//! for seconds. What a round costs is known when it is compiled, so that counting costs nothing when it runs.

use super::effects::effects;
use super::{Compiler, Result};
use crate::op::{Code, Op, Target};
use p4lang::source::Span;

/// Words that the instructions of a round read or write for one step more. Hundreds of plain instructions have fewer.
const WORDS: u64 = 1024;

/// The rounds of loops and the states of parsers, as they are compiled.
#[derive(Debug, Default)]
pub(crate) struct Rounds {
    /// Words of each that is being compiled, from the outside in.
    open: Vec<u64>,
    /// Where each begins, and where it stands in the source.
    begun: Vec<(Target, Span)>,
}

impl Compiler<'_> {
    /// A round or state: a step, which goes to `to` if none is left, and the body. What is inside of others counts there.
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
            // The same text may be inlined several times: it costs the same everywhere, for both executors.
            let most = self.bindings.rounds.entry(span).or_insert(cost);
            *most = cost.max(*most);
        }
        Ok(())
    }

    /// An instruction is part of the innermost round.
    pub(super) fn count_words(&mut self, op: &Op) {
        if let Some(words) = self.rounds.open.last_mut() {
            *words = words.saturating_add(moved(&self.code, op));
        }
    }

    /// Words that are moved in the innermost round, and do not show in its instructions.
    pub(crate) fn moves(&mut self, more: u64) {
        if let Some(words) = self.rounds.open.last_mut() {
            *words = words.saturating_add(more);
        }
    }

    /// Every step has its cost.
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

/// Words that an instruction reads or writes.
fn moved(code: &Code, op: &Op) -> u64 {
    let element = |e: u32| &code.elements[e as usize];
    let slots = |layout: u32| u64::from(code.layouts[layout as usize].slots);
    match *op {
        // The same code with marks costs the same.
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

//! Dataflow optimization: removes copies and results that no instruction needs.
//!
//! Inlining passes every value through slots of its own: arguments, parameters of actions, variables that are zeroed
//! where they are declared. Three optimizations reduce this, each a pass over flat code:
//!
//! - *forwards*: an operand that is a copy is read from its source, up to the next jump target;
//! - *backwards*: a value that is not read before it is overwritten, or before the block ends, is not written at all, and
//!   a value that is only copied is produced at the destination;
//! - the parameters of an action are passed to the slots to which its first instructions would copy them.
//!
//! At a block's end only its own variables are dead: parameters, and all slots before the block's own, are read by the
//! architecture, by other blocks, and by the executors' comparison.

use super::effects::{Access, effects, is_pure, one_result, operands_mut, result_mut};
use crate::op::{Apply, Code, Op, Reached, Slot, Target};

/// Maximum number of copies between slots that the forwards pass tracks at a time.
const COPIES: usize = 32;
/// Maximum number of copies at the start of an action that are avoided by passing parameters to the copies' destinations.
const HANDED_OVER: usize = 64;
/// Limits of the backwards pass, in 64-bit words of sets of slots: stored words, and joined words. Beyond them, it gives up: a
/// large program with many jumps and variables runs unoptimized.
const SETS: usize = 4 << 20;
const JOINS: usize = 64 << 20;

/// First slot of the program's variables, and for each block the first slot that only this block uses.
pub(crate) struct Slots<'a> {
    pub first: Slot,
    pub own: &'a [Slot],
}

/// Removes useless instructions, and replaces operands and results of others. `kept`: which instructions are not yet removed.
pub(crate) fn flow(code: &mut Code, kept: &mut [bool], slots: &Slots<'_>) {
    let landed = code.landings(kept);
    forwards(code, kept, &landed);
    let Some(last_reads) = Backwards::new(code, slots).run(code, kept, &landed) else {
        return;
    };
    let ways = ways(code, kept);
    for at in 0..code.ops.len() {
        let Op::Apply(i) = code.ops[at] else { continue };
        for action in 0..code.applies[i as usize].actions.len() {
            let start = code.applies[i as usize].actions[action].target as usize;
            let before = (0..start).rev().find(|at| kept[*at]);
            let only = ways[start] == 1 && before.is_some_and(|at| !code.ops[at].continues());
            if kept[at] && only {
                hand_over(code, kept, &landed, &last_reads, (i as usize, action));
            }
        }
    }
}

/// The forwards pass: replaces reads of copies by reads of their sources.
fn forwards(code: &mut Code, kept: &[bool], landed: &[bool]) {
    let mut copies: Vec<(Slot, Slot)> = Vec::new();
    for at in 0..code.ops.len() {
        if landed[at] {
            copies.clear();
        }
        if !kept[at] {
            continue;
        }
        let source = |slot: &mut Slot| {
            if let Some((_, s)) = copies.iter().find(|(d, _)| d == slot) {
                *slot = *s;
            }
        };
        let mut op = code.ops[at];
        operands_mut(&mut op, &mut { source });
        code.ops[at] = op;
        if let Op::Apply(i) = op {
            code.applies[i as usize].key.iter_mut().for_each(source);
        }
        let mut overwrite = |access: Access, slot: Slot, n: u32| {
            let inside = |s: Slot| s >= slot && s < slot + n;
            if access != Access::Read {
                copies.retain(|(d, s)| !inside(*d) && !inside(*s));
            }
        };
        if !effects(code, &op, &mut overwrite) {
            copies.clear();
        }
        if let Op::Mov { d, s } = op
            && d != s
            && copies.len() < COPIES
        {
            copies.push((d, s));
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Set(Vec<u64>);

impl Set {
    fn change(&mut self, places: std::ops::Range<usize>, present: bool) {
        for at in places {
            let (word, bit) = (at / 64, 1 << (at % 64));
            if present {
                self.0[word] |= bit;
            } else {
                self.0[word] &= !bit;
            }
        }
    }

    fn has(&self, at: usize) -> bool {
        self.0[at / 64] >> (at % 64) & 1 == 1
    }

    fn join(&mut self, other: &Set) {
        for (a, b) in self.0.iter_mut().zip(&other.0) {
            *a |= b;
        }
    }
}

/// The backwards pass: computes which slots are live, that is, still read later.
struct Backwards {
    first: Slot,
    size: usize,
    /// For each block, in the order of the code: its position, and the slots that are live at its end.
    ends: Vec<(Target, Set)>,
    /// Live slots at each jump target; `None` elsewhere.
    at_label: Vec<Option<Set>>,
}

impl Backwards {
    fn new(code: &Code, slots: &Slots<'_>) -> Backwards {
        let size = code.frame.saturating_sub(slots.first) as usize;
        let end = |(entry, own): (&Target, &Slot)| {
            let mut set = Set(vec![0; size.div_ceil(64)]);
            let own = own.saturating_sub(slots.first) as usize;
            set.change(0..own.min(size), true);
            (*entry, set)
        };
        Backwards {
            first: slots.first,
            size,
            ends: code.entries.iter().zip(slots.own).map(end).collect(),
            at_label: vec![None; code.ops.len() + 1],
        }
    }

    fn at_end(&self, at: usize) -> Set {
        let block = self
            .ends
            .partition_point(|(entry, _)| *entry as usize <= at);
        match self.ends.get(block.wrapping_sub(1)) {
            Some((_, set)) => set.clone(),
            None => self.everything(),
        }
    }

    fn everything(&self) -> Set {
        Set(vec![u64::MAX; self.size.div_ceil(64)])
    }

    /// Removes useless instructions. Returns for each instruction whether it is a copy whose source is not read later; `None`:
    /// the analysis would take too long.
    fn run(mut self, code: &mut Code, kept: &mut [bool], landed: &[bool]) -> Option<Vec<bool>> {
        let words = self.size.div_ceil(64);
        let labels = landed.iter().filter(|landed| **landed).count();
        let ways: usize = ways(code, kept).iter().map(|n| *n as usize).sum();
        let mut touched = 0;
        for op in &code.ops {
            effects(code, op, &mut |_, _, n| touched += n as usize);
        }
        let a_pass = code.ops.len() + touched + (labels + ways) * words;
        if labels * words > SETS || a_pass > JOINS {
            return None;
        }
        let mut passes = JOINS / a_pass.max(1);
        let backward = |(at, op): (usize, &Op)| op.target().is_some_and(|to| to as usize <= at);
        if code.ops.iter().enumerate().any(backward) {
            // Repeated for loops, until no further slot is found to be read.
            loop {
                passes = passes.checked_sub(1)?;
                let before = self.at_label.clone();
                self.pass(code, kept, landed, None);
                if self.at_label == before {
                    break;
                }
            }
        }
        let mut last_reads = vec![false; code.ops.len()];
        self.pass(code, kept, landed, Some(&mut last_reads));
        Some(last_reads)
    }

    /// One pass over the code, from the last instruction to the first. With `last_reads`, it removes useless instructions, and
    /// sets `last_reads` for copies whose source is not read later.
    fn pass(
        &mut self,
        code: &mut Code,
        kept: &mut [bool],
        landed: &[bool],
        mut last_reads: Option<&mut Vec<bool>>,
    ) {
        let mut live = self.everything();
        for at in (0..code.ops.len()).rev() {
            if kept[at] {
                self.after(code, at, &mut live);
                let mut of_use = true;
                if let Some(last_reads) = &mut last_reads {
                    of_use = !self.useless(code, at, &live);
                    if let Op::Mov { d, s } = code.ops[at]
                        && of_use
                        && d != s
                        && self.places(s, 1).any(|at| !live.has(at))
                    {
                        last_reads[at] = true;
                        of_use = !made_in_place(code, kept, landed, at);
                    }
                }
                if of_use {
                    self.before(code, at, &mut live);
                } else {
                    kept[at] = false;
                }
            }
            if landed[at] {
                match &mut self.at_label[at] {
                    Some(set) => set.join(&live),
                    none => *none = Some(live.clone()),
                }
            }
        }
    }

    /// Changes `live` from the slots that are live before the next instruction to those that are live after instruction `at`.
    fn after(&self, code: &Code, at: usize, live: &mut Set) {
        let op = &code.ops[at];
        if matches!(op, Op::End) {
            *live = self.at_end(at);
            return;
        }
        if !op.continues() {
            live.0.fill(0);
        }
        // The label of a loop that was not visited yet follows in the next pass.
        let at_label = |to: Target| self.at_label.get(to as usize)?.as_ref();
        if let Some(set) = op.target().and_then(at_label) {
            live.join(set);
        }
        if let Op::Apply(i) = op {
            let apply = &code.applies[*i as usize];
            if let Some(set) = at_label(apply.end) {
                live.join(set);
            }
            for Reached { target, params } in &apply.actions {
                let Some(set) = at_label(*target) else {
                    continue;
                };
                // On this path the slots have been written.
                let mut set = set.clone();
                for param in params {
                    set.change(self.places(*param, 1), false);
                }
                live.join(&set);
            }
        }
    }

    /// Converts a run of slots to positions in sets of live slots, where the program's first variable has position 0.
    fn places(&self, slot: Slot, n: u32) -> std::ops::Range<usize> {
        let place = |slot: Slot| (slot.saturating_sub(self.first) as usize).min(self.size);
        place(slot)..place(slot + n)
    }

    fn before(&self, code: &Code, at: usize, live: &mut Set) {
        let mut reads = Vec::new();
        let known = effects(code, &code.ops[at], &mut |access, slot, n| match access {
            Access::Write => live.change(self.places(slot, n), false),
            Access::Read => reads.push(self.places(slot, n)),
            Access::MayWrite => {}
        });
        if !known {
            *live = self.everything();
        }
        for places in reads {
            live.change(places, true);
        }
    }

    fn useless(&self, code: &Code, at: usize, live: &Set) -> bool {
        let op = &code.ops[at];
        if let Op::Mov { d, s } = op
            && d == s
        {
            return true;
        }
        if !is_pure(op) {
            return false;
        }
        let mut read = false;
        effects(code, op, &mut |access, slot, n| {
            if access != Access::Read {
                read |= slot < self.first || self.places(slot, n).any(|at| live.has(at));
                // Slots that are not tracked may be read.
                read |= self.places(slot, n).len() < n as usize;
            }
        });
        !read
    }
}

/// Lets the previous instruction write its result directly to the destination of a copy, if nothing else reads the result.
fn made_in_place(code: &mut Code, kept: &[bool], landed: &[bool], at: usize) -> bool {
    let Op::Mov { d, s } = code.ops[at] else {
        return false;
    };
    let mut before = at;
    while before > 0 && !landed[before] {
        before -= 1;
        if kept[before] {
            let op = &mut code.ops[before];
            if one_result(op) != Some(s) {
                return false;
            }
            if let Some(result) = result_mut(op) {
                *result = d;
            }
            return true;
        }
    }
    false
}

/// Lets a table pass parameters directly to the slots to which an action copies them at its start, if nothing else jumps to
/// this action.
fn hand_over(
    code: &mut Code,
    kept: &mut [bool],
    landed: &[bool],
    last_reads: &[bool],
    (apply, action): (usize, usize),
) {
    let this = &code.applies[apply];
    let start = this.actions[action].target;
    let results = [this.hit, this.action_run, this.colour];
    let mut params = this.actions[action].params.clone();
    // Slots that the preceding kept instructions access.
    let mut touched: Vec<Slot> = Vec::new();
    let mut at = start as usize;
    while let Some(op) = code.ops.get(at) {
        if touched.len() > HANDED_OVER {
            break;
        }
        if kept[at] {
            let Op::Mov { d, s } = *op else { break };
            let place = params.iter().position(|p| *p == s);
            let free = !touched.contains(&d)
                && !touched.contains(&s)
                && !results.contains(&Some(d))
                && !params.contains(&d);
            match place {
                Some(place) if free && last_reads[at] => {
                    params[place] = d;
                    kept[at] = false;
                }
                _ => touched.extend([d, s]),
            }
        }
        at += 1;
        if landed.get(at) != Some(&false) {
            break;
        }
    }
    code.applies[apply].actions[action].params = params;
}

/// For each position in the code, the number of ways to come to it other than from the previous instruction.
fn ways(code: &Code, kept: &[bool]) -> Vec<u32> {
    let mut ways = vec![0; code.ops.len() + 1];
    let jumps = code.ops.iter().zip(kept).filter(|(_, kept)| **kept);
    let jumps = jumps.filter_map(|(op, _)| op.target());
    let applied = code.applies.iter().flat_map(Apply::targets);
    for to in jumps.chain(applied).chain(code.entries.iter().copied()) {
        ways[to as usize] += 1;
    }
    ways
}

#[cfg(test)]
mod tests;

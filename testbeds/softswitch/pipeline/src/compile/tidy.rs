//! Removes superfluous instructions that inlining and structured statements leave, once all instructions are known.

use super::flow::{Slots, flow};
use crate::op::{Code, Op, Slot, T3, Target};

/// Minimum number of copies of adjacent slots that is worth one `Copy` instruction.
const JOINED: usize = 3;
/// Number of instructions after a copy among which another write to its destination is searched for.
const AHEAD: usize = 8;

/// Facts about the program that are not in its code.
pub(crate) struct Facts<'a> {
    /// Maximum number of steps of a block.
    pub max_steps: u32,
    /// Slot of the constant 0, if the frame has one.
    pub zero: Option<Slot>,
    /// First slot of the program's variables, and the first slot of each block's own ones.
    pub slots: Slots<'a>,
}

/// Removes unnecessary steps, inverts jumps over jumps, removes overwritten results, jumps to the next instruction and
/// unreachable instructions, joins adjacent copies, and closes the gaps.
pub(crate) fn tidy(code: &mut Code, facts: &Facts<'_>) {
    let mut kept = reached(code);
    for entry in 0..code.entries.len() {
        drop_steps(
            code,
            &mut kept,
            code.entries[entry] as usize,
            facts.max_steps,
        );
    }
    flow(code, &mut kept, &facts.slots);
    let landed = code.landings(&kept);
    let n = code.ops.len();
    for at in 0..n {
        if !kept[at] {
            continue;
        }
        let next_is_free = at + 1 < n && !landed[at + 1];
        if let Some(Op::Jump(to)) = code.ops.get(at + 1).copied()
            && next_is_free
            && code.ops[at].target() == Some(at as Target + 2)
            && let Some(turned) = turned(code.ops[at], to)
        {
            code.ops[at] = turned;
            kept[at + 1] = false;
        }
        if written_over(code, &kept, &landed, at) {
            kept[at] = false;
        }
    }
    // Backwards, so that a jump over removed jumps is seen to lead to the next instruction: the first remaining one after
    // each position.
    let mut left = vec![n; n + 1];
    for at in (0..n).rev() {
        if kept[at]
            && let Op::Jump(to) = code.ops[at]
            && to as usize > at
            && left[to as usize] == left[at + 1]
        {
            kept[at] = false;
        }
        left[at] = if kept[at] { at } else { left[at + 1] };
    }
    join_copies(code, &mut kept, &landed, facts.zero);
    close_gaps(code, &kept);
}

/// Removes the `Step` instructions of a block that never jumps back and takes fewer steps on every path than the limit.
fn drop_steps(code: &Code, kept: &mut [bool], entry: usize, max_steps: u32) {
    let ops = &code.ops[entry..];
    let Some(end) = ops.iter().position(|op| matches!(op, Op::End)) else {
        return;
    };
    let ops = &ops[..=end];
    // Maximum number of steps from each position on, computed backwards.
    let mut most = vec![0u32; ops.len()];
    for at in (0..ops.len()).rev().filter(|at| kept[entry + at]) {
        let mut ways: Vec<usize> = ops[at].continues().then_some(at + 1).into_iter().collect();
        let mut to = |to: Target| ways.push((to as usize).wrapping_sub(entry));
        if let Op::Apply(i) = ops[at] {
            let apply = &code.applies[i as usize];
            apply.targets().for_each(&mut to);
        }
        ops[at].target().map(&mut to);
        if ways.iter().any(|way| *way <= at || *way >= ops.len()) {
            return;
        }
        let after = ways.iter().map(|way| most[*way]).max().unwrap_or(0);
        let taken = match ops[at] {
            Op::Step { cost, .. } => cost,
            _ => 0,
        };
        most[at] = after.saturating_add(taken);
    }
    if most[0] <= max_steps {
        for (at, op) in ops.iter().enumerate() {
            kept[entry + at] &= !matches!(op, Op::Step { .. });
        }
    }
}

/// Joins copies between adjacent slots, or zeroings of adjacent slots, into one instruction.
fn join_copies(code: &mut Code, kept: &mut [bool], landed: &[bool], zero: Option<Slot>) {
    let mut at = 0;
    while at < code.ops.len() {
        let Op::Mov { d, s } = code.ops[at] else {
            at += 1;
            continue;
        };
        if !kept[at] {
            at += 1;
            continue;
        }
        let (mut copies, mut zeroes) = (vec![at], vec![at]);
        let (mut copying, mut zeroing) = (true, Some(s) == zero);
        let mut next = at + 1;
        while next < code.ops.len() && !landed[next] && (copying || zeroing) {
            if kept[next] {
                let Op::Mov { d: to, s: from } = code.ops[next] else {
                    break;
                };
                copying &= (to, from) == (d + copies.len() as Slot, s + copies.len() as Slot);
                zeroing &= to == d + zeroes.len() as Slot && Some(from) == zero;
                if copying {
                    copies.push(next);
                }
                if zeroing {
                    zeroes.push(next);
                }
            }
            next += 1;
        }
        let n = copies.len() as u32;
        // The joined copy reads all slots before it writes any.
        let apart = d <= s || d >= s + n;
        let joined = if zeroes.len() >= JOINED {
            code.ops[at] = Op::Zero {
                d,
                n: zeroes.len() as u32,
            };
            zeroes
        } else if copies.len() >= JOINED && apart {
            code.ops[at] = Op::Copy { d, s, n };
            copies
        } else {
            vec![at]
        };
        for other in &joined[1..] {
            kept[*other] = false;
        }
        at = joined.last().map_or(at, |last| *last) + 1;
    }
}

/// For each instruction, whether execution can reach it.
fn reached(code: &Code) -> Vec<bool> {
    let mut reached = vec![false; code.ops.len()];
    let mut open: Vec<Target> = code.entries.clone();
    while let Some(at) = open.pop() {
        let Some(seen) = reached.get_mut(at as usize) else {
            continue;
        };
        if std::mem::replace(seen, true) {
            continue;
        }
        let op = &code.ops[at as usize];
        open.extend(op.target());
        if let Op::Apply(i) = op {
            let apply = &code.applies[*i as usize];
            open.extend(apply.targets());
        }
        if op.continues() {
            open.push(at + 1);
        }
    }
    reached
}

/// The conditional jump to `to` with the opposite condition; `None` for other instructions.
fn turned(op: Op, to: Target) -> Option<Op> {
    Some(match op {
        Op::JumpIf { c, .. } => Op::JumpIfNot { c, to },
        Op::JumpIfNot { c, .. } => Op::JumpIf { c, to },
        Op::JumpEq { a, b, .. } => Op::JumpNe { a, b, to },
        Op::JumpNe { a, b, .. } => Op::JumpEq { a, b, to },
        _ => return None,
    })
}

/// Whether a copy is useless because its destination is overwritten before any read.
fn written_over(code: &Code, kept: &[bool], landed: &[bool], at: usize) -> bool {
    let Op::Mov { d, .. } = code.ops[at] else {
        return false;
    };
    for next in at + 1..(at + 1 + AHEAD).min(code.ops.len()) {
        if landed[next] {
            return false;
        }
        if !kept[next] {
            continue;
        }
        let Some((written, read)) = plain(&code.ops[next]) else {
            return false;
        };
        if read.contains(&Some(d)) {
            return false;
        }
        if written == d {
            return true;
        }
    }
    false
}

/// The slots that an instruction writes and reads, if it has no other effect and the next one follows; else `None`.
fn plain(op: &Op) -> Option<(Slot, [Option<Slot>; 2])> {
    Some(match *op {
        Op::Mov { d, s } => (d, [Some(s), None]),
        Op::Not { d, a }
        | Op::BitNot { d, a, .. }
        | Op::Neg { d, a, .. }
        | Op::Slice { d, a, .. }
        | Op::SignExtend { d, a, .. } => (d, [Some(a), None]),
        Op::Concat { d, a, b, .. } => (d, [Some(a), Some(b)]),
        Op::Add(t) | Op::Sub(t) | Op::And(t) | Op::Or(t) | Op::Xor(t) => three(t),
        Op::Eq(t) | Op::Ne(t) | Op::Lt(t) | Op::Le(t) | Op::Shl(t) | Op::Shr(t) => three(t),
        _ => return None,
    })
}

fn three(t: T3) -> (Slot, [Option<Slot>; 2]) {
    (t.d, [Some(t.a), Some(t.b)])
}

fn close_gaps(code: &mut Code, kept: &[bool]) {
    let mut places = Vec::with_capacity(kept.len() + 1);
    let mut place = 0;
    for kept in kept {
        places.push(place);
        place += Target::from(*kept);
    }
    places.push(place);
    let moved = |to: &mut Target| *to = places[*to as usize];
    let mut at = 0;
    code.ops.retain(|_| {
        at += 1;
        kept[at - 1]
    });
    for op in &mut code.ops {
        op.target_mut().map(moved);
    }
    for apply in &mut code.applies {
        apply.targets_mut().for_each(moved);
    }
    code.entries.iter_mut().for_each(moved);
    // A jump to the end is replaced by the end.
    for at in 0..code.ops.len() {
        if let Op::Jump(to) = code.ops[at]
            && matches!(code.ops.get(to as usize), Some(Op::End))
        {
            code.ops[at] = Op::End;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tidied(ops: Vec<Op>) -> Vec<String> {
        let mut code = Code {
            ops,
            entries: vec![0],
            ..Code::default()
        };
        let facts = Facts {
            max_steps: 10,
            zero: Some(0),
            slots: Slots {
                first: 0,
                own: &[Slot::MAX],
            },
        };
        tidy(&mut code, &facts);
        code.ops.iter().map(|op| format!("{op:?}")).collect()
    }

    #[test]
    fn a_jump_over_a_jump_is_turned_round() {
        let left = tidied(vec![
            Op::JumpNe { a: 1, b: 2, to: 2 },
            Op::Jump(4),
            Op::Mov { d: 3, s: 1 },
            Op::Jump(4),
            Op::End,
        ]);
        assert_eq!(
            left,
            ["JumpEq { a: 1, b: 2, to: 2 }", "Mov { d: 3, s: 1 }", "End"]
        );
    }

    #[test]
    fn a_jump_with_incoming_jumps_stays() {
        let ops = vec![
            Op::JumpIf { c: 1, to: 2 },
            Op::JumpNe { a: 1, b: 2, to: 3 },
            Op::Jump(5),
            Op::Mov { d: 3, s: 1 },
            Op::Jump(2),
            Op::End,
        ];
        assert_eq!(tidied(ops).len(), 6);
    }

    #[test]
    fn only_unreadable_results_are_removed() {
        let zero = |d| Op::Mov { d, s: 0 };
        let left = tidied(vec![
            zero(5),
            zero(6),
            zero(5),
            Op::Not { d: 6, a: 6 },
            Op::End,
        ]);
        // The second write replaces the first; the last instruction reads the constant itself.
        assert_eq!(
            left,
            ["Mov { d: 5, s: 0 }", "Not { d: 6, a: 0 }", "End"],
            "{left:?}"
        );
        let left = tidied(vec![
            zero(5),
            Op::JumpIf { c: 1, to: 3 },
            zero(6),
            zero(5),
            Op::End,
        ]);
        assert_eq!(
            left.len(),
            5,
            "the jump's way reads nothing, but might: {left:?}"
        );
    }
}

//! Fewer instructions for the same effect, when all are there: what inlining and structured statements leave over.

use crate::op::{Code, Op, Slot, T3, Target};

/// How far ahead a second write to a slot is looked for.
const AHEAD: usize = 8;

/// Turns jumps over jumps round, takes out writes that are written over, jumps to what follows anyway and what is never
/// reached, and closes the gaps.
pub fn tidy(code: &mut Code) {
    let mut kept = reached(code);
    let landed = landings(code, &kept);
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
    // Backwards, so that a jump over jumps that are gone is seen to lead to what follows.
    let mut follows = n as Target;
    for at in (0..n).rev() {
        if kept[at] && matches!(code.ops[at], Op::Jump(to) if leads_to(&kept, to, follows)) {
            kept[at] = false;
        }
        if kept[at] {
            follows = at as Target;
        }
    }
    close_gaps(code, &kept);
}

/// Whether the first instruction left from `to` on is the one at `place`.
fn leads_to(kept: &[bool], to: Target, place: Target) -> bool {
    to <= place && !kept[to as usize..place as usize].iter().any(|k| *k)
}

/// Which instructions some way leads to.
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
            open.extend(apply.targets.iter().chain([&apply.end]));
        }
        if !matches!(
            op,
            Op::Jump(_) | Op::Lanes { .. } | Op::Fail { .. } | Op::End | Op::Apply(_)
        ) {
            open.push(at + 1);
        }
    }
    reached
}

/// Where a way leads to that does not come from the instruction before.
fn landings(code: &Code, reached: &[bool]) -> Vec<bool> {
    let mut landed = vec![false; code.ops.len() + 1];
    for entry in &code.entries {
        landed[*entry as usize] = true;
    }
    for (op, _) in code.ops.iter().zip(reached).filter(|(_, r)| **r) {
        if let Some(to) = op.target() {
            landed[to as usize] = true;
        }
    }
    for apply in &code.applies {
        for to in apply.targets.iter().chain([&apply.end]) {
            landed[*to as usize] = true;
        }
    }
    landed
}

/// A conditional jump with the opposite condition.
fn turned(op: Op, to: Target) -> Option<Op> {
    Some(match op {
        Op::JumpIf { c, .. } => Op::JumpIfNot { c, to },
        Op::JumpIfNot { c, .. } => Op::JumpIf { c, to },
        Op::JumpEq { a, b, .. } => Op::JumpNe { a, b, to },
        Op::JumpNe { a, b, .. } => Op::JumpEq { a, b, to },
        _ => return None,
    })
}

/// Whether a copy is of no use, its slot being written again before anything can read it.
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

/// What an instruction that goes on to the next one and does nothing else writes and reads.
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
        apply.targets.iter_mut().for_each(moved);
        moved(&mut apply.end);
    }
    code.entries.iter_mut().for_each(moved);
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
        tidy(&mut code);
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
    fn a_jump_that_somebody_jumps_to_stays() {
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
    fn only_what_nobody_can_read_is_taken_out() {
        let zero = |d| Op::Mov { d, s: 0 };
        let left = tidied(vec![
            zero(5),
            zero(6),
            zero(5),
            Op::Not { d: 6, a: 6 },
            Op::End,
        ]);
        assert_eq!(left.len(), 4, "{left:?}");
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

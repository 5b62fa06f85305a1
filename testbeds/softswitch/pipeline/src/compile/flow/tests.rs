//! Optimized code must have the same visible effect as the original.

use super::*;
use crate::compile::alone;
use crate::compile::tidy::{Facts, tidy};
use crate::op::T3;
use crate::state::State;
use proptest::prelude::*;

/// Slots below 4 are constants, those below 12 are visible from outside, those below 20 are the block's own.
const FIRST: Slot = 4;
const OWN: Slot = 12;
const FRAME: Slot = 20;

fn optimised(ops: &[Op]) -> Code {
    let mut code = code(ops);
    let facts = Facts {
        max_steps: 0,
        zero: Some(0),
        slots: Slots {
            first: FIRST,
            own: &[OWN],
        },
    };
    tidy(&mut code, &facts);
    code
}

fn code(ops: &[Op]) -> Code {
    Code {
        ops: ops.to_vec(),
        entries: vec![0],
        frame: FRAME,
        ..Code::default()
    }
}

/// The visible part of the frame after a run, with at most 64 steps.
fn run(code: &Code, seed: u64) -> Vec<u64> {
    let value = |slot: Slot| match slot {
        0..FIRST => slot.into(),
        OWN.. => 0,
        _ => seed.rotate_left(slot) & 3,
    };
    let mut frame: Vec<u64> = (0..FRAME).map(value).collect();
    alone::run(code, &mut frame, &mut State::default(), &[]);
    frame.truncate(OWN as usize);
    frame
}

fn instruction(length: u32) -> impl Strategy<Value = Op> {
    let d = FIRST..FRAME;
    let s = 0..FRAME;
    let to = 0..length;
    let three = (d.clone(), s.clone(), s.clone()).prop_map(|(d, a, b)| T3 { w: 8, d, a, b });
    prop_oneof![
        4 => (d.clone(), s.clone()).prop_map(|(d, s)| Op::Mov { d, s }),
        1 => (s.clone(), d.clone(), s.clone()).prop_map(|(g, d, s)| Op::MovIf { g, d, s }),
        2 => three.clone().prop_map(Op::Add),
        1 => three.clone().prop_map(Op::Xor),
        1 => three.prop_map(Op::Eq),
        1 => (d.clone(), 1u32..4).prop_map(|(d, n)| Op::Zero { d, n: n.min(FRAME - d) }),
        1 => (FIRST..FRAME - 3, 0..FRAME - 3, 1u32..4).prop_map(|(d, s, n)| Op::Copy { d, s, n }),
        1 => (d, s.clone()).prop_map(|(d, a)| Op::Slice { lo: 1, w: 4, d, a }),
        1 => (s.clone(), s.clone(), to.clone()).prop_map(|(a, b, to)| Op::JumpEq { a, b, to }),
        1 => (s, to.clone()).prop_map(|(c, to)| Op::JumpIfNot { c, to }),
        1 => to.prop_map(|to| Op::Step { to, cost: 1 }),
    ]
}

proptest! {
    #[test]
    fn observable_results_stay_the_same(mut ops in prop::collection::vec(instruction(24), 24), seed: u64) {
        // Backward jumps count a step, so that every run ends.
        for (at, op) in ops.iter_mut().enumerate() {
            if let Some(to) = op.target_mut() {
                *to = (*to).max(at as u32 + 1);
            }
        }
        ops.push(Op::Jump(25));
        ops.push(Op::End);
        for op in &mut ops {
            if let Op::Step { to, .. } = op {
                *to = 25;
            }
        }
        prop_assert_eq!(run(&optimised(&ops), seed), run(&code(&ops), seed));
    }

    #[test]
    fn loops_too(mut ops in prop::collection::vec(instruction(24), 24), seed: u64) {
        for op in &mut ops {
            if let Op::Step { to, .. } = op {
                *to = 25;
            }
        }
        ops[0] = Op::Step { to: 25, cost: 1 };
        for (at, op) in ops.iter_mut().enumerate().skip(1) {
            // Jumps back to the instruction that counts steps, or forward.
            if let Op::JumpIfNot { to, .. } | Op::JumpEq { to, .. } = op
                && *to <= at as u32
            {
                *to = 0;
            }
        }
        ops.push(Op::Step { to: 25, cost: 1 });
        ops.push(Op::End);
        prop_assert_eq!(run(&optimised(&ops), seed), run(&code(&ops), seed));
    }
}

#[test]
fn a_result_is_made_where_it_is_copied_to() {
    let sum = T3 {
        w: 8,
        d: 14,
        a: 5,
        b: 6,
    };
    let left = optimised(&[Op::Add(sum), Op::Mov { d: 7, s: 14 }, Op::End]);
    let left: Vec<String> = left.ops.iter().map(|op| format!("{op:?}")).collect();
    assert_eq!(left, ["Add(T3 { w: 8, d: 7, a: 5, b: 6 })", "End"]);
}

#[test]
fn copies_are_forwarded_and_unread_values_not_written() {
    let left = optimised(&[
        Op::Mov { d: 13, s: 0 },
        Op::Mov { d: 14, s: 5 },
        Op::JumpIfNot { c: 14, to: 4 },
        Op::Mov { d: 6, s: 14 },
        Op::End,
    ]);
    let left: Vec<String> = left.ops.iter().map(|op| format!("{op:?}")).collect();
    assert_eq!(
        left,
        ["JumpIfNot { c: 5, to: 2 }", "Mov { d: 6, s: 5 }", "End"]
    );
}

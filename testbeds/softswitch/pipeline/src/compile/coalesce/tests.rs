//! Joined fields must behave as separate ones.

use super::*;
use crate::compile::alone;
use crate::externs::hash::Algorithm;
use crate::op::HashPlan;
use crate::state::State;
use proptest::prelude::*;

/// A header with fields of these widths from slot 1 on, its validity in slot 0, and a slot for a sum after it.
#[derive(Debug)]
struct Program {
    widths: Vec<u32>,
    ops: Vec<Op>,
    /// The range of fields that are summed.
    summed: (usize, usize),
}

impl Program {
    fn sum_slot(&self) -> Slot {
        1 + self.widths.iter().map(|w| w.div_ceil(64)).sum::<u32>()
    }

    fn fields(&self) -> Vec<LayoutField> {
        let (mut slot, mut offset) = (1, 0);
        let field = |width: &u32| {
            let field = LayoutField {
                slot,
                offset,
                width: *width,
            };
            slot += width.div_ceil(64);
            offset += width;
            field
        };
        self.widths.iter().map(field).collect()
    }

    fn code(&self) -> Code {
        let fields = self.fields();
        let bits = |fields: &[LayoutField]| fields.iter().map(|f| f.width).sum();
        let header = Layout {
            bits: bits(&fields),
            slots: self.sum_slot(),
            header: true,
            fields: fields.clone(),
            ..Layout::default()
        };
        let (first, n) = self.summed;
        let mut summed = fields[first.min(fields.len())..(first + n).min(fields.len())].to_vec();
        let start = summed.first().map_or(0, |f| f.offset);
        summed.iter_mut().for_each(|f| f.offset -= start);
        let sum = Layout {
            bits: bits(&summed),
            slots: self.sum_slot(),
            fields: summed,
            ..Layout::default()
        };
        let hash = HashPlan {
            algorithm: Algorithm::OnesComplement16,
            layout: 1,
            data: 0,
            d: self.sum_slot(),
            w: 16,
            bounds: None,
            pad_left: false,
            payload: false,
            is_sum: false,
        };
        Code {
            ops: self.ops.clone(),
            entries: vec![0],
            layouts: vec![header, sum],
            hashes: vec![hash],
            frame: self.sum_slot() + 1,
            ..Code::default()
        }
    }
}

/// Frame and bytes after a run, with every field in its own slot.
fn run(mut code: Code, packet: &[u8]) -> (Vec<u64>, Vec<u8>) {
    code.layouts.iter_mut().for_each(Layout::seal);
    for i in 0..code.hashes.len() {
        let layout = code.hashes[i].layout as usize;
        code.hashes[i].seal(&code.layouts[layout]);
    }
    let mut frame = vec![0; code.frame as usize];
    let out = alone::run(&code, &mut frame, &mut State::default(), packet);
    code.spread(&mut frame);
    (frame, out)
}

fn program() -> impl Strategy<Value = Program> {
    let width = prop_oneof![4 => 1u32..=16, 2 => 1u32..=64, 1 => Just(32u32), 1 => 65u32..=130];
    let widths = prop::collection::vec(width, 1..12);
    // A header consists of whole bytes.
    let widths = widths.prop_map(|mut widths| {
        let rest = widths.iter().sum::<u32>() % 8;
        if rest > 0 {
            widths.push(8 - rest);
        }
        widths
    });
    let summed = (0usize..8, 1usize..12);
    let more = prop::collection::vec((0u32..5, any::<u32>(), 1u32..6), 0..4);
    (widths, summed, more).prop_map(|(widths, summed, more)| {
        let mut program = Program {
            widths,
            ops: Vec::new(),
            summed,
        };
        let slots = program.sum_slot();
        let end = more.len() as u32 + 3;
        program.ops.push(Op::Extract {
            layout: 0,
            d: 0,
            to: end,
        });
        for (what, at, n) in more {
            let slot = 1 + at % (slots - 1);
            program.ops.push(match what {
                0 => Op::Mov { d: slot, s: 0 },
                1 => Op::JumpIf { c: slot, to: end },
                2 => Op::Zero {
                    d: slot,
                    n: n.min(slots - slot),
                },
                3 => Op::Zero { d: 0, n: slots },
                _ => Op::Emit { layout: 0, s: 0 },
            });
        }
        let emit = Op::Emit { layout: 0, s: 0 };
        program.ops.extend([Op::Hash(0), emit, Op::End]);
        program
    })
}

proptest! {
    #[test]
    fn nothing_else_changes(program in program(), packet in prop::collection::vec(any::<u8>(), 240)) {
        let mut code = program.code();
        let (frame, out) = run(code.clone(), &packet);
        coalesce(&mut code, &[]);
        // Mov writes more bits than the field has: the field is then in no group, and its slot keeps them.
        prop_assert_eq!(run(code.clone(), &packet), (frame.clone(), out));
        let mut there_and_back = frame.clone();
        code.gather(&mut there_and_back);
        code.spread(&mut there_and_back);
        prop_assert_eq!(there_and_back, frame);
    }
}

fn groups(
    widths: &[u32],
    ops: &[Op],
    summed: (usize, usize),
    pinned: &[(Slot, u32)],
) -> Vec<Vec<u32>> {
    let program = Program {
        widths: widths.to_vec(),
        ops: ops.to_vec(),
        summed,
    };
    let mut code = program.code();
    coalesce(&mut code, pinned);
    let widths = |Coalesced(fields): &Coalesced| fields.iter().map(|(_, w)| *w).collect();
    code.coalesced.iter().map(widths).collect()
}

const EXTRACT: Op = Op::Extract {
    layout: 0,
    d: 0,
    to: 0,
};

#[test]
fn fields_that_are_read_alone_stay_separate() {
    let widths = [4, 4, 8, 16, 32, 32];
    assert_eq!(
        groups(&widths, &[EXTRACT], (0, 6), &[]),
        [vec![4, 4, 8, 16, 32]]
    );
    let read = Op::JumpIf { c: 3, to: 0 };
    assert_eq!(
        groups(&widths, &[EXTRACT, read], (0, 6), &[]),
        [vec![4, 4], vec![16, 32]]
    );
    assert_eq!(
        groups(&widths, &[EXTRACT], (0, 6), &[(5, 1)]),
        [vec![4, 4, 8, 16]]
    );
}

#[test]
fn a_sum_over_half_of_a_group_takes_it_apart() {
    let widths = [8, 8, 16, 64];
    let ops = [EXTRACT, Op::Hash(0)];
    assert_eq!(groups(&widths, &ops, (0, 3), &[]), [vec![8, 8, 16]]);
    assert_eq!(groups(&widths, &ops, (1, 2), &[]), Vec::<Vec<u32>>::new());
}

#[test]
fn zeroing_all_of_a_group_leaves_it() {
    let widths = [8, 8, 16, 64];
    let zero = |d, n| [EXTRACT, Op::Zero { d, n }];
    assert_eq!(groups(&widths, &zero(0, 5), (0, 3), &[]), [vec![8, 8, 16]]);
    assert_eq!(groups(&widths, &zero(1, 2), (0, 3), &[]), [vec![8, 8]]);
}

//! Rolled-up and original code must produce the same frame and registers.

use super::roll;
use crate::compile::alone;
use crate::externs::register::Bank;
use crate::op::bindings::RegisterPlan;
use crate::op::lanes::LaneOp;
use crate::op::{Code, Op, Slot, T3};
use crate::state::State;
use proptest::prelude::*;

const FRAME: u32 = 600;
const REGISTERS: u32 = 120;
const ROWS: u64 = 4;

/// An operand in the first repetition, and whether it increases.
#[derive(Debug, Clone, Copy)]
struct Operand(Slot, bool);

impl Operand {
    fn at(self, lane: u32) -> Slot {
        self.0 + if self.1 { lane } else { 0 }
    }
}

#[derive(Debug, Clone, Copy)]
enum Line {
    Mov(Operand, Operand),
    MovIf(Slot, Operand, Operand),
    Add(Operand, Operand, Operand),
    Xor(Operand, Operand, Operand),
    Read(u32, Operand),
    Write(u32, Operand),
    JumpNe(Slot, Slot, usize),
    Jump(usize),
}

impl Line {
    /// The instruction in one repetition of a body of `len` lines that begins at `start`; the last line is followed by
    /// the next repetition.
    fn op(self, lane: u32, start: usize, at: usize, len: usize) -> Op {
        let to = |by: usize| (start + (at + 1 + by).min(len)) as u32;
        let t3 = |d: Operand, a: Operand, b: Operand| T3 {
            w: 32,
            d: d.at(lane),
            a: a.at(lane),
            b: b.at(lane),
        };
        match self {
            Line::Mov(d, s) => Op::Mov {
                d: d.at(lane),
                s: s.at(lane),
            },
            Line::MovIf(g, d, s) => Op::MovIf {
                g,
                d: d.at(lane),
                s: s.at(lane),
            },
            Line::Add(d, a, b) => Op::Add(t3(d, a, b)),
            Line::Xor(d, a, b) => Op::Xor(t3(d, a, b)),
            Line::Read(r, d) => Op::RegisterRead {
                r: r + lane,
                d: d.at(lane),
                index: 3,
            },
            Line::Write(r, s) => Op::RegisterWrite {
                r: r + lane,
                index: 3,
                s: s.at(lane),
            },
            Line::JumpNe(a, b, by) => Op::JumpNe { a, b, to: to(by) },
            Line::Jump(by) => Op::Jump(to(by)),
        }
    }
}

fn operand() -> impl Strategy<Value = Operand> {
    prop_oneof![
        // Shared slots, temporaries, and runs that are equal, disjoint, or overlap.
        2 => (1u32..6).prop_map(|s| Operand(s, false)),
        5 => (10u32..13).prop_map(|s| Operand(s, false)),
        5 => prop::sample::select(vec![100u32, 100, 200, 300]).prop_map(|s| Operand(s, true)),
        1 => prop::sample::select(vec![101u32, 108, 130]).prop_map(|s| Operand(s, true)),
    ]
}

fn written() -> impl Strategy<Value = Operand> {
    prop_oneof![
        5 => (10u32..13).prop_map(|s| Operand(s, false)),
        4 => prop::sample::select(vec![100u32, 200, 300]).prop_map(|s| Operand(s, true)),
        1 => prop::sample::select(vec![101u32, 205]).prop_map(|s| Operand(s, true)),
    ]
}

fn line() -> impl Strategy<Value = Line> {
    let register = prop_oneof![4 => Just(0u32), 3 => Just(50u32), 1 => Just(1u32)];
    prop_oneof![
        3 => (written(), operand()).prop_map(|(d, s)| Line::Mov(d, s)),
        2 => (1u32..6, written(), operand()).prop_map(|(g, d, s)| Line::MovIf(g, d, s)),
        2 => (written(), operand(), operand()).prop_map(|(d, a, b)| Line::Add(d, a, b)),
        1 => (written(), operand(), operand()).prop_map(|(d, a, b)| Line::Xor(d, a, b)),
        3 => (register.clone(), written()).prop_map(|(r, d)| Line::Read(r, d)),
        3 => (register, operand()).prop_map(|(r, s)| Line::Write(r, s)),
        2 => (1u32..14, 1u32..6, 0usize..4).prop_map(|(a, b, by)| Line::JumpNe(a, b, by)),
        1 => (0usize..3).prop_map(Line::Jump),
    ]
}

fn run(code: &Code, frame: &[u64], row: u64) -> (Vec<u64>, Vec<u64>) {
    let mut frame = frame.to_vec();
    frame[3] = row;
    frame.resize(code.frame as usize, 0);
    let mut bank = Bank::new(ROWS, REGISTERS, true);
    for r in 0..ROWS {
        let cells: Vec<u64> = (0..u64::from(REGISTERS)).map(|i| r * 1000 + i).collect();
        bank.write(r, 0, &cells);
    }
    let mut state = State::default();
    state.cells.banks = vec![bank];
    alone::run(code, &mut frame, &mut state, &[]);
    let mut cells = Vec::new();
    for r in 0..ROWS {
        let mut row = vec![0; REGISTERS as usize];
        state.cells.banks[0].read(r, 0, &mut row);
        cells.extend(row);
    }
    frame.truncate(FRAME as usize);
    (frame, cells)
}

fn written_out(body: &[Line], lanes: u32) -> Code {
    let mut code = Code {
        frame: FRAME,
        entries: vec![0],
        ..Code::default()
    };
    for i in 0..REGISTERS {
        code.registers.push(RegisterPlan {
            bank: 0,
            offset: i,
            words: 1,
        });
    }
    for lane in 0..lanes {
        let start = code.ops.len();
        for (at, line) in body.iter().enumerate() {
            code.ops.push(line.op(lane, start, at, body.len()));
        }
    }
    code.ops.push(Op::End);
    code
}

fn same(body: &[Line], lanes: u32, frame: &[u64], row: u64) -> usize {
    let plain = written_out(body, lanes);
    let mut rolled = plain.clone();
    roll(&mut rolled, &[]);
    assert_eq!(
        run(&rolled, frame, row),
        run(&plain, frame, row),
        "{body:?}"
    );
    rolled.lanes.len()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(test_support::cases(2000)))]

    #[test]
    fn lanes_compute_the_same_as_repetitions(
        body in prop::collection::vec(line(), 2..10),
        lanes in 4u32..21,
        seed in prop::collection::vec(0u64..4, 16),
        row in 0u64..=ROWS,
    ) {
        let frame: Vec<u64> = (0..u64::from(FRAME)).map(|i| seed[i as usize % 16] + i / 50 * 256).collect();
        let mut frame = frame;
        for (to, from) in frame.iter_mut().zip(&seed) {
            *to = *from;
        }
        same(&body, lanes, &frame, row);
    }
}

#[test]
fn a_sum_in_each_register_is_rolled_up() {
    let (value, temporary, stored) = (Operand(100, true), Operand(10, false), Operand(11, false));
    let body = [
        Line::Mov(temporary, value),
        Line::JumpNe(4, 1, 4),
        Line::Read(0, stored),
        Line::Add(temporary, temporary, stored),
        Line::Write(0, temporary),
        Line::Jump(1),
        Line::Mov(temporary, Operand(2, false)),
        Line::MovIf(5, value, temporary),
    ];
    let frame: Vec<u64> = (0..u64::from(FRAME)).collect();
    for (op, guard) in [(1, 1), (0, 1), (1, 0)] {
        let mut frame = frame.clone();
        (frame[4], frame[5]) = (op, guard);
        assert_eq!(same(&body, 32, &frame, 2), 1);
    }
    let mut code = written_out(&body, 32);
    roll(&mut code, &[(32 * 8, 10)]);
    let updates = code.lanes[0]
        .ops
        .iter()
        .filter(|op| matches!(op, LaneOp::Update { .. }));
    assert_eq!(updates.count(), 1);
}

#[test]
fn values_passed_between_repetitions_are_not_rolled_up() {
    let (value, carried) = (Operand(100, true), Operand(10, false));
    // A running sum: the temporary is read before it is written.
    let body = [Line::Add(carried, carried, value), Line::Write(0, carried)];
    let frame: Vec<u64> = (0..u64::from(FRAME)).collect();
    assert_eq!(same(&body, 16, &frame, 0), 0);
}

#[test]
fn a_dead_temporary_is_not_written() {
    let (value, temporary) = (Operand(100, true), Operand(10, false));
    let body = [Line::Read(0, temporary), Line::Mov(value, temporary)];
    let mut code = written_out(&body, 8);
    roll(&mut code, &[(7, 3), (16, 12), (16, 10), (16, 11)]);
    assert_eq!(code.lanes[0].ops.len(), 2);
    let mut code = written_out(&body, 8);
    roll(&mut code, &[(15, 10), (16, 11)]);
    assert_eq!(code.lanes[0].ops.len(), 3);
}

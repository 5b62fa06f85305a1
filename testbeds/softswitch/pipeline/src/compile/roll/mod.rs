//! Finds instructions that are repeated for consecutive values, and joins them into one
//! [`Lanes`](crate::op::lanes::Lanes).
//!
//! P4 has no arrays: a program that adds 256 values to 256 registers contains 256 additions, and inlining generates 256
//! times a dozen instructions that differ only in the slots of the values and the numbers of the registers, each greater
//! by one. Such a run is rolled up again, if the result cannot differ:
//!
//! - slots that jumps compare, that are indices, or that guard a write are the same in all repetitions and not written in
//!   them;
//! - a slot that all repetitions write (a temporary) is written before it is read in each of them; it becomes a run of
//!   slots of its own;
//! - runs of slots, and of registers in a bank, are equal or do not overlap, if one of the two is written.
//!
//! Then no lane reads a value that another one wrote, and executing op by op over all lanes equals executing lane by
//! lane.

mod body;
mod tidy;

use crate::op::lanes::Binary;
use crate::op::{Code, Op, Slot, T3, Target};
use body::Body;

/// Minimum number of repetitions that is worth rolling up.
const LEAST: usize = 4;
/// Maximum length of a repeated sequence, in instructions.
const LONGEST: usize = 64;

/// Rolls up all repetitions of instructions where the result cannot differ. The original instructions remain, unreachable.
/// `dead`: positions in order, each with a slot; after it, no instruction reads earlier values of the slots from this slot on.
pub fn roll(code: &mut Code, dead: &[(Target, Slot)]) {
    if code.registers.is_empty() {
        return;
    }
    let sources = Sources::from_code(code);
    let shapes: Vec<Option<Shape>> = code.ops.iter().map(Shape::from_op).collect();
    // Lanes of temporaries come after all other slots.
    let scratch = code.frame;
    let mut at = 0;
    while at < code.ops.len() {
        match shapes[at].and_then(|_| repetition(code, &shapes, &sources, at)) {
            Some((start, body, lanes)) => {
                let period = body.len();
                let end = start + period * lanes;
                if let Some((ops, temporaries)) = Body::lanes(
                    code,
                    &body,
                    lanes as u32,
                    scratch,
                    dead_from(dead, end as Target),
                ) {
                    code.frame = code.frame.max(scratch + temporaries * lanes as u32);
                    code.lanes.push(tidy::lanes(lanes as u32, ops, scratch));
                    code.ops[start] = Op::Lanes {
                        lanes: (code.lanes.len() - 1) as u32,
                        to: end as Target,
                    };
                }
                at = end;
            }
            None => at += 1,
        }
    }
}

/// Slot from which on no instruction at or after position `at` reads values that were written before.
fn dead_from(dead: &[(Target, Slot)], at: Target) -> Slot {
    let first = dead.partition_point(|(p, _)| *p < at);
    let here = dead[first..].iter().take_while(|(p, _)| *p == at);
    here.map(|(_, slot)| *slot).min().unwrap_or(Slot::MAX)
}

/// The operation of an instruction that can be executed for many lanes at once, without its operands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum What {
    Jump,
    JumpIf,
    JumpIfNot,
    JumpEq,
    JumpNe,
    Mov,
    MovIf,
    Binary(Binary, u8),
    Read,
    Write,
}

/// An instruction that can be executed for many lanes at once: operation and operands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Shape {
    pub what: What,
    /// The slot that the instruction writes; `None` if it writes none.
    pub d: Option<Slot>,
    /// The slots that the instruction reads and that may differ between lanes.
    pub read: [Option<Slot>; 2],
    /// The slots that the instruction reads and that must be the same for all lanes.
    pub shared: [Option<Slot>; 2],
    pub to: Option<Target>,
    pub register: Option<u32>,
}

impl Shape {
    fn from_op(op: &Op) -> Option<Shape> {
        let shape = |what| Shape {
            what,
            d: None,
            read: [None; 2],
            shared: [None; 2],
            to: None,
            register: None,
        };
        let jump = |what, a, b, to| Shape {
            shared: [a, b],
            to: Some(to),
            ..shape(what)
        };
        let binary = |what, t: T3| Shape {
            d: Some(t.d),
            read: [Some(t.a), Some(t.b)],
            ..shape(What::Binary(what, t.w))
        };
        Some(match *op {
            Op::Jump(to) => jump(What::Jump, None, None, to),
            Op::JumpIf { c, to } => jump(What::JumpIf, Some(c), None, to),
            Op::JumpIfNot { c, to } => jump(What::JumpIfNot, Some(c), None, to),
            Op::JumpEq { a, b, to } => jump(What::JumpEq, Some(a), Some(b), to),
            Op::JumpNe { a, b, to } => jump(What::JumpNe, Some(a), Some(b), to),
            Op::Mov { d, s } => Shape {
                d: Some(d),
                read: [Some(s), None],
                ..shape(What::Mov)
            },
            Op::MovIf { g, d, s } => Shape {
                d: Some(d),
                read: [Some(s), None],
                shared: [Some(g), None],
                ..shape(What::MovIf)
            },
            Op::Add(t) => binary(Binary::Add, t),
            Op::Sub(t) => binary(Binary::Sub, t),
            Op::And(t) => binary(Binary::And, t),
            Op::Or(t) => binary(Binary::Or, t),
            Op::Xor(t) => binary(Binary::Xor, t),
            Op::RegisterRead { r, d, index } => Shape {
                d: Some(d),
                shared: [Some(index), None],
                register: Some(r),
                ..shape(What::Read)
            },
            Op::RegisterWrite { r, index, s } => Shape {
                read: [Some(s), None],
                shared: [Some(index), None],
                register: Some(r),
                ..shape(What::Write)
            },
            _ => return None,
        })
    }
}

/// By how many slots an operand moves from one repetition to the next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Increment {
    Zero,
    One,
}

/// An instruction of the first repetition, and the increments of its operands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct BodyOp {
    pub shape: Shape,
    pub d: Increment,
    pub read: [Increment; 2],
    /// Jump target as an index from the body's start; only for jumps.
    pub to: u32,
}

/// For each position in the code, the lowest and the highest position from which a jump leads there; `None`: no jump does.
struct Sources(Vec<Option<(u32, u32)>>);

impl Sources {
    fn from_code(code: &Code) -> Sources {
        let mut sources = Sources(vec![None; code.ops.len() + 1]);
        for (at, op) in code.ops.iter().enumerate() {
            if let Some(to) = op.target() {
                sources.note(to, at as u32);
            }
        }
        for apply in &code.applies {
            for to in apply.targets() {
                // Reachable from anywhere.
                sources.note(to, 0);
                sources.note(to, u32::MAX);
            }
        }
        for entry in &code.entries {
            sources.note(*entry, u32::MAX);
        }
        sources
    }

    fn note(&mut self, to: Target, from: u32) {
        if let Some(range) = self.0.get_mut(to as usize) {
            let (low, high) = range.unwrap_or((from, from));
            *range = Some((low.min(from), high.max(from)));
        }
    }

    /// Whether all jumps to position `to` come from positions between `from` and `to`, inclusive.
    fn only_from(&self, to: usize, from: usize) -> bool {
        self.0[to].is_none_or(|(low, high)| low as usize >= from && high as usize <= to)
    }
}

/// The longest repetition whose first body contains the register access at `at`: start, first body, number of bodies.
fn repetition(
    code: &Code,
    shapes: &[Option<Shape>],
    sources: &Sources,
    at: usize,
) -> Option<(usize, Vec<BodyOp>, usize)> {
    let anchor = shapes[at]?;
    let register = anchor.register?;
    let next = |p: &usize| {
        shapes.get(at + p).copied().flatten().is_some_and(|s| {
            s.what == anchor.what && s.register.is_some_and(|r| follows(code, register, r))
        })
    };
    let period = (2..=LONGEST).find(next)?;
    let same = |q: usize| member(code, shapes, q, period);
    // Extends the range in both directions while each instruction continues the one a period before.
    let mut low = at;
    while low > 0 && at - low < period && same(low - 1).is_some() {
        low -= 1;
    }
    let mut high = at;
    while let Some(member) = same(high) {
        let before = high.checked_sub(period).filter(|b| *b >= low);
        if before.is_some_and(|b| same(b).map(BodyOp::steps) != Some(member.steps())) {
            break;
        }
        high += 1;
    }
    // The instructions at low .. high have a counterpart a period later.
    (low..=at).find_map(|start| {
        let lanes = (high.checked_sub(start)? + period) / period;
        let body: Vec<BodyOp> = (start..start + period).map_while(same).collect();
        let closed = (start..start + period).zip(&body).all(|(q, m)| {
            let inside = m
                .shape
                .to
                .is_none_or(|to| to as usize > q && to as usize <= start + period);
            inside && (q == start || sources.only_from(q, start))
        });
        let repeated = (1..lanes).all(|lane| {
            (0..period).all(|i| {
                sources.only_from(
                    start + lane * period + i,
                    start + (lane - usize::from(i == 0)) * period,
                )
            })
        });
        (lanes >= LEAST && body.len() == period && closed && repeated).then(|| {
            let relative = |mut m: BodyOp| {
                m.to = m.shape.to.map_or(0, |to| to - start as u32);
                m
            };
            (start, body.into_iter().map(relative).collect(), lanes)
        })
    })
}

/// Whether the cells of the second register directly follow those of the first in the rows of a bank, one word each.
fn follows(code: &Code, first: u32, second: u32) -> bool {
    let (a, b) = (
        &code.registers[first as usize],
        &code.registers[second as usize],
    );
    a.bank == b.bank && a.words == 1 && b.words == 1 && b.offset == a.offset + 1
}

/// The instruction at `at`, if the one `period` positions later does the same for the next lane; otherwise `None`.
fn member(code: &Code, shapes: &[Option<Shape>], at: usize, period: usize) -> Option<BodyOp> {
    let (a, b) = (shapes[at]?, shapes.get(at + period).copied().flatten()?);
    let step = |a: Option<Slot>, b: Option<Slot>| match (a, b) {
        (None, None) => Some(Increment::Zero),
        (Some(a), Some(b)) if a == b => Some(Increment::Zero),
        (Some(a), Some(b)) if b == a + 1 => Some(Increment::One),
        _ => None,
    };
    let registers = match (a.register, b.register) {
        (None, None) => true,
        (Some(r), Some(s)) => follows(code, r, s),
        _ => false,
    };
    let jumps = a.to.map(|to| to + period as u32) == b.to;
    (a.what == b.what && a.shared == b.shared && registers && jumps).then_some(())?;
    Some(BodyOp {
        shape: a,
        d: step(a.d, b.d)?,
        read: [step(a.read[0], b.read[0])?, step(a.read[1], b.read[1])?],
        to: 0,
    })
}

impl BodyOp {
    fn steps(self) -> (Increment, [Increment; 2]) {
        (self.d, self.read)
    }
}

#[cfg(test)]
mod tests;

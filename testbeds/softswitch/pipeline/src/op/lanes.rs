//! Executes the same instructions for many consecutive values, for which the compiler found them repeated (`compile::roll`).
//!
//! A lane is one of those values. An operand is a run of slots with one slot per lane, or one slot that all lanes read;
//! jumps depend on values that all lanes share, so that all take the same path. This module knows nothing of sums or
//! gradients: 256 additions to 256 registers are 13 instructions of 256 lanes.

use crate::bits::mask;
use crate::externs::register::Bank;
use crate::op::Slot;
use crate::simd::widest;

/// The slots of an operand in all lanes, the repetitions that a rolled-up loop replaces.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Lane {
    /// All lanes read this one slot.
    Same(Slot),
    /// Each lane has one of consecutive slots, starting at this slot.
    Run(Slot),
}

/// A binary operation, executed lane by lane.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Binary {
    Add,
    Sub,
    And,
    Or,
    Xor,
}

/// An instruction that is executed for all lanes. Jumps go forward only, to indices into [`Lanes::ops`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LaneOp {
    Jump(u32),
    JumpIf {
        c: Slot,
        to: u32,
    },
    JumpIfNot {
        c: Slot,
        to: u32,
    },
    JumpEq {
        a: Slot,
        b: Slot,
        to: u32,
    },
    JumpNe {
        a: Slot,
        b: Slot,
        to: u32,
    },
    /// Copies `s` to `d` in all lanes if slot `g`, the guard, is not zero.
    MovIf {
        g: Slot,
        d: Slot,
        s: Lane,
    },
    Mov {
        d: Slot,
        s: Lane,
    },
    /// Applies a binary operation to values of `w` bits in all lanes.
    Binary {
        what: Binary,
        w: u8,
        d: Slot,
        a: Lane,
        b: Lane,
    },
    /// Reads a register cell in each lane, from adjacent registers: their cells are side by side in the bank's row `index`.
    Read {
        bank: u32,
        offset: u32,
        index: Slot,
        d: Slot,
    },
    Write {
        bank: u32,
        offset: u32,
        index: Slot,
        s: Lane,
    },
    /// In each lane, updates a register cell and a slot of `run`: cell = slot ∘ cell; then slot = cell, if slot `g` is not 0.
    Update {
        what: Binary,
        w: u8,
        bank: u32,
        offset: u32,
        index: Slot,
        g: Slot,
        run: Slot,
    },
    /// Sets slot `d` to the value of `s` in the last lane: the value after executing the lanes one by one.
    Last {
        d: Slot,
        s: Lane,
    },
    /// No operation: an instruction that was removed.
    Nothing,
}

impl LaneOp {
    /// The jump target of the instruction; `None` if it does not jump.
    pub fn target(&self) -> Option<u32> {
        let mut op = *self;
        op.target_mut().copied()
    }

    /// The jump target of the instruction, mutable; `None` if it does not jump.
    pub fn target_mut(&mut self) -> Option<&mut u32> {
        match self {
            LaneOp::Jump(to)
            | LaneOp::JumpIf { to, .. }
            | LaneOp::JumpIfNot { to, .. }
            | LaneOp::JumpEq { to, .. }
            | LaneOp::JumpNe { to, .. } => Some(to),
            _ => None,
        }
    }
}

/// A sequence of instructions that is executed for `n` lanes.
#[derive(Debug, Clone, Default)]
pub struct Lanes {
    /// Number of lanes: of repetitions that the loop replaces.
    pub n: u32,
    /// Instructions of the body, in order.
    pub ops: Vec<LaneOp>,
}

/// Runs an expression in which `f` is the given operation on `w`-bit values; it is compiled once per operation, for speed.
macro_rules! by_operation {
    ($what:expr, $w:expr, |$f:ident| $run:expr) => {{
        let m = mask($w.into());
        match $what {
            Binary::Add => {
                let $f = |a: u64, b: u64| a.wrapping_add(b) & m;
                $run
            }
            Binary::Sub => {
                let $f = |a: u64, b: u64| a.wrapping_sub(b) & m;
                $run
            }
            Binary::And => {
                let $f = |a: u64, b: u64| a & b;
                $run
            }
            Binary::Or => {
                let $f = |a: u64, b: u64| a | b;
                $run
            }
            Binary::Xor => {
                let $f = |a: u64, b: u64| a ^ b;
                $run
            }
        }
    }};
}

/// Number of lanes processed at a time: their values fill two vector registers of the smallest x86-64.
const CHUNK: usize = 8;

impl Lanes {
    /// Executes the instructions, each for all lanes before the next.
    pub fn run(&self, frame: &mut [u64], banks: &mut [Bank]) {
        widest(
            #[inline(always)]
            || self.run_inline(frame, banks),
        );
    }

    #[inline(always)]
    fn run_inline(&self, frame: &mut [u64], banks: &mut [Bank]) {
        let n = self.n as usize;
        let mut pc = 0;
        while let Some(op) = self.ops.get(pc) {
            pc += 1;
            match *op {
                LaneOp::Jump(to) => pc = to as usize,
                LaneOp::JumpIf { c, to } => {
                    if frame[c as usize] != 0 {
                        pc = to as usize;
                    }
                }
                LaneOp::JumpIfNot { c, to } => {
                    if frame[c as usize] == 0 {
                        pc = to as usize;
                    }
                }
                LaneOp::JumpEq { a, b, to } => {
                    if frame[a as usize] == frame[b as usize] {
                        pc = to as usize;
                    }
                }
                LaneOp::JumpNe { a, b, to } => {
                    if frame[a as usize] != frame[b as usize] {
                        pc = to as usize;
                    }
                }
                LaneOp::MovIf { g, d, s } => {
                    if frame[g as usize] != 0 {
                        copy(frame, n, d, s);
                    }
                }
                LaneOp::Mov { d, s } => copy(frame, n, d, s),
                LaneOp::Binary { what, w, d, a, b } => {
                    by_operation!(what, w, |f| zip(frame, n, d, a, b, f));
                }
                LaneOp::Update {
                    what,
                    w,
                    bank,
                    offset,
                    index,
                    g,
                    run,
                } => {
                    let (row, keep) = (frame[index as usize], frame[g as usize] != 0);
                    let values = &mut frame[run as usize..run as usize + n];
                    let bank = &mut banks[bank as usize];
                    by_operation!(what, w, |f| bank.update(row, offset, values, keep, f));
                }
                LaneOp::Read {
                    bank,
                    offset,
                    index,
                    d,
                } => {
                    let row = frame[index as usize];
                    banks[bank as usize].read(row, offset, &mut frame[d as usize..d as usize + n]);
                }
                LaneOp::Write {
                    bank,
                    offset,
                    index,
                    s,
                } => {
                    let row = frame[index as usize];
                    let bank = &mut banks[bank as usize];
                    match s {
                        Lane::Run(s) => bank.write(row, offset, &frame[s as usize..s as usize + n]),
                        Lane::Same(s) => {
                            for lane in 0..self.n {
                                bank.write(row, offset + lane, &frame[s as usize..=s as usize]);
                            }
                        }
                    }
                }
                LaneOp::Last { d, s } => {
                    frame[d as usize] = match s {
                        Lane::Same(s) => frame[s as usize],
                        Lane::Run(s) => frame[s as usize + n - 1],
                    };
                }
                LaneOp::Nothing => {}
            }
        }
    }
}

#[inline(always)]
fn copy(frame: &mut [u64], n: usize, d: Slot, s: Lane) {
    let d = d as usize;
    match s {
        Lane::Run(s) => frame.copy_within(s as usize..s as usize + n, d),
        Lane::Same(s) => {
            let value = frame[s as usize];
            frame[d..d + n].fill(value);
        }
    }
}

/// Sets `d` = `f(a, b)` in `n` lanes. The slots `d` may be those of `a` or `b`, but must not overlap them in part.
#[inline(always)]
fn zip(frame: &mut [u64], n: usize, d: Slot, a: Lane, b: Lane, f: impl Fn(u64, u64) -> u64) {
    let d = d as usize;
    match (a, b) {
        (Lane::Run(a), Lane::Run(b)) => {
            let (a, b) = (a as usize, b as usize);
            each(
                frame,
                n,
                |frame, i| f(frame[a + i], frame[b + i]),
                d,
                |frame, i| {
                    let (a, b) = (chunk(frame, a + i), chunk(frame, b + i));
                    std::array::from_fn(|k| f(a[k], b[k]))
                },
            );
        }
        (Lane::Run(a), Lane::Same(b)) => {
            let (a, b) = (a as usize, frame[b as usize]);
            each(
                frame,
                n,
                |frame, i| f(frame[a + i], b),
                d,
                |frame, i| chunk(frame, a + i).map(|a| f(a, b)),
            );
        }
        (Lane::Same(a), Lane::Run(b)) => {
            let (a, b) = (frame[a as usize], b as usize);
            each(
                frame,
                n,
                |frame, i| f(a, frame[b + i]),
                d,
                |frame, i| chunk(frame, b + i).map(|b| f(a, b)),
            );
        }
        (Lane::Same(a), Lane::Same(b)) => {
            let value = f(frame[a as usize], frame[b as usize]);
            frame[d..d + n].fill(value);
        }
    }
}

/// Sets `n` slots from `d` on: [`CHUNK`] slots at a time to the results of `many`, and the rest one by one to those of `one`.
#[inline(always)]
fn each(
    frame: &mut [u64],
    n: usize,
    one: impl Fn(&[u64], usize) -> u64,
    d: usize,
    many: impl Fn(&[u64], usize) -> [u64; CHUNK],
) {
    let whole = n / CHUNK * CHUNK;
    for i in (0..whole).step_by(CHUNK) {
        let values = many(frame, i);
        frame[d + i..d + i + CHUNK].copy_from_slice(&values);
    }
    for i in whole..n {
        frame[d + i] = one(frame, i);
    }
}

#[inline(always)]
fn chunk(frame: &[u64], at: usize) -> [u64; CHUNK] {
    let mut values = [0; CHUNK];
    values.copy_from_slice(&frame[at..at + CHUNK]);
    values
}

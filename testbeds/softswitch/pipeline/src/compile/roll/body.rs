//! Translates a loop body, the first of the repetitions, into instructions for all lanes.

use super::{BodyOp, Increment, Shape, What};
use crate::op::lanes::{Lane, LaneOp};
use crate::op::{Code, Slot};

/// The loop body that is translated.
pub(super) struct Body<'b> {
    code: &'b Code,
    members: &'b [BodyOp],
    lanes: u32,
    /// Temporaries: slots that every repetition writes, in order of their first write.
    temporaries: Vec<Slot>,
    /// First slot of the temporaries' copies: each temporary has one slot per lane from here on.
    scratch: Slot,
    /// Slot from which on no instruction after the body reads values that were written before its end.
    dead_from: Slot,
}

/// For each temporary, the operand that has the same value at this point, if one is known.
type Copies = Vec<Option<Lane>>;

impl<'b> Body<'b> {
    /// Translates the body to instructions for all lanes. Also returns the number of temporaries; each has `lanes` slots from
    /// `scratch` on. `None`: the result could differ.
    pub(super) fn lanes(
        code: &'b Code,
        members: &'b [BodyOp],
        lanes: u32,
        scratch: Slot,
        dead_from: Slot,
    ) -> Option<(Vec<LaneOp>, u32)> {
        let mut temporaries = Vec::new();
        for m in members {
            if let (Some(d), Increment::Zero) = (m.shape.d, m.d)
                && !temporaries.contains(&d)
            {
                temporaries.push(d);
            }
        }
        let body = Body {
            code,
            members,
            lanes,
            temporaries,
            scratch,
            dead_from,
        };
        (body.separate() && body.assigned()).then_some(())?;
        let mut ops = body.translate()?;
        body.drop_unread(&mut ops);
        Some((ops, body.temporaries.len() as u32))
    }

    fn temporary(&self, slot: Slot) -> Option<usize> {
        self.temporaries.iter().position(|t| *t == slot)
    }

    /// Whether no lane reads or writes a slot that another lane writes, except for temporaries.
    fn separate(&self) -> bool {
        let n = self.lanes;
        let mut written = Vec::new();
        let mut runs = Vec::new();
        let mut shared = Vec::new();
        for m in self.members {
            if let (Some(d), Increment::One) = (m.shape.d, m.d) {
                written.push(d);
                runs.push(d);
            }
            for (slot, step) in m.shape.read.iter().zip(m.read) {
                match (slot, step) {
                    (Some(s), Increment::One) => runs.push(*s),
                    (Some(s), Increment::Zero) if self.temporary(*s).is_none() => shared.push(*s),
                    _ => {}
                }
            }
            shared.extend(m.shape.shared.into_iter().flatten());
        }
        let apart = |a: Slot, b: Slot| a == b || a >= b + n || b >= a + n;
        let outside = |slot: Slot, run: Slot| slot < run || slot >= run + n;
        written
            .iter()
            .all(|w| runs.iter().all(|r| apart(*w, *r)) && shared.iter().all(|s| outside(*s, *w)))
            && runs
                .iter()
                .all(|r| self.temporaries.iter().all(|t| outside(*t, *r)))
            && self.members.iter().all(|m| {
                m.shape
                    .shared
                    .iter()
                    .flatten()
                    .all(|s| self.temporary(*s).is_none())
            })
            && self.registers_separate()
    }

    fn registers_separate(&self) -> bool {
        let accesses: Vec<(bool, u32, u32)> = self
            .members
            .iter()
            .filter_map(|m| {
                let plan = self.code.registers[m.shape.register? as usize];
                Some((m.shape.what == What::Write, plan.bank, plan.offset))
            })
            .collect();
        accesses.iter().all(|(write, bank, offset)| {
            accesses.iter().all(|(_, other, at)| {
                !write || bank != other || offset == at || at.abs_diff(*offset) >= self.lanes
            })
        })
    }

    /// Whether each temporary is written before it is read, on all paths through the body. Jumps only go forward.
    fn assigned(&self) -> bool {
        let all = vec![true; self.temporaries.len()];
        let mut known: Vec<Option<Vec<bool>>> = vec![None; self.members.len() + 1];
        known[0] = Some(vec![false; self.temporaries.len()]);
        let meet = |into: &mut Option<Vec<bool>>, from: &[bool]| {
            let old = into.get_or_insert_with(|| all.clone());
            old.iter_mut().zip(from).for_each(|(a, b)| *a &= b);
        };
        for (at, m) in self.members.iter().enumerate() {
            let Some(mut now) = known[at].clone() else {
                continue;
            };
            for (slot, step) in m.shape.read.iter().zip(m.read) {
                if let (Some(slot), Increment::Zero) = (slot, step)
                    && self.temporary(*slot).is_some_and(|t| !now[t])
                {
                    return false;
                }
            }
            // A guarded write may not happen, so the previous value must exist.
            let certain = m.shape.what != What::MovIf;
            if let Some(t) = m
                .shape
                .d
                .filter(|_| m.d == Increment::Zero)
                .and_then(|d| self.temporary(d))
            {
                if !certain && !now[t] {
                    return false;
                }
                now[t] = true;
            }
            if m.shape.to.is_some() {
                meet(&mut known[m.to as usize], &now);
            }
            if m.shape.what != What::Jump {
                meet(&mut known[at + 1], &now);
            }
        }
        true
    }

    fn lane(&self, slot: Slot, step: Increment) -> Lane {
        match (step, self.temporary(slot)) {
            (Increment::One, _) => Lane::Run(slot),
            (Increment::Zero, Some(t)) => self.lanes_of(t),
            (Increment::Zero, None) => Lane::Same(slot),
        }
    }

    fn lanes_of(&self, temporary: usize) -> Lane {
        Lane::Run(self.scratch + temporary as u32 * self.lanes)
    }

    /// Translates each instruction of the body. After a write to a temporary, adds one that sets its slot as the last lane
    /// would.
    ///
    /// If an operand is known to equal a temporary, it is read instead.
    fn translate(&self) -> Option<Vec<LaneOp>> {
        let none: Copies = vec![None; self.temporaries.len()];
        let mut known: Vec<Option<Copies>> = vec![None; self.members.len() + 1];
        known[0] = Some(none.clone());
        let meet = |into: &mut Option<Copies>, from: &Copies| match into {
            None => *into = Some(from.clone()),
            Some(old) => {
                for (a, b) in old.iter_mut().zip(from) {
                    if a != b {
                        *a = None;
                    }
                }
            }
        };
        let mut ops = Vec::new();
        let mut starts = Vec::new();
        for (at, m) in self.members.iter().enumerate() {
            starts.push(ops.len() as u32);
            // Unreachable instructions are left out.
            let Some(mut copies) = known[at].clone() else {
                continue;
            };
            let operand = |i: usize| {
                let lane = self.lane(m.shape.read[i]?, m.read[i]);
                let copy = (0..copies.len())
                    .find(|t| self.lanes_of(*t) == lane)
                    .and_then(|t| copies[t]);
                Some(copy.unwrap_or(lane))
            };
            let read = [operand(0), operand(1)];
            ops.push(self.op(&m.shape, m, read)?);
            if let Some(d) = m.shape.d {
                let lane = self.lane(d, m.d);
                copies
                    .iter_mut()
                    .filter(|c| **c == Some(lane))
                    .for_each(|c| *c = None);
                if let (Increment::Zero, Some(t)) = (m.d, self.temporary(d)) {
                    copies[t] = operand_of(m, read[0]).filter(|s| *s != lane);
                    if d < self.dead_from {
                        ops.push(LaneOp::Last { d, s: lane });
                    }
                }
            }
            if m.shape.to.is_some() {
                meet(&mut known[m.to as usize], &copies);
            }
            if m.shape.what != What::Jump {
                meet(&mut known[at + 1], &copies);
            }
        }
        starts.push(ops.len() as u32);
        for op in &mut ops {
            if let LaneOp::Jump(to)
            | LaneOp::JumpIf { to, .. }
            | LaneOp::JumpIfNot { to, .. }
            | LaneOp::JumpEq { to, .. }
            | LaneOp::JumpNe { to, .. } = op
            {
                *to = starts[*to as usize];
            }
        }
        Some(ops)
    }

    fn op(&self, shape: &Shape, m: &BodyOp, read: [Option<Lane>; 2]) -> Option<LaneOp> {
        let to = m.to;
        let run = |lane| match lane {
            Lane::Run(slot) | Lane::Same(slot) => slot,
        };
        let d = shape.d.map(|d| run(self.lane(d, m.d)));
        let plan = shape.register.map(|r| self.code.registers[r as usize]);
        Some(match shape.what {
            What::Jump => LaneOp::Jump(to),
            What::JumpIf => LaneOp::JumpIf {
                c: shape.shared[0]?,
                to,
            },
            What::JumpIfNot => LaneOp::JumpIfNot {
                c: shape.shared[0]?,
                to,
            },
            What::JumpEq => LaneOp::JumpEq {
                a: shape.shared[0]?,
                b: shape.shared[1]?,
                to,
            },
            What::JumpNe => LaneOp::JumpNe {
                a: shape.shared[0]?,
                b: shape.shared[1]?,
                to,
            },
            What::Mov => LaneOp::Mov { d: d?, s: read[0]? },
            What::MovIf => LaneOp::MovIf {
                g: shape.shared[0]?,
                d: d?,
                s: read[0]?,
            },
            What::Binary(what, w) => LaneOp::Binary {
                what,
                w,
                d: d?,
                a: read[0]?,
                b: read[1]?,
            },
            What::Read => LaneOp::Read {
                bank: plan?.bank,
                offset: plan?.offset,
                index: shape.shared[0]?,
                d: d?,
            },
            What::Write => LaneOp::Write {
                bank: plan?.bank,
                offset: plan?.offset,
                index: shape.shared[0]?,
                s: read[0]?,
            },
        })
    }

    /// Removes copies to temporaries that no other instruction reads; `Last` then reads the source of the copy.
    fn drop_unread(&self, ops: &mut [LaneOp]) {
        for t in 0..self.temporaries.len() {
            let lanes = self.lanes_of(t);
            let reads = |op: &LaneOp| match *op {
                LaneOp::Mov { s, .. } | LaneOp::MovIf { s, .. } | LaneOp::Write { s, .. } => {
                    s == lanes
                }
                LaneOp::Binary { a, b, .. } => a == lanes || b == lanes,
                LaneOp::Last { d, s } => s == lanes && d != self.temporaries[t],
                _ => false,
            };
            // A guarded write keeps the old value, so it also reads it.
            let keeps =
                |op: &LaneOp| matches!(op, LaneOp::MovIf { d, .. } if Lane::Run(*d) == lanes);
            if ops.iter().any(|op| reads(op) || keeps(op)) {
                continue;
            }
            for i in 0..ops.len() {
                if let LaneOp::Mov { d, s } = ops[i]
                    && Lane::Run(d) == lanes
                {
                    ops[i] = LaneOp::Nothing;
                    if let Some(LaneOp::Last { s: last, .. }) = ops.get_mut(i + 1) {
                        *last = s;
                    }
                }
            }
        }
    }
}

/// The operand whose value the destination of a copy has after it; `None` if the instruction is no copy.
fn operand_of(m: &BodyOp, source: Option<Lane>) -> Option<Lane> {
    (m.shape.what == What::Mov).then_some(source).flatten()
}

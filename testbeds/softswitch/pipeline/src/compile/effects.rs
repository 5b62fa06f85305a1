//! Reports the slots of the frame that an instruction reads and writes, for the dataflow analysis in `compile::flow`.

use crate::bits::limbs;
use crate::op::lanes::{Lane, LaneOp, Lanes};
use crate::op::{Code, Layout, Op, Slot, T3};

/// Kind of an instruction's access to a run of slots.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Access {
    /// The instruction reads the slots, or may read them.
    Read,
    /// The instruction writes all of the slots, whenever it is executed.
    Write,
    /// The instruction may write some of the slots.
    MayWrite,
}

/// Reports each run of slots that an instruction accesses: kind, first slot, number. False: it may access any slots.
pub(crate) fn effects(code: &Code, op: &Op, visit: &mut impl FnMut(Access, Slot, u32)) -> bool {
    use Access::{MayWrite, Read, Write};
    let three = |t: T3, visit: &mut dyn FnMut(Access, Slot, u32)| {
        visit(Read, t.a, 1);
        visit(Read, t.b, 1);
        visit(Write, t.d, 1);
    };
    match *op {
        Op::Jump(_) | Op::End | Op::Step { .. } | Op::Trace(_) | Op::RegisterOnce { .. } => {}
        Op::CountDirect { .. } | Op::ChecksumClear { .. } => {}
        Op::JumpIf { c, .. } | Op::JumpIfNot { c, .. } | Op::Assert { c } => visit(Read, c, 1),
        Op::JumpEq { a, b, .. } | Op::JumpNe { a, b, .. } => {
            visit(Read, a, 1);
            visit(Read, b, 1);
        }
        Op::Fail { error, .. } => visit(Read, error, 1),
        Op::Mov { d, s } => {
            visit(Read, s, 1);
            visit(Write, d, 1);
        }
        Op::MovIf { g, d, s } => {
            visit(Read, g, 1);
            visit(Read, s, 1);
            visit(MayWrite, d, 1);
        }
        Op::Copy { d, s, n } => {
            visit(Read, s, n);
            visit(Write, d, n);
        }
        Op::CopyIf { g, d, s, n } => {
            visit(Read, g, 1);
            visit(Read, s, n);
            visit(MayWrite, d, n);
        }
        Op::Zero { d, n } => visit(Write, d, n),
        Op::Add(t) | Op::Sub(t) | Op::Mul(t) | Op::Div(t) | Op::Mod(t) => three(t, visit),
        Op::AddSat(t) | Op::SubSat(t) | Op::AddSatS(t) | Op::SubSatS(t) => three(t, visit),
        Op::And(t) | Op::Or(t) | Op::Xor(t) | Op::Shl(t) | Op::Shr(t) | Op::Sar(t) => {
            three(t, visit);
        }
        Op::Eq(t) | Op::Ne(t) | Op::Lt(t) | Op::Le(t) | Op::LtS(t) | Op::LeS(t) => three(t, visit),
        Op::Not { d, a }
        | Op::BitNot { d, a, .. }
        | Op::Neg { d, a, .. }
        | Op::Slice { d, a, .. }
        | Op::SignExtend { d, a, .. } => {
            visit(Read, a, 1);
            visit(Write, d, 1);
        }
        Op::Insert { d, a, s, .. } => {
            visit(Read, a, 1);
            visit(Read, s, 1);
            visit(Write, d, 1);
        }
        Op::Concat { d, a, b, .. } => {
            visit(Read, a, 1);
            visit(Read, b, 1);
            visit(Write, d, 1);
        }
        Op::EqRange { d, a, b, n } => {
            visit(Read, a, n);
            visit(Read, b, n);
            visit(Write, d, 1);
        }
        Op::Wide(i) => {
            let plan = &code.wide[i as usize];
            for (slot, width) in [plan.a, plan.b] {
                visit(Read, slot, limbs(width));
            }
            visit(Write, plan.d.0, limbs(plan.d.1));
        }
        Op::Extract { layout, d, .. } | Op::Lookahead { layout, d, .. } => {
            visit(MayWrite, d, code.layouts[layout as usize].slots);
        }
        Op::ExtractVarbit {
            layout, d, bits, ..
        } => {
            visit(Read, bits, 1);
            visit(MayWrite, d, code.layouts[layout as usize].slots);
        }
        Op::Advance { bits, .. } => visit(Read, bits, 1),
        Op::Emit { layout, s } => {
            visit(Read, s, 1);
            fields(&code.layouts[layout as usize], s, visit);
        }
        Op::Verdict { error, cleared } => {
            visit(Write, error, 1);
            visit(Write, cleared, 1);
        }
        Op::PacketLength { d } | Op::Cursor { d } | Op::Random { d, .. } => visit(Write, d, 1),
        Op::Apply(i) => {
            let apply = &code.applies[i as usize];
            apply.key.iter().for_each(|slot| visit(Read, *slot, 1));
            if let Some((layout, s)) = apply.profile.and_then(|p| p.data) {
                fields(&code.layouts[layout as usize], s, visit);
            }
            let results = [apply.hit, apply.action_run, apply.colour];
            for slot in results.into_iter().flatten() {
                visit(Write, slot, 1);
            }
            for slot in apply.actions.iter().flat_map(|a| &a.params) {
                visit(MayWrite, *slot, 1);
            }
        }
        Op::RegisterRead { r, d, index } => {
            visit(Read, index, 1);
            visit(Write, d, code.registers[r as usize].words);
        }
        Op::RegisterWrite { r, index, s } => {
            visit(Read, index, 1);
            visit(Read, s, code.registers[r as usize].words);
        }
        Op::Count { index, .. } => visit(Read, index, 1),
        Op::Meter {
            index, colour, d, ..
        } => {
            visit(Read, index, 1);
            visit(Read, colour, 1);
            visit(Write, d, 1);
        }
        Op::MeterDirect { colour, d, .. } => {
            visit(Read, colour, 1);
            visit(Write, d, 1);
        }
        Op::Hash(i) => {
            let plan = &code.hashes[i as usize];
            fields(&code.layouts[plan.layout as usize], plan.data, visit);
            if let Some((base, max)) = plan.bounds {
                visit(Read, base, 1);
                visit(Read, max, 1);
            }
            visit(Write, plan.d, 1);
        }
        Op::ChecksumAdd { layout, s, .. } | Op::ChecksumUpdate { layout, s, .. } => {
            fields(&code.layouts[layout as usize], s, visit);
        }
        Op::ChecksumGet { d, .. } | Op::ChecksumState { d, .. } => visit(Write, d, 1),
        Op::ChecksumSetState { s, .. } => visit(Read, s, 1),
        Op::ChecksumFinish { hash, .. } => visit(Write, code.hashes[hash as usize].d, 1),
        Op::RandomRange { d, low, high, .. } => {
            visit(Read, low, 1);
            visit(Read, high, 1);
            visit(Write, d, 1);
        }
        Op::Lanes { lanes, .. } => all_lanes(&code.lanes[lanes as usize], visit),
        // Rare instructions, and any that are added later.
        _ => return false,
    }
    true
}

/// Reports the slots of a value's fields, without its validity.
fn fields(layout: &Layout, s: Slot, visit: &mut impl FnMut(Access, Slot, u32)) {
    for (i, field) in layout.fields.iter().enumerate() {
        // A varbit starts with its length.
        let length = u32::from(layout.varbit == Some(i));
        visit(Access::Read, s + field.slot, length + limbs(field.width));
    }
}

fn all_lanes(lanes: &Lanes, visit: &mut impl FnMut(Access, Slot, u32)) {
    use Access::{MayWrite, Read};
    let n = lanes.n;
    let read = |lane: Lane, visit: &mut dyn FnMut(Access, Slot, u32)| match lane {
        Lane::Same(slot) => visit(Read, slot, 1),
        Lane::Run(slot) => visit(Read, slot, n),
    };
    for op in &lanes.ops {
        match *op {
            LaneOp::Jump(_) | LaneOp::Nothing => {}
            LaneOp::JumpIf { c, .. } | LaneOp::JumpIfNot { c, .. } => visit(Read, c, 1),
            LaneOp::JumpEq { a, b, .. } | LaneOp::JumpNe { a, b, .. } => {
                visit(Read, a, 1);
                visit(Read, b, 1);
            }
            LaneOp::MovIf { g, d, s } => {
                visit(Read, g, 1);
                read(s, visit);
                visit(MayWrite, d, n);
            }
            LaneOp::Mov { d, s } => {
                read(s, visit);
                visit(MayWrite, d, n);
            }
            LaneOp::Binary { d, a, b, .. } => {
                read(a, visit);
                read(b, visit);
                visit(MayWrite, d, n);
            }
            LaneOp::Read { index, d, .. } => {
                visit(Read, index, 1);
                visit(MayWrite, d, n);
            }
            LaneOp::Write { index, s, .. } => {
                visit(Read, index, 1);
                read(s, visit);
            }
            LaneOp::Update { index, g, run, .. } => {
                visit(Read, index, 1);
                visit(Read, g, 1);
                visit(Read, run, n);
                visit(MayWrite, run, n);
            }
            LaneOp::Last { d, s } => {
                read(s, visit);
                visit(MayWrite, d, 1);
            }
        }
    }
}

/// Whether the instruction has no effect other than writing the slots that [`effects`] reports.
pub(crate) fn is_pure(op: &Op) -> bool {
    matches!(
        op,
        Op::Mov { .. }
            | Op::MovIf { .. }
            | Op::Copy { .. }
            | Op::CopyIf { .. }
            | Op::Zero { .. }
            | Op::EqRange { .. }
            | Op::Wide(_)
            | Op::RegisterRead { .. }
            | Op::Hash(_)
    ) || one_result(op).is_some()
}

/// The result slot of an instruction whose only effect is that result; `None` for other instructions.
pub(crate) fn one_result(op: &Op) -> Option<Slot> {
    let mut op = *op;
    result_mut(&mut op).copied()
}

/// The result slot of an instruction whose only effect is that result, mutable; `None` for other instructions.
pub(crate) fn result_mut(op: &mut Op) -> Option<&mut Slot> {
    Some(match op {
        Op::Add(t) | Op::Sub(t) | Op::Mul(t) | Op::Div(t) | Op::Mod(t) => &mut t.d,
        Op::AddSat(t) | Op::SubSat(t) | Op::AddSatS(t) | Op::SubSatS(t) => &mut t.d,
        Op::And(t) | Op::Or(t) | Op::Xor(t) | Op::Shl(t) | Op::Shr(t) | Op::Sar(t) => &mut t.d,
        Op::Eq(t) | Op::Ne(t) | Op::Lt(t) | Op::Le(t) | Op::LtS(t) | Op::LeS(t) => &mut t.d,
        Op::Not { d, .. }
        | Op::BitNot { d, .. }
        | Op::Neg { d, .. }
        | Op::Slice { d, .. }
        | Op::Insert { d, .. }
        | Op::SignExtend { d, .. }
        | Op::Concat { d, .. } => d,
        _ => return None,
    })
}

/// Passes each slot to `change` that the instruction reads and that may be replaced by a slot with the same value.
pub(crate) fn operands_mut<'o>(op: &'o mut Op, change: &mut impl FnMut(&'o mut Slot)) {
    let three = |t: &'o mut T3, change: &mut dyn FnMut(&'o mut Slot)| {
        change(&mut t.a);
        change(&mut t.b);
    };
    match op {
        Op::JumpIf { c, .. } | Op::JumpIfNot { c, .. } | Op::Assert { c } => change(c),
        Op::JumpEq { a, b, .. } | Op::JumpNe { a, b, .. } | Op::Concat { a, b, .. } => {
            change(a);
            change(b);
        }
        Op::Mov { s, .. } => change(s),
        Op::MovIf { g, s, .. } => {
            change(g);
            change(s);
        }
        Op::Add(t) | Op::Sub(t) | Op::Mul(t) | Op::Div(t) | Op::Mod(t) => three(t, change),
        Op::AddSat(t) | Op::SubSat(t) | Op::AddSatS(t) | Op::SubSatS(t) => three(t, change),
        Op::And(t) | Op::Or(t) | Op::Xor(t) | Op::Shl(t) | Op::Shr(t) | Op::Sar(t) => {
            three(t, change);
        }
        Op::Eq(t) | Op::Ne(t) | Op::Lt(t) | Op::Le(t) | Op::LtS(t) | Op::LeS(t) => {
            three(t, change);
        }
        Op::Not { a, .. }
        | Op::BitNot { a, .. }
        | Op::Neg { a, .. }
        | Op::Slice { a, .. }
        | Op::SignExtend { a, .. } => change(a),
        Op::Insert { a, s, .. } => {
            change(a);
            change(s);
        }
        Op::RegisterRead { index, .. }
        | Op::RegisterWrite { index, .. }
        | Op::Count { index, .. } => change(index),
        _ => {}
    }
}

//! Shortens the translated body of a rolled-up loop.

use crate::op::lanes::{Lane, LaneOp, Lanes};

/// Maximum number of instructions at the body's end that are copied to the jumps to them, which lets more be joined.
const TAIL: usize = 2;

/// Shortens a body without changing its effect. `temporaries`: slots from this one on are used by the body only.
pub(super) fn tidy(ops: Vec<LaneOp>, temporaries: u32) -> Vec<LaneOp> {
    let ops = compact(&ops);
    let ops = repeat_tails(&ops);
    fuse(&ops, temporaries)
}

/// Removes instructions without an effect.
fn compact(ops: &[LaneOp]) -> Vec<LaneOp> {
    let nothing = |op: &LaneOp| matches!(op, LaneOp::Nothing);
    let position = |to: u32| ops[..to as usize].iter().filter(|op| !nothing(op)).count() as u32;
    let mut kept: Vec<LaneOp> = ops.iter().filter(|op| !nothing(op)).copied().collect();
    for op in &mut kept {
        if let Some(to) = op.target_mut() {
            *to = position(*to);
        }
    }
    kept
}

/// Replaces each jump to the last few instructions by a copy of these and a jump to the end.
fn repeat_tails(ops: &[LaneOp]) -> Vec<LaneOp> {
    let end = ops.len() as u32;
    let mut longer = Vec::new();
    // New position of each instruction.
    let mut places = Vec::new();
    for op in ops {
        places.push(longer.len() as u32);
        let tail = match op {
            LaneOp::Jump(to) => ops.get(*to as usize..).unwrap_or_default(),
            _ => &[],
        };
        let plain = tail.iter().all(|op| op.target().is_none());
        if plain && (1..=TAIL).contains(&tail.len()) {
            longer.extend_from_slice(tail);
            longer.push(LaneOp::Jump(end));
        } else {
            longer.push(*op);
        }
    }
    places.push(longer.len() as u32);
    for op in &mut longer {
        if let Some(to) = op.target_mut() {
            *to = places[*to as usize];
        }
    }
    longer
}

/// Joins four instructions into one `Update`: read register cells, combine them with slots, write the result to both.
fn fuse(ops: &[LaneOp], temporaries: u32) -> Vec<LaneOp> {
    let targets: Vec<u32> = ops.iter().filter_map(LaneOp::target).collect();
    let mut fused = ops.to_vec();
    for at in 0..ops.len() {
        let entered = targets
            .iter()
            .any(|t| (at as u32 + 1..at as u32 + 4).contains(t));
        let over = match ops.get(at + 4) {
            None => true,
            Some(LaneOp::Jump(to)) => *to as usize == ops.len(),
            _ => false,
        };
        if let (false, true, Some(op)) = (entered, over, update(ops, at, temporaries)) {
            fused[at] = op;
            fused[at + 1..at + 4].fill(LaneOp::Nothing);
        }
    }
    compact(&fused)
}

/// Joins the four instructions from `at` on, if they match the pattern of [`fuse`]. They no longer set temporaries, which
/// nothing reads, because the body ends after them.
fn update(ops: &[LaneOp], at: usize, temporaries: u32) -> Option<LaneOp> {
    let [
        LaneOp::Read {
            bank,
            offset,
            index,
            d: stored,
        },
        LaneOp::Binary {
            what,
            w,
            d: sum,
            a,
            b,
        },
        LaneOp::Write {
            bank: to_bank,
            offset: to_offset,
            index: to_index,
            s: written,
        },
        LaneOp::MovIf {
            g,
            d: run,
            s: moved,
        },
    ] = *ops.get(at..at + 4)?
    else {
        return None;
    };
    let operands = (a, b) == (Lane::Run(run), Lane::Run(stored));
    let results = written == Lane::Run(sum) && moved == Lane::Run(sum);
    let cells = (bank, offset, index) == (to_bank, to_offset, to_index);
    let lost = stored >= temporaries && sum >= temporaries && stored != sum && run < temporaries;
    (operands && results && cells && lost).then_some(LaneOp::Update {
        what,
        w,
        bank,
        offset,
        index,
        g,
        run,
    })
}

/// Creates the rolled-up loop of a body for `n` lanes.
pub(super) fn lanes(n: u32, ops: Vec<LaneOp>, temporaries: u32) -> Lanes {
    Lanes {
        n,
        ops: tidy(ops, temporaries),
    }
}

//! From what blocks were compiled to, to code that runs: phase after phase, each with what holds after it.

use super::{CONSTANT_SLOTS, Compiler, coalesce, flow, roll, tidy};
use crate::externs::register::Info;
use crate::op::{Code, Op, Target};
use crate::state::State;

/// A jump to a jump goes on at once; the limit is for loops of nothing but jumps.
const JUMPS: usize = 16;

impl Compiler<'_> {
    /// All phases.
    pub fn finish(mut self) -> (Code, State, Vec<Info>) {
        self.place_jumps();
        self.price_rounds();
        self.bind_code();
        self.roll_up();
        self.tidy_up();
        self.move_together();
        self.seal_plans();
        self.plan_keys();
        (self.code, self.state, self.registers)
    }

    /// Every target is a position, and none is a jump.
    fn place_jumps(&mut self) {
        let labels = &self.labels.positions;
        let jump = |op: &Op| match op {
            Op::Jump(to) => Some(labels[*to as usize]),
            _ => None,
        };
        let jumps: Vec<Option<Target>> = self.code.ops.iter().map(jump).collect();
        let at = |to: &mut Target| {
            *to = labels[*to as usize];
            for _ in 0..JUMPS {
                match jumps.get(*to as usize) {
                    Some(Some(next)) => *to = *next,
                    _ => break,
                }
            }
        };
        for op in &mut self.code.ops {
            if let Some(to) = op.target_mut() {
                at(to);
            }
        }
        for apply in &mut self.code.applies {
            apply.targets_mut().for_each(at);
        }
    }

    /// The code knows where tables and objects lie, and which of its blocks are quiet.
    fn bind_code(&mut self) {
        self.bindings.registers.clone_from(&self.code.registers);
        self.code.bindings = std::mem::take(&mut self.bindings);
        self.code.note_quiet();
    }

    /// What was written out value by value is done in lanes.
    fn roll_up(&mut self) {
        roll::roll(&mut self.code, &self.frame.dead);
    }

    /// Nothing is written that nobody reads, and nothing copied that can be read where it is.
    fn tidy_up(&mut self) {
        let facts = tidy::Facts {
            max_steps: self.wanted.max_steps,
            zero: self.frame.single.get(&0).copied(),
            slots: flow::Slots {
                first: CONSTANT_SLOTS,
                own: &self.frame.own,
            },
        };
        tidy::tidy(&mut self.code, &facts);
    }

    /// Fields that only travel lie side by side; blocks that do nothing are known. No instruction moves after this.
    fn move_together(&mut self) {
        coalesce::coalesce(&mut self.code, &self.frame.pinned);
        self.code.note_empty();
    }

    /// Layouts and hashes have what they work out once.
    fn seal_plans(&mut self) {
        for layout in &mut self.code.layouts {
            layout.seal();
        }
        for hash in &mut self.code.hashes {
            hash.seal(&self.code.layouts[hash.layout as usize]);
        }
    }

    /// Lookups take their keys from where fields lie now.
    fn plan_keys(&mut self) {
        for apply in &mut self.code.applies {
            apply.plan = self.state.tables[apply.table as usize].key_plan(&apply.key);
        }
    }
}

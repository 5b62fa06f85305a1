//! Joins header fields that are only moved, so that they move together.
//!
//! Most fields of most headers are extracted, summed and emitted, and no instruction uses a single one of them. Fields that are
//! adjacent in the packet become one value of up to 64 bits: it occupies the slot of the first field, and the slots of the
//! others stay 0, as in an invalid header. This is the last step, when all instructions are known: a group is valid only if all
//! instructions that touch its slots, in all blocks, move them by a layout in which they are side by side, or zero all of them.
//!
//! The reference executor has a slot for each field; [`Code::spread`] and [`Code::gather`] convert between both.

use super::effects::effects;
use crate::op::codec::LayoutField;
use crate::op::codec::{RUN, run_length};
use crate::op::{Coalesced, Code, Layout, Op, Slot};
use std::collections::{BTreeMap, BTreeSet};

/// Number of bits of a slot, the maximum for joined fields.
const WORD: u32 = 64;

/// A value whose fields are moved together: index of its layout, and its first slot.
type Use = (u32, Slot);

/// Joins all fields that are only moved together. `pinned`: runs of slots that the architecture accesses (first, number).
pub(crate) fn coalesce(code: &mut Code, pinned: &[(Slot, u32)]) {
    let Some(touched) = Touched::by(code, pinned) else {
        return;
    };
    let mut groups = Groups::default();
    for &(layout, base) in &touched.extracted {
        groups.propose(&code.layouts[layout as usize], base, &touched);
    }
    for &(layout, base) in &touched.moved {
        groups.check(&code.layouts[layout as usize], base);
    }
    let mut joined = BTreeMap::new();
    for &(layout, base) in &touched.moved {
        if let Some(new) = groups.join(&code.layouts[layout as usize], base) {
            joined.insert((layout, base), code.layouts.len() as u32);
            code.layouts.push(new);
        }
    }
    for at in 0..code.ops.len() {
        let mut op = code.ops[at];
        if let Op::Hash(i) = op {
            let plan = &mut code.hashes[i as usize];
            if let Some(new) = joined.get(&(plan.layout, plan.data)) {
                plan.layout = *new;
            }
        } else if let Some((layout, base)) = moves(&mut op)
            && let Some(new) = joined.get(&(*layout, base))
        {
            *layout = *new;
            code.ops[at] = op;
        }
    }
    code.coalesced = groups.standing().collect();
}

/// Layout and first slot of the value that an instruction moves; `None` for hashes, and for instructions that move none.
fn moves(op: &mut Op) -> Option<(&mut u32, Slot)> {
    match op {
        Op::Extract { layout, d, .. } => Some((layout, *d)),
        Op::Emit { layout, s } | Op::ChecksumAdd { layout, s, .. } => Some((layout, *s)),
        _ => None,
    }
}

/// Slots that the instructions of a program access, by kind of access.
struct Touched {
    /// For each slot, whether an instruction accesses it individually.
    singly: Vec<bool>,
    /// Runs of slots that one instruction sets to 0: first slot, number of slots.
    zeroed: Vec<(Slot, u32)>,
    extracted: BTreeSet<Use>,
    /// Values whose fields are moved together.
    moved: BTreeSet<Use>,
}

impl Touched {
    /// Collects the accesses of all instructions; `None`: an instruction may access any slot.
    fn by(code: &Code, pinned: &[(Slot, u32)]) -> Option<Touched> {
        let mut touched = Touched {
            singly: vec![false; code.frame as usize],
            zeroed: Vec::new(),
            extracted: BTreeSet::new(),
            moved: BTreeSet::new(),
        };
        for &(slot, n) in pinned {
            touched.mark(slot, n);
        }
        for op in &code.ops {
            touched.op(code, op)?;
        }
        Some(touched)
    }

    fn op(&mut self, code: &Code, op: &Op) -> Option<()> {
        let plain = |layout: u32| code.layouts[layout as usize].varbit.is_none();
        let mut moved = *op;
        match *op {
            Op::Zero { d, n } => self.zeroed.push((d, n)),
            Op::Hash(i) if plain(code.hashes[i as usize].layout) => {
                let plan = &code.hashes[i as usize];
                self.moved.insert((plan.layout, plan.data));
                self.mark(plan.d, 1);
                let bounds = plan.bounds.map_or([plan.d; 2], |(base, max)| [base, max]);
                bounds.into_iter().for_each(|slot| self.mark(slot, 1));
            }
            _ => match moves(&mut moved) {
                Some((layout, base)) if plain(*layout) => {
                    self.moved.insert((*layout, base));
                    if matches!(op, Op::Extract { .. }) {
                        self.extracted.insert((*layout, base));
                    }
                    if code.layouts[*layout as usize].header {
                        self.mark(base, 1);
                    }
                }
                _ => {
                    let known = effects(code, op, &mut |_, slot, n| self.mark(slot, n));
                    return known.then_some(());
                }
            },
        }
        Some(())
    }

    fn mark(&mut self, slot: Slot, n: u32) {
        let slots = slot as usize..(slot as usize).saturating_add(n as usize);
        if let Some(slots) = self.singly.get_mut(slots) {
            slots.fill(true);
        }
    }

    /// Whether every run of zeroed slots contains either both of two slots or neither of them.
    fn zeroed_alike(&self, a: Slot, b: Slot) -> bool {
        let inside = |slot: Slot, (start, n): (Slot, u32)| (start..start + n).contains(&slot);
        let mut zeroed = self.zeroed.iter();
        zeroed.all(|run| inside(a, *run) == inside(b, *run))
    }
}

/// Groups of fields that may share a slot. For each field of a group, the most significant first: slot and width in bits.
#[derive(Default)]
struct Groups {
    all: Vec<SlotGroup>,
    /// For each slot, the index of its group, and the index of the slot within the group.
    of: BTreeMap<Slot, (usize, usize)>,
}

struct SlotGroup {
    fields: Vec<(Slot, u32)>,
    stands: bool,
}

impl Groups {
    /// Divides the fields of a header into groups that may share a slot.
    fn propose(&mut self, layout: &Layout, base: Slot, touched: &Touched) {
        let mut left = &layout.fields[..];
        while let Some((first, others)) = left.split_first() {
            // Many equal fields move by a loop that is faster.
            let run = run_length(left);
            if run >= RUN {
                left = &left[run..];
                continue;
            }
            let alone = |f: &LayoutField| !touched.singly[(base + f.slot) as usize] && f.width > 0;
            let mut bits = first.offset % 8 + first.width;
            let mut n = 1;
            let join = others.iter().enumerate().take_while(|(i, f)| {
                bits += f.width;
                bits <= WORD
                    && alone(f)
                    && run_length(&others[*i..]) < RUN
                    && touched.zeroed_alike(base + first.slot, base + f.slot)
            });
            if alone(first) {
                n += join.count();
            }
            if n > 1 {
                let fields = left[..n].iter().map(|f| (base + f.slot, f.width));
                self.add(fields.collect());
            }
            left = &left[n..];
        }
    }

    fn add(&mut self, fields: Vec<(Slot, u32)>) {
        let known = fields.iter().find_map(|(slot, _)| self.of.get(slot));
        if let Some(&(known, _)) = known {
            // Another statement extracts the header, too, or the slots serve two purposes.
            let known = &mut self.all[known];
            known.stands &= known.fields == fields;
            return;
        }
        for (place, (slot, _)) in fields.iter().enumerate() {
            self.of.insert(*slot, (self.all.len(), place));
        }
        self.all.push(SlotGroup {
            fields,
            stands: true,
        });
    }

    /// Removes the groups whose fields are not side by side in this layout of a value at slot `base`.
    fn check(&mut self, layout: &Layout, base: Slot) {
        let mut at = 0;
        while let Some(field) = layout.fields.get(at) {
            let mut n = 1;
            if let Some(&(group, place)) = self.of.get(&(base + field.slot)) {
                let group = &mut self.all[group];
                let there = layout.fields[at..].iter();
                let there = there.map(|f| (base + f.slot, f.width));
                let whole = place == 0
                    && there
                        .take(group.fields.len())
                        .eq(group.fields.iter().copied());
                // Loads take whole bytes, and at most eight.
                let bits: u32 = group.fields.iter().map(|(_, w)| w).sum();
                group.stands &= whole && field.offset % 8 + bits <= WORD;
                if whole {
                    n = group.fields.len();
                }
            }
            at += n;
        }
    }

    /// The layout with each group as one field; `None` if the value contains no group.
    fn join(&self, layout: &Layout, base: Slot) -> Option<Layout> {
        let mut fields: Vec<LayoutField> = Vec::new();
        for field in &layout.fields {
            match self.of.get(&(base + field.slot)) {
                Some((group, place)) if *place > 0 && self.all[*group].stands => {
                    // The group's first field is present, and the fields are side by side.
                    if let Some(first) = fields.last_mut() {
                        first.width += field.width;
                    }
                }
                _ => fields.push(*field),
            }
        }
        (fields.len() < layout.fields.len()).then(|| Layout {
            fields,
            ..layout.clone()
        })
    }

    fn standing(self) -> impl Iterator<Item = Coalesced> {
        let standing = self.all.into_iter().filter(|g| g.stands);
        standing.map(|g| Coalesced(g.fields))
    }
}

#[cfg(test)]
mod tests;

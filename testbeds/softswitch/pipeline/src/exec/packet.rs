//! Executes extraction and emission of headers, and hashes over data and payload.

use super::fields::{self, read_fields, write_fields};
use super::{Machine, room};
use crate::bits::mask;
use crate::op::{Code, HashPlan, Layout};

impl Machine<'_> {
    /// Extracts a header from the packet to slot `d` on; returns false if the packet is too short.
    #[inline(never)]
    pub(super) fn extract(&mut self, frame: &mut [u64], code: &Code, layout: u32, d: u32) -> bool {
        let layout = &code.layouts[layout as usize];
        if !layout.plain || !self.cursor.is_multiple_of(8) {
            return self.extract_any(frame, layout, d);
        }
        let (start, bits) = (self.cursor / 8, layout.bits as usize);
        let Some(bytes) = self.packet.get(start..start + bits / 8) else {
            return false;
        };
        let slots = &mut frame[d as usize..(d + layout.slots) as usize];
        slots[0] = 1;
        layout.codec.load_all(slots, bytes);
        self.cursor += bits;
        true
    }

    #[inline(never)]
    fn extract_any(&mut self, frame: &mut [u64], layout: &Layout, d: u32) -> bool {
        let there = room(self.packet, self.cursor, layout.bits.into());
        if there {
            read_fields(frame, self.packet, self.cursor, layout, d);
            self.cursor += layout.bits as usize;
        }
        there
    }

    /// Appends the header at slot `s` to the outgoing packet, if the header is valid.
    #[inline(never)]
    pub(super) fn emit(&mut self, frame: &[u64], code: &Code, layout: u32, s: u32) {
        let layout = &code.layouts[layout as usize];
        if layout.varbit.is_none() {
            let slots = &frame[s as usize..(s + layout.slots) as usize];
            layout.codec.write(slots, self.out);
        } else {
            self.emit_any(frame, layout, s);
        }
    }

    #[inline(never)]
    fn emit_any(&mut self, frame: &[u64], layout: &Layout, s: u32) {
        write_fields(frame, self.out, layout, s, 0);
    }

    /// Computes the hash of data in the frame, and of the packet's payload if plan `i` includes it.
    #[inline(never)]
    pub(super) fn hash(&mut self, frame: &mut [u64], code: &Code, i: u32) {
        let plan = &code.hashes[i as usize];
        let layout = &code.layouts[plan.layout as usize];
        if plan.is_sum {
            let sum = fields::ones_complement_sum(frame, layout, plan.data);
            frame[plan.d as usize] = (!sum).into();
        } else {
            self.hash_any(frame, plan, layout);
        }
    }

    #[inline(never)]
    fn hash_any(&mut self, frame: &mut [u64], plan: &HashPlan, layout: &Layout) {
        let payload = match plan.payload {
            true => self.cursor.div_ceil(8).min(self.packet.len()),
            false => self.packet.len(),
        };
        let h = fields::hash(
            frame,
            &mut self.state.scratch,
            plan,
            layout,
            &self.packet[payload..],
        );
        frame[plan.d as usize] = match plan.bounds {
            None => h,
            Some((base, max)) => {
                let (base, max) = (frame[base as usize], frame[max as usize]);
                base.wrapping_add(h.checked_rem(max).unwrap_or(0))
            }
        } & mask(plan.w.into());
    }
}

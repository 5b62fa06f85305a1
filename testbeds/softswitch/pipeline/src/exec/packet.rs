//! Headers in and out, and hashes over them.

use super::bits::mask;
use super::fields::{self, read_fields, write_fields};
use super::{Machine, room};
use crate::op::Code;

impl Machine<'_> {
    /// Takes a header off the packet, if it is all there.
    #[inline(never)]
    pub(super) fn extract(&mut self, frame: &mut [u64], code: &Code, layout: u32, d: u32) -> bool {
        let layout = &code.layouts[layout as usize];
        let there = room(self.packet, self.cursor, layout.bits.into());
        if there {
            read_fields(frame, self.packet, self.cursor, layout, d);
            self.cursor += layout.bits as usize;
        }
        there
    }

    /// Appends a valid header.
    #[inline(never)]
    pub(super) fn emit(&mut self, frame: &[u64], code: &Code, layout: u32, s: u32) {
        write_fields(frame, self.out, &code.layouts[layout as usize], s, 0);
    }

    /// Hashes data, and the payload if the plan says so.
    #[inline(never)]
    pub(super) fn hash(&mut self, frame: &mut [u64], code: &Code, i: u32) {
        let plan = &code.hashes[i as usize];
        let payload = match plan.payload {
            true => self.cursor.div_ceil(8).min(self.packet.len()),
            false => self.packet.len(),
        };
        let h = fields::hash(
            frame,
            &mut self.state.scratch,
            plan,
            &code.layouts[plan.layout as usize],
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

//! Executes instructions that access more than the frame: the packet, tables, externs.
//!
//! They are separate from the loop over plain instructions, which is faster for being small; the most frequent ones have
//! functions of their own (`apply`, `packet`).

use super::fields::{self, extract_varbit, read_fields, serialise};
use super::{Machine, copy, room, wide};
use crate::bits::mask;
use crate::externs::hash;
use crate::op::{Code, ErrorCodes, Op, Slot, Target};

impl Machine<'_> {
    /// Executes one instruction; returns the position of the next instruction, or `None` if that is the following one.
    #[inline(never)]
    pub(super) fn call(
        &mut self,
        frame: &mut [u64],
        code: &Code,
        errors: &ErrorCodes,
        op: &Op,
    ) -> Option<Target> {
        let mut jump = None;
        macro_rules! f {
            ($s:expr) => {
                frame[$s as usize]
            };
        }
        match *op {
            Op::Assert { c } => self.failed_assertions += u64::from(f!(c) == 0),
            Op::Fail { error, to } => {
                self.error = f!(error);
                jump = Some(to);
            }
            Op::Wide(i) => wide::wide(&code.wide[i as usize], frame),
            Op::LoadElement { e, d } => {
                let e = &code.elements[e as usize];
                let index = f!(e.index);
                if index < u64::from(e.count) {
                    copy(frame, d, e.stack + 1 + index as u32 * e.stride, e.stride);
                } else {
                    frame[d as usize..(d + e.stride) as usize].fill(0);
                }
            }
            Op::StoreElement { e, s } => {
                let e = &code.elements[e as usize];
                let index = f!(e.index);
                if index < u64::from(e.count) {
                    copy(frame, e.stack + 1 + index as u32 * e.stride, s, e.stride);
                }
            }
            Op::Push { e, n } => {
                let e = &code.elements[e as usize];
                let (first, n) = ((e.stack + 1) as usize, n.min(e.count));
                let (all, gap) = ((e.count * e.stride) as usize, (n * e.stride) as usize);
                frame.copy_within(first..first + all - gap, first + gap);
                frame[first..first + gap].fill(0);
                f!(e.stack) = (f!(e.stack) + u64::from(n)).min(e.count.into());
            }
            Op::Pop { e, n } => {
                let e = &code.elements[e as usize];
                let (first, n) = ((e.stack + 1) as usize, n.min(e.count));
                let (all, gap) = ((e.count * e.stride) as usize, (n * e.stride) as usize);
                frame.copy_within(first + gap..first + all, first);
                frame[first + all - gap..first + all].fill(0);
                f!(e.stack) = f!(e.stack).saturating_sub(n.into());
            }
            Op::ExtractVarbit {
                layout,
                d,
                bits,
                to,
            } => {
                let layout = &code.layouts[layout as usize];
                let bits = f!(bits);
                self.error = extract_varbit(
                    frame,
                    self.packet,
                    &mut self.cursor,
                    errors,
                    layout,
                    d,
                    bits,
                );
                if self.error != 0 {
                    jump = Some(to);
                }
            }
            Op::Lookahead { layout, d, to } => {
                let layout = &code.layouts[layout as usize];
                if room(self.packet, self.cursor, layout.bits.into()) {
                    read_fields(frame, self.packet, self.cursor, layout, d);
                } else {
                    self.error = errors.packet_too_short;
                    jump = Some(to);
                }
            }
            Op::Advance { bits, to } => {
                let bits = f!(bits);
                if room(self.packet, self.cursor, bits) {
                    self.cursor += bits as usize;
                } else {
                    self.error = errors.packet_too_short;
                    jump = Some(to);
                }
            }
            Op::PacketLength { d } => f!(d) = self.packet.len() as u64 & mask(32),
            Op::InValueSet { d, set } => {
                let (set, keys) = &code.value_sets[set as usize];
                f!(d) = self.state.value_sets[*set as usize]
                    .contains(frame, keys)
                    .into();
            }
            Op::Count { counter, index } => {
                let index = f!(index);
                let bytes = self.state.counted(self.packet.len());
                self.state.cells.counters[counter as usize].count(index, bytes);
            }
            Op::CountDirect { table } => {
                let bytes = self.state.counted(self.packet.len());
                let found = self.state.found[table as usize];
                self.state.tables[table as usize].count(found, bytes);
            }
            Op::MeterDirect { table, colour, d } => {
                let (colour, bytes) = (f!(colour), self.state.counted(self.packet.len()));
                let found = self.state.found[table as usize];
                let table = &mut self.state.tables[table as usize];
                f!(d) = table.mark(found, colour, self.now_ns, bytes);
            }
            Op::Meter {
                meter,
                index,
                colour,
                d,
            } => {
                let (index, colour) = (f!(index), f!(colour));
                let bytes = self.state.counted(self.packet.len());
                f!(d) = self.state.cells.meters[meter as usize].execute(
                    index,
                    colour,
                    self.now_ns,
                    bytes,
                );
            }
            Op::ChecksumClear { unit } => self.state.checksums[unit as usize].clear(),
            Op::ChecksumAdd {
                unit,
                layout,
                s,
                subtract: false,
            } if code.layouts[layout as usize].varbit.is_none() => {
                let sum = fields::ones_complement_sum(frame, &code.layouts[layout as usize], s);
                self.state.checksums[unit as usize].add_sum(sum);
            }
            Op::ChecksumAdd {
                unit,
                layout,
                s,
                subtract,
            } => {
                serialise(
                    frame,
                    &mut self.state.scratch,
                    &code.layouts[layout as usize],
                    s,
                );
                let state = &mut self.state.checksums[unit as usize];
                if subtract {
                    state.subtract(&self.state.scratch);
                } else {
                    state.add(&self.state.scratch);
                }
            }
            Op::ChecksumGet { unit, d } => {
                f!(d) = self.state.checksums[unit as usize].result().into()
            }
            Op::ChecksumState { unit, d } => f!(d) = self.state.checksums[unit as usize].sum.into(),
            Op::ChecksumSetState { unit, s } => {
                self.state.checksums[unit as usize].sum = f!(s) as u16;
            }
            Op::ChecksumUpdate { unit, layout, s } => {
                serialise(
                    frame,
                    &mut self.state.scratch,
                    &code.layouts[layout as usize],
                    s,
                );
                self.state.checksums[unit as usize]
                    .data
                    .extend_from_slice(&self.state.scratch);
            }
            Op::ChecksumFinish { unit, hash } => {
                let plan = &code.hashes[hash as usize];
                let data = &self.state.checksums[unit as usize].data;
                let bits = data.len() as u32 * 8;
                f!(plan.d) =
                    hash::compute(plan.algorithm, data, plan.w.into(), bits) & mask(plan.w.into());
            }
            Op::Random { unit, d } => f!(d) = self.state.randoms[unit as usize].next(),
            Op::RandomRange { unit, d, low, high } => {
                let (low, high) = (f!(low), f!(high));
                f!(d) = self.state.randoms[unit as usize].between(low, high);
            }
            Op::AdjustBytes { s } => self.state.pass.adjust = f!(s),
            Op::RegisterOnce { unit } => self.state.executed(unit),
            Op::DirectRead {
                table,
                offset,
                words,
                d,
            } => {
                let d = d as usize;
                let into = &mut frame[d..d + words as usize];
                let (found, pipe) = (self.state.found[table as usize], self.state.pass.pipe);
                self.state.tables[table as usize].read_cell(found, offset, pipe, into);
            }
            Op::DirectWrite {
                every,
                table,
                offset,
                words,
                s,
            } => {
                let s = s as usize;
                let from = &frame[s..s + words as usize];
                let (found, pipe) = (self.state.found[table as usize], self.state.pass.pipe);
                let table = &mut self.state.tables[table as usize];
                match every {
                    false => table.write_cell(found, offset, pipe, from),
                    true => table.write_cells(offset, pipe, from),
                }
            }
            Op::MemberRead { profile, index, d } => {
                let profile = &self.state.profiles[profile as usize];
                f!(d) = profile.is_in(f!(index)).into();
            }
            Op::MemberWrite { profile, index, s } => {
                let profile = &mut self.state.profiles[profile as usize];
                profile.put_in(f!(index), f!(s) != 0);
            }
            Op::Capture {
                kind,
                session,
                layout,
                s,
            } => {
                let mut data = Vec::new();
                if let Some(layout) = layout {
                    serialise(frame, &mut data, &code.layouts[layout as usize], s);
                }
                self.state.captures[usize::from(kind)] = Some((f!(session), data));
            }
            Op::Filter {
                filter,
                index,
                s,
                d,
            } => {
                let (index, value, now) = (f!(index), f!(s), self.now_ns);
                f!(d) = self.state.cells.filters[filter as usize].execute(index, value, now);
            }
            Op::DirectFilter { filter, s, d } => {
                f!(d) = self.state.direct_filter(filter, f!(s), self.now_ns);
            }
            Op::Math { unit, w, d, s } => {
                f!(d) = code.maths[unit as usize].execute(f!(s)) & mask(w.into());
            }
            Op::ChecksumResidual { unit, start, d } => {
                let read = f!(start) as usize / 8..self.cursor / 8;
                let unit = &mut self.state.checksums[unit as usize];
                unit.subtract(self.packet.get(read).unwrap_or_default());
                f!(d) = unit.sum.into();
            }
            Op::Cursor { d } => f!(d) = self.cursor as u64,
            Op::Digest { digest, s } => {
                let (instance, layout) = code.digests[digest as usize];
                self.state
                    .digest(instance, frame, &code.layouts[layout as usize], s);
            }
            Op::Trace(mark) if self.trace.len() < crate::config::TRACE_LIMIT => {
                self.trace.push(mark)
            }
            // Instructions of the loop itself, and those that pass a guard above.
            _ => {}
        }
        jump
    }

    /// Reads the cell `index` of register `r` to slot `d` and the slots after it.
    #[inline(never)]
    pub(super) fn register_read(
        &self,
        frame: &mut [u64],
        code: &Code,
        r: u32,
        index: u64,
        d: Slot,
    ) {
        let (plan, d) = (&code.registers[r as usize], d as usize);
        let cell = &mut frame[d..d + plan.words as usize];
        self.state.cells.banks[plan.bank as usize].read(index, plan.offset, cell);
    }

    /// Writes the value at slot `s` and the slots after it to the cell `index` of register `r`.
    #[inline(never)]
    pub(super) fn register_write(
        &mut self,
        frame: &[u64],
        code: &Code,
        r: u32,
        index: u64,
        s: Slot,
    ) {
        let (plan, s) = (&code.registers[r as usize], s as usize);
        let cell = &frame[s..s + plan.words as usize];
        self.state.cells.banks[plan.bank as usize].write(index, plan.offset, cell);
    }
}

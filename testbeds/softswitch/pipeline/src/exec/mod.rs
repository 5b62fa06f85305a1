//! The interpreter: one loop over [`Op`]s.

pub mod alu;
pub mod bits;
pub mod codec;
mod fields;
pub mod lanes;

use crate::externs::State;
use crate::externs::hash;
use crate::externs::meter;
use crate::externs::profile::Indirect;
use crate::op::{Code, Op};
use bits::mask;
use fields::{extract_varbit, read_fields, serialise, write_fields};

/// What a program's blocks run against.
pub struct Machine<'a> {
    /// Frame of slots; constants stay in place.
    pub frame: &'a mut [u64],
    /// What the parser reads.
    pub packet: &'a [u8],
    /// Bits read so far.
    pub cursor: usize,
    /// What the deparser writes.
    pub out: &'a mut Vec<u8>,
    /// Tables and externs.
    pub state: &'a mut State,
    /// Time.
    pub now_ns: u64,
    /// Loop steps and parser states that are left.
    pub steps: u32,
    /// Index of the parser error; 0 is `NoError`.
    pub error: u64,
    /// The steps ran out.
    pub out_of_steps: bool,
    /// `assert` calls that were false.
    pub failed_assertions: u64,
    /// What is met, if anyone wants to know.
    pub trace: &'a mut Vec<u32>,
}

/// Values of `error` that the machine itself raises, as the program numbers them.
#[derive(Debug, Clone, Copy, Default)]
pub struct ErrorCodes {
    /// `PacketTooShort`
    pub packet_too_short: u64,
    /// `HeaderTooShort`
    pub header_too_short: u64,
    /// `ParserTimeout`
    pub parser_timeout: u64,
    /// `ParserInvalidArgument`
    pub invalid_argument: u64,
}

impl Machine<'_> {
    /// Runs from `pc` to the block's end.
    pub fn run(&mut self, code: &Code, errors: &ErrorCodes, entry: u32) {
        let ops = code.ops.as_slice();
        let mut pc = entry as usize;
        // Held apart, so that its address and length stay in registers.
        let frame = &mut *self.frame;
        macro_rules! f {
            ($s:expr) => {
                frame[$s as usize]
            };
        }
        macro_rules! t3 {
            ($t:expr, |$a:ident, $b:ident| $value:expr) => {{
                let ($a, $b) = (f!($t.a), f!($t.b));
                f!($t.d) = $value;
            }};
        }
        while let Some(op) = ops.get(pc) {
            pc += 1;
            match *op {
                Op::Jump(to) => pc = to as usize,
                Op::JumpIf { c, to } => {
                    if f!(c) != 0 {
                        pc = to as usize;
                    }
                }
                Op::JumpIfNot { c, to } => {
                    if f!(c) == 0 {
                        pc = to as usize;
                    }
                }
                Op::JumpEq { a, b, to } => {
                    if f!(a) == f!(b) {
                        pc = to as usize;
                    }
                }
                Op::JumpNe { a, b, to } => {
                    if f!(a) != f!(b) {
                        pc = to as usize;
                    }
                }
                Op::End => return,
                Op::Step { to } => {
                    if self.steps == 0 {
                        self.out_of_steps = true;
                        self.error = errors.parser_timeout;
                        pc = to as usize;
                    } else {
                        self.steps -= 1;
                    }
                }
                Op::Assert { c } => self.failed_assertions += u64::from(f!(c) == 0),
                Op::Fail { error, to } => {
                    self.error = f!(error);
                    pc = to as usize;
                }
                Op::Mov { d, s } => f!(d) = f!(s),
                Op::MovIf { g, d, s } => {
                    if f!(g) != 0 {
                        f!(d) = f!(s);
                    }
                }
                Op::Copy { d, s, n } => copy(frame, d, s, n),
                Op::CopyIf { g, d, s, n } => {
                    if f!(g) != 0 {
                        copy(frame, d, s, n);
                    }
                }
                Op::Zero { d, n } => frame[d as usize..(d + n) as usize].fill(0),
                Op::Add(t) => t3!(t, |a, b| a.wrapping_add(b) & mask(t.w.into())),
                Op::Sub(t) => t3!(t, |a, b| a.wrapping_sub(b) & mask(t.w.into())),
                Op::Mul(t) => t3!(t, |a, b| a.wrapping_mul(b) & mask(t.w.into())),
                // Division by zero is undefined in P4; here it gives 0.
                Op::Div(t) => t3!(t, |a, b| a.checked_div(b).unwrap_or(0)),
                Op::Mod(t) => t3!(t, |a, b| a.checked_rem(b).unwrap_or(0)),
                Op::AddSat(t) => t3!(t, |a, b| alu::add_sat(a, b, t.w.into())),
                Op::SubSat(t) => t3!(t, |a, b| a.saturating_sub(b)),
                Op::AddSatS(t) => t3!(t, |a, b| alu::add_sat_signed(a, b, t.w.into())),
                Op::SubSatS(t) => t3!(t, |a, b| alu::sub_sat_signed(a, b, t.w.into())),
                Op::And(t) => t3!(t, |a, b| a & b),
                Op::Or(t) => t3!(t, |a, b| a | b),
                Op::Xor(t) => t3!(t, |a, b| a ^ b),
                Op::Shl(t) => t3!(t, |a, b| alu::shl(a, b, t.w.into())),
                Op::Shr(t) => t3!(t, |a, b| alu::shr(a, b)),
                Op::Sar(t) => t3!(t, |a, b| alu::sar(a, b, t.w.into())),
                Op::Eq(t) => t3!(t, |a, b| u64::from(a == b)),
                Op::Ne(t) => t3!(t, |a, b| u64::from(a != b)),
                Op::Lt(t) => t3!(t, |a, b| u64::from(a < b)),
                Op::Le(t) => t3!(t, |a, b| u64::from(a <= b)),
                Op::LtS(t) => t3!(t, |a, b| {
                    u64::from(alu::signed(a, t.w.into()) < alu::signed(b, t.w.into()))
                }),
                Op::LeS(t) => t3!(t, |a, b| {
                    u64::from(alu::signed(a, t.w.into()) <= alu::signed(b, t.w.into()))
                }),
                Op::Not { d, a } => f!(d) = f!(a) ^ 1,
                Op::BitNot { w, d, a } => f!(d) = !f!(a) & mask(w.into()),
                Op::Neg { w, d, a } => f!(d) = f!(a).wrapping_neg() & mask(w.into()),
                Op::Slice { lo, w, d, a } => f!(d) = f!(a) >> lo & mask(w.into()),
                Op::Insert { lo, w, d, a, s } => {
                    let hole = mask(w.into()) << lo;
                    f!(d) = f!(a) & !hole | f!(s) << lo & hole;
                }
                Op::SignExtend { from, to, d, a } => {
                    f!(d) = alu::signed(f!(a), from.into()) as u64 & mask(to.into());
                }
                Op::Concat { wb, d, a, b } => {
                    f!(d) = alu::shl(f!(a), wb.into(), 64) | f!(b);
                }
                Op::EqRange { d, a, b, n } => {
                    let (a, b, n) = (a as usize, b as usize, n as usize);
                    f!(d) = u64::from(frame[a..a + n] == frame[b..b + n]);
                }
                Op::Wide(i) => alu::wide(&code.wide[i as usize], frame),
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
                Op::Extract { layout, d, to } => {
                    let layout = &code.layouts[layout as usize];
                    if room(self.packet, self.cursor, layout.bits.into()) {
                        read_fields(frame, self.packet, self.cursor, layout, d);
                        self.cursor += layout.bits as usize;
                    } else {
                        self.error = errors.packet_too_short;
                        pc = to as usize;
                    }
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
                        pc = to as usize;
                    }
                }
                Op::Lookahead { layout, d, to } => {
                    let layout = &code.layouts[layout as usize];
                    if room(self.packet, self.cursor, layout.bits.into()) {
                        read_fields(frame, self.packet, self.cursor, layout, d);
                    } else {
                        self.error = errors.packet_too_short;
                        pc = to as usize;
                    }
                }
                Op::Advance { bits, to } => {
                    let bits = f!(bits);
                    if room(self.packet, self.cursor, bits) {
                        self.cursor += bits as usize;
                    } else {
                        self.error = errors.packet_too_short;
                        pc = to as usize;
                    }
                }
                Op::PacketLength { d } => f!(d) = self.packet.len() as u64 & mask(32),
                Op::Emit { layout, s } => {
                    if f!(s) != 0 {
                        write_fields(frame, self.out, &code.layouts[layout as usize], s, 0);
                    }
                }
                Op::InValueSet { d, set } => {
                    let (set, keys) = &code.value_sets[set as usize];
                    f!(d) = self.state.value_sets[*set as usize]
                        .contains(frame, keys)
                        .into();
                }
                Op::Apply(i) => {
                    let apply = &code.applies[i as usize];
                    let key = apply.key as usize;
                    let table = &mut self.state.tables[apply.table as usize];
                    let key = &frame[key..key + apply.key_slots as usize];
                    let (hit, action) = match &apply.profile {
                        None => table.lookup(key),
                        Some(plan) => {
                            table.lookup(key);
                            let profile = &self.state.profiles[plan.profile as usize];
                            let indirect = table.found_indirect();
                            let hash = match (indirect, plan.data, profile.selector) {
                                (
                                    Some(Indirect::Group(_) | Indirect::OneShot(_)),
                                    Some((layout, s)),
                                    Some(selector),
                                ) => {
                                    let layout = &code.layouts[layout as usize];
                                    let scratch = &mut self.state.scratch;
                                    serialise(frame, scratch, layout, s);
                                    let (algorithm, w) = (selector.algorithm, selector.width);
                                    hash::compute(algorithm, scratch, w, layout.bits) & mask(w)
                                }
                                _ => 0,
                            };
                            match indirect {
                                None => table.found_action(),
                                Some(indirect) => {
                                    let place = plan.place as usize;
                                    // An empty group does nothing.
                                    let nothing = table.found_action();
                                    match profile.action(place, indirect, hash) {
                                        Some(action) => (true, action),
                                        None => nothing,
                                    }
                                }
                            }
                        }
                    };
                    if let Some(slot) = apply.hit {
                        f!(slot) = hit.into();
                    }
                    let next = match action.index {
                        Some(index) => {
                            let at = apply.params[index as usize] as usize;
                            frame[at..at + action.params.len()].copy_from_slice(&action.params);
                            if let Some(slot) = apply.action_run {
                                f!(slot) = index.into();
                            }
                            apply.targets[index as usize] as usize
                        }
                        None => {
                            if let Some(slot) = apply.action_run {
                                f!(slot) = u32::MAX.into();
                            }
                            apply.end as usize
                        }
                    };
                    pc = next;
                    if table.spec.idle_timeout && hit {
                        table.touch(self.now_ns);
                    }
                    if apply.counts {
                        table.count(self.packet.len() as u64);
                    }
                    if let Some(slot) = apply.colour {
                        f!(slot) = table.mark(meter::GREEN, self.now_ns, self.packet.len() as u64);
                    }
                }
                Op::RegisterRead { r, d, index } => {
                    let plan = &code.registers[r as usize];
                    let index = f!(index);
                    let d = d as usize;
                    self.state.banks[plan.bank as usize].read(
                        index,
                        plan.offset,
                        &mut frame[d..d + plan.words as usize],
                    );
                }
                Op::RegisterWrite { r, index, s } => {
                    let plan = &code.registers[r as usize];
                    let index = f!(index);
                    let s = s as usize;
                    self.state.banks[plan.bank as usize].write(
                        index,
                        plan.offset,
                        &frame[s..s + plan.words as usize],
                    );
                }
                Op::Count { counter, index } => {
                    let index = f!(index);
                    let bytes = self.state.counted(self.packet.len());
                    self.state.counters[counter as usize].count(index, bytes);
                }
                Op::CountDirect { table } => {
                    let bytes = self.state.counted(self.packet.len());
                    self.state.tables[table as usize].count(bytes);
                }
                Op::MeterDirect { table, colour, d } => {
                    let (colour, bytes) = (f!(colour), self.state.counted(self.packet.len()));
                    f!(d) = self.state.tables[table as usize].mark(colour, self.now_ns, bytes);
                }
                Op::Meter {
                    meter,
                    index,
                    colour,
                    d,
                } => {
                    let (index, colour) = (f!(index), f!(colour));
                    let bytes = self.state.counted(self.packet.len());
                    f!(d) = self.state.meters[meter as usize].execute(
                        index,
                        colour,
                        self.now_ns,
                        bytes,
                    );
                }
                Op::Hash(i) => {
                    let plan = &code.hashes[i as usize];
                    let payload = self.cursor.div_ceil(8).min(self.packet.len());
                    let h = fields::hash(
                        frame,
                        &mut self.state.scratch,
                        plan,
                        &code.layouts[plan.layout as usize],
                        &self.packet[payload..],
                    );
                    f!(plan.d) = match plan.bounds {
                        None => h,
                        Some((base, max)) => {
                            f!(base).wrapping_add(h.checked_rem(f!(max)).unwrap_or(0))
                        }
                    } & mask(plan.w.into());
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
                Op::ChecksumState { unit, d } => {
                    f!(d) = self.state.checksums[unit as usize].sum.into()
                }
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
                    f!(plan.d) = hash::compute(plan.algorithm, data, plan.w.into(), bits)
                        & mask(plan.w.into());
                }
                Op::Random { unit, d } => f!(d) = self.state.randoms[unit as usize].next(),
                Op::RandomRange { unit, d, low, high } => {
                    let (low, high) = (f!(low), f!(high));
                    f!(d) = self.state.randoms[unit as usize].between(low, high);
                }
                Op::AdjustBytes { s } => self.state.adjust = f!(s),
                Op::RegisterOnce { unit } => self.state.executed(unit),
                Op::NextLog { log, d, size } => {
                    let next = &mut self.state.logs[log as usize];
                    f!(d) = *next;
                    *next = (*next + 1).checked_rem(f!(size)).unwrap_or(0);
                }
                Op::DirectRead {
                    table,
                    offset,
                    words,
                    d,
                } => {
                    let d = d as usize;
                    let into = &mut frame[d..d + words as usize];
                    self.state.tables[table as usize].read_cell(offset, self.state.pipe, into);
                }
                Op::DirectWrite {
                    table,
                    offset,
                    words,
                    s,
                } => {
                    let s = s as usize;
                    let from = &frame[s..s + words as usize];
                    self.state.tables[table as usize].write_cell(offset, self.state.pipe, from);
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
                    f!(d) = self.state.filters[filter as usize].execute(index, value, now);
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
                Op::Lanes { lanes, to } => {
                    code.lanes[lanes as usize].run(frame, &mut self.state.banks);
                    pc = to as usize;
                }
                Op::Trace(mark) => {
                    if self.trace.len() < crate::switch::TRACE_LIMIT {
                        self.trace.push(mark);
                    }
                }
            }
        }
    }
}

#[inline(always)]
fn copy(frame: &mut [u64], d: u32, s: u32, n: u32) {
    frame.copy_within(s as usize..(s + n) as usize, d as usize);
}

#[inline(always)]
fn room(packet: &[u8], cursor: usize, bits: u64) -> bool {
    bits <= (packet.len() * 8 - cursor) as u64
}

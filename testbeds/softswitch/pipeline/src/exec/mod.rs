//! The fast executor, a register machine: one loop over [`Op`]s.

pub mod alu;
mod apply;
mod calls;
mod fields;
mod packet;
pub mod wide;

use crate::bits::mask;
use crate::op::{Code, ErrorCodes, Op};
use crate::state::State;

/// The context in which the fast executor runs a program's blocks.
pub struct Machine<'a> {
    /// The array of 64-bit slots that holds the program's variables; the constants in its first slots are never written.
    pub frame: &'a mut [u64],
    pub packet: &'a [u8],
    /// Number of bits of the packet that the parser has read so far.
    pub cursor: usize,
    /// Bytes of the packet that the deparser emits.
    pub out: &'a mut Vec<u8>,
    /// Tables and extern objects of the program.
    pub state: &'a mut State,
    /// Current time in nanoseconds.
    pub now_ns: u64,
    /// Maximum number of steps (loop iterations and parser states) of a block.
    pub max_steps: u32,
    /// Remaining number of steps of the current block.
    pub steps: u32,
    /// Number of the parser error; 0 is `NoError`.
    pub error: u64,
    /// The parser's error when it ended, saved for the blocks that follow directly; `None`: no such parser has ended.
    pub verdict: Option<u64>,
    /// Number of block runs that exceeded the step limit.
    pub out_of_steps: u64,
    /// Number of failed calls of `assert`.
    pub failed_assertions: u64,
    /// Indices of the trace marks that the packet met, if the code contains trace instructions.
    pub trace: &'a mut Vec<u32>,
}

impl Machine<'_> {
    /// Runs blocks one after the other, each from its position in `entries` to its `End` instruction.
    pub fn run(&mut self, code: &Code, errors: &ErrorCodes, entries: &[u32]) {
        // As a local variable, it stays in registers.
        let frame = std::mem::take(&mut self.frame);
        let ops = code.ops.as_slice();
        let mut entries = entries.iter();
        // The remaining code from the next instruction on: one pointer to advance, and one comparison to detect the end.
        let mut next = [].iter();
        macro_rules! jump {
            ($to:expr) => {
                next = ops.get($to as usize..).unwrap_or_default().iter()
            };
        }
        if let Some(entry) = entries.next() {
            jump!(*entry);
        }
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
        while let Some(op) = next.next() {
            match *op {
                Op::Jump(to) => jump!(to),
                Op::JumpIf { c, to } => {
                    if f!(c) != 0 {
                        jump!(to);
                    }
                }
                Op::JumpIfNot { c, to } => {
                    if f!(c) == 0 {
                        jump!(to);
                    }
                }
                Op::JumpEq { a, b, to } => {
                    if f!(a) == f!(b) {
                        jump!(to);
                    }
                }
                Op::JumpNe { a, b, to } => {
                    if f!(a) != f!(b) {
                        jump!(to);
                    }
                }
                Op::End => match entries.next() {
                    Some(entry) => {
                        self.steps = self.max_steps;
                        jump!(*entry);
                    }
                    None => break,
                },
                Op::Step { to, cost } => match self.steps.checked_sub(cost) {
                    Some(left) => self.steps = left,
                    None => {
                        self.out_of_steps += 1;
                        self.error = errors.parser_timeout;
                        jump!(to);
                    }
                },
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
                // The most frequent calls, dispatched here directly.
                Op::Extract { layout, d, to } => {
                    if !self.extract(frame, code, layout, d) {
                        self.error = errors.packet_too_short;
                        jump!(to);
                    }
                }
                Op::Emit { layout, s } => {
                    if f!(s) != 0 {
                        self.emit(frame, code, layout, s);
                    }
                }
                Op::Apply(i) => jump!(self.apply(frame, code, i)),
                Op::Hash(i) => self.hash(frame, code, i),
                Op::Verdict { error, cleared } => {
                    f!(cleared) = 0;
                    f!(error) = self.error;
                    self.verdict = Some(self.error);
                }
                Op::RegisterRead { r, d, index } => {
                    let index = f!(index);
                    self.register_read(frame, code, r, index, d);
                }
                Op::RegisterWrite { r, index, s } => {
                    let index = f!(index);
                    self.register_write(frame, code, r, index, s);
                }
                Op::Lanes { lanes, to } => {
                    code.lanes[lanes as usize].run(frame, &mut self.state.cells.banks);
                    jump!(to);
                }
                // All of them by name, so that the jump needs no check for unknown instructions.
                ref other @ (Op::Assert { .. }
                | Op::Fail { .. }
                | Op::Wide(_)
                | Op::LoadElement { .. }
                | Op::StoreElement { .. }
                | Op::Push { .. }
                | Op::Pop { .. }
                | Op::ExtractVarbit { .. }
                | Op::Lookahead { .. }
                | Op::Advance { .. }
                | Op::PacketLength { .. }
                | Op::InValueSet { .. }
                | Op::Count { .. }
                | Op::CountDirect { .. }
                | Op::MeterDirect { .. }
                | Op::Meter { .. }
                | Op::ChecksumClear { .. }
                | Op::ChecksumAdd { .. }
                | Op::ChecksumGet { .. }
                | Op::ChecksumState { .. }
                | Op::ChecksumSetState { .. }
                | Op::ChecksumUpdate { .. }
                | Op::ChecksumFinish { .. }
                | Op::Random { .. }
                | Op::RandomRange { .. }
                | Op::AdjustBytes { .. }
                | Op::RegisterOnce { .. }
                | Op::DirectRead { .. }
                | Op::DirectWrite { .. }
                | Op::Capture { .. }
                | Op::Filter { .. }
                | Op::Math { .. }
                | Op::ChecksumResidual { .. }
                | Op::Cursor { .. }
                | Op::Digest { .. }
                | Op::MemberRead { .. }
                | Op::MemberWrite { .. }
                | Op::DirectFilter { .. }
                | Op::Trace(_)) => {
                    if let Some(to) = self.call(frame, code, errors, other) {
                        jump!(to);
                    }
                }
            }
        }
        self.frame = frame;
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

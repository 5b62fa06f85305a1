//! Methods of TNA's extern objects, compiled.

use super::bits_behind;
use super::objects::{COLOURS, own_colours};
use super::parser_counter::pushed;
use crate::call::MethodCall;
use crate::compile::expr::literal;
use crate::compile::surroundings::ResidualPlan;
use crate::compile::{Compiler, Result};
use crate::externs::capture;
use crate::op::bindings::{Object, TofinoObject};
use crate::op::{Op, Slot, T3};
use p4lang::ir::{Arg, Expr, ExternKind, LValue, Method};

/// Maximum length of a mirrored packet's header, in bytes.
const MIRROR_LIMIT: u32 = 32;

impl Compiler<'_> {
    pub(crate) fn call_tofino_method(&mut self, call: MethodCall<'_>) -> Result<()> {
        let MethodCall {
            object,
            method,
            args,
            result,
        } = call;
        let instance = &self.program.externs[object.index()];
        match (self.bindings.objects[object.index()], method, args) {
            (Object::Register(r), _, _) => self.register_method(r, call),
            (Object::Counter(counter), Method::Count, [Arg::In(index), rest @ ..]) => {
                let index = self.index(index)?;
                self.adjust(rest)?;
                self.op(Op::Count { counter, index })
            }
            (Object::DirectCounter, Method::Count, rest) => {
                let table = self.table_of(object, "counter")?;
                self.adjust(rest)?;
                self.op(Op::CountDirect { table })
            }
            (Object::Meter(meter), Method::Execute, [Arg::In(index), rest @ ..]) => {
                let index = self.index(index)?;
                let colour = self.colour_and_adjust(rest)?;
                let d = self.alloc(1)?;
                self.op(Op::Meter {
                    meter,
                    index,
                    colour,
                    d,
                })?;
                self.coloured(instance, d, result)
            }
            (Object::DirectMeter, Method::Execute, rest) => {
                let table = self.table_of(object, "meter")?;
                let colour = self.colour_and_adjust(rest)?;
                let d = self.alloc(1)?;
                self.op(Op::MeterDirect { table, colour, d })?;
                self.coloured(instance, d, result)
            }
            (Object::Hash(algorithm), Method::Get, [Arg::In(data)]) => {
                self.hash(algorithm, data, None, result)
            }
            (Object::Random(unit), Method::Get, []) => {
                self.write_result(result, |c, d| c.op(Op::Random { unit, d }))
            }
            (Object::Digest(instance), Method::Pack, [Arg::In(data)]) => {
                let gate = self.tofino.gates.digest;
                self.gated(gate, |c| c.digest(instance, data))
            }
            // Sets which of two ports has parser priority: no effect here, where no packet waits for another.
            (Object::Passive, Method::Set, [Arg::In(_)])
                if instance.kind == ExternKind::ParserPriority =>
            {
                Ok(())
            }
            (Object::Tofino(special), _, _) => self.special_method(special, call),
            _ => self.no_method(call),
        }
    }

    fn special_method(&mut self, special: TofinoObject, call: MethodCall<'_>) -> Result<()> {
        let MethodCall {
            method,
            args,
            result,
            ..
        } = call;
        let gates = self.tofino.gates;
        match (special, method, args) {
            (TofinoObject::RegisterAction, _, _) => self.register_action(call),
            (TofinoObject::DirectRegister, _, _) => self.direct_register_method(call),
            (TofinoObject::MathUnit(unit), Method::Execute, [Arg::In(x)]) => {
                let (w, s) = (
                    crate::compile::layout::width(&x.ty).min(64) as u8,
                    self.expr(x)?,
                );
                self.write_result(result, |c, d| c.op(Op::Math { unit, w, d, s }))
            }
            (TofinoObject::RegisterParam(r), Method::Read, []) => {
                let index = self.constant(0)?;
                self.write_result(result, |c, d| c.op(Op::RegisterRead { r, d, index }))
            }
            (TofinoObject::Filter(filter), Method::Execute, [Arg::In(value), Arg::In(index)]) => {
                let (s, index) = (self.expr(value)?, self.index(index)?);
                self.write_result(result, |c, d| {
                    c.op(Op::Filter {
                        filter,
                        index,
                        s,
                        d,
                    })
                })
            }
            (TofinoObject::DirectFilter(filter), Method::Execute, [Arg::In(value)]) => {
                if self.state.cells.filters[filter as usize].direct.is_none() {
                    return self.unsupported("a direct filter that no table uses");
                }
                let s = self.expr(value)?;
                self.write_result(result, |c, d| c.op(Op::DirectFilter { filter, s, d }))
            }
            (TofinoObject::Checksum(unit), _, _) => self.tofino_checksum(unit, call),
            (TofinoObject::ParserCounter(slot), _, _) => self.parser_counter(slot, call),
            (TofinoObject::Mirror, Method::Emit, [Arg::In(session), rest @ ..]) => {
                let session = self.index(session)?;
                self.gated(gates.mirror, |c| {
                    c.capture(capture::MIRROR, session, rest, MIRROR_LIMIT)
                })
            }
            (TofinoObject::Resubmit, Method::Emit, rest) => {
                let session = self.constant(0)?;
                let limit = crate::arch::tna::resubmit_limit(self.program);
                self.gated(gates.resubmit, |c| {
                    c.capture(capture::RESUBMIT, session, rest, limit)
                })
            }
            (TofinoObject::Pktgen, Method::Emit, rest) => {
                let session = self.constant(0)?;
                self.capture(capture::PKTGEN, session, rest, MIRROR_LIMIT)
            }
            _ => self.no_method(call),
        }
    }

    /// Compiles a deparser's request so that it has an effect only if the slot `gate` is not 0; `None`: always.
    fn gated(
        &mut self,
        gate: Option<Slot>,
        request: impl FnOnce(&mut Self) -> Result<()>,
    ) -> Result<()> {
        let skip = self.label();
        if let Some(c) = gate {
            self.op(Op::JumpIfNot { c, to: skip })?;
        }
        request(self)?;
        self.place(skip);
        Ok(())
    }

    fn capture(&mut self, kind: u8, session: Slot, data: &[Arg], limit: u32) -> Result<()> {
        let (layout, s) = match data {
            [Arg::In(data)] => {
                let layout = self.layout(&data.ty)?;
                let bytes = self.code.layouts[layout as usize].bits.div_ceil(8);
                if bytes > limit {
                    return self.unsupported(format!(
                        "{bytes} bytes in front of such a packet (the limit is {limit})"
                    ));
                }
                (Some(layout), self.expr(data)?)
            }
            _ => (None, session),
        };
        self.op(Op::Capture {
            kind,
            session,
            layout,
            s,
        })
    }

    /// Compiles the argument `adjust_byte_count` of a counter or meter: the number of bytes that are not counted.
    fn adjust(&mut self, args: &[Arg]) -> Result<()> {
        match args {
            [] | [Arg::Ignore] => Ok(()),
            [Arg::In(bytes)] => {
                let s = self.index(bytes)?;
                self.op(Op::AdjustBytes { s })
            }
            _ => self.unsupported("these arguments of a counter"),
        }
    }

    /// Compiles a meter's arguments after the index: previous color, number of bytes not to count, or both. Returns the color's
    /// slot.
    fn colour_and_adjust(&mut self, args: &[Arg]) -> Result<Slot> {
        let green = self.constant(COLOURS[0])?;
        match args {
            // Colours have 8 bits, counts of bytes 32.
            [Arg::In(e), rest @ ..] if crate::compile::layout::width(&e.ty) == 8 => {
                let colour = self.expr(e)?;
                self.adjust(rest)?;
                Ok(colour)
            }
            rest => {
                self.adjust(rest)?;
                Ok(green)
            }
        }
    }

    /// Stores a meter's color in the result, as the number that the meter's constructor gives for that color.
    fn coloured(
        &mut self,
        instance: &p4lang::ir::ExternInstance,
        colour: Slot,
        result: Option<&LValue>,
    ) -> Result<()> {
        let own = own_colours(instance);
        self.write_result(result, |c, d| {
            c.op(Op::Mov { d, s: colour })?;
            let end = c.label();
            for (standard, own) in COLOURS.into_iter().zip(own) {
                let Some(own) = own else { continue };
                let (skip, b, s) = (c.label(), c.constant(standard)?, c.constant(own)?);
                c.op(Op::JumpNe {
                    a: colour,
                    b,
                    to: skip,
                })?;
                c.op(Op::Mov { d, s })?;
                c.op(Op::Jump(end))?;
                c.place(skip);
            }
            c.place(end);
            Ok(())
        })
    }

    fn tofino_checksum(&mut self, unit: u32, call: MethodCall<'_>) -> Result<()> {
        let MethodCall {
            method,
            args,
            result,
            ..
        } = call;
        match (method, args) {
            (Method::Add | Method::Subtract, [Arg::In(data)]) => {
                self.checksum_data(unit, data, method == &Method::Subtract)
            }
            // The sum after subtractions: not complemented, to be added in `update`.
            (Method::Get, []) => {
                self.write_result(result, |c, d| c.op(Op::ChecksumState { unit, d }))
            }
            // True if the checksum is wrong, as a Tofino reports it.
            (Method::Verify, []) => {
                let (sum, zero) = (self.alloc(1)?, self.constant(0)?);
                self.op(Op::ChecksumGet { unit, d: sum })?;
                self.write_result(result, |c, d| {
                    c.op(Op::Ne(T3 {
                        w: 16,
                        d,
                        a: sum,
                        b: zero,
                    }))
                })
            }
            (Method::Update, [Arg::In(data), rest @ ..]) => {
                let ones = match rest {
                    [Arg::In(e)] => literal(e) == Some(1),
                    _ => false,
                };
                self.op(Op::ChecksumClear { unit })?;
                self.checksum_data(unit, data, false)?;
                self.write_result(result, |c, d| {
                    c.op(Op::ChecksumGet { unit, d })?;
                    if !ones {
                        return Ok(());
                    }
                    let (all, skip) = (c.constant(0xffff)?, c.label());
                    c.op(Op::JumpIf { c: d, to: skip })?;
                    c.op(Op::Mov { d, s: all })?;
                    c.place(skip);
                    Ok(())
                })
            }
            (Method::SubtractAllAndDeposit, [Arg::Out(to)]) => {
                let to = self.locate(to)?;
                // Kept until the end of the parser.
                let (met, start) = self.tofino_kept()?;
                let one = self.constant(1)?;
                self.op(Op::Mov { d: met, s: one })?;
                self.op(Op::Cursor { d: start })?;
                self.tofino.residuals.push(ResidualPlan {
                    unit,
                    met,
                    start,
                    to,
                });
                Ok(())
            }
            _ => self.unsupported(format!("method {method} of a checksum")),
        }
    }

    fn checksum_data(&mut self, unit: u32, data: &Expr, subtract: bool) -> Result<()> {
        let (layout, s) = (self.layout(&data.ty)?, self.expr(data)?);
        if !self.code.layouts[layout as usize].bits.is_multiple_of(8) {
            return self.unsupported("checksum data that is not a multiple of 8 bits");
        }
        self.op(Op::ChecksumAdd {
            unit,
            layout,
            s,
            subtract,
        })
    }

    /// Allocates two slots for a residual checksum, from those that the architecture sets to 0 before each parser.
    fn tofino_kept(&mut self) -> Result<(Slot, Slot)> {
        match (self.tofino.kept.pop(), self.tofino.kept.pop()) {
            (Some(met), Some(start)) => Ok((met, start)),
            _ => self.unsupported("more than 16 residual checksums"),
        }
    }

    /// Compiles the computation of the residual checksums at the end of a parser.
    pub(crate) fn residuals(&mut self) -> Result<()> {
        for ResidualPlan {
            unit,
            met,
            start,
            to,
        } in std::mem::take(&mut self.tofino.residuals)
        {
            let (skip, d) = (self.label(), self.alloc(1)?);
            self.op(Op::JumpIfNot { c: met, to: skip })?;
            self.op(Op::ChecksumResidual { unit, start, d })?;
            self.store(&to, d)?;
            self.place(skip);
        }
        Ok(())
    }

    /// Compiles a method of a parser counter, an 8-bit signed value in a slot.
    fn parser_counter(&mut self, slot: Slot, call: MethodCall<'_>) -> Result<()> {
        let MethodCall {
            method,
            args,
            result,
            ..
        } = call;
        let step = |c: &mut Self, e: &Expr, op: fn(T3) -> Op| {
            let b = c.expr(e)?;
            c.op(op(T3 {
                w: 8,
                d: slot,
                a: slot,
                b,
            }))
        };
        match (method, args) {
            (Method::Set, [Arg::In(value)]) => {
                let s = self.index(value)?;
                self.op(Op::Slice {
                    lo: 0,
                    w: 8,
                    d: slot,
                    a: s,
                })
            }
            (
                Method::Set,
                [
                    Arg::In(field),
                    Arg::In(max),
                    Arg::In(rotate),
                    Arg::In(mask),
                    Arg::In(add),
                ],
            ) => self.load_counter(slot, field, [max, rotate, mask, add]),
            (Method::Push, [value, rest @ ..]) => {
                let (numbers, update) = pushed(rest);
                let set = [std::slice::from_ref(value), numbers].concat();
                let set = MethodCall {
                    method: &Method::Set,
                    args: &set,
                    result: None,
                    ..call
                };
                self.push_counter(slot, update, |c| c.parser_counter(slot, set))
            }
            (Method::Pop, []) => self.pop_counter(slot),
            (Method::Increment, [Arg::In(value)]) => step(self, value, Op::Add),
            (Method::Decrement, [Arg::In(value)]) => step(self, value, Op::Sub),
            (Method::IsZero, []) => {
                let b = self.constant(0)?;
                self.write_result(result, |c, d| {
                    c.op(Op::Eq(T3 {
                        w: 8,
                        d,
                        a: slot,
                        b,
                    }))
                })
            }
            (Method::IsNegative, []) => self.write_result(result, |c, d| {
                c.op(Op::Slice {
                    lo: 7,
                    w: 1,
                    d,
                    a: slot,
                })
            }),
            _ => self.unsupported(format!("method {method} of a parser counter")),
        }
    }

    /// Compiles ((`field`'s byte rotated right by `rotate`) & `mask`) + `add` into `slot`; the parser fails with `CounterRange`
    /// if the field exceeds `max`.
    fn load_counter(
        &mut self,
        slot: Slot,
        field: &Expr,
        [max, rotate, mask, add]: [&Expr; 4],
    ) -> Result<()> {
        let (Some(max), Some(rotate), Some(mask), Some(add)) =
            (literal(max), literal(rotate), literal(mask), literal(add))
        else {
            return self.unsupported("a parser counter with arguments that are not constants");
        };
        // Tofino 1 encodes the mask as its number of ones less one.
        let mask = if self.program.arch == p4lang::ir::Arch::Tna {
            crate::bits::mask(mask as u32 + 1)
        } else {
            mask
        };
        // The field is in 8 bits, which are rotated.
        let mut value = self.index(field)?;
        let behind = bits_behind(self.program, self.scope.vars, field);
        if behind > 0 {
            let (d, b) = (self.alloc(1)?, self.constant(behind.into())?);
            let a = value;
            self.op(Op::Shl(T3 { w: 8, d, a, b }))?;
            value = d;
        }
        let (low, high, by, back) = (
            self.alloc(1)?,
            self.alloc(1)?,
            self.constant(rotate % 8)?,
            self.constant((8 - rotate % 8) % 8)?,
        );
        let t3 = |d, a, b| T3 { w: 8, d, a, b };
        self.op(Op::Slice {
            lo: 0,
            w: 8,
            d: slot,
            a: value,
        })?;
        let (max, good) = (self.constant(max)?, self.label());
        self.op(Op::Le(t3(high, slot, max)))?;
        self.op(Op::JumpIf { c: high, to: good })?;
        let (error, to) = (self.error_slot("CounterRange")?, self.scope.reject);
        self.op(Op::Fail { error, to })?;
        self.place(good);
        self.op(Op::Shr(t3(low, slot, by)))?;
        self.op(Op::Shl(t3(high, slot, back)))?;
        self.op(Op::Or(t3(slot, low, high)))?;
        let (mask, add) = (self.constant(mask)?, self.constant(add)?);
        self.op(Op::And(t3(slot, slot, mask)))?;
        self.op(Op::Add(t3(slot, slot, add)))
    }
}

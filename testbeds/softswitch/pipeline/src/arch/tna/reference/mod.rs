//! TNA's extern objects, their methods and TNA's extern functions, interpreted; registers are in [`registers`].

mod predicate;
mod registers;

use super::externs::parser_counter::SLOTS;
use super::externs::{COLOURS, bits_behind, own_colours};
use crate::bits::mask;
use crate::call::{FunctionCall, MethodCall};
use crate::externs::capture;
use crate::op::bindings::{Object, TofinoObject};
use crate::reference::bits::Bits;
use crate::reference::dialect::{Interpreted, Performed};
use crate::reference::poison::Fill;
use crate::reference::value::{Value, width};
use crate::reference::var_path::{PathStep, VarPath, invalidate};
use crate::reference::watch::decisive;
use crate::reference::{Interpreter, Result, arith};
use num_bigint::BigUint;
use p4lang::ir::{
    Arch, Arg, BinOp, Expr, ExprKind, ExternFunction, ExternId, LValue, Method, Type,
};

/// The interpreter's implementation of TNA's externs.
#[derive(Debug)]
pub(crate) struct TofinoReference;

impl Interpreted for TofinoReference {
    fn call_whole<'p>(&self, i: &mut Interpreter<'_, 'p>, call: MethodCall<'p>) -> Result<bool> {
        let object = i.code.bindings.objects[call.object.index()];
        if !matches!(object, Object::Tofino(TofinoObject::RegisterAction)) {
            return Ok(false);
        }
        i.register_action(call)?;
        Ok(true)
    }

    /// Replaces the field argument of a parser counter's `set` or `push` by the byte that contains the field.
    fn arguments(&self, i: &mut Interpreter<'_, '_>, call: MethodCall<'_>, values: &mut [Value]) {
        let object = i.code.bindings.objects[call.object.index()];
        let (
            Object::Tofino(TofinoObject::ParserCounter(_)),
            Method::Set | Method::Push,
            [Arg::In(field), _, _, _, _, ..],
        ) = (object, call.method, call.args)
        else {
            return;
        };
        let behind = bits_behind(i.program, i.env().declared, field);
        let bits = values[0].bits();
        values[0] = Value::Bits(Bits {
            undefined: bits.undefined << behind,
            ..Bits::new(bits.width + behind, bits.value << behind)
        });
    }

    fn is_requested(&self, i: &mut Interpreter<'_, '_>, call: MethodCall<'_>) -> bool {
        i.gate_open(call.object, call.method)
    }

    fn perform(
        &self,
        i: &mut Interpreter<'_, '_>,
        call: MethodCall<'_>,
        values: &[Value],
        (to, ty): (Option<&VarPath>, &Type),
    ) -> Result<Performed> {
        let (id, method) = (call.object, call.method);
        let given = match (i.code.bindings.objects[id.index()], method, to) {
            (
                Object::Tofino(TofinoObject::Checksum(unit)),
                Method::SubtractAllAndDeposit,
                Some(to),
            ) => {
                i.deposit(&i.program.externs[id.index()].name, unit, to.clone());
                return Ok(Performed::Later);
            }
            (Object::Tofino(TofinoObject::DirectRegister) | Object::Register(_), _, _) => {
                i.plain_register(id, method, values, ty)
            }
            (Object::Tofino(object), _, _) => i.tofino_method(object, method, values, ty)?,
            _ => i.perform(call, values, ty),
        };
        Ok(Performed::Now(given))
    }

    fn colour_so_far(&self, i: &mut Interpreter<'_, '_>, arguments: &[Value]) -> Option<u64> {
        Some(i.colour_so_far(arguments))
    }

    fn coloured(&self, i: &Interpreter<'_, '_>, id: ExternId, colour: u64) -> u64 {
        let own = own_colours(&i.program.externs[id.index()]);
        let at = COLOURS.iter().position(|c| *c == colour);
        at.and_then(|at| own[at]).unwrap_or(colour)
    }

    fn call_function<'p>(&self, i: &mut Interpreter<'_, 'p>, call: FunctionCall<'p>) -> Result<()> {
        i.call_tofino(call)
    }
}

impl<'p> Interpreter<'_, 'p> {
    /// Interprets a method of an extern object that only TNA has.
    pub(crate) fn tofino_method(
        &mut self,
        object: TofinoObject,
        method: &Method,
        values: &[Value],
        ty: &Type,
    ) -> Result<Option<Value>> {
        let number = |i: usize| values.get(i).map_or(0, |v| v.bits().u64());
        let scalar = |n: u64| Some(Value::Bits(Bits::new(width(ty), n)));
        match (object, method) {
            (TofinoObject::MathUnit(unit), Method::Execute) => {
                let unit = &self.code.maths[unit as usize];
                return Ok(scalar(unit.execute(number(0))));
            }
            (TofinoObject::RegisterParam(r), Method::Read) => {
                return Ok(Some(self.cell_of(r, 0, ty)));
            }
            (TofinoObject::Filter(filter), Method::Execute) => {
                let filter = &mut self.state.cells.filters[filter as usize];
                return Ok(scalar(filter.execute(number(1), number(0), self.now_ns)));
            }
            (TofinoObject::DirectFilter(filter), Method::Execute) => {
                let now_ns = self.now_ns;
                return Ok(scalar(self.state.direct_filter(filter, number(0), now_ns)));
            }
            (TofinoObject::Checksum(unit), _) => {
                return Ok(self.tofino_checksum(unit, method, values).and_then(scalar));
            }
            (TofinoObject::ParserCounter(slot), _) => {
                let counter = self.frame[slot as usize];
                let next = match method {
                    Method::Set => self.load_counter(values)?,
                    Method::Push => self.push_counter(slot as usize, values)?,
                    Method::Pop => self.pop_counter(slot as usize),
                    Method::Increment => counter.wrapping_add(number(0)),
                    Method::Decrement => counter.wrapping_sub(number(0)),
                    Method::IsZero => return Ok(scalar(u64::from(counter == 0))),
                    // The result has 8 bits, signed.
                    _ => return Ok(scalar(counter >> 7)),
                };
                self.frame[slot as usize] = next & 0xff;
            }
            (TofinoObject::Mirror, Method::Emit) => {
                self.capture(capture::MIRROR, number(0), values.get(1));
            }
            (TofinoObject::Resubmit, Method::Emit) => {
                self.capture(capture::RESUBMIT, 0, values.first());
            }
            (TofinoObject::Pktgen, Method::Emit) => {
                self.capture(capture::PKTGEN, 0, values.first())
            }
            _ => {}
        }
        Ok(None)
    }

    /// Whether a deparser's request, such as `Mirror.emit`, has an effect: its gate slot is not 0. True for other methods.
    pub(crate) fn gate_open(&mut self, id: ExternId, method: &Method) -> bool {
        let gates = self.gates;
        let gate = match (self.code.bindings.objects[id.index()], method) {
            (Object::Tofino(TofinoObject::Mirror), Method::Emit) => gates.mirror,
            (Object::Tofino(TofinoObject::Resubmit), Method::Emit) => gates.resubmit,
            (Object::Digest(_), Method::Pack) => gates.digest,
            _ => None,
        };
        let Some(slot) = gate else { return true };
        if gate == gates.mirror && self.undefined_mirror {
            let what = decisive("mirror_type");
            self.watch.undefined(what, self.program, self.span);
        }
        self.frame[slot as usize] != 0
    }

    fn capture(&mut self, kind: u8, session: u64, header: Option<&Value>) {
        let data = header.map_or_else(Vec::new, |h| h.flat().bytes(0));
        self.state.captures[usize::from(kind)] = Some((session, data));
    }

    /// The previous color, a meter's 8-bit argument after the index, else green; stores a 32-bit one: bytes not to count.
    pub(crate) fn colour_so_far(&mut self, arguments: &[Value]) -> u64 {
        let mut colour = COLOURS[0];
        for bits in arguments.iter().map(Value::bits) {
            match bits.width {
                8 => colour = bits.u64(),
                _ => self.state.pass.adjust = bits.u64(),
            }
        }
        colour
    }

    fn tofino_checksum(&mut self, unit: u32, method: &Method, values: &[Value]) -> Option<u64> {
        let unit = &mut self.state.checksums[unit as usize];
        let data = || values.first().map(|v| v.flat().bytes(0));
        match method {
            Method::Add => unit.add(&data()?),
            Method::Subtract => unit.subtract(&data()?),
            // The sum after subtractions: not complemented, to be added in `update`.
            Method::Get => return Some(unit.sum.into()),
            // True if the checksum is wrong, as a Tofino reports it.
            Method::Verify => return Some(u64::from(unit.result() != 0)),
            Method::Update => {
                unit.clear();
                unit.add(&data()?);
                let ones = values.get(1).is_some_and(|v| v.bits().is_true());
                return Some(match unit.result() {
                    0 if ones => 0xffff,
                    sum => sum.into(),
                });
            }
            _ => {}
        }
        None
    }

    /// Saves a parser counter's value on its stack; returns the new value. From a field it is: its byte, rotated right, masked,
    /// plus a number; `CounterRange` if the field exceeds `max`. A stack level has an amount to add on `pop`, and a mask of the
    /// counter's bits.
    fn push_counter(&mut self, slot: usize, values: &[Value]) -> Result<u64> {
        // A field's position consists of four numbers.
        let (set, update) = match values {
            [set @ .., update] if matches!(set.len(), 1 | 5) => (set, update.bits().is_true()),
            set => (set, false),
        };
        let below = self.frame[slot];
        let next = self.load_counter(set)? & 0xff;
        let last = slot + SLOTS as usize - 2;
        self.frame.copy_within(slot + 1..last, slot + 3);
        (self.frame[slot + 1], self.frame[slot + 2]) = match update {
            true => (below.wrapping_sub(next) & 0xff, 0xff),
            false => (below, 0),
        };
        Ok(next)
    }

    fn pop_counter(&mut self, slot: usize) -> u64 {
        let end = slot + SLOTS as usize;
        let counter = (self.frame[slot] & self.frame[slot + 2]) + self.frame[slot + 1];
        self.frame.copy_within(slot + 3..end, slot + 1);
        self.frame[end - 2..end].fill(0);
        counter
    }

    fn load_counter(&mut self, values: &[Value]) -> Result<u64> {
        let number = |i: usize| values.get(i).map_or(0, |v| v.bits().u64());
        if values.len() == 1 {
            return Ok(number(0));
        }
        let (field, max, add) = (number(0) as u8, number(1), number(4));
        let rotated = field.rotate_right((number(2) % 8) as u32);
        // Tofino 1 encodes the mask as its number of ones less one.
        let kept = match self.program.arch {
            Arch::Tna => mask(number(3) as u32 + 1),
            _ => number(3),
        };
        if u64::from(field) > max {
            let error = self.error_named("CounterRange");
            return self.fail(error);
        }
        Ok((u64::from(rotated) & kept) + add)
    }

    /// Interprets a call of one of TNA's extern functions.
    pub(crate) fn call_tofino(&mut self, call: FunctionCall<'p>) -> Result<()> {
        let FunctionCall {
            function,
            args,
            result,
        } = call;
        let value = match (function, args) {
            (ExternFunction::Max | ExternFunction::Min, [Arg::In(a), Arg::In(b)]) => {
                let (x, y) = (self.expr(a)?.bits(), self.expr(b)?.bits());
                let signed = matches!(a.ty, Type::Int(_));
                let less = arith::binary(BinOp::Lt, &x, &y, signed);
                self.influences(&less, || format!("an argument of {function}"));
                let first = (*function == ExternFunction::Min) == less.is_true();
                let of = [Value::Bits(x), Value::Bits(y)];
                let [x, y] = &of;
                let value = if first || x == y { x } else { y };
                self.trace_method("", function.name(), args, &of, (&a.ty, Some(value)));
                value.clone()
            }
            (
                ExternFunction::Invalidate,
                [
                    Arg::In(Expr {
                        kind: ExprKind::Read(field),
                        ..
                    }),
                ],
            ) => {
                let place = self.resolve(field)?;
                self.change(place.var, &place.steps, forget);
                if let [Arg::In(field)] = args {
                    self.trace_of_place(function.name(), field, (&Type::Void, &Value::Nothing));
                }
                return Ok(());
            }
            (ExternFunction::IsValidated, [Arg::In(field)]) => {
                let valid = Value::Bits(Bits::bool(self.validated(field)?));
                self.trace_of_place(function.name(), field, (&Type::Bool, &valid));
                valid
            }
            (ExternFunction::SizeInBytes | ExternFunction::SizeInBits, [Arg::In(header)]) => {
                let bits = self.whole_size(&header.ty);
                let unit = if *function == ExternFunction::SizeInBytes {
                    8
                } else {
                    1
                };
                let size = Value::Bits(Bits::new(32, bits / unit));
                self.trace_of_place(function.name(), header, (&Type::Bit(32), &size));
                size
            }
            (ExternFunction::PortMetadataUnpack, _) => {
                self.port_metadata(result)?;
                let given = self.value_at(result)?;
                let given = given.as_ref().map(|(ty, value)| (ty, Some(value)));
                self.trace_method(
                    "",
                    function.name(),
                    args,
                    &[],
                    given.unwrap_or((&Type::Void, None)),
                );
                return Ok(());
            }
            (ExternFunction::FunnelShiftRight, [Arg::Out(to) | Arg::InOut(to), rest @ ..]) => {
                let place = self.resolve(to)?;
                let (values, _) = self.extern_args(rest)?;
                let [high, low, by] = values.as_slice() else {
                    return Ok(());
                };
                let both = high.bits().concat(&low.bits());
                let shifted = arith::binary(BinOp::Shr, &both, &by.bits(), false);
                let cut = Value::Bits(arith::cast(&shifted, width(&to.ty), false));
                self.trace_method("", function.name(), rest, &values, (&to.ty, Some(&cut)));
                self.write(&place, cut);
                return Ok(());
            }
            _ => return Ok(()),
        };
        if let Some(lvalue) = result {
            let place = self.resolve(lvalue)?;
            let value = match value {
                Value::Bits(bits) => Value::Bits(arith::cast(&bits, width(&place.ty), false)),
                other => other,
            };
            self.write(&place, value);
        }
        Ok(())
    }

    /// Whether a header or metadata field is valid: the field by its own validity or its header's; other metadata always is.
    fn validated(&mut self, field: &'p Expr) -> Result<bool> {
        let ExprKind::Read(lvalue) = &field.kind else {
            return Ok(true);
        };
        let place = self.resolve(lvalue)?;
        let mut value = &self.envs[self.envs.len() - 1].vars[place.var.index()];
        let mut valid = true;
        for step in &place.steps {
            let (inner, at) = match (value, step) {
                (Value::Header { fields, .. }, PathStep::Field(i)) => {
                    valid = value.is_valid();
                    (fields, u64::from(*i))
                }
                (Value::Struct(fields) | Value::Union(fields), PathStep::Field(i)) => {
                    (fields, u64::from(*i))
                }
                (Value::Stack { elements, .. }, PathStep::Element(i)) => (elements, *i),
                _ => break,
            };
            match usize::try_from(at).ok().and_then(|at| inner.get(at)) {
                Some(inner) => value = inner,
                None => return Ok(false),
            }
        }
        Ok(match value {
            Value::Own(valid, _) | Value::Header { valid, .. } => *valid,
            _ => valid,
        })
    }

    /// Interprets `port_metadata_unpack`: reads the port's metadata, left-aligned, and skips all of its bytes.
    fn port_metadata(&mut self, result: Option<&'p LValue>) -> Result<()> {
        let bits = u64::from(super::port_metadata_bytes(self.program)) * 8;
        if let Some(lvalue) = result {
            self.lookahead(lvalue)?;
        }
        self.advance_bits(bits)
    }
}

/// Interprets `invalidate` of a value: a field without a validity of its own becomes 0.
fn forget(value: &mut Value, fill: &mut Fill) {
    match value {
        Value::Own(valid, bits) => (*valid, *bits) = (false, fill.bits(bits.width)),
        Value::Bits(bits) => bits.value = BigUint::ZERO,
        other => invalidate(other, fill),
    }
}

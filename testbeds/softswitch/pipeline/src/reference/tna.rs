//! Methods of TNA's extern objects, but for registers ([`super::salu`]), and TNA's functions.

use super::place::{Place, Step};
use super::value::{Bits, Value, width};
use super::watch::decisive;
use super::{Interpreter, Result, arith};
use crate::compile;
use crate::compile::parser_counter::SLOTS;
use crate::compile::tna::Object;
use crate::compile::tna_objects::{COLOURS, own_colours};
use crate::exec::bits::mask;
use crate::externs::capture;
use num_bigint::BigUint;
use p4lang::ir::{
    Arch, Arg, BinOp, Expr, ExprKind, ExternFunction, ExternId, FieldType, LValue, Method, Type,
};
use p4lang::source::Span;

/// A call of `subtract_all_and_deposit` that waits for the parser's end.
#[derive(Debug)]
pub(super) struct Residual<'p> {
    /// The checksum.
    object: &'p str,
    call: Span,
    unit: u32,
    /// Where the parser stood, bits.
    start: usize,
    /// Where it goes, in the unit at this depth.
    pub(super) to: Place,
    pub(super) depth: usize,
}

impl<'p> Interpreter<'_, 'p> {
    /// A method of an object that is TNA's own.
    pub(super) fn tofino_method(
        &mut self,
        object: Object,
        method: &Method,
        values: &[Value],
        ty: &Type,
    ) -> Result<Option<Value>> {
        let number = |i: usize| values.get(i).map_or(0, |v| v.bits().u64());
        let scalar = |n: u64| Some(Value::Bits(Bits::new(width(ty), n)));
        match (object, method) {
            (Object::MathUnit(unit), Method::Execute) => {
                let unit = &self.code.maths[unit as usize];
                return Ok(scalar(unit.execute(number(0))));
            }
            (Object::RegisterParam(r), Method::Read) => return Ok(Some(self.cell_of(r, 0, ty))),
            (Object::Filter(filter), Method::Execute) => {
                let filter = &mut self.state.filters[filter as usize];
                return Ok(scalar(filter.execute(number(1), number(0), self.now_ns)));
            }
            (Object::DirectFilter(filter), Method::Execute) => {
                let now_ns = self.now_ns;
                return Ok(scalar(self.state.direct_filter(filter, number(0), now_ns)));
            }
            (Object::Checksum(unit), _) => {
                return Ok(self.tofino_checksum(unit, method, values).and_then(scalar));
            }
            (Object::ParserCounter(slot), _) => {
                let counter = self.frame[slot as usize];
                let next = match method {
                    Method::Set => self.load_counter(values)?,
                    Method::Push => self.push_counter(slot as usize, values)?,
                    Method::Pop => self.pop_counter(slot as usize),
                    Method::Increment => counter.wrapping_add(number(0)),
                    Method::Decrement => counter.wrapping_sub(number(0)),
                    Method::IsZero => return Ok(scalar(u64::from(counter == 0))),
                    // 8 bits, signed.
                    _ => return Ok(scalar(counter >> 7)),
                };
                self.frame[slot as usize] = next & 0xff;
            }
            (Object::Mirror, Method::Emit) => {
                self.capture(capture::MIRROR, number(0), values.get(1));
            }
            (Object::Resubmit, Method::Emit) => {
                self.capture(capture::RESUBMIT, 0, values.first());
            }
            (Object::Pktgen, Method::Emit) => self.capture(capture::PKTGEN, 0, values.first()),
            _ => {}
        }
        Ok(None)
    }

    /// Whether the packet has asked the deparser for what this method makes; of other methods true.
    pub(super) fn asked(&mut self, id: ExternId, method: &Method) -> bool {
        let gates = self.gates;
        let gate = match (self.code.bindings.objects[id.index()], method) {
            (compile::Object::Tofino(Object::Mirror), Method::Emit) => gates.mirror,
            (compile::Object::Tofino(Object::Resubmit), Method::Emit) => gates.resubmit,
            (compile::Object::Digest(_), Method::Pack) => gates.digest,
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

    /// A meter's colour as its constructor names it.
    pub(super) fn coloured(&self, id: ExternId, colour: u64) -> u64 {
        if !crate::compile::tna::is_tofino(self.program) {
            return colour;
        }
        let own = own_colours(&self.program.externs[id.index()]);
        let at = COLOURS.iter().position(|c| *c == colour);
        at.and_then(|at| own[at]).unwrap_or(colour)
    }

    /// A meter's arguments behind its index: the colour so far has 8 bits, a number of bytes 32.
    pub(super) fn colour_so_far(&mut self, arguments: &[Value]) -> u64 {
        let mut colour = COLOURS[0];
        for bits in arguments.iter().map(Value::bits) {
            match bits.width {
                8 => colour = bits.u64(),
                _ => self.state.adjust = bits.u64(),
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
            // What is left after subtractions: not complemented, to be added to in `update`.
            Method::Get => return Some(unit.sum.into()),
            // True where the checksum is wrong, as a Tofino reports it.
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

    /// `subtract_all_and_deposit`: what is extracted from here on is taken away, and the rest kept when the parser ends.
    pub(super) fn deposit(&mut self, object: &'p str, unit: u32, to: Place) {
        let residual = Residual {
            object,
            call: self.span,
            unit,
            start: self.cursor,
            to,
            depth: self.envs.len(),
        };
        self.residuals.retain(|r| r.call != residual.call);
        self.residuals.push(residual);
    }

    /// A unit has ended: what waits for a place in one of its parameters waits for the argument's.
    pub(super) fn hand_residuals(&mut self, copied: impl Fn(&Place) -> Option<Place>) {
        let depth = self.envs.len();
        self.residuals.retain_mut(|residual| {
            if residual.depth <= depth {
                return true;
            }
            residual.depth = depth;
            match copied(&residual.to) {
                Some(mut outer) => {
                    outer.steps.append(&mut residual.to.steps);
                    outer.ty = residual.to.ty.clone();
                    residual.to = outer;
                    true
                }
                None => false,
            }
        });
    }

    /// The parser has ended.
    pub(super) fn settle_residuals(&mut self) {
        for residual in std::mem::take(&mut self.residuals) {
            let read = residual.start / 8..self.cursor / 8;
            let unit = &mut self.state.checksums[residual.unit as usize];
            unit.subtract(self.packet.get(read).unwrap_or_default());
            let sum = Value::Bits(Bits::new(width(&residual.to.ty), unit.sum));
            let (object, method) = (residual.object, Method::SubtractAllAndDeposit);
            self.span = residual.call;
            self.trace_method(
                object,
                method.name(),
                &[],
                &[],
                (&residual.to.ty, Some(&sum)),
            );
            self.write(&residual.to, sum);
        }
    }

    /// Rotated to the right, masked, added to; if the field is beyond `max` the parser fails with `CounterRange`.
    /// Each level below holds what is added when it comes back, and which bits of the counter count then.
    fn push_counter(&mut self, slot: usize, values: &[Value]) -> Result<u64> {
        // A field's place has four numbers.
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
        // Tofino 1 gives the mask as its number of ones less one.
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

    /// TNA's functions.
    pub(super) fn call_tofino(
        &mut self,
        function: &ExternFunction,
        args: &'p [Arg],
        result: Option<&'p LValue>,
    ) -> Result<()> {
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

    /// A field's own validity, or its header's, or a header's; other metadata are always valid.
    fn validated(&mut self, field: &'p Expr) -> Result<bool> {
        let ExprKind::Read(lvalue) = &field.kind else {
            return Ok(true);
        };
        let place = self.resolve(lvalue)?;
        let mut value = &self.envs[self.envs.len() - 1].vars[place.var.index()];
        let mut valid = true;
        for step in &place.steps {
            let (inner, at) = match (value, step) {
                (Value::Header { fields, .. }, Step::Field(i)) => {
                    valid = value.is_valid();
                    (fields, u64::from(*i))
                }
                (Value::Struct(fields) | Value::Union(fields), Step::Field(i)) => {
                    (fields, u64::from(*i))
                }
                (Value::Stack { elements, .. }, Step::Element(i)) => (elements, *i),
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

    /// The port's metadata, left-aligned; what follows them is skipped, too.
    fn port_metadata(&mut self, result: Option<&'p LValue>) -> Result<()> {
        let bits = u64::from(crate::arch::tna::port_metadata_bytes(self.program)) * 8;
        if let Some(lvalue) = result {
            self.lookahead(lvalue)?;
        }
        self.advance_bits(bits)
    }

    /// Whether a Tofino's compiler fills it up to whole bytes: a header, or a struct that it may lay out as it likes.
    pub(super) fn is_padded(&self, ty: &Type) -> bool {
        let Type::Struct(id) = ty else { return false };
        let declared = &self.program.types[id.index()];
        let varies = |f: &FieldType| matches!(f.ty, Type::Varbit(_));
        let flexible = declared.annotations.iter().any(|a| a.name == "flexible");
        crate::compile::tna::is_tofino(self.program)
            && (declared.kind == p4lang::ast::StructKind::Header || flexible)
            && !declared.fields.iter().any(varies)
    }
}

/// `invalidate`: a field without a validity of its own becomes 0.
fn forget(value: &mut Value, fill: &mut super::poison::Fill) {
    match value {
        Value::Own(valid, bits) => (*valid, *bits) = (false, fill.bits(bits.width)),
        Value::Bits(bits) => bits.value = BigUint::ZERO,
        other => super::place::invalidate(other, fill),
    }
}

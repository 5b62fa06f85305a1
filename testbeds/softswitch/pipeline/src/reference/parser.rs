//! Interprets parsers (P4_16 section 13), `packet_in` (13.8) and `packet_out` (16.1).

use super::bits::Bits;
use super::expr::is_signed;
use super::table::sought;
use super::value::{Value, field_types, width};
use super::var_path::{PathStep, VarPath};
use super::{EnvUnit, Interpreter, Result, Stop, arith};
use crate::op::Mark;
use crate::rules::Rules;
use num_bigint::BigUint;
use p4lang::ir::{
    Access, BinOp, Expr, FieldType, Keyset, LValue, Parser, State, Target, Transition, Type,
};

impl<'p> Interpreter<'_, 'p> {
    /// Runs a parser from its `start` state until it accepts or rejects the packet.
    pub(crate) fn parser_body(&mut self, parser: &'p Parser) -> Result<()> {
        self.block(&parser.init)?;
        let mut current = parser.states.first();
        while let Some(state) = current {
            self.step(state.span, Stop::Reject)?;
            self.span = state.span;
            self.mark(&Mark::State(parser.name.clone(), state.name.clone()));
            self.watch
                .state(&parser.name, &state.name, self.program, state.span);
            self.block(&state.body)?;
            current = match self.transition(state)? {
                Target::Accept => None,
                Target::Reject => return Err(Stop::Reject),
                Target::State(next) => parser.states.get(next.index()),
            };
        }
        Ok(())
    }

    /// The next state after a state's transition (13.6): that of the first case whose sets contain all keys.
    fn transition(&mut self, state: &'p State) -> Result<Target> {
        let (keys, cases) = match &state.transition {
            Transition::Direct(target) => return Ok(*target),
            Transition::Select { keys, cases } => (keys, cases),
        };
        let values = keys.iter().map(|k| self.expr(k));
        let values = values.collect::<Result<Vec<_>>>()?;
        for (sets, target) in cases {
            let mut all = true;
            for (i, set) in sets.iter().enumerate() {
                all = all && self.holds(set, keys, &values, i)?;
            }
            if all {
                return Ok(*target);
            }
        }
        let error = self.error_named("NoMatch");
        self.fail(error)
    }

    /// Whether a set of a `select` case contains key number `i`.
    fn holds(
        &mut self,
        set: &'p Keyset,
        keys: &'p [Expr],
        values: &[Value],
        i: usize,
    ) -> Result<bool> {
        let found = match set {
            Keyset::Any => return Ok(true),
            Keyset::Value(value) => values[i].equal(&self.expr(value)?),
            Keyset::Mask(value, mask) => {
                let (value, mask) = (self.expr(value)?.bits(), self.expr(mask)?.bits());
                let key = values[i].bits();
                arith::equal(&arith::and(&key, &mask), &arith::and(&value, &mask))
            }
            Keyset::Range(low, high) => {
                let (low, high) = (self.expr(low)?.bits(), self.expr(high)?.bits());
                let (key, signed) = (values[i].bits(), is_signed(&keys[i].ty));
                arith::and(
                    &arith::binary(BinOp::Ge, &key, &low, signed),
                    &arith::binary(BinOp::Le, &key, &high, signed),
                )
            }
            Keyset::ValueSet(id) => {
                let EnvUnit::Parser(parser) = self.env().scope else {
                    return Ok(false);
                };
                for key in values {
                    self.influences(&key.bits(), || "a key of select".into());
                }
                let name = &parser.value_sets[id.index()].name;
                let set = self.code.bindings.value_sets.get(name);
                let set = set.and_then(|i| self.state.value_sets.get(*i as usize));
                let is_member = set.is_some_and(|set| {
                    set.members.iter().any(|member| {
                        let mut fields = member.iter().zip(values).zip(&set.fields);
                        fields.all(|((field, key), spec)| field.matches(&sought(key, spec)))
                    })
                });
                Bits::bool(is_member)
            }
        };
        self.influences(&found, || "a key of select".into());
        Ok(found.is_true())
    }

    /// Interprets `extract` (13.8.1, 13.8.2).
    pub(crate) fn extract(&mut self, header: &'p LValue, varbit: Option<&'p Expr>) -> Result<()> {
        let place = self.resolve(header)?;
        let types = field_types(self.program, &header.ty);
        let fixed = self.whole_size(&header.ty);
        let most = types.iter().find_map(|t| match t {
            Type::Varbit(most) => Some(u64::from(*most)),
            _ => None,
        });
        let length = match varbit {
            None => 0,
            Some(e) => {
                let bits = self.expr(e)?.bits();
                self.influences(&bits, || "the length of a varbit field".into());
                bits.u64()
            }
        };
        let all = u128::from(fixed) + u128::from(length);
        let errors = self.code.errors;
        if varbit.is_some() && (most.is_none() || all % 8 != 0) {
            return self.fail(errors.invalid_argument);
        }
        if all > u128::from(self.remaining()) {
            return self.fail(errors.packet_too_short);
        }
        if length > most.unwrap_or(0) {
            return self.fail(errors.header_too_short);
        }
        let at = self.cursor;
        let end = at + all as usize;
        let fields = types.iter().map(|t| self.take(t, length as u32)).collect();
        self.cursor = end;
        let value = Value::composed(self.program, &header.ty, fields);
        self.trace_extract(&place, &value, at);
        self.write(&place, value);
        self.advance_next(header, &place);
        Ok(())
    }

    /// Advances a stack's `nextIndex` after extracting to its `next`, or to a member of a union that is its `next` (8.18).
    fn advance_next(&mut self, header: &LValue, place: &VarPath) {
        let stack = match header.path.as_slice() {
            [stack @ .., Access::Next] | [stack @ .., Access::Next, Access::Field(_)] => {
                stack.len()
            }
            _ => return,
        };
        self.change(place.var, &place.steps[..stack], |stack, _| {
            if let Value::Stack { next, .. } = stack {
                *next += 1;
            }
        });
    }

    /// Interprets `advance` (13.8.4).
    pub(crate) fn advance(&mut self, bits: &'p Expr) -> Result<()> {
        let bits = self.expr(bits)?.bits();
        self.influences(&bits, || "the length of advance".into());
        self.advance_bits(bits.u64())
    }

    pub(crate) fn advance_bits(&mut self, bits: u64) -> Result<()> {
        if bits > self.remaining() {
            return self.fail(self.code.errors.packet_too_short);
        }
        self.cursor += bits as usize;
        Ok(())
    }

    /// Interprets `lookahead` (13.8.3).
    pub(crate) fn lookahead(&mut self, to: &'p LValue) -> Result<()> {
        let place = self.resolve(to)?;
        if self.whole_size(&to.ty) > self.remaining() {
            return self.fail(self.code.errors.packet_too_short);
        }
        let at = self.cursor;
        let value = self.take(&to.ty, 0);
        self.cursor = at;
        self.write(&place, value);
        Ok(())
    }

    /// Interprets `emit` (16.1): appends the value's valid headers, in order.
    pub(crate) fn emit(&mut self, value: &Value, place: &VarPath) {
        match value {
            Value::Header { valid: false, .. } => {}
            Value::Header { .. } => {
                let bits = value.flat();
                self.influences_emitted(place, value);
                self.trace_emit(place, &bits);
                self.out.extend(bits.bytes(0));
            }
            Value::Struct(inner) | Value::Union(inner) => {
                self.emit_each(inner, place, PathStep::Field)
            }
            Value::Stack { elements, .. } => {
                self.emit_each(elements, place, |i| PathStep::Element(i.into()));
            }
            _ => {}
        }
    }

    fn emit_each(&mut self, inner: &[Value], place: &VarPath, step: impl Fn(u32) -> PathStep) {
        let types = field_types(self.program, &place.ty);
        for (i, (value, ty)) in inner.iter().zip(types).enumerate() {
            let mut steps = place.steps.clone();
            steps.push(step(i as u32));
            let var = place.var;
            self.emit(value, &VarPath { var, steps, ty });
        }
    }

    fn influences_emitted(&mut self, place: &VarPath, value: &Value) {
        if !self.watch.fill.marks() {
            return;
        }
        let Value::Header { fields, .. } = value else {
            return;
        };
        for (i, field) in fields.iter().enumerate() {
            if field.has_undefined() {
                let mut steps = place.steps.clone();
                steps.push(PathStep::Field(i as u32));
                let name = self.name_of(place.var, &steps);
                self.watch
                    .undefined(format!("emitted field {name}"), self.program, self.span);
            }
        }
    }

    fn remaining(&self) -> u64 {
        (self.packet.len() * 8 - self.cursor) as u64
    }

    /// Number of bits that a value of this type takes in a packet: TNA's headers end at a byte boundary.
    pub(crate) fn whole_size(&self, ty: &Type) -> u64 {
        match self.is_padded(ty) {
            true => self.size(ty).next_multiple_of(8),
            false => self.size(ty),
        }
    }

    /// Whether a header type is padded to whole bytes, as in TNA.
    fn is_padded(&self, ty: &Type) -> bool {
        let Type::Struct(id) = ty else { return false };
        let declared = &self.program.types[id.index()];
        let varies = |f: &FieldType| matches!(f.ty, Type::Varbit(_));
        Rules::for_program(self.program).is_padded(declared) && !declared.fields.iter().any(varies)
    }

    /// Number of bits of a type's fields in a packet, without varbit fields and padding.
    fn size(&self, ty: &Type) -> u64 {
        match ty {
            Type::Struct(_) | Type::Tuple(_) | Type::Stack(..) => {
                let fields = field_types(self.program, ty);
                fields.iter().map(|t| self.size(t)).sum()
            }
            scalar => width(scalar).into(),
        }
    }

    /// Reads the next bits of the packet as a value of this type; its varbit field takes `length` bits.
    fn take(&mut self, ty: &Type, length: u32) -> Value {
        match ty {
            Type::Varbit(most) => Value::Varbit(*most, self.take_bits(length)),
            Type::Struct(_) | Type::Tuple(_) | Type::Stack(..) => {
                let types = field_types(self.program, ty);
                let fields = types.iter().map(|t| self.take(t, length)).collect();
                Value::composed(self.program, ty, fields)
            }
            scalar => Value::Bits(self.take_bits(width(scalar))),
        }
    }

    fn take_bits(&mut self, width: u32) -> Bits {
        let end = self.cursor + width as usize;
        let bytes = &self.packet[self.cursor / 8..end.div_ceil(8)];
        let number = BigUint::from_bytes_be(bytes) >> (end.div_ceil(8) * 8 - end);
        self.cursor = end;
        Bits::new(width, number)
    }
}

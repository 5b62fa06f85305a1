//! Methods of extern objects. Their state is the machine's; arguments and results are values.

use super::dialect::Performed;
use super::frame::{of_words, to_words};
use super::place::Place;
use super::value::{Bits, Value, ones, width};
use super::{Interpreter, Result};
use crate::externs::hash::{self, Algorithm};
use crate::op::bindings::Object;
use crate::rules::Rules;
use crate::state::DigestMessage;
use p4lang::ir::{Arg, Const, ExternId, LValue, Method, Type};

impl<'p> Interpreter<'_, 'p> {
    pub(crate) fn call_method(
        &mut self,
        id: ExternId,
        method: &'p Method,
        args: &'p [Arg],
        result: Option<&'p LValue>,
    ) -> Result<()> {
        let dialect = self.dialect;
        if dialect.call_whole(self, (id, method), args, result)? {
            return Ok(());
        }
        let (mut values, out) = self.extern_args(args)?;
        dialect.arguments(self, (id, method), args, &mut values);
        let result = match result {
            Some(lvalue) => Some(self.resolve(lvalue)?),
            None => None,
        };
        // v1model gives results in `out` arguments.
        let to = out.or(result);
        let instance = &self.program.externs[id.index()];
        if !dialect.is_asked(self, (id, method)) {
            self.trace_unasked(&instance.name, method.name());
            return Ok(());
        }
        for (i, value) in values.iter().enumerate() {
            self.influences_all(value, || {
                format!("argument {} of {}.{method}", i + 1, instance.name)
            });
        }
        let ty = to.as_ref().map_or(Type::Void, |to| to.ty.clone());
        let given = match dialect.perform(self, (id, method), &values, (to.as_ref(), &ty))? {
            Performed::Now(given) => given,
            Performed::Later => return Ok(()),
        };
        self.trace_method(
            &instance.name,
            method.name(),
            args,
            &values,
            (&ty, given.as_ref()),
        );
        if let (Some(to), Some(value)) = (to, given) {
            self.write(&to, value);
        }
        Ok(())
    }

    /// What a call has left where its result goes, for a trace.
    pub(crate) fn value_at(&mut self, result: Option<&'p LValue>) -> Result<Option<(Type, Value)>> {
        let Some(lvalue) = result.filter(|_| self.watch.steps) else {
            return Ok(None);
        };
        let place = self.resolve(lvalue)?;
        let value = self.read(&place);
        Ok(Some((place.ty, value)))
    }

    /// Values of `in` arguments in order, and the place of the first `out` argument.
    pub(crate) fn extern_args(&mut self, args: &'p [Arg]) -> Result<(Vec<Value>, Option<Place>)> {
        let (mut values, mut out) = (Vec::new(), None);
        for arg in args {
            match arg {
                Arg::In(e) => values.push(self.expr(e)?),
                Arg::Out(to) | Arg::InOut(to) => {
                    let place = self.resolve(to)?;
                    out = out.or(Some(place));
                }
                _ => {}
            }
        }
        Ok((values, out))
    }

    /// Does it; gives the result as a value of type `ty`.
    pub(crate) fn perform(
        &mut self,
        id: ExternId,
        method: &Method,
        values: &[Value],
        ty: &Type,
    ) -> Option<Value> {
        let instance = &self.program.externs[id.index()];
        let number = |i: usize| values.get(i).map_or(0, |v| v.bits().u64());
        let length = self.packet.len();
        let dialect = self.dialect;
        let scalar = |n: u64| Some(Value::Bits(Bits::new(width(ty), n)));
        match (self.code.bindings.objects[id.index()], method) {
            (Object::Register(r), Method::Read) => {
                let plan = &self.code.bindings.registers[r as usize];
                let mut words = vec![0; plan.words as usize];
                self.state.cells.banks[plan.bank as usize].read(number(0), plan.offset, &mut words);
                let cell = instance.type_args.first()?;
                return Some(of_words(self.program, cell, &words, 0).0);
            }
            (Object::Register(r), Method::Write) => {
                let plan = &self.code.bindings.registers[r as usize];
                let words = to_words(values.get(1)?);
                self.state.cells.banks[plan.bank as usize].write(number(0), plan.offset, &words);
            }
            (Object::Counter(counter), Method::Count) => {
                // TNA: the bytes that do not count.
                self.state.pass.adjust = number(1);
                let length = self.state.counted(length);
                self.state.cells.counters[counter as usize].count(number(0), length);
            }
            (Object::DirectCounter, Method::Count) => {
                self.state.pass.adjust = number(0);
                let length = self.state.counted(length);
                let table = *self.code.bindings.direct.get(&id)? as usize;
                let found = self.state.found[table];
                self.state.tables[table].count(found, length);
            }
            (Object::AutomaticMeter, Method::Read) => {
                return scalar(self.colours.get(&id).copied().unwrap_or(0));
            }
            (Object::DirectMeter, Method::Execute) => {
                let table = *self.code.bindings.direct.get(&id)? as usize;
                let colours = self.state.tables[table].spec.direct_meter.as_ref()?.colours;
                let before = dialect.colour_so_far(self, values);
                let before =
                    before.unwrap_or_else(|| values.first().map_or(colours[0], |v| v.bits().u64()));
                let length = self.state.counted(length);
                let found = self.state.found[table];
                let table = &mut self.state.tables[table];
                let colour = table.mark(found, before, self.now_ns, length);
                return scalar(dialect.coloured(self, id, colour));
            }
            (Object::Meter(meter), Method::Execute | Method::ExecuteMeter) => {
                let rest = values.get(1..).unwrap_or_default();
                let before = dialect.colour_so_far(self, rest).unwrap_or_else(|| {
                    let green = self.state.cells.meters[meter as usize].colours[0];
                    rest.first().map_or(green, |v| v.bits().u64())
                });
                let length = self.state.counted(length);
                let meter = &mut self.state.cells.meters[meter as usize];
                let colour = meter.execute(number(0), before, self.now_ns, length);
                return scalar(dialect.coloured(self, id, colour));
            }
            (Object::Hash(algorithm), Method::Get | Method::GetHash) => {
                let hashed = match values {
                    [base, data, max] => {
                        let bounds = Some((base.bits().u64(), max.bits().u64()));
                        self.hash(algorithm, data, bounds, false, width(ty))
                    }
                    [data] => self.hash(algorithm, data, None, false, width(ty)),
                    _ => return None,
                };
                return scalar(hashed);
            }
            (Object::Checksum(unit, _) | Object::InternetChecksum(unit), Method::Clear) => {
                self.state.checksums[unit as usize].clear();
            }
            (Object::InternetChecksum(unit), Method::Add) => {
                self.state.checksums[unit as usize].add(&values.first()?.flat().bytes(0));
            }
            (Object::InternetChecksum(unit), Method::Subtract) => {
                self.state.checksums[unit as usize].subtract(&values.first()?.flat().bytes(0));
            }
            (Object::InternetChecksum(unit), Method::Get) => {
                return scalar(self.state.checksums[unit as usize].result().into());
            }
            (Object::InternetChecksum(unit), Method::GetState) => {
                return scalar(self.state.checksums[unit as usize].sum.into());
            }
            (Object::InternetChecksum(unit), Method::SetState) => {
                self.state.checksums[unit as usize].sum = number(0) as u16;
            }
            (Object::Checksum(unit, _), Method::Update) => {
                let data = values.first()?.flat().bytes(0);
                self.state.checksums[unit as usize].data.extend(data);
            }
            (Object::Checksum(unit, algorithm), Method::Get) => {
                let data = &self.state.checksums[unit as usize].data;
                let bits = data.len() as u32 * 8;
                return scalar(hash::compute(algorithm, data, width(ty), bits));
            }
            (Object::Random(unit), Method::Read | Method::Get) => {
                return scalar(self.state.randoms[unit as usize].next());
            }
            (Object::Digest(digest), Method::Pack) => {
                self.digest(digest, values.first()?);
            }
            // Automatic counters count at the table's application; the load refuses what is not here.
            _ => {}
        }
        None
    }

    /// A digest message, if there is room for it.
    pub(crate) fn digest(&mut self, instance: u32, data: &Value) {
        let mut scalars = Vec::new();
        list(data, &mut scalars);
        if !self.state.takes_digest(scalars.iter().map(|s| s.width)) {
            self.state.digests.lost += 1;
            return;
        }
        let name = self.state.digests.names[instance as usize].clone();
        let fields = scalars.iter().map(|s| (&s.value).into()).collect();
        self.state
            .digests
            .waiting
            .push_back(DigestMessage { name, fields });
    }

    /// `base + hash mod max` in `width` bits, or the hash itself. PSA fills data up to bytes on the left, as BMv2 does;
    /// v1model on the right.
    pub(crate) fn hash(
        &mut self,
        algorithm: Algorithm,
        data: &Value,
        bounds: Option<(u64, u64)>,
        with_payload: bool,
        width: u32,
    ) -> u64 {
        let flat = data.flat();
        let fill = (8 - flat.width % 8) % 8;
        let (lead, bits) = match Rules::of(self.program).pads_left {
            true => (fill, flat.width + fill),
            false => (0, flat.width),
        };
        let mut bytes = flat.bytes(lead);
        if with_payload {
            let payload = self.cursor.div_ceil(8).min(self.packet.len());
            bytes.extend_from_slice(&self.packet[payload..]);
        }
        let hash = hash::compute(algorithm, &bytes, width, bits);
        let hash = match bounds {
            None => hash,
            Some((base, max)) => base.wrapping_add(hash.checked_rem(max).unwrap_or(0)),
        };
        hash & u64::try_from(ones(width)).unwrap_or(u64::MAX)
    }

    /// The name of an enum member.
    pub(crate) fn member(&self, value: &Const) -> Option<&'p str> {
        let Const::Enum(id, i) = value else {
            return None;
        };
        let members = &self.program.enums.get(id.index())?.members;
        members.get(*i as usize).map(String::as_str)
    }
}

/// The scalars of a value as a control plane sees it: each header's validity before its fields.
fn list(value: &Value, scalars: &mut Vec<Bits>) {
    match value {
        Value::Header { valid, fields } => {
            scalars.push(Bits::bool(*valid));
            fields.iter().for_each(|field| list(field, scalars));
        }
        Value::Struct(fields) => fields.iter().for_each(|field| list(field, scalars)),
        Value::Stack { elements, .. } => elements.iter().for_each(|e| list(e, scalars)),
        other => scalars.extend(other.scalars()),
    }
}

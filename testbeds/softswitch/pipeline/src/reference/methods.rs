//! Interprets methods of extern objects. Their state is shared with the machine; arguments and results are values.

use super::bits::{Bits, ones};
use super::dialect::Performed;
use super::frame::{from_words, to_words};
use super::value::{Value, width};
use super::var_path::VarPath;
use super::{Interpreter, Result};
use crate::call::MethodCall;
use crate::externs::hash::{self, Algorithm};
use crate::op::bindings::Object;
use crate::rules::Rules;
use crate::state::DigestMessage;
use p4lang::ir::{Arg, Const, ExternId, LValue, Method, Type};

impl<'p> Interpreter<'_, 'p> {
    pub(crate) fn call_method(&mut self, call: MethodCall<'p>) -> Result<()> {
        let MethodCall { method, args, .. } = call;
        let dialect = self.dialect;
        if dialect.call_whole(self, call)? {
            return Ok(());
        }
        let (mut values, out) = self.extern_args(args)?;
        dialect.arguments(self, call, &mut values);
        let result = match call.result {
            Some(lvalue) => Some(self.resolve(lvalue)?),
            None => None,
        };
        // v1model returns results in `out` arguments.
        let to = out.or(result);
        let instance = &self.program.externs[call.object.index()];
        if !dialect.is_requested(self, call) {
            self.trace_gated(&instance.name, method.name());
            return Ok(());
        }
        for (i, value) in values.iter().enumerate() {
            self.influences_all(value, || {
                format!("argument {} of {}.{method}", i + 1, instance.name)
            });
        }
        let ty = to.as_ref().map_or(Type::Void, |to| to.ty.clone());
        let given = match dialect.perform(self, call, &values, (to.as_ref(), &ty))? {
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

    /// Type and value of a call's result, read from its destination for the trace; `None`: no result, or no trace.
    pub(crate) fn value_at(&mut self, result: Option<&'p LValue>) -> Result<Option<(Type, Value)>> {
        let Some(lvalue) = result.filter(|_| self.watch.steps) else {
            return Ok(None);
        };
        let place = self.resolve(lvalue)?;
        let value = self.read(&place);
        Ok(Some((place.ty, value)))
    }

    /// Evaluates the `in` arguments of a call, in order, and resolves the l-value of the first `out` argument, if there is one.
    pub(crate) fn extern_args(&mut self, args: &'p [Arg]) -> Result<(Vec<Value>, Option<VarPath>)> {
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

    /// Performs a method call on its argument values; returns the result as a value of type `ty`, if the method has one.
    pub(crate) fn perform(
        &mut self,
        call: MethodCall<'_>,
        values: &[Value],
        ty: &Type,
    ) -> Option<Value> {
        let id = call.object;
        let number = |i: usize| values.get(i).map_or(0, |v| v.bits().u64());
        let length = self.packet.len();
        let scalar = |n: u64| Some(Value::Bits(Bits::new(width(ty), n)));
        match (self.code.bindings.objects[id.index()], call.method) {
            (Object::Register(r), Method::Read) => {
                let plan = &self.code.bindings.registers[r as usize];
                let mut words = vec![0; plan.words as usize];
                self.state.cells.banks[plan.bank as usize].read(number(0), plan.offset, &mut words);
                let cell = self.program.externs[id.index()].type_args.first()?;
                return Some(from_words(self.program, cell, &words, 0).0);
            }
            (Object::Register(r), Method::Write) => {
                let plan = &self.code.bindings.registers[r as usize];
                let words = to_words(values.get(1)?);
                self.state.cells.banks[plan.bank as usize].write(number(0), plan.offset, &words);
            }
            (Object::Counter(counter), Method::Count) => {
                // TNA: the number of bytes that do not count.
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
                let colour = self.metered_directly(id, values)?;
                return scalar(self.dialect.coloured(self, id, colour));
            }
            (Object::Meter(meter), Method::Execute | Method::ExecuteMeter) => {
                let colour = self.metered(meter, number(0), values.get(1..).unwrap_or_default());
                return scalar(self.dialect.coloured(self, id, colour));
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
            (Object::Checksum(unit, algorithm), method) => {
                return self
                    .data_checksum((unit, algorithm), method, values, width(ty))
                    .and_then(scalar);
            }
            (Object::InternetChecksum(unit), method) => {
                return self
                    .internet_checksum(unit, method, values)
                    .and_then(scalar);
            }
            (Object::Random(unit), Method::Read | Method::Get) => {
                return scalar(self.state.randoms[unit as usize].next());
            }
            (Object::Digest(digest), Method::Pack) => {
                self.digest(digest, values.first()?);
            }
            // Automatic counters count when the table is applied; other combinations are refused at load.
            _ => {}
        }
        None
    }

    /// The color that a direct meter gives the packet at the table entry found; the arguments may contain the previous color.
    fn metered_directly(&mut self, id: ExternId, arguments: &[Value]) -> Option<u64> {
        let table = *self.code.bindings.direct.get(&id)? as usize;
        let colours = self.state.tables[table].spec.direct_meter.as_ref()?.colours;
        let before = self.dialect.colour_so_far(self, arguments);
        let first = || arguments.first().map_or(colours[0], |v| v.bits().u64());
        let before = before.unwrap_or_else(first);
        let length = self.state.counted(self.packet.len());
        let found = self.state.found[table];
        Some(self.state.tables[table].mark(found, before, self.now_ns, length))
    }

    /// The color that the cell of an indexed meter gives the packet; the arguments may contain the previous color.
    fn metered(&mut self, meter: u32, index: u64, arguments: &[Value]) -> u64 {
        let before = self.dialect.colour_so_far(self, arguments);
        let length = self.state.counted(self.packet.len());
        let meter = &mut self.state.cells.meters[meter as usize];
        let first = || {
            arguments
                .first()
                .map_or(meter.colours[0], |v| v.bits().u64())
        };
        let before = before.unwrap_or_else(first);
        meter.execute(index, before, self.now_ns, length)
    }

    fn internet_checksum(&mut self, unit: u32, method: &Method, values: &[Value]) -> Option<u64> {
        let unit = &mut self.state.checksums[unit as usize];
        let data = || values.first().map(|v| v.flat().bytes(0));
        match method {
            Method::Clear => unit.clear(),
            Method::Add => unit.add(&data()?),
            Method::Subtract => unit.subtract(&data()?),
            Method::Get => return Some(unit.result().into()),
            Method::GetState => return Some(unit.sum.into()),
            Method::SetState => unit.sum = values.first().map_or(0, |v| v.bits().u64()) as u16,
            _ => {}
        }
        None
    }

    /// Interprets a method of a `Checksum`, which collects its data, for any algorithm.
    fn data_checksum(
        &mut self,
        (unit, algorithm): (u32, Algorithm),
        method: &Method,
        values: &[Value],
        width: u32,
    ) -> Option<u64> {
        let unit = &mut self.state.checksums[unit as usize];
        match method {
            Method::Clear => unit.clear(),
            Method::Update => unit.data.extend(values.first()?.flat().bytes(0)),
            Method::Get => {
                let bits = unit.data.len() as u32 * 8;
                return Some(hash::compute(algorithm, &unit.data, width, bits));
            }
            _ => {}
        }
        None
    }

    /// Queues a digest message with the scalars of `data`; counts it as lost if the queue is full.
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

    /// Computes `base + hash mod max` in `width` bits; without `bounds`, the hash itself. PSA pads data to bytes on the left,
    /// as BMv2 does; v1model on the right.
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
        let (lead, bits) = match Rules::for_program(self.program).pads_left {
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

    /// The name of a constant that is an enum member; `None` for other constants.
    pub(crate) fn member(&self, value: &Const) -> Option<&'p str> {
        let Const::Enum(id, i) = value else {
            return None;
        };
        let members = &self.program.enums.get(id.index())?.members;
        members.get(*i as usize).map(String::as_str)
    }
}

/// Appends the scalars of a value as the control plane sees them: each header's validity before its fields.
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

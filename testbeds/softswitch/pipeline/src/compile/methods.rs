//! Compiles methods of extern objects.

use super::expr::literal;
use super::layout::width;
use super::{Compiler, Result};
use crate::call::MethodCall;
use crate::externs::hash::Algorithm;
use crate::op::bindings::Object;
use crate::op::{HashPlan, Op, Slot};
use p4lang::ir::{Arg, Expr, ExternId, LValue, Method, Type};

impl Compiler<'_> {
    /// Compiles a method of an extern object of PSA or v1model.
    pub(crate) fn plain_method(&mut self, call: MethodCall<'_>) -> Result<()> {
        let MethodCall { method, result, .. } = call;
        match (
            self.bindings.objects[call.object.index()],
            method,
            call.args,
        ) {
            (Object::Register(r), Method::Read, [Arg::In(index)]) => {
                let index = self.index(index)?;
                self.write_result(result, |c, d| c.op(Op::RegisterRead { r, d, index }))
            }
            (Object::Register(r), Method::Read, [to, Arg::In(index)]) => {
                let index = self.index(index)?;
                self.write_result(written(to), |c, d| c.op(Op::RegisterRead { r, d, index }))
            }
            (Object::Register(r), Method::Write, [Arg::In(index), Arg::In(value)]) => {
                let (index, s) = (self.index(index)?, self.expr(value)?);
                self.op(Op::RegisterWrite { r, index, s })
            }
            (Object::Counter(counter), Method::Count, [Arg::In(index)]) => {
                let index = self.index(index)?;
                self.op(Op::Count { counter, index })
            }
            (Object::DirectCounter, Method::Count, []) => {
                let table = self.table_of(call.object, "counter")?;
                self.op(Op::CountDirect { table })
            }
            // Counting and marking happen at the hit.
            (Object::AutomaticCounter, Method::Count, []) => Ok(()),
            (Object::AutomaticMeter, Method::Read, [to]) => {
                match self.direct_meters.get(&call.object).copied() {
                    Some(colour) => {
                        self.write_result(written(to), |c, d| c.op(Op::Mov { d, s: colour }))
                    }
                    None => self.unsupported("a direct meter that no table uses"),
                }
            }
            (Object::DirectMeter, Method::Execute, rest) => {
                let table = self.table_of(call.object, "meter")?;
                let colour = self.colour_before(rest, self.colours()[0])?;
                self.write_result(result, |c, d| c.op(Op::MeterDirect { table, colour, d }))
            }
            (Object::Meter(meter), Method::ExecuteMeter, [Arg::In(index), to]) => {
                self.meter(meter, index, &[], written(to))
            }
            (Object::Meter(meter), Method::Execute, [Arg::In(index), rest @ ..]) => {
                self.meter(meter, index, rest, result)
            }
            (Object::Hash(algorithm), Method::GetHash | Method::Get, [Arg::In(data)]) => {
                self.hash(algorithm, data, None, result)
            }
            (
                Object::Hash(algorithm),
                Method::GetHash,
                [Arg::In(base), Arg::In(data), Arg::In(max)],
            ) => {
                let bounds = (self.index(base)?, self.index(max)?);
                self.hash(algorithm, data, Some(bounds), result)
            }
            (Object::Checksum(unit, algorithm), ..) => self.data_checksum((unit, algorithm), call),
            (Object::InternetChecksum(unit), ..) => self.internet_checksum(unit, call),
            (Object::Random(unit), Method::Read, []) => {
                self.write_result(result, |c, d| c.op(Op::Random { unit, d }))
            }
            (Object::Digest(instance), Method::Pack, [Arg::In(data)]) => {
                self.digest(instance, data)
            }
            _ => self.no_method(call),
        }
    }

    pub(crate) fn no_method(&self, call: MethodCall<'_>) -> Result<()> {
        let of = &self.program.externs[call.object.index()].type_name;
        self.unsupported(format!("method {} of extern {of}", call.method))
    }

    /// The index of the table that a direct counter or meter belongs to.
    pub(crate) fn table_of(&self, object: ExternId, what: &str) -> Result<u32> {
        match self.bindings.direct.get(&object) {
            Some(table) => Ok(*table),
            None => self.unsupported(format!("a direct {what} that no table uses")),
        }
    }

    /// The slot of a meter's previous color: of the argument after the index that gives it, or of the constant for green.
    fn colour_before(&mut self, arguments: &[Arg], green: u64) -> Result<Slot> {
        match arguments {
            [Arg::In(colour)] => self.expr(colour),
            _ => self.constant(green),
        }
    }

    fn meter(
        &mut self,
        meter: u32,
        index: &Expr,
        rest: &[Arg],
        result: Option<&LValue>,
    ) -> Result<()> {
        let index = self.index(index)?;
        let green = self.state.cells.meters[meter as usize].colours[0];
        let colour = self.colour_before(rest, green)?;
        self.write_result(result, |c, d| {
            c.op(Op::Meter {
                meter,
                index,
                colour,
                d,
            })
        })
    }

    fn internet_checksum(&mut self, unit: u32, call: MethodCall<'_>) -> Result<()> {
        let MethodCall { method, result, .. } = call;
        match (method, call.args) {
            (Method::Clear, []) => self.op(Op::ChecksumClear { unit }),
            (Method::Add | Method::Subtract, [Arg::In(data)]) => {
                let (layout, s) = self.spread(data)?;
                self.op(Op::ChecksumAdd {
                    unit,
                    layout,
                    s,
                    subtract: method == &Method::Subtract,
                })
            }
            (Method::Get, []) => {
                self.write_result(result, |c, d| c.op(Op::ChecksumGet { unit, d }))
            }
            (Method::GetState, []) => {
                self.write_result(result, |c, d| c.op(Op::ChecksumState { unit, d }))
            }
            (Method::SetState, [Arg::In(state)]) => {
                let s = self.expr(state)?;
                self.op(Op::ChecksumSetState { unit, s })
            }
            _ => self.no_method(call),
        }
    }

    /// Compiles a method of a `Checksum`, which collects its data, for any algorithm.
    fn data_checksum(
        &mut self,
        (unit, algorithm): (u32, Algorithm),
        call: MethodCall<'_>,
    ) -> Result<()> {
        match (call.method, call.args) {
            (Method::Clear, []) => self.op(Op::ChecksumClear { unit }),
            (Method::Update, [Arg::In(data)]) => {
                let (layout, s) = self.spread(data)?;
                if !self.code.layouts[layout as usize].bits.is_multiple_of(8) {
                    return self.unsupported("checksum data that is not a multiple of 8 bits");
                }
                self.op(Op::ChecksumUpdate { unit, layout, s })
            }
            (Method::Get, []) => {
                let Some(w) = call.result.map(|r| width(&r.ty)) else {
                    return Ok(());
                };
                let w = self.hash_width(w)?;
                self.write_result(call.result, |c, d| {
                    c.code.hashes.push(HashPlan {
                        algorithm,
                        layout: 0,
                        data: 0,
                        d,
                        w,
                        bounds: None,
                        pad_left: false,
                        payload: false,
                        is_sum: false,
                    });
                    c.op(Op::ChecksumFinish {
                        unit,
                        hash: (c.code.hashes.len() - 1) as u32,
                    })
                })
            }
            _ => self.no_method(call),
        }
    }

    pub(crate) fn digest(&mut self, instance: u32, data: &Expr) -> Result<()> {
        let (values, s) = (self.values(&data.ty)?, self.expr(data)?);
        let layout = self.code.layouts.len() as u32;
        self.code.layouts.push(values);
        self.code.digests.push((instance, layout));
        self.op(Op::Digest {
            digest: (self.code.digests.len() - 1) as u32,
            s,
        })
    }

    pub(crate) fn hash(
        &mut self,
        algorithm: Algorithm,
        data: &Expr,
        bounds: Option<(Slot, Slot)>,
        result: Option<&LValue>,
    ) -> Result<()> {
        let Some(w) = result.map(|r| width(&r.ty)) else {
            return Ok(());
        };
        let w = self.hash_width(w)?;
        let (layout, s) = self.spread(data)?;
        let pad_left = self.rules.pads_left;
        self.write_result(result, |c, d| {
            c.code.hashes.push(HashPlan {
                algorithm,
                layout,
                data: s,
                d,
                w,
                bounds,
                pad_left,
                payload: false,
                is_sum: false,
            });
            c.op(Op::Hash((c.code.hashes.len() - 1) as u32))
        })
    }

    pub(crate) fn hash_width(&self, w: u32) -> Result<u8> {
        if w > 64 {
            self.unsupported("a hash of more than 64 bits")
        } else {
            Ok(w as u8)
        }
    }

    pub(crate) fn index(&mut self, e: &Expr) -> Result<Slot> {
        if let Some(value) = literal(e) {
            return self.constant(value);
        }
        let slot = self.expr(e)?;
        if width(&e.ty) > 64 {
            self.saturate(slot, width(&e.ty))
        } else {
            Ok(slot)
        }
    }

    /// Lets `write` store a call's result at its destination, or in a temporary slot if there is none or it must be copied
    /// there.
    pub(crate) fn write_result(
        &mut self,
        result: Option<&LValue>,
        write: impl FnOnce(&mut Self, Slot) -> Result<()>,
    ) -> Result<()> {
        let Some(lvalue) = result else {
            // Large enough for any result.
            let d = self.alloc(64)?;
            return write(self, d);
        };
        let place = self.locate(lvalue)?;
        if place.is_plain() && !matches!(lvalue.ty, Type::Void) {
            return write(self, place.slot);
        }
        let n = self.size(&lvalue.ty)?;
        let d = self.alloc(n)?;
        write(self, d)?;
        self.store(&place, d)
    }
}

/// The l-value of an `out` or `inout` argument; `None` for other arguments.
pub(crate) fn written(arg: &Arg) -> Option<&LValue> {
    match arg {
        Arg::Out(to) | Arg::InOut(to) => Some(to),
        _ => None,
    }
}

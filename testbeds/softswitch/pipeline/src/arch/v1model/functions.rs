//! v1model's extern functions, compiled. Requests such as a clone stay in slots of the frame until the block ends.

use super::DROP_PORT;
use crate::call::FunctionCall;
use crate::compile::dialect::Dialect;
use crate::compile::layout::width;
use crate::compile::methods::written;
use crate::compile::{Compiler, Result};
use crate::externs::hash::Algorithm;
use crate::externs::random::Random;
use crate::op::bindings::InlineList;
use crate::op::{HashPlan, Op, Slot, T3};
use p4lang::ir::{Arg, Const, Expr, ExprKind, ExternFunction, ExternId, LValue, Type};

/// First number for field lists that a deprecated call contains. Lists that the program declares have numbers of 8 bits.
const FIRST_INLINE_LIST: u64 = 256;

/// The compiler's implementation of v1model's externs.
#[derive(Debug)]
pub(crate) struct V1modelFunctions;

impl Dialect for V1modelFunctions {
    fn table_object(
        &self,
        compiler: &mut Compiler<'_>,
        property: &str,
        object: ExternId,
        _: u32,
    ) -> Result<()> {
        if property == "meters" {
            // Allocated for the whole frame: the action that reads it runs after the lookup.
            let slot = compiler.alloc(1)?;
            compiler.direct_meters.insert(object, slot);
        }
        Ok(())
    }

    fn call_function(&self, compiler: &mut Compiler<'_>, call: FunctionCall<'_>) -> Result<()> {
        compiler.call_v1model(call.function, call.args)
    }
}

impl Compiler<'_> {
    fn call_v1model(&mut self, function: &ExternFunction, args: &[Arg]) -> Result<()> {
        let requests = self.bindings.requests;
        match (function, args) {
            (ExternFunction::MarkToDrop, []) => self.drop_everywhere(),
            (ExternFunction::MarkToDrop, [Arg::InOut(standard)]) => self.mark_to_drop(standard),
            (ExternFunction::Random, [to, Arg::In(low), Arg::In(high)]) => {
                if width(&low.ty) > 64 {
                    return self.unsupported("random numbers of more than 64 bits");
                }
                let (low, high) = (self.expr(low)?, self.expr(high)?);
                let unit = self.random_unit();
                self.write_result(written(to), |c, d| {
                    c.op(Op::RandomRange { unit, d, low, high })
                })
            }
            (
                ExternFunction::Hash,
                [
                    to,
                    Arg::In(algorithm),
                    Arg::In(base),
                    Arg::In(data),
                    Arg::In(max),
                ],
            ) => {
                let bounds = (self.index(base)?, self.index(max)?);
                if self.is_random(algorithm) {
                    return self.random_hash(written(to), bounds);
                }
                let algorithm = self.v1model_algorithm(algorithm)?;
                self.hash(algorithm, data, Some(bounds), written(to))
            }
            (
                ExternFunction::VerifyChecksum
                | ExternFunction::VerifyChecksumWithPayload
                | ExternFunction::UpdateChecksum
                | ExternFunction::UpdateChecksumWithPayload,
                [Arg::In(c), Arg::In(data), given, Arg::In(algorithm)],
            ) => self.checksum_if(function, c, (data, algorithm), given),
            (ExternFunction::Clone, [_, Arg::In(session)]) => {
                self.request(requests.clone, session)?;
                self.op(Op::Zero {
                    d: requests.clone_list,
                    n: 1,
                })
            }
            (ExternFunction::ClonePreservingFieldList, [_, Arg::In(session), Arg::In(list)]) => {
                self.request(requests.clone, session)?;
                self.request(requests.clone_list, list)
            }
            (ExternFunction::Clone3, [_, Arg::In(session), Arg::In(data)]) => {
                self.request(requests.clone, session)?;
                self.inline_list(requests.clone_list, data)
            }
            (ExternFunction::ResubmitPreservingFieldList, [Arg::In(list)]) => {
                self.request(requests.resubmit, list)
            }
            (ExternFunction::Resubmit, [Arg::In(data)]) => {
                self.inline_list(requests.resubmit, data)
            }
            (ExternFunction::RecirculatePreservingFieldList, [Arg::In(list)]) => {
                self.request(requests.recirculate, list)
            }
            (ExternFunction::Recirculate, [Arg::In(data)]) => {
                self.inline_list(requests.recirculate, data)
            }
            (ExternFunction::Truncate, [Arg::In(length)]) => {
                self.truncate(requests.truncate, length)
            }
            (ExternFunction::Digest, [Arg::In(_), Arg::In(data)]) => {
                let instance = self.digest_instance(&data.ty);
                self.bindings.digests.push((self.span, instance));
                self.digest(instance, data)
            }
            // The message is not logged.
            (ExternFunction::LogMsg, _) => Ok(()),
            (ExternFunction::Assert | ExternFunction::Assume, [Arg::In(e)]) => {
                let c = self.expr(e)?;
                self.op(Op::Assert { c })
            }
            _ => self.unsupported(format!("function {function}")),
        }
    }

    /// Compiles `mark_to_drop()` without an argument: it writes to the packet's standard metadata, though no argument names it.
    fn drop_everywhere(&mut self) -> Result<()> {
        let drop = self.constant(DROP_PORT.into())?;
        let zero = self.constant(0)?;
        let [spec, group] = self.v1model.destination;
        for (d, s) in [(spec, drop), (group, zero)] {
            if let Some(d) = d {
                self.op(Op::Mov { d, s })?;
            }
        }
        Ok(())
    }

    fn mark_to_drop(&mut self, standard: &LValue) -> Result<()> {
        let spec = self.named_field(&standard.ty, "egress_spec")?;
        let group = self.named_field(&standard.ty, "mcast_grp")?;
        let place = self.locate(standard)?;
        let (drop, zero) = (self.constant(DROP_PORT.into())?, self.constant(0)?);
        self.in_place(&place, |c, at| {
            for (field, s) in [(spec, drop), (group, zero)] {
                if let Some((offset, _)) = field {
                    c.op(Op::Mov { d: at + offset, s })?;
                }
            }
            Ok(())
        })
    }

    /// Compiles `verify_checksum` or `update_checksum`: if the condition holds, compares a checksum with a value, or writes it.
    fn checksum_if(
        &mut self,
        function: &ExternFunction,
        condition: &Expr,
        (data, algorithm): (&Expr, &Expr),
        given: &Arg,
    ) -> Result<()> {
        let with_payload = matches!(
            function,
            ExternFunction::VerifyChecksumWithPayload | ExternFunction::UpdateChecksumWithPayload
        );
        let verifies = matches!(
            function,
            ExternFunction::VerifyChecksum | ExternFunction::VerifyChecksumWithPayload
        );
        let w = match given {
            Arg::In(e) if verifies => width(&e.ty),
            Arg::InOut(to) if !verifies => width(&to.ty),
            _ => return self.unsupported(format!("function {function}")),
        };
        let skip = self.label();
        self.unless(condition, skip)?;
        let d = self.alloc(1)?;
        self.checksum(with_payload, data, algorithm, d, w)?;
        match given {
            Arg::In(given) => {
                let (given, one) = (self.expr(given)?, self.constant(1)?);
                self.op(Op::JumpEq {
                    a: d,
                    b: given,
                    to: skip,
                })?;
                self.op(Op::Mov {
                    d: self.bindings.requests.checksum_error,
                    s: one,
                })?;
            }
            given => {
                if let Some(to) = written(given) {
                    let place = self.locate(to)?;
                    self.store(&place, d)?;
                }
            }
        }
        self.place(skip);
        Ok(())
    }

    /// Stores the value + 1 in slot `d`, where 0 means that nothing is requested.
    fn request(&mut self, d: Slot, value: &Expr) -> Result<()> {
        let (a, b) = (self.index(value)?, self.constant(1)?);
        self.op(Op::Add(T3 { w: 64, d, a, b }))
    }

    /// Compiles `truncate`; the smallest of several requested lengths applies, as in BMv2.
    fn truncate(&mut self, d: Slot, length: &Expr) -> Result<()> {
        let (a, b) = (self.index(length)?, self.constant(1)?);
        let (before, shorter, end) = (self.alloc(1)?, self.alloc(1)?, self.label());
        // No request so far compares as the greatest length.
        self.op(Op::Sub(T3 {
            w: 64,
            d: before,
            a: d,
            b,
        }))?;
        self.op(Op::Lt(T3 {
            w: 64,
            d: shorter,
            a,
            b: before,
        }))?;
        self.op(Op::JumpIfNot {
            c: shorter,
            to: end,
        })?;
        self.op(Op::Add(T3 { w: 64, d, a, b }))?;
        self.place(end);
        Ok(())
    }

    /// Compiles the field list in a deprecated call: the fields whose values at the end of the block the packet will keep.
    fn inline_list(&mut self, d: Slot, data: &Expr) -> Result<()> {
        let mut kept = Vec::new();
        self.kept(data, &mut kept)?;
        let index = FIRST_INLINE_LIST + self.bindings.inline_lists.len() as u64;
        let span = self.span;
        self.bindings
            .inline_lists
            .push(InlineList { span, index, kept });
        let s = self.constant(index + 1)?;
        self.op(Op::Mov { d, s })
    }

    fn kept(&mut self, e: &Expr, kept: &mut Vec<(Slot, u32)>) -> Result<()> {
        match &e.kind {
            ExprKind::Read(lvalue) => {
                let place = self.locate(lvalue)?;
                if !place.elements.is_empty() || place.slice.is_some() {
                    return self.unsupported("a part of a field in a field list");
                }
                let n = self.size(&place.ty)?;
                kept.push((place.slot, n));
                Ok(())
            }
            ExprKind::Tuple(fields) => fields.iter().try_for_each(|f| self.kept(f, kept)),
            ExprKind::Const(_) => Ok(()),
            _ => self.unsupported("an expression in a field list"),
        }
    }

    fn checksum(
        &mut self,
        with_payload: bool,
        data: &Expr,
        algorithm: &Expr,
        d: Slot,
        w: u32,
    ) -> Result<()> {
        let algorithm = self.v1model_algorithm(algorithm)?;
        let w = self.hash_width(w)?;
        let (layout, s) = self.spread(data)?;
        self.code.hashes.push(HashPlan {
            algorithm,
            layout,
            data: s,
            d,
            w,
            bounds: None,
            pad_left: false,
            payload: with_payload,
            is_sum: false,
        });
        self.op(Op::Hash((self.code.hashes.len() - 1) as u32))
    }

    fn member<'e>(&'e self, e: &Expr) -> Option<&'e str> {
        let ExprKind::Const(Const::Enum(id, i)) = &e.kind else {
            return None;
        };
        let members = &self.program.enums.get(id.index())?.members;
        members.get(*i as usize).map(String::as_str)
    }

    fn is_random(&self, algorithm: &Expr) -> bool {
        self.member(algorithm) == Some("random")
    }

    fn v1model_algorithm(&self, e: &Expr) -> Result<Algorithm> {
        match self.member(e).and_then(Algorithm::from_v1model) {
            Some(algorithm) => Ok(algorithm),
            None => self.unsupported("this hash algorithm"),
        }
    }

    /// Compiles `hash` with `HashAlgorithm.random`: base + a random number mod max.
    fn random_hash(&mut self, to: Option<&LValue>, (base, max): (Slot, Slot)) -> Result<()> {
        let Some(w) = to.map(|to| width(&to.ty)) else {
            return Ok(());
        };
        let w = self.hash_width(w)?;
        let unit = self.random_unit();
        let (low, high, d) = (self.constant(0)?, self.constant(u64::MAX)?, self.alloc(1)?);
        self.op(Op::RandomRange { unit, d, low, high })?;
        self.op(Op::Mod(T3 {
            w: 64,
            d,
            a: d,
            b: max,
        }))?;
        self.write_result(to, |c, to| {
            c.op(Op::Add(T3 {
                w,
                d: to,
                a: d,
                b: base,
            }))
        })
    }

    /// Index of the random number generator that all calls of `random` share.
    fn random_unit(&mut self) -> u32 {
        let stream = self.program.externs.len() as u64;
        let unit = *self
            .bindings
            .random
            .get_or_insert(self.state.randoms.len() as u32);
        if unit as usize == self.state.randoms.len() {
            self.state
                .randoms
                .push(Random::new(self.wanted.seed, stream, 0, u64::MAX));
        }
        unit
    }

    /// Number of the digest with this message type; a type identifies its digest, as in P4Info.
    fn digest_instance(&mut self, ty: &Type) -> u32 {
        let names = &mut self.state.digests.names;
        let name = match ty {
            Type::Struct(id) => self.program.types[id.index()].name.clone(),
            _ => format!("digest_{}", names.len()),
        };
        let found = names.iter().position(|n| *n == name);
        found.unwrap_or_else(|| {
            names.push(name);
            names.len() - 1
        }) as u32
    }
}

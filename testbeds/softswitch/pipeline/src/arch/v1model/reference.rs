//! v1model's extern functions, interpreted. Requests such as a clone stay in the frame until the block ends.

use super::DROP_PORT;
use crate::call::FunctionCall;
use crate::externs::hash::Algorithm;
use crate::op::Slot;
use crate::reference::bits::Bits;
use crate::reference::dialect::Interpreted;
use crate::reference::value::{Value, width};
use crate::reference::{Interpreter, Result};
use p4lang::ast::StructKind;
use p4lang::ir::{Arg, Const, Expr, ExprKind, ExternFunction, Type};

/// The interpreter's implementation of v1model's externs.
#[derive(Debug)]
pub(crate) struct V1modelReference;

impl Interpreted for V1modelReference {
    fn call_function<'p>(
        &self,
        interpreter: &mut Interpreter<'_, 'p>,
        call: FunctionCall<'p>,
    ) -> Result<()> {
        interpreter.call_v1model(call.function, call.args)
    }
}

impl<'p> Interpreter<'_, 'p> {
    fn call_v1model(&mut self, function: &ExternFunction, args: &'p [Arg]) -> Result<()> {
        let (values, to) = self.extern_args(args)?;
        if matches!(function, ExternFunction::LogMsg) {
            self.log(args, values.get(1));
            return Ok(());
        }
        let requests = self.code.bindings.requests;
        let number = |i: usize| values.get(i).map_or(0, |v| v.bits().u64());
        let ty = to.as_ref().map_or(Type::Void, |to| to.ty.clone());
        let algorithm = args.iter().find_map(|arg| match arg {
            Arg::In(e) => match &e.kind {
                ExprKind::Const(c) => self.member(c),
                _ => None,
            },
            _ => None,
        });
        // Lists of the deprecated calls contain names of fields, not values.
        let by_name = matches!(
            function,
            ExternFunction::Clone3 | ExternFunction::Resubmit | ExternFunction::Recirculate
        );
        for (i, value) in values.iter().enumerate().filter(|_| !by_name) {
            self.influences_all(value, || format!("argument {} of {function}", i + 1));
        }
        // The function's result; for a check, the computed checksum.
        let mut given = None;
        let scalar = |width: u32, n: u64| Some(Value::Bits(Bits::new(width, n)));
        match function {
            ExternFunction::MarkToDrop => match &to {
                Some(to) => {
                    let mut standard = self.read(to);
                    drop(self, &to.ty, &mut standard);
                    self.write(to, standard);
                }
                None => self.drop_everywhere(),
            },
            ExternFunction::Random => {
                let unit = self.code.bindings.random.unwrap_or(0) as usize;
                let drawn = self.state.randoms[unit].between(number(0), number(1));
                given = scalar(width(&ty), drawn);
            }
            // algorithm, base, data, max
            ExternFunction::Hash => {
                let algorithm = algorithm.and_then(Algorithm::from_v1model);
                let bounds = (number(1), number(3));
                let hashed = self.hash_or_draw(algorithm, &values[2], bounds, width(&ty));
                given = scalar(width(&ty), hashed);
            }
            // condition, data, given, algorithm
            ExternFunction::VerifyChecksum | ExternFunction::VerifyChecksumWithPayload
                if number(0) != 0 =>
            {
                let payload = *function == ExternFunction::VerifyChecksumWithPayload;
                let expected = values[2].bits();
                let found = self.checksum(algorithm, &values[1], payload, expected.width);
                given = scalar(expected.width, found);
                if found != expected.u64() {
                    self.frame[requests.checksum_error as usize] = 1;
                }
            }
            // condition, data, algorithm
            ExternFunction::UpdateChecksum | ExternFunction::UpdateChecksumWithPayload
                if number(0) != 0 =>
            {
                let payload = *function == ExternFunction::UpdateChecksumWithPayload;
                let found = self.checksum(algorithm, &values[1], payload, width(&ty));
                given = scalar(width(&ty), found);
            }
            ExternFunction::Digest => {
                let calls = &self.code.bindings.digests;
                let call = calls.iter().find(|(span, _)| *span == self.span);
                if let (Some((_, instance)), Some(data)) = (call.copied(), values.get(1)) {
                    self.digest(instance, data);
                }
            }
            ExternFunction::Assert | ExternFunction::Assume => {
                if number(0) == 0 {
                    self.counts.failed_assertions += 1;
                    let span = self.span;
                    self.watch
                        .assertion_failed(function.name(), self.program, span);
                }
            }
            // Requests that the end of the block carries out, and checksums whose condition is false.
            _ => self.ask(function, &values),
        }
        self.trace_method("", function.name(), args, &values, (&ty, given.as_ref()));
        if let (Some(to), Some(value)) = (to, given) {
            self.write(&to, value);
        }
        Ok(())
    }

    /// Interprets `log_msg`: `values` replace the message's `{}`, in decimal as in BMv2; `\\{` and `\\}` are braces.
    fn log(&mut self, args: &'p [Arg], values: Option<&Value>) {
        let (Some(Arg::In(Expr { kind, .. })), data) = (args.first(), args.get(1)) else {
            return;
        };
        let ExprKind::Const(Const::Str(format)) = kind else {
            return;
        };
        let signed = |i: usize| match data {
            Some(Arg::In(Expr {
                kind: ExprKind::Tuple(parts),
                ..
            })) => parts.get(i).is_some_and(|e| matches!(e.ty, Type::Int(_))),
            _ => false,
        };
        let values = values.map(Value::scalars).unwrap_or_default();
        let shown = values.iter().enumerate();
        let shown = shown.map(|(i, bits)| bits.decimal(signed(i))).collect();
        let span = self.span;
        self.watch.log(filled(format, shown), self.program, span);
    }

    /// Stores the packet's requests for clones, resubmission, recirculation and truncation, for the end of the block.
    fn ask(&mut self, function: &ExternFunction, values: &[Value]) {
        let requests = self.code.bindings.requests;
        let number = |i: usize| values.get(i).map_or(0, |v| v.bits().u64());
        match function {
            ExternFunction::Clone => {
                self.request(requests.clone, number(1));
                self.frame[requests.clone_list as usize] = 0;
            }
            ExternFunction::ClonePreservingFieldList => {
                self.request(requests.clone, number(1));
                self.request(requests.clone_list, number(2));
            }
            ExternFunction::Clone3 => {
                self.request(requests.clone, number(1));
                self.inline_list(requests.clone_list);
            }
            ExternFunction::ResubmitPreservingFieldList => {
                self.request(requests.resubmit, number(0));
            }
            ExternFunction::Resubmit => self.inline_list(requests.resubmit),
            ExternFunction::RecirculatePreservingFieldList => {
                self.request(requests.recirculate, number(0));
            }
            ExternFunction::Recirculate => self.inline_list(requests.recirculate),
            ExternFunction::Truncate => {
                let before = self.frame[requests.truncate as usize].checked_sub(1);
                let length = before.map_or(number(0), |before| before.min(number(0)));
                self.request(requests.truncate, length);
            }
            _ => {}
        }
    }

    /// Computes `base + hash mod max`; for the algorithm `random`, a random number instead of the hash.
    fn hash_or_draw(
        &mut self,
        algorithm: Option<Algorithm>,
        data: &Value,
        (base, max): (u64, u64),
        width: u32,
    ) -> u64 {
        match algorithm {
            Some(algorithm) => self.hash(algorithm, data, Some((base, max)), false, width),
            None => {
                let unit = self.code.bindings.random.unwrap_or(0) as usize;
                let drawn = self.state.randoms[unit].between(0, u64::MAX);
                base.wrapping_add(drawn.checked_rem(max).unwrap_or(0))
            }
        }
    }

    fn checksum(
        &mut self,
        algorithm: Option<&str>,
        data: &Value,
        with_payload: bool,
        width: u32,
    ) -> u64 {
        let algorithm = algorithm.and_then(Algorithm::from_v1model);
        let algorithm = algorithm.unwrap_or(Algorithm::OnesComplement16);
        self.hash(algorithm, data, None, with_payload, width)
    }

    /// Stores the value + 1 in the slot, where 0 means that nothing is requested.
    fn request(&mut self, slot: Slot, value: u64) {
        self.frame[slot as usize] = value.wrapping_add(1);
    }

    fn inline_list(&mut self, slot: Slot) {
        let mut lists = self.code.bindings.inline_lists.iter();
        if let Some(list) = lists.find(|list| list.span == self.span) {
            self.request(slot, list.index);
        }
    }

    /// Interprets `mark_to_drop()` without an argument: marks every `standard_metadata_t` variable of running controls.
    fn drop_everywhere(&mut self) {
        for env in &mut self.envs {
            for (value, var) in env.vars.iter_mut().zip(env.declared) {
                let name = match &var.ty {
                    Type::Struct(id) => self.program.types[id.index()].name.as_str(),
                    _ => "",
                };
                if name == "standard_metadata_t" {
                    mark(self.program, &var.ty, value);
                }
            }
        }
    }
}

/// Replaces the `{}` of the format by the values, and appends the values that have no `{}`.
fn filled(format: &str, values: Vec<String>) -> String {
    let (mut out, mut rest) = (String::new(), format);
    let mut values = values.into_iter();
    while let Some(at) = rest.find(['{', '\\']) {
        let (before, from) = rest.split_at(at);
        out.push_str(before);
        let end = from.find('}').filter(|_| from.starts_with('{'));
        (out, rest) = match (end, values.as_slice().is_empty()) {
            (Some(end), false) => (out + &values.next().unwrap_or_default(), &from[end + 1..]),
            _ if from.starts_with("\\{") || from.starts_with("\\}") => {
                (out + &from[1..2], &from[2..])
            }
            _ => (out + &from[..1], &from[1..]),
        };
    }
    out.push_str(rest);
    for value in values {
        out.push(' ');
        out.push_str(&value);
    }
    out
}

fn drop(i: &Interpreter<'_, '_>, ty: &Type, standard: &mut Value) {
    mark(i.program, ty, standard);
}

/// Sets `egress_spec` and `mcast_grp` in the standard metadata so that the packet is dropped.
fn mark(program: &p4lang::ir::Program, ty: &Type, standard: &mut Value) {
    let (Type::Struct(id), Value::Struct(fields)) = (ty, standard) else {
        return;
    };
    let declared = &program.types[id.index()];
    if declared.kind != StructKind::Struct {
        return;
    }
    for (field, value) in declared.fields.iter().zip(fields) {
        let w = width(&field.ty);
        match field.name.as_str() {
            "egress_spec" => *value = Value::Bits(Bits::new(w, DROP_PORT)),
            "mcast_grp" => *value = Value::Bits(Bits::new(w, 0u8)),
            _ => {}
        }
    }
}

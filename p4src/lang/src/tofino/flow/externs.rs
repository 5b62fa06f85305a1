//! Places registers, counters and hashes in the dependency graph.

use super::super::expr::{is_const, width};
use super::super::field_path::{FieldPath, reads};
use super::super::salu;
use super::{Cx, Node, Reader, Val, Walk};
use crate::ir::{Arg, Expr, ExternId, ExternKind, LValue, Method};

impl Walk<'_> {
    pub(super) fn args(&mut self, cx: Cx, args: &[Arg], reader: Reader) -> Val {
        let mut val = Val::default();
        for arg in args {
            val = val.max(match arg {
                Arg::In(e) => {
                    self.goes_to(cx, e, None);
                    self.eval(cx, e, reader)
                }
                Arg::InOut(lv) => self.read(&self.place(cx.unit, lv)),
                _ => Val::default(),
            });
        }
        Val { data: false, ..val }
    }

    pub(super) fn results(&mut self, cx: Cx, args: &[Arg], result: Option<&LValue>, val: Val) {
        for lv in result
            .into_iter()
            .chain(args.iter().filter_map(|a| match a {
                Arg::Out(lv) | Arg::InOut(lv) => Some(lv),
                _ => None,
            }))
        {
            let place = self.place(cx.unit, lv);
            self.word(lv, &place);
            self.write(place, val);
        }
    }

    pub(super) fn method(
        &mut self,
        cx: Cx,
        (object, method): (ExternId, &Method),
        args: &[Arg],
        result: Option<&LValue>,
    ) {
        let Some(instance) = self.program.externs.get(object.index()) else {
            return;
        };
        let least = cx.table.unwrap_or(0);
        match &instance.kind {
            ExternKind::Hash => {
                let inputs = self.args(cx, args, Reader::Match);
                self.hashed(cx, object, args, result);
                let bits = result.map_or(0, |lv| width(&lv.ty));
                let span = self.span;
                self.flow
                    .hash_bits
                    .entry((Some(object), String::new()))
                    .or_insert((bits, span));
                let val = Val {
                    hash: true,
                    ..inputs.max(cx.ctl)
                };
                self.results(cx, args, result, val);
            }
            ExternKind::Random => self.results(
                cx,
                args,
                result,
                Val {
                    hash: true,
                    ..cx.ctl
                },
            ),
            ExternKind::Counter | ExternKind::DirectCounter => {
                let inputs = self.args(cx, args, Reader::Index).max(cx.ctl);
                self.index(cx, args);
                self.op(Node::Statistics(object), inputs, least);
            }
            // The address of the preceding execution.
            _ if *method == Method::Address => {
                let inputs = self.args(cx, args, Reader::Alu).max(cx.ctl);
                self.results(cx, args, result, inputs);
            }
            ExternKind::RegisterAction
            | ExternKind::LearnAction
            | ExternKind::MinMaxAction
            | ExternKind::DirectRegisterAction
            | ExternKind::Register
            | ExternKind::DirectRegister
            | ExternKind::Meter
            | ExternKind::DirectMeter
            | ExternKind::Lpf
            | ExternKind::DirectLpf
            | ExternKind::Wred
            | ExternKind::DirectWred => {
                self.stateful(cx, object, args, result);
            }
            _ => {
                let inputs = self.args(cx, args, Reader::Alu).max(cx.ctl);
                self.results(cx, args, result, inputs);
            }
        }
    }

    pub(super) fn stateful(
        &mut self,
        cx: Cx,
        object: ExternId,
        args: &[Arg],
        result: Option<&LValue>,
    ) {
        let register = salu::register_of(self.program, object).unwrap_or(object);
        let mut inputs = self.args(cx, args, Reader::Index).max(cx.ctl);
        self.index(cx, args);
        for input in salu::inputs(self.program, object) {
            let place = self.place(cx.unit, &input);
            inputs = inputs.max(self.read(&place));
            self.flow.uses.push((None, place.clone()));
            self.flow
                .exact
                .entry(place)
                .or_insert((width(&input.ty), self.span));
        }
        let here = self.span;
        let run = self.runs.entry(register).or_insert((0, here));
        run.0 += 1;
        if run.0 > 1
            && !self
                .flow
                .twice
                .iter()
                .any(|(r, at, _)| *r == register && *at == here)
        {
            self.flow.twice.push((register, here, run.1));
        }
        if cx.table.is_some() {
            self.flow.in_tables.insert(register);
        }
        let val = self.op(
            Node::Register(register),
            Val {
                data: false,
                hash: false,
                ..inputs
            },
            cx.table.unwrap_or(0),
        );
        self.results(cx, args, result, val);
    }

    /// Records the fields that a hash reads, and the field that receives its result.
    fn hashed(&mut self, cx: Cx, object: ExternId, args: &[Arg], result: Option<&LValue>) {
        let mut inputs = Vec::new();
        for arg in args {
            if let Arg::In(e) = arg {
                reads(e, &mut |lv| {
                    inputs.push((self.place(cx.unit, lv), width(&lv.ty).max(1)));
                });
            }
        }
        let result = result.map(|lv| self.place(cx.unit, lv));
        if let Some(place) = result.as_ref().filter(|place| self.is_seen(place)) {
            self.flow.uses.push((None, place.clone()));
        }
        let span = self.span;
        let hashed = self.flow.hashed.entry(object).or_default();
        hashed.results.extend(result);
        for (place, bits) in inputs {
            hashed.inputs.entry(place).or_insert((bits, span));
        }
    }

    /// Whether a value contains action data of a table entry or a hash result: as an index, it needs no hash distribution.
    fn comes_with_entry(&self, cx: Cx, e: &Expr) -> bool {
        let mut direct = false;
        reads(e, &mut |lv| {
            let val = self.read(&self.place(cx.unit, lv));
            direct |= val.data || val.hash;
        });
        direct
    }

    /// Records the index of a register or counter, which hash distribution carries; all uses of the same index count once.
    pub(super) fn index(&mut self, cx: Cx, args: &[Arg]) {
        if let Some(Arg::In(e)) = args.first()
            && !is_const(e)
            && !self.comes_with_entry(cx, e)
        {
            let mut name = String::new();
            reads(e, &mut |lv| {
                name.push_str(&format!("{:?}", self.place(cx.unit, lv)))
            });
            let span = self.span;
            self.flow
                .hash_bits
                .entry((None, name))
                .or_insert((16, span));
            self.carry(cx, e, false);
        }
    }

    pub(super) fn goes_to(&mut self, cx: Cx, e: &Expr, to: Option<&FieldPath>) {
        reads(e, &mut |lv| {
            self.flow.uses.push((to.cloned(), self.place(cx.unit, lv)))
        });
    }

    /// Records the fields of an expression as inputs of a stage's exact or ternary crossbar.
    pub(super) fn carry(&mut self, cx: Cx, e: &Expr, ternary: bool) {
        let mut places = Vec::new();
        reads(e, &mut |lv| {
            places.push((self.place(cx.unit, lv), width(&lv.ty).max(1)))
        });
        let span = self.span;
        let bus = if ternary {
            &mut self.flow.ternary
        } else {
            &mut self.flow.exact
        };
        for (place, bits) in places {
            bus.entry(place).or_insert((bits, span));
        }
    }
}

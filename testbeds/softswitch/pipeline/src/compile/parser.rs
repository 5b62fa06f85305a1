//! Compiles parsers: states and transitions.

use super::layout::width;
use super::{Compiler, Result, Unit};
use crate::bits::MAX_BITS;
use crate::error::LoadError;
use crate::op::{Mark, Op, Slot, T3};
use crate::table::key::FieldSpec;
use crate::table::value_set::ValueSet;
use p4lang::ir::{BinOp, Expr, Keyset, Parser, State, Target, Transition};

impl<'p> Compiler<'p> {
    /// Compiles a parser from its start state on; paths lead to `accept` or to the scope's `reject`.
    pub(crate) fn parser_body(
        &mut self,
        parser: &'p Parser,
        accept: crate::op::Target,
    ) -> Result<()> {
        self.block(&parser.init)?;
        let labels: Vec<_> = parser.states.iter().map(|_| self.label()).collect();
        let reject = self.scope.reject;
        let to = |target: &Target| match target {
            Target::Accept => accept,
            Target::Reject => reject,
            Target::State(id) => labels[id.index()],
        };
        for (state, label) in parser.states.iter().zip(&labels) {
            self.span = state.span;
            self.place(*label);
            self.round(reject, |c| c.state(parser, state, &to))?;
        }
        Ok(())
    }

    fn state(
        &mut self,
        parser: &Parser,
        state: &'p State,
        to: &impl Fn(&Target) -> crate::op::Target,
    ) -> Result<()> {
        self.mark(|| Mark::State(parser.name.clone(), state.name.clone()))?;
        let top = self.frame.top;
        self.block(&state.body)?;
        match &state.transition {
            Transition::Direct(target) => self.op(Op::Jump(to(target)))?,
            Transition::Select { keys, cases } => {
                let mut slots = Vec::new();
                for key in keys {
                    slots.push(self.expr(key)?);
                }
                for (sets, target) in cases {
                    self.case(keys, &slots, sets, to(target))?;
                }
                let error = self.error_slot("NoMatch")?;
                let to = self.scope.reject;
                self.op(Op::Fail { error, to })?;
            }
        }
        self.frame.top = top;
        Ok(())
    }

    /// Compiles a case of a `select`: jumps to `to` if all keys match the case's sets.
    fn case(
        &mut self,
        keys: &[Expr],
        slots: &[Slot],
        sets: &[Keyset],
        to: crate::op::Target,
    ) -> Result<()> {
        let top = self.frame.top;
        let no = self.label();
        for (i, set) in sets.iter().enumerate() {
            let key = |i: usize| (slots[i], keys[i].clone());
            match set {
                Keyset::Any => {}
                Keyset::Value(value) => {
                    let (a, e) = key(i);
                    let b = self.expr(value)?;
                    self.unless_equal(&e, a, b, no)?;
                }
                Keyset::Mask(value, mask) => {
                    let (a, e) = key(i);
                    let (value, mask, n) = (self.expr(value)?, self.expr(mask)?, self.size(&e.ty)?);
                    let (x, y) = (self.alloc(n)?, self.alloc(n)?);
                    for limb in 0..n {
                        self.op(Op::And(T3 {
                            w: 64,
                            d: x + limb,
                            a: a + limb,
                            b: mask + limb,
                        }))?;
                        self.op(Op::And(T3 {
                            w: 64,
                            d: y + limb,
                            a: value + limb,
                            b: mask + limb,
                        }))?;
                    }
                    self.unless_equal(&e, x, y, no)?;
                }
                Keyset::Range(low, high) => {
                    let (_, e) = key(i);
                    for (op, bound) in [(BinOp::Ge, low), (BinOp::Le, high)] {
                        let test = Expr {
                            kind: p4lang::ir::ExprKind::Binary(
                                op,
                                Box::new(e.clone()),
                                Box::new(bound.clone()),
                            ),
                            ty: p4lang::ir::Type::Bool,
                        };
                        self.unless(&test, no)?;
                    }
                }
                Keyset::ValueSet(id) => {
                    let Unit::Parser(parser) = self.scope.unit else {
                        return self.unsupported("a value set outside a parser");
                    };
                    let name = &parser.value_sets[id.index()].name;
                    let Some(set) = self.bindings.value_sets.get(name).copied() else {
                        return self.unsupported("this value set");
                    };
                    let mut places = Vec::new();
                    for (i, (slot, e)) in slots.iter().zip(keys).enumerate() {
                        let spec = self.state.value_sets[set as usize].fields.get(i);
                        let (sign, n) = (spec.and_then(FieldSpec::sign), self.size(&e.ty)?);
                        let slot = self.with_sign_flipped(*slot, n, sign)?;
                        places.push((slot, width(&e.ty)));
                    }
                    self.code.value_sets.push((set, places));
                    let set = (self.code.value_sets.len() - 1) as u32;
                    let d = self.alloc(1)?;
                    self.op(Op::InValueSet { d, set })?;
                    self.op(Op::JumpIfNot { c: d, to: no })?;
                }
            }
        }
        self.op(Op::Jump(to))?;
        self.place(no);
        self.frame.top = top;
        Ok(())
    }

    fn unless_equal(&mut self, key: &Expr, a: Slot, b: Slot, no: crate::op::Target) -> Result<()> {
        match self.size(&key.ty)? {
            1 => self.op(Op::JumpNe { a, b, to: no }),
            n => {
                let d = self.alloc(1)?;
                self.op(Op::EqRange { d, a, b, n })?;
                self.op(Op::JumpIfNot { c: d, to: no })
            }
        }
    }

    pub(crate) fn declare_value_sets(&mut self) -> Result<()> {
        for parser in &self.program.parsers {
            self.span = parser.span;
            for set in &parser.value_sets {
                let field = |(name, ty, kind): &(String, p4lang::ir::Type, String)| {
                    let width = Some(width(ty)).filter(|w| *w <= MAX_BITS)?;
                    FieldSpec::new(name, kind, ty, width)
                };
                let fields: Option<Vec<_>> = set.fields.iter().map(field).collect();
                let Some(fields) = fields else {
                    return Err(LoadError::Unsupported {
                        what: format!("the fields of value set {}", set.name),
                        span: self.span,
                    });
                };
                self.bindings
                    .value_sets
                    .insert(set.name.clone(), self.state.value_sets.len() as u32);
                self.state.value_sets.push(ValueSet {
                    name: set.name.clone(),
                    fields,
                    size: set.size,
                    members: Vec::new(),
                });
            }
        }
        Ok(())
    }
}

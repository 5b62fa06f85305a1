//! Compiles calls of controls, parsers, functions and actions, by inlining them.

use super::location::Location;
use super::{Compiler, Result, Scope, Unit};
use crate::op::{Mark, Op, Slot, Target};
use p4lang::ast::Direction;
use p4lang::ir::{
    ActionId, Arg, Args, ControlId, Expr, ExprKind, FunctionId, Param, ParserId, Var,
};

/// For each value that a call copies out: its destination, and the slot of the value.
type CopyOut = Vec<(Location, Slot)>;

impl<'p> Compiler<'p> {
    pub(crate) fn call_control(&mut self, id: ControlId, args: &'p Args) -> Result<()> {
        let control = &self.program.controls[id.index()];
        let (slots, out) = self.arguments(&control.vars, &control.params, args)?;
        let unit = Unit::Control(id, control);
        self.inlined(unit, &control.vars, &control.params, slots, out, |c, _| {
            c.block(&control.body)
        })
    }

    pub(crate) fn call_function(&mut self, id: FunctionId, args: &'p Args) -> Result<()> {
        let function = &self.program.functions[id.index()];
        let (slots, out) = self.arguments(&function.vars, &function.params, args)?;
        self.inlined(
            Unit::Function,
            &function.vars,
            &function.params,
            slots,
            out,
            |c, _| c.block(&function.body),
        )
    }

    pub(crate) fn call_parser(&mut self, id: ParserId, args: &'p Args) -> Result<()> {
        let parser = &self.program.parsers[id.index()];
        let (slots, out) = self.arguments(&parser.vars, &parser.params, args)?;
        let unit = Unit::Parser(parser);
        self.inlined(
            unit,
            &parser.vars,
            &parser.params,
            slots,
            out,
            |c, accept| c.parser_body(parser, accept),
        )
    }

    /// Slots for a call's parameters, and values to copy out. A parameter has its argument's slots if nobody can observe it.
    fn arguments(
        &mut self,
        vars: &'p [Var],
        params: &[Param],
        args: &'p Args,
    ) -> Result<(Vec<Option<Slot>>, CopyOut)> {
        let mut places = Vec::new();
        for arg in args {
            places.push(match arg {
                Arg::Out(to) | Arg::InOut(to) | Arg::InOutSaved { to, .. } => {
                    Some(self.locate_fixed(to)?)
                }
                Arg::In(Expr {
                    kind: ExprKind::Read(from),
                    ..
                }) => Some(self.locate(from)?),
                _ => None,
            });
        }
        let mut extents = Vec::new();
        for place in &places {
            extents.push(match place {
                Some(place) => Some(match place.elements.first() {
                    None => (place.slot, self.size(&place.ty)?),
                    // The element's index is dynamic, so it may be any in its stack.
                    Some(e) => (e.stack, 1 + e.count * e.stride),
                }),
                None => None,
            });
        }
        let writes = |i: usize| {
            matches!(
                args[i],
                Arg::Out(_) | Arg::InOut(_) | Arg::InOutSaved { .. }
            )
        };
        let overlaps = |i: usize| {
            (0..args.len()).any(|j| {
                let (Some((a, m)), Some((b, n))) = (extents[i], extents[j]) else {
                    return false;
                };
                i != j && (writes(i) || writes(j)) && a < b + n && b < a + m
            })
        };
        let mut slots = Vec::new();
        let mut out = Vec::new();
        for (i, (arg, param)) in args.iter().zip(params).enumerate() {
            let ty = &vars[param.var.index()].ty;
            let n = self.size(ty)?;
            slots.push(match (arg, places[i].clone()) {
                (Arg::In(e), Some(_)) if overlaps(i) => {
                    let d = self.alloc(n)?;
                    self.expr_into(e, d)?;
                    Some(d)
                }
                (Arg::In(e), _) => Some(self.expr(e)?),
                (Arg::Out(_), Some(place)) if place.is_plain() && !overlaps(i) => {
                    self.op(Op::Zero { d: place.slot, n })?;
                    Some(place.slot)
                }
                (Arg::InOut(_), Some(place)) if place.is_plain() && !overlaps(i) => {
                    Some(place.slot)
                }
                (Arg::Out(_), Some(place)) => {
                    let d = self.alloc(n)?;
                    self.op(Op::Zero { d, n })?;
                    out.push((i, (place, d)));
                    Some(d)
                }
                (Arg::InOut(_), Some(place)) => {
                    let d = self.alloc(n)?;
                    let s = self.load(&place)?;
                    self.copy(d, s, n)?;
                    out.push((i, (place, d)));
                    Some(d)
                }
                (Arg::InOutSaved { value, .. }, Some(place)) => {
                    let d = self.alloc(n)?;
                    self.expr_into(value, d)?;
                    out.push((i, (place, d)));
                    Some(d)
                }
                (Arg::Ignore, _) => {
                    let d = self.alloc(n)?;
                    self.op(Op::Zero { d, n })?;
                    Some(d)
                }
                (Arg::Object(_) | Arg::Extern(_), _) => None,
                (Arg::Out(_) | Arg::InOut(_) | Arg::InOutSaved { .. }, None) => None,
            });
        }
        Ok((slots, in_order(args, out)))
    }

    fn inlined(
        &mut self,
        unit: Unit<'p>,
        vars: &'p [Var],
        params: &[Param],
        given: Vec<Option<Slot>>,
        out: CopyOut,
        body: impl FnOnce(&mut Self, Target) -> Result<()>,
    ) -> Result<()> {
        let slots = self.unit_slots(vars, params, &given)?;
        let end = self.label();
        // `exit` also leaves the callers, after copying out (P4_16 13.3); `reject` leaves the outermost parser.
        let exit = if out.is_empty() {
            self.scope.exit
        } else {
            self.label()
        };
        let scope = Scope {
            unit,
            vars,
            slots,
            ret: end,
            exit,
            reject: self.scope.reject,
            loops: Vec::new(),
        };
        let outer = std::mem::replace(&mut self.scope, scope);
        let result = body(self, end);
        self.scope = outer;
        result?;
        self.place(end);
        self.copy_out(&out, exit)
    }

    /// Compiles the copies to `out` arguments after a call: on the normal path, and if there are any, before an `exit`.
    fn copy_out(&mut self, out: &CopyOut, exit: Target) -> Result<()> {
        for (place, s) in out {
            self.store(place, *s)?;
        }
        if !out.is_empty() && self.labels.exits.contains(&exit) {
            let (after, outer) = (self.label(), self.exit());
            self.op(Op::Jump(after))?;
            self.place(exit);
            for (place, s) in out {
                self.store(place, *s)?;
            }
            self.op(Op::Jump(outer))?;
            self.place(after);
        }
        Ok(())
    }

    pub(crate) fn call_action(&mut self, id: ActionId, args: &'p Args) -> Result<()> {
        self.action(id, args, None)
    }

    /// Compiles an action of the current control. An action sees the control's variables, so its directional parameters are
    /// always copies. `control_plane`: first slot of the parameters without a direction.
    pub(crate) fn action(
        &mut self,
        id: ActionId,
        args: &'p Args,
        control_plane: Option<Slot>,
    ) -> Result<()> {
        let Unit::Control(_, control) = self.scope.unit else {
            return self.unsupported("an action outside a control");
        };
        let action = &control.actions[id.index()];
        let top = self.frame.top;
        let mut out = Vec::new();
        let mut bound = Vec::new();
        let mut given = args.iter().enumerate();
        let mut next = control_plane;
        for param in &action.params {
            let n = self.size(&control.vars[param.var.index()].ty)?;
            // A call from a body also passes directionless parameters; a table's entry passes them in its block.
            if let (Direction::None, Some(slot)) = (param.direction, next) {
                bound.push((param.var, slot));
                next = Some(slot + n);
                continue;
            }
            let d = self.alloc(n)?;
            match given.next() {
                Some((_, Arg::In(e))) => self.expr_into(e, d)?,
                Some((i, Arg::Out(to))) => {
                    self.op(Op::Zero { d, n })?;
                    out.push((i, (self.locate_fixed(to)?, d)));
                }
                Some((i, Arg::InOut(to))) => {
                    let place = self.locate_fixed(to)?;
                    let s = self.load(&place)?;
                    self.copy(d, s, n)?;
                    out.push((i, (place, d)));
                }
                Some((i, Arg::InOutSaved { value, to })) => {
                    out.push((i, (self.locate_fixed(to)?, d)));
                    self.expr_into(value, d)?;
                }
                _ => self.op(Op::Zero { d, n })?,
            }
            bound.push((param.var, d));
        }
        let out = in_order(args, out);
        for (var, slot) in bound {
            self.scope.slots[var.index()] = slot;
        }
        self.mark(|| Mark::Action(action.name.clone()))?;
        let end = self.label();
        let outer_exit = self.scope.exit;
        let exit = if out.is_empty() {
            outer_exit
        } else {
            self.label()
        };
        let ret = std::mem::replace(&mut self.scope.ret, end);
        self.scope.exit = exit;
        let loops = std::mem::take(&mut self.scope.loops);
        let result = self.block(&action.body);
        self.scope.ret = ret;
        self.scope.exit = outer_exit;
        self.scope.loops = loops;
        result?;
        self.place(end);
        self.copy_out(&out, exit)?;
        self.frame.top = top;
        Ok(())
    }
}

/// The values to copy out, in the order of copying.
fn in_order(args: &Args, mut out: Vec<(usize, (Location, Slot))>) -> CopyOut {
    let order = args.copied_out();
    out.sort_by_key(|(i, _)| order.iter().position(|at| at == i));
    out.into_iter().map(|(_, copy)| copy).collect()
}

//! Calls with copy-in/copy-out (P4_16 6.8): arguments are evaluated from left to right, those of `in` and `inout` parameters
//! are copied in, the body runs on variables of its own, and `out` and `inout` parameters are copied out from left to right, in
//! the order of the arguments, to l-values that were resolved before the call. Copying out also happens on `exit` (12.5), and
//! when a parser rejects, so that a sub-parser's headers are as if its caller had extracted them.

use super::value::Value;
use super::var_path::VarPath;
use super::{Env, EnvUnit, Interpreter, Result, Stop};
use crate::op::Mark;
use p4lang::ast::Direction;
use p4lang::ir::{ActionId, Arg, Args, ControlId, FunctionId, Param, ParserId, Type, Var};

/// An evaluated argument of a call.
pub(crate) struct Passed {
    /// Value of the parameter when the body starts.
    pub value: Value,
    /// L-value to which the parameter is copied out after the call; `None` for an `in` parameter.
    pub to: Option<VarPath>,
}

impl<'p> Interpreter<'_, 'p> {
    pub(crate) fn call_control(&mut self, id: ControlId, args: &'p Args) -> Result<()> {
        let control = &self.program.controls[id.index()];
        let scope = EnvUnit::Control(id, control);
        self.call(scope, &control.vars, &control.params, args, |i| {
            i.block(&control.body)
        })
    }

    pub(crate) fn call_parser(&mut self, id: ParserId, args: &'p Args) -> Result<()> {
        let parser = &self.program.parsers[id.index()];
        let scope = EnvUnit::Parser(parser);
        self.call(scope, &parser.vars, &parser.params, args, |i| {
            i.parser_body(parser)
        })
    }

    pub(crate) fn call_function(&mut self, id: FunctionId, args: &'p Args) -> Result<()> {
        let function = &self.program.functions[id.index()];
        let scope = EnvUnit::Function;
        self.call(scope, &function.vars, &function.params, args, |i| {
            i.block(&function.body)
        })
    }

    fn call(
        &mut self,
        scope: EnvUnit<'p>,
        declared: &'p [Var],
        params: &'p [Param],
        args: &'p Args,
        body: impl FnOnce(&mut Self) -> Result<()>,
    ) -> Result<()> {
        let mut passed = Vec::with_capacity(args.len());
        for (param, arg) in params.iter().zip(args) {
            passed.push(self.pass(arg, &declared[param.var.index()].ty)?);
        }
        let vars = declared.iter().map(|v| self.undefined(&v.ty)).collect();
        self.envs.push(Env {
            scope,
            declared,
            vars,
        });
        for (param, arg) in params.iter().zip(&passed) {
            self.env().vars[param.var.index()] = arg.value.clone();
        }
        let result = body(self);
        let ended = self.envs.pop();
        self.hand_residuals(|place| {
            let mut given = params.iter().zip(&passed);
            given.find_map(|(param, arg)| arg.to.clone().filter(|_| param.var == place.var))
        });
        for i in args.copied_out() {
            if let (Some(param), Some(arg), Some(env)) = (params.get(i), passed.get(i), &ended)
                && let Some(to) = &arg.to
            {
                self.write(to, env.vars[param.var.index()].clone());
            }
        }
        returned(result)
    }

    /// Evaluates an argument of a call for a parameter of this type.
    pub(crate) fn pass(&mut self, arg: &'p Arg, ty: &Type) -> Result<Passed> {
        Ok(match arg {
            Arg::In(e) => Passed {
                value: self.expr(e)?,
                to: None,
            },
            Arg::Out(lvalue) => Passed {
                to: Some(self.resolve(lvalue)?),
                value: self.undefined(ty),
            },
            Arg::InOut(lvalue) => {
                let place = self.resolve(lvalue)?;
                Passed {
                    value: self.read(&place),
                    to: Some(place),
                }
            }
            Arg::InOutSaved { value, to } => Passed {
                value: self.expr(value)?,
                to: Some(self.resolve(to)?),
            },
            Arg::Ignore => Passed {
                value: self.undefined(ty),
                to: None,
            },
            Arg::Object(_) | Arg::Extern(_) => Passed {
                value: Value::Nothing,
                to: None,
            },
        })
    }

    /// Calls an action of the current control, whose variables it sees. `entry`: values of the control plane's parameters;
    /// `None`: a body calls the action, and passes these values as arguments.
    pub(crate) fn call_action(
        &mut self,
        id: ActionId,
        args: &'p Args,
        entry: Option<Vec<Value>>,
    ) -> Result<()> {
        let EnvUnit::Control(_, control) = self.env().scope else {
            return Ok(());
        };
        let action = &control.actions[id.index()];
        let from_table = entry.is_some();
        let (mut given_args, mut entry) = (args.iter(), entry.unwrap_or_default().into_iter());
        let mut passed = Vec::with_capacity(action.params.len());
        for param in &action.params {
            let ty = &control.vars[param.var.index()].ty;
            let given = if from_table && param.direction == Direction::None {
                entry.next().map(|value| Passed { value, to: None })
            } else {
                given_args
                    .next()
                    .map(|arg| self.pass(arg, ty))
                    .transpose()?
            };
            let nothing = || Passed {
                value: Value::Nothing,
                to: None,
            };
            passed.push(given.unwrap_or_else(nothing));
        }
        for (param, arg) in action.params.iter().zip(&passed) {
            self.env().vars[param.var.index()] = arg.value.clone();
        }
        self.mark(&Mark::Action(action.name.clone()));
        if !from_table {
            self.trace_action(action, control);
        }
        let result = self.block(&action.body);
        // Arguments with a direction precede all others, so that their positions are those of the parameters.
        for i in args.copied_out() {
            if let (Some(param), Some(arg)) = (action.params.get(i), passed.get(i))
                && let Some(to) = &arg.to
            {
                let value = self.env().vars[param.var.index()].clone();
                self.write(to, value);
            }
        }
        returned(result)
    }

    /// Records a trace mark, which says that the packet met a state, table or action, if the code contains it.
    pub(crate) fn mark(&mut self, mark: &Mark) {
        let found = self.code.marks.iter().position(|m| m == mark);
        if let Some(i) = found.filter(|_| self.marks.len() < crate::config::TRACE_LIMIT) {
            self.marks.push(i as u32);
        }
    }
}

/// Continues after a `return`: it ends only the parser, control, action or function that contains it.
fn returned(result: Result<()>) -> Result<()> {
    match result {
        Err(Stop::Return) => Ok(()),
        other => other,
    }
}

//! Checks and lowers functions, once for each list of type arguments.

use super::Checker;
use super::args::Given;
use super::call::Call;
use super::infer::Infer;
use super::types::Ty;
use super::unit::{Body, Unit, UnitKind};
use super::value::{LVal, Val};
use crate::ast::{self, Direction};
use crate::diagnostics::Code;
use crate::ir;

impl<'a> Checker<'a, '_> {
    /// Lowers a call of a function with a body.
    pub(crate) fn call_function(&mut self, index: u32, call: Call<'a, '_>) -> Option<Val<'a>> {
        let def = self.functions[index as usize];
        let Some((sig, mut args, targs)) = self.prepare(def.proto, &[], call) else {
            return Some(Val::Poison);
        };
        let Some(id) = self.function_instance(index, &targs, call) else {
            return Some(Val::Poison);
        };
        if !self.may_run(call.span) {
            return Some(Val::Poison);
        }
        let result = match (&sig.ret, call.used) {
            (Ty::Void, _) => None,
            (ret, true) => {
                let temp = self.temp(ret);
                args.push(ir::Arg::Out(temp.lv.clone()));
                Some(Val::Place(temp))
            }
            (_, false) => {
                args.push(ir::Arg::Ignore);
                None
            }
        };
        self.emit(ir::StmtKind::CallFunction(id, args), call.span);
        result
    }

    fn function_instance(
        &mut self,
        index: u32,
        targs: &[Ty],
        call: Call<'a, '_>,
    ) -> Option<ir::FunctionId> {
        let key = (index, targs.to_vec());
        if let Some(&id) = self.function_cache.get(&key) {
            return Some(id);
        }
        if !self.enter(call.span) {
            return None;
        }
        let id = ir::FunctionId(self.out.functions.len() as u32);
        self.out.functions.push(None);
        self.function_cache.insert(key, id);
        let function = self.function(index, targs);
        self.out.functions[id.index()] = Some(function);
        self.leave();
        Some(id)
    }

    /// Checks and lowers the body of a function with the type arguments `targs`.
    pub(crate) fn function(&mut self, index: u32, targs: &[Ty]) -> ir::Function {
        self.seen_functions.insert(index);
        let def = self.functions[index as usize];
        let name = self.types.instance_name(&def.proto.name.name, targs);
        let sig = self.signature(
            &[(def.proto.type_params.as_slice(), targs)],
            &def.proto.params,
            def.proto.ret.as_ref(),
        );
        self.no_objects(&def.proto.params, &sig.types, "a function");
        let mut params = Vec::new();
        let unit = self.in_unit(Unit::new(UnitKind::Function, name.clone()), |c| {
            for (p, ty) in def.proto.type_params.iter().zip(targs) {
                c.declare(p, Val::Type(ty.clone()));
            }
            params = c.bind_params(&def.proto.params, &sig.types);
            let (result, out) = c.return_place(&sig.ret);
            params.extend(out);
            c.unit.ret = Some((sig.ret.clone(), result));
            c.unit.body = Body::Function;
            if let Some(body) = def.body {
                c.block(body);
                if sig.ret != Ty::Void && !sig.ret.is_poison() && !returns(body) {
                    c.err(
                        Code::Type,
                        def.proto.name.span,
                        format!(
                            "`{}` can end without returning a value",
                            def.proto.name.name
                        ),
                    );
                }
            }
        });
        ir::Function {
            name,
            params,
            vars: unit.vars,
            body: unit.block,
        }
    }

    /// Declares run-time parameters as variables of the current parser, control or function.
    pub(crate) fn bind_params(&mut self, params: &'a [ast::Param], types: &[Ty]) -> Vec<ir::Param> {
        self.check_run_time_params(params, types);
        let mut out = Vec::with_capacity(params.len());
        for (p, ty) in params.iter().zip(types) {
            let mut place = self.variable(&p.name.name, ty);
            let var = place.lv.var;
            out.push(ir::Param {
                name: p.name.name.clone(),
                var,
                direction: p.direction,
                declared: self.types.declared(ty),
                annotations: self.annotations(&p.annotations),
            });
            let val = match ty {
                Ty::Poison => Val::Poison,
                Ty::Extern(..) => Val::Object(var, ty.clone()),
                _ => {
                    place.read_only = match p.direction {
                        Direction::Out | Direction::InOut => None,
                        Direction::In => Some("it is an `in` parameter"),
                        Direction::None => Some("it is a parameter without direction"),
                    };
                    Val::Place(place)
                }
            };
            self.declare(&p.name, val);
        }
        out
    }

    /// The extra `out` parameter that carries a return value, and its variable; both `None` if the function returns nothing.
    pub(crate) fn return_place(&mut self, ret: &Ty) -> (Option<ir::VarId>, Option<ir::Param>) {
        if *ret == Ty::Void {
            return (None, None);
        }
        let place: LVal = self.variable("$return", ret);
        let param = ir::Param {
            name: "$return".to_owned(),
            var: place.lv.var,
            direction: Direction::Out,
            declared: self.types.declared(ret),
            annotations: Vec::new(),
        };
        (Some(place.lv.var), Some(param))
    }

    /// Evaluates the arguments of an `apply`, whose callee's type parameters are already bound.
    pub(crate) fn plain_args(
        &mut self,
        generics: (&'a [ast::Ident], &[Ty]),
        params: &'a [ast::Param],
        what: &str,
        call: Call<'a, '_>,
    ) -> Option<ir::Args> {
        let mut infer = Infer::default();
        let sig = self.signature(&[generics], params, None);
        let Some(bound): Option<Vec<Given<'a>>> =
            self.bind_args(params, call.args, what, call.span)
        else {
            self.poisoned(call);
            return None;
        };
        let vals = self.eval_args(&sig, &bound, &mut infer);
        if super::args::poisoned(&vals) {
            return None;
        }
        self.lower_args(&sig, &bound, vals, &infer)
    }
}

/// Whether every path through the block ends in `return` or `exit`.
fn returns(block: &ast::Block) -> bool {
    block.stmts.iter().any(stmt_returns)
}

fn stmt_returns(stmt: &ast::Stmt) -> bool {
    match &stmt.kind {
        ast::StmtKind::Return(_) | ast::StmtKind::Exit => true,
        ast::StmtKind::Block(b) => returns(b),
        ast::StmtKind::If {
            arms,
            otherwise: Some(otherwise),
        } => arms.iter().all(|arm| stmt_returns(&arm.then)) && stmt_returns(otherwise),
        ast::StmtKind::Switch { cases, .. } => {
            let has_default = cases
                .iter()
                .any(|c| matches!(c.label, ast::SwitchLabel::Default));
            has_default && cases.iter().all(|c| c.block.as_ref().is_none_or(returns))
        }
        _ => false,
    }
}

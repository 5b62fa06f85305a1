//! Checks packages: `main` and those in its arguments. Parsers and controls passed to a package are checked against the types
//! that the architecture declares, which binds its type parameters (`H`, `M` …).

use super::Checker;
use super::generic::Instantiation;
use super::generic::Template;
use super::infer::Infer;
use super::pipelines::Pipeline;
use super::types::Ty;
use super::unit::UnitKind;
use super::value::Val;
use crate::ast;
use crate::diagnostics::{Code, Diagnostic};
use crate::ir;
use crate::source::Span;
use std::rc::Rc;

impl<'a> Checker<'a, '_> {
    /// Checks the instantiation `T(args) name;` at the top level.
    pub(crate) fn top_instance(
        &mut self,
        decl: &'a ast::Decl,
        ty: &'a ast::Type,
        args: &'a [ast::Arg],
        name: &'a ast::Ident,
        init: Option<&'a [ast::Decl]>,
    ) {
        let full = self.full_name(&name.name, &decl.annotations);
        let made = Instantiation {
            args,
            annotations: &decl.annotations,
            init,
            span: decl.span,
        };
        let val = self.instance(ty, full, made);
        if matches!(val, Val::Control(..) | Val::Parser(..)) {
            self.push(
                Diagnostic::error(
                    Code::Placement,
                    decl.span,
                    "parsers and controls cannot be instantiated at the top level",
                )
                .hint("pass them to a package as arguments: `Package(MyIngress()) main;`"),
            );
        }
        if name.name == "main" {
            match &val {
                Val::Package(package, _) => self.main = Some((**package).clone()),
                Val::Poison => {}
                other => {
                    let what = other.what();
                    self.err(
                        Code::Architecture,
                        name.span,
                        format!("`main` is {what}; it must be a package"),
                    );
                }
            }
        }
        self.declare_from(name, val, decl.span.end);
    }

    /// Creates a package instance with its arguments.
    pub(crate) fn package_instance(
        &mut self,
        index: u32,
        types: &[Ty],
        name: &str,
        made: Instantiation<'a>,
    ) -> Val<'a> {
        if self.unit.kind != UnitKind::Top {
            let unit = match self.unit.kind {
                UnitKind::Control(_) => "control",
                UnitKind::Parser => "parser",
                UnitKind::Top | UnitKind::Function => "function",
            };
            let message = format!("a package cannot be instantiated in a {unit}");
            self.push(
                Diagnostic::error(Code::Placement, made.span, message)
                    .hint("instantiate it at the top level, or as an argument of a package"),
            );
            return Val::Poison;
        }
        if !self.enter(made.span) {
            return Val::Poison;
        }
        let val = self.package_inner(index, types, name, made);
        self.leave();
        val
    }

    fn package_inner(
        &mut self,
        index: u32,
        types: &[Ty],
        name: &str,
        made: Instantiation<'a>,
    ) -> Val<'a> {
        let decl = self.packages[index as usize];
        let shown = &decl.name.name;
        let mut infer = Infer::default();
        let Some(targs) =
            self.type_arguments(decl.type_params, types, shown, made.span, &mut infer)
        else {
            return Val::Poison;
        };
        let sig = self.signature(&[(decl.type_params, &targs)], decl.params, None);
        let Some(bound) = self.bind_args(decl.params, made.args, shown, made.span) else {
            return Val::Poison;
        };
        let made_before = (self.out.controls.len(), self.out.externs.len());
        let vals = self.eval_args(&sig, &bound, &mut infer);
        if name != "main" {
            self.pipelines.push(Pipeline {
                name: name.to_owned(),
                controls: made_before.0..self.out.controls.len(),
                externs: made_before.1..self.out.externs.len(),
            });
        }
        let mut args = Vec::new();
        let mut ok = true;
        for (i, super::args::Evaluated { val, span, .. }) in vals.into_iter().enumerate() {
            if matches!(bound[i], super::args::Given::Omitted) {
                continue;
            }
            let wanted = sig.types[i].clone();
            match self.package_arg(val, &wanted, span, &mut infer) {
                Some(arg) => args.push((decl.params[i].name.name.clone(), arg)),
                None => ok = false,
            }
        }
        if !ok {
            return Val::Poison;
        }
        // Type parameters that only occur in omitted optional arguments stay unbound.
        let Some(targs) = self.settled(&targs, &mut infer, false, made.span) else {
            return Val::Poison;
        };
        let package = ir::Package {
            type_name: shown.clone(),
            name: name.to_owned(),
            args,
            annotations: self.annotations(made.annotations),
        };
        Val::Package(Rc::new(package), Ty::Package(index, targs.into()))
    }

    fn package_arg(
        &mut self,
        val: Val<'a>,
        wanted: &Ty,
        span: Span,
        infer: &mut Infer,
    ) -> Option<ir::PackageArg> {
        match (val, wanted) {
            (Val::Poison, _) | (_, Ty::Poison) => None,
            (Val::Control(id, index), Ty::Control(expected, targs)) => {
                let (found, expected) = (
                    self.controls[index as usize].decl,
                    self.controls[*expected as usize].decl,
                );
                let own = self.control_types.get(&id).cloned().unwrap_or_default();
                let fits = self.conforms(
                    (Template::of_control(found), &own),
                    (&expected.name, &expected.type_params, &expected.params),
                    targs,
                    span,
                    infer,
                );
                fits.then_some(ir::PackageArg::Control(id))
            }
            (Val::Parser(id, index), Ty::Parser(expected, targs)) => {
                let (found, expected) = (
                    self.parsers[index as usize],
                    self.parsers[*expected as usize],
                );
                let own = self.parser_types.get(&id).cloned().unwrap_or_default();
                let fits = self.conforms(
                    (Template::of_parser(found), &own),
                    (&expected.name, &expected.type_params, &expected.params),
                    targs,
                    span,
                    infer,
                );
                fits.then_some(ir::PackageArg::Parser(id))
            }
            // A generic parameter that accepts anything: `package P<T>(T t)`.
            (Val::Control(id, _), Ty::Var(_)) => Some(ir::PackageArg::Control(id)),
            (Val::Parser(id, _), Ty::Var(_)) => Some(ir::PackageArg::Parser(id)),
            (Val::Package(package, found), _) => {
                if !self.unify(wanted, &found, infer) {
                    let wanted = self.subst(wanted, infer, span);
                    self.mismatch(span, &wanted, &found);
                    return None;
                }
                Some(ir::PackageArg::Package(Box::new((*package).clone())))
            }
            (Val::Extern(id, found), _) => {
                if !self.unify(wanted, &found, infer) {
                    let wanted = self.subst(wanted, infer, span);
                    self.mismatch(span, &wanted, &found);
                    return None;
                }
                Some(ir::PackageArg::Extern(id))
            }
            (val, _) => {
                if wanted.is_object() {
                    let message =
                        format!("expected {}, found {}", self.types.show(wanted), val.what());
                    let mut d = Diagnostic::error(Code::Architecture, span, message);
                    if matches!(val, Val::Decl(_)) {
                        d = d.hint("instantiate it with parentheses: `MyIngress()`");
                    }
                    self.push(d);
                    return None;
                }
                let wanted = self.subst(wanted, infer, span);
                self.constant_of(val, &wanted, span)
                    .map(ir::PackageArg::Const)
            }
        }
    }

    /// Checks a parser or control that is passed to a package against the type that the architecture declares.
    fn conforms(
        &mut self,
        found: (Template<'a>, &[Ty]),
        expected: (&'a ast::Ident, &'a [ast::Ident], &'a [ast::Param]),
        targs: &[Ty],
        span: Span,
        infer: &mut Infer,
    ) -> bool {
        let wanted = self.signature(&[(expected.1, targs)], expected.2, None);
        let (found, own) = found;
        let given = self.signature(&[(found.type_params, own)], found.params, None);
        let (name, type_name) = (&found.name.name, &expected.0.name);
        // Trailing optional parameters may be omitted.
        let least = expected
            .2
            .iter()
            .rposition(|p| !super::args::is_optional(p) && p.default.is_none())
            .map_or(0, |last| last + 1);
        if !(least..=wanted.types.len()).contains(&given.types.len()) {
            self.push(
                Diagnostic::error(
                    Code::Architecture,
                    span,
                    format!(
                        "`{name}` has {} run-time parameters, `{type_name}` requires {}",
                        given.types.len(),
                        if least == wanted.types.len() {
                            least.to_string()
                        } else {
                            format!("{least} to {}", wanted.types.len())
                        }
                    ),
                )
                .label(found.name.span, "declared here")
                .label(expected.0.span, "required by the architecture"),
            );
            return false;
        }
        let mut ok = true;
        for i in 0..given.types.len() {
            let (w, g) = (wanted.types[i].clone(), given.types[i].clone());
            let (wp, gp) = (&wanted.params[i], &given.params[i]);
            if wp.direction != gp.direction {
                self.push(
                    Diagnostic::error(
                        Code::Architecture,
                        gp.span,
                        format!(
                            "`{name}` does not match `{type_name}`: parameter `{}` must be `{}`",
                            gp.name.name,
                            direction(wp.direction)
                        ),
                    )
                    .label(wp.span, "required by the architecture"),
                );
                ok = false;
            }
            if !self.unify(&w, &g, infer) {
                let w = self.subst(&w, infer, span);
                let message = format!(
                    "`{name}` does not match `{type_name}`: parameter `{}`: expected {}, found {}",
                    gp.name.name,
                    self.types.show(&w),
                    self.types.show(&g)
                );
                self.push(
                    Diagnostic::error(Code::Architecture, gp.span, message)
                        .label(wp.span, "required by the architecture"),
                );
                ok = false;
            }
        }
        ok
    }

    /// The program's architecture, determined by the package type of `main`.
    pub(crate) fn arch(&self, main: &ir::Package) -> ir::Arch {
        match main.type_name.as_str() {
            "PSA_Switch" => ir::Arch::Psa,
            "V1Switch" => ir::Arch::V1model,
            "Switch" | "MultiParserSwitch" => {
                // Only Tofino 2's declarations contain a pipeline with a ghost thread.
                let ghost = self.globals.contains_key("ghost_intrinsic_metadata_t");
                if ghost { ir::Arch::T2na } else { ir::Arch::Tna }
            }
            other => ir::Arch::Other(other.to_owned()),
        }
    }
}

fn direction(d: ast::Direction) -> &'static str {
    match d {
        ast::Direction::None => "without direction",
        ast::Direction::In => "in",
        ast::Direction::Out => "out",
        ast::Direction::InOut => "inout",
    }
}

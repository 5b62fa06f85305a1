//! Instantiates parsers and controls: each instance is checked and lowered separately, with its constructor arguments.

use super::Checker;
use super::fold;
use super::generic::Instantiation;
use super::generic::{Template, Wanted};
use super::types::Ty;
use super::unit::{Body, Unit, UnitKind};
use super::value::{DeclRef, Val};
use crate::ast::{self, DeclKind};
use crate::diagnostics::{Code, Diagnostic};
use crate::ir;
use crate::source::Span;
use num_bigint::BigInt;

impl<'a> Checker<'a, '_> {
    /// Checks the instantiation `T(args) name;` in a parser, control or block.
    pub(crate) fn local_instance(
        &mut self,
        decl: &'a ast::Decl,
        ty: &'a ast::Type,
        args: &'a [ast::Arg],
        name: &'a ast::Ident,
        init: Option<&'a [ast::Decl]>,
    ) {
        if self.unit.body != Body::Locals || self.unit.kind == UnitKind::Function {
            self.push(
                Diagnostic::error(
                    Code::Placement,
                    decl.span,
                    "an instance cannot be declared among statements",
                )
                .hint("declare it before the `apply` block or the first state"),
            );
            self.declare(name, Val::Poison);
            return;
        }
        let full = self.full_name(&name.name, &decl.annotations);
        let made = Instantiation {
            args,
            annotations: &decl.annotations,
            init,
            span: decl.span,
        };
        // Constructor calls in the arguments count as part of the declaration, wherever it stands.
        let body = std::mem::replace(&mut self.unit.body, Body::Locals);
        let val = self.instance(ty, full, made);
        self.unit.body = body;
        self.declare(name, val);
    }

    /// Creates an instance of an extern, a parser, a control or a package.
    pub(crate) fn instance(
        &mut self,
        ty: &'a ast::Type,
        full: String,
        made: Instantiation<'a>,
    ) -> Val<'a> {
        let named = self.type_name(ty);
        let is_extern = matches!(
            named,
            Val::Decl(DeclRef::Extern(_)) | Val::Type(Ty::Extern(..)) | Val::Poison
        );
        if made.init.is_some() && !is_extern {
            let first = made.init.and_then(<[_]>::first);
            self.err(
                Code::Type,
                first.map_or(made.span, |item| item.span),
                "only an extern instance can have an initializer block",
            );
            return Val::Poison;
        }
        match named {
            Val::Decl(DeclRef::Extern(i)) => self.extern_instance(i, &[], full, made),
            Val::Type(Ty::Extern(i, args)) => self.extern_instance(i, &args, full, made),
            Val::Decl(DeclRef::Control(i)) => {
                self.control_instance(i, Wanted::default(), full, made)
            }
            Val::Decl(DeclRef::Parser(i)) => self.parser_instance(i, Wanted::default(), full, made),
            Val::Type(Ty::Control(i, types)) => {
                let wanted = Wanted {
                    types: &types,
                    expected: None,
                };
                self.control_instance(i, wanted, full, made)
            }
            Val::Type(Ty::Parser(i, types)) => {
                let wanted = Wanted {
                    types: &types,
                    expected: None,
                };
                self.parser_instance(i, wanted, full, made)
            }
            Val::Decl(DeclRef::Package(i)) => self.package_instance(i, &[], &full, made),
            Val::Type(Ty::Package(i, args)) => self.package_instance(i, &args, &full, made),
            Val::Poison => Val::Poison,
            _ => {
                self.push(
                    Diagnostic::error(Code::Type, ty.span, "this type has no constructor")
                        .hint("a variable is declared without parentheses: `T x;`"),
                );
                Val::Poison
            }
        }
    }

    /// Creates a control instance.
    pub(crate) fn control_instance(
        &mut self,
        index: u32,
        wanted: Wanted<'_>,
        full: String,
        made: Instantiation<'a>,
    ) -> Val<'a> {
        let def = self.controls[index as usize];
        let misplaced = matches!(self.unit.kind, UnitKind::Parser).then_some("parser");
        let name = &def.decl.name.name;
        if !self.may_be_made(
            "control",
            name,
            def.decl.body.is_some(),
            misplaced,
            made.span,
        ) {
            return Val::Poison;
        }
        let template = Template::of_control(def.decl);
        let Some((types, values)) = self.unit_args(template, wanted, made) else {
            return Val::Poison;
        };
        match self.control(index, full, &types, values, made) {
            Some(id) => Val::Control(id, index),
            None => Val::Poison,
        }
    }

    /// Checks that a parser or control may be instantiated here. `misplaced`: the construct around it, if that forbids it.
    pub(crate) fn may_be_made(
        &mut self,
        what: &str,
        name: &str,
        has_body: bool,
        misplaced: Option<&str>,
        span: Span,
    ) -> bool {
        if !has_body {
            let message =
                format!("`{name}` is a {what} type without a body; it cannot be instantiated");
            self.err(Code::Type, span, message);
        } else if let Some(inside) = misplaced {
            let message = format!("a {what} cannot be instantiated in a {inside}");
            self.err(Code::Placement, span, message);
        }
        has_body && misplaced.is_none()
    }

    /// Checks and lowers a control instance.
    pub(crate) fn control(
        &mut self,
        index: u32,
        full: String,
        types: &[Ty],
        values: Vec<Val<'a>>,
        made: Instantiation<'a>,
    ) -> Option<ir::ControlId> {
        let def = self.controls[index as usize];
        let body = def.decl.body.as_ref()?;
        if !self.room(self.out.controls.len(), made.span) {
            return None;
        }
        if !self.enter(made.span) {
            return None;
        }
        self.seen_controls.insert(index);
        let id = ir::ControlId(self.out.controls.len() as u32);
        self.out.controls.push(None);
        self.control_types.insert(id, types.into());
        let mut params = Vec::new();
        let unit = self.in_unit(Unit::new(UnitKind::Control(id), full.clone()), |c| {
            c.declare_types(&def.decl.type_params, types);
            params = c.unit_params(&def.decl.ctor_params, values, &def.decl.params);
            c.push_scope();
            c.unit.locals = &body.locals;
            for local in &body.locals {
                c.control_local(local);
            }
            c.unit.body = Body::Apply;
            c.unit.ret = Some((Ty::Void, None));
            c.block(&body.apply);
        });
        let mut annotations = self.annotations(def.annotations);
        annotations.extend(self.annotations(made.annotations));
        self.out.controls[id.index()] = Some(ir::Control {
            name: full,
            type_name: def.decl.name.name.clone(),
            params,
            vars: unit.vars,
            actions: unit.actions,
            tables: unit.tables,
            body: unit.block,
            annotations,
            span: def.span,
            instantiated: made.span,
        });
        self.leave();
        Some(id)
    }

    /// Declares a parser's or control's constructor parameters as constants, then its run-time parameters as variables.
    pub(crate) fn unit_params(
        &mut self,
        ctor_params: &'a [ast::Param],
        values: Vec<Val<'a>>,
        params: &'a [ast::Param],
    ) -> Vec<ir::Param> {
        for (p, val) in ctor_params.iter().zip(values) {
            self.declare(&p.name, val);
        }
        let types: Vec<Ty> = params.iter().map(|p| self.resolve(&p.ty)).collect();
        for (p, ty) in params.iter().zip(&types) {
            if *ty == Ty::Integer && p.direction == ast::Direction::None {
                self.err(
                    Code::Type,
                    p.ty.span,
                    "a run-time parameter cannot be an `int`: write a width, as in `bit<32>`",
                );
            }
        }
        self.bind_params(params, &types)
    }

    fn control_local(&mut self, decl: &'a ast::Decl) {
        match &decl.kind {
            DeclKind::Action { name, .. } => {
                let full = self.full_name(&name.name, &decl.annotations);
                let val = match self.action(decl, full) {
                    Some(id) => Val::Action(id, decl),
                    None => Val::Poison,
                };
                self.declare(name, val);
            }
            DeclKind::Table(table) => {
                let val = self.table(decl, table);
                self.declare(&table.name, val);
            }
            _ => self.local_decl(decl),
        }
    }

    /// Invents values for constructor parameters, to check a declaration that has no instance.
    fn made_up(&mut self, type_params: &'a [ast::Ident], params: &'a [ast::Param]) -> Vec<Val<'a>> {
        let vars = self.rigid(type_params);
        let sig = self.signature(&[(type_params, &vars)], params, None);
        sig.types
            .iter()
            .zip(params)
            .map(|(ty, p)| match ty {
                Ty::Integer => Val::Integer(BigInt::from(1)),
                Ty::Bit(_) | Ty::Int(_) => {
                    let lowered = self.types.ir(ty);
                    Val::Expr(ty.clone(), fold::bits(&BigInt::from(1), &lowered))
                }
                Ty::Bool => Val::Expr(Ty::Bool, fold::boolean(true)),
                Ty::Str => Val::Expr(
                    Ty::Str,
                    fold::constant(ir::Const::Str(String::new()), ir::Type::String),
                ),
                Ty::Extern(..) => Val::Extern(ir::ExternId(u32::MAX), ty.clone()),
                Ty::Enum(_) | Ty::SerEnum(_) | Ty::Struct(_) | Ty::New(_) => {
                    match self.default_value(ty, p.span) {
                        Some(e) => Val::Expr(ty.clone(), e),
                        None => Val::Poison,
                    }
                }
                _ => Val::Poison,
            })
            .collect()
    }

    /// Checks declarations that have no instance, only for their diagnostics.
    pub(crate) fn check_unused(&mut self) {
        let nothing = |span: Span| Instantiation {
            args: &[],
            annotations: &[],
            init: None,
            span,
        };
        for i in 0..self.controls.len() as u32 {
            let def = self.controls[i as usize];
            if self.seen_controls.contains(&i) {
                continue;
            }
            let assumed = !def.decl.type_params.is_empty() || !def.decl.ctor_params.is_empty();
            self.dry_run(assumed, |c| {
                if def.decl.body.is_some() {
                    let values = c.made_up(&def.decl.type_params, &def.decl.ctor_params);
                    c.control(
                        i,
                        def.decl.name.name.clone(),
                        &[],
                        values,
                        nothing(def.span),
                    );
                } else {
                    let vars = c.rigid(&def.decl.type_params);
                    c.signature(&[(&def.decl.type_params, &vars)], &def.decl.params, None);
                    c.check_names(def.decl.params.iter().map(|p| &p.name));
                }
            });
        }
        for i in 0..self.parsers.len() as u32 {
            let decl = self.parsers[i as usize];
            if self.seen_parsers.contains(&i) {
                continue;
            }
            let assumed = !decl.type_params.is_empty() || !decl.ctor_params.is_empty();
            self.dry_run(assumed, |c| {
                if decl.body.is_some() {
                    let values = c.made_up(&decl.type_params, &decl.ctor_params);
                    c.parser(
                        i,
                        decl.name.name.clone(),
                        &[],
                        values,
                        nothing(decl.name.span),
                    );
                } else {
                    let vars = c.rigid(&decl.type_params);
                    c.signature(&[(&decl.type_params, &vars)], &decl.params, None);
                }
            });
        }
        for i in 0..self.functions.len() as u32 {
            let def = self.functions[i as usize];
            // A generic function must be correct for every type, not only for those of its calls.
            if self.seen_functions.contains(&i) && def.proto.type_params.is_empty() {
                continue;
            }
            self.dry_run(!def.proto.type_params.is_empty(), |c| {
                let vars = c.rigid(&def.proto.type_params);
                if def.body.is_some() {
                    c.function(i, &vars);
                } else {
                    let generics = [(def.proto.type_params.as_slice(), vars.as_slice())];
                    let sig = c.signature(&generics, &def.proto.params, def.proto.ret.as_ref());
                    c.check_extern_params(&sig);
                }
            });
        }
        for i in 0..self.actions.len() as u32 {
            if self.seen_actions.contains(&i) {
                continue;
            }
            let span = self.actions[i as usize].decl.span;
            self.dry_run(false, |c| {
                let id = ir::ControlId(c.out.controls.len() as u32);
                c.in_unit(Unit::new(UnitKind::Control(id), String::new()), |c| {
                    c.shared_action(i, span);
                });
            });
        }
    }
}

/// Whether `name` is an extern that only the architecture instantiates and passes to its blocks.
pub(super) fn is_packet(name: &str) -> bool {
    matches!(name, "packet_in" | "packet_out")
}

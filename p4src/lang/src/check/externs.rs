//! Checks extern objects: declarations, instances, method calls.

use super::Checker;
use super::args::accepts;
use super::call::Call;
use super::decls::ExternDecl;
use super::generic::Instantiation;
use super::infer::Infer;
use super::recursion::executes;
use super::scope::nearest;
use super::types::Ty;
use super::unit::UnitKind;
use super::value::{DeclRef, Val};
use crate::ast;
use crate::diagnostics::{Code, Diagnostic};
use crate::ir;

impl<'a> Checker<'a, '_> {
    /// Checks all method signatures of an extern declaration once; its type parameters stand for unknown types.
    pub(crate) fn check_extern(&mut self, index: u32) {
        let decl = self.externs[index as usize];
        let class: Vec<Ty> = self.rigid(decl.type_params);
        self.check_names(decl.type_params.iter());
        self.check_overloads(decl.methods);
        for m in decl.methods {
            let own: Vec<Ty> = self.rigid(&m.proto.type_params);
            let generics = [
                (decl.type_params, class.as_slice()),
                (m.proto.type_params.as_slice(), own.as_slice()),
            ];
            let sig = self.signature(&generics, &m.proto.params, m.proto.ret.as_ref());
            self.check_names(m.proto.params.iter().map(|p| &p.name));
            self.check_names(m.proto.type_params.iter());
            self.check_extern_params(&sig);
            let constructor = m.proto.name.name == decl.name.name;
            if constructor {
                self.check_constructor_params(&m.proto.params);
            }
            if let (true, Some(ret)) = (constructor, &m.proto.ret) {
                self.err(Code::Type, ret.span, "a constructor has no return type");
            }
            if m.proto.ret.is_none() && m.proto.name.name != decl.name.name {
                self.err(
                    Code::Type,
                    m.proto.name.span,
                    format!(
                        "a method needs a return type; a constructor is named `{}`",
                        decl.name.name
                    ),
                );
            }
        }
    }

    /// Reports parameters of extern methods and functions that are parsers, controls or packages (P4_16 1.2.5, section 6.8).
    pub(crate) fn check_extern_params(&mut self, sig: &super::infer::Signature<'a>) {
        for (p, ty) in sig.params.iter().zip(&sig.types) {
            if matches!(ty, Ty::Parser(..) | Ty::Control(..) | Ty::Package(..)) {
                let shown = self.types.show(ty);
                let message = format!("an extern's parameter cannot be a {shown}");
                self.err(Code::Type, p.name.span, message);
            }
            if let Some(default) = &p.default
                && !self.types.has_vars(ty)
                && !ty.is_object()
            {
                self.constant(default, ty);
            }
        }
        if sig.ret.is_object()
            && let Some(at) = sig.ret_span
        {
            let shown = self.types.show(&sig.ret);
            self.err(Code::Type, at, format!("an extern cannot return a {shown}"));
        }
        if sig.ret == Ty::Integer
            && let Some(at) = sig.ret_span
        {
            self.push(
                Diagnostic::error(Code::Type, at, "an extern cannot return an `int`")
                    .hint("give it a width: `bit<32>`"),
            );
        }
    }

    /// Checks that methods of the same name differ in their parameters' names, by which calls select a method.
    fn check_overloads(&mut self, methods: &'a [ast::Method]) {
        for (n, m) in methods.iter().enumerate() {
            let named = |other: &&ast::Method| other.proto.name.name == m.proto.name.name;
            let overloaded = methods[..n].iter().find(named);
            if let Some(first) = overloaded.filter(|first| first.is_abstract || m.is_abstract) {
                let message = format!(
                    "the abstract method `{}` cannot be overloaded",
                    m.proto.name.name
                );
                self.push(
                    Diagnostic::error(Code::Duplicate, m.proto.name.span, message)
                        .label(first.proto.name.span, "first here"),
                );
                continue;
            }
            let names = |m: &'a ast::Method| m.proto.params.iter().map(|p| p.name.name.as_str());
            let same = methods[..n].iter().find(|other| {
                other.proto.name.name == m.proto.name.name
                    && other.proto.params.len() == m.proto.params.len()
                    && names(other).eq(names(m))
            });
            if let Some(first) = same {
                self.push(
                    Diagnostic::error(
                        Code::Duplicate,
                        m.proto.name.span,
                        format!(
                            "`{}` with these parameters is declared twice",
                            m.proto.name.name
                        ),
                    )
                    .label(first.proto.name.span, "first here"),
                );
            }
        }
    }

    /// Makes a type variable for each type parameter, for a check in which the type arguments are unknown.
    pub(crate) fn rigid(&mut self, params: &[ast::Ident]) -> Vec<Ty> {
        params.iter().map(|p| self.types.fresh(&p.name)).collect()
    }

    /// Finds the method of an extern that a call selects by its name and arguments.
    pub(crate) fn find_method(
        &mut self,
        decl: ExternDecl<'a>,
        name: &ast::Ident,
        args: &[ast::Arg],
    ) -> Option<&'a ast::Method> {
        let named: Vec<&'a ast::Method> = decl
            .methods
            .iter()
            .filter(|m| m.proto.ret.is_some() && m.proto.name.name == name.name)
            .collect();
        if named.is_empty() {
            let object = &decl.name.name;
            let mut d = Diagnostic::error(
                Code::UnknownName,
                name.span,
                format!("`{object}` has no method `{}`", name.name),
            );
            let names = decl
                .methods
                .iter()
                .filter(|m| m.proto.ret.is_some())
                .map(|m| m.proto.name.name.as_str());
            if let Some(near) = nearest(&name.name, names) {
                d = d.hint(format!("did you mean `{near}`?"));
            }
            self.push(d);
            return None;
        }
        let fitting = named.iter().find(|m| accepts(&m.proto.params, args));
        match fitting {
            Some(m) => Some(m),
            // With a single candidate, the argument check reports a more precise error.
            None if named.len() == 1 => Some(named[0]),
            None => {
                self.err(
                    Code::Type,
                    name.span,
                    format!("no overload of `{}` takes these arguments", name.name),
                );
                None
            }
        }
    }

    /// Lowers the method call `object.method(…)`.
    pub(crate) fn call_method(
        &mut self,
        object: ir::ExternId,
        ty: &Ty,
        method: &'a ast::Ident,
        call: Call<'a, '_>,
    ) -> Option<Val<'a>> {
        let Ty::Extern(index, class) = ty else {
            return Some(Val::Poison);
        };
        let decl = self.externs[*index as usize];
        let Some(found) = self.find_method(decl, method, call.args) else {
            return Some(self.poisoned(call));
        };
        let outer = [(decl.type_params, &**class)];
        let Some((sig, args, targs)) = self.prepare(&found.proto, &outer, call) else {
            return Some(Val::Poison);
        };
        if !self.may_run(call.span) {
            return Some(Val::Poison);
        }
        if let Some(this) = &self.unit.this
            && this.object == object
            && executes(&decl, &method.name, &this.method.name)
        {
            let again = this.method.span;
            self.recursion(call.span, Some(again));
            return Some(Val::Poison);
        }
        self.methods_at_hand(object, call.span);
        let (result, val) = self.result_place(&sig.ret, call.used);
        let type_args = targs.iter().map(|t| self.types.ir(t)).collect();
        let (args, behind) = self.args_for_extern(args, call.span);
        self.emit(
            ir::StmtKind::CallMethod {
                object,
                method: ir::Method::new(&ir::ExternKind::named(&decl.name.name), &method.name),
                type_args,
                args,
                result,
                returns: self.types.ir(&sig.ret),
            },
            call.span,
        );
        self.unit.block.extend(behind);
        val
    }

    /// Creates an instance of an extern object type.
    pub(crate) fn extern_instance(
        &mut self,
        index: u32,
        types: &[Ty],
        name: String,
        made: Instantiation<'a>,
    ) -> Val<'a> {
        let decl = self.externs[index as usize];
        let shown = &decl.name.name;
        let constructors: Vec<&'a ast::Method> = decl
            .methods
            .iter()
            .filter(|m| m.proto.ret.is_none())
            .collect();
        let Some(ctor) = constructors
            .iter()
            .copied()
            .find(|m| accepts(&m.proto.params, made.args))
            .or_else(|| constructors.first().copied())
        else {
            self.err(
                Code::Placement,
                made.span,
                format!("`{shown}` has no constructor: only the architecture creates its objects"),
            );
            return Val::Poison;
        };
        if !self.room(self.out.externs.len(), made.span) {
            return Val::Poison;
        }
        let mut infer = Infer::default();
        let Some(targs) =
            self.type_arguments(decl.type_params, types, shown, made.span, &mut infer)
        else {
            return Val::Poison;
        };
        let sig = self.signature(&[(decl.type_params, &targs)], &ctor.proto.params, None);
        let Some(bound) = self.bind_args(&ctor.proto.params, made.args, shown, made.span) else {
            return Val::Poison;
        };
        let vals = self.eval_args(&sig, &bound, &mut infer);
        if super::args::poisoned(&vals) {
            return Val::Poison;
        }
        self.infer_from_methods(decl, &targs, made, &mut infer);
        infer.leave_open(types, &targs);
        let Some(targs) = self.settled(&targs, &mut infer, true, made.span) else {
            return Val::Poison;
        };
        let Some(values) = self.constructor_args(&sig, &bound, vals, &infer) else {
            return Val::Poison;
        };
        let args = values
            .into_iter()
            .zip(&ctor.proto.params)
            .filter_map(|(v, p)| Some((p.name.name.clone(), constant_arg(v)?)))
            .collect();
        let id = ir::ExternId(self.out.externs.len() as u32);
        let ty = Ty::Extern(index, targs.as_slice().into());
        let owner = match self.unit.kind {
            UnitKind::Control(id) => Some(id),
            _ => None,
        };
        let type_args = targs.iter().map(|t| self.types.ir(t)).collect();
        let annotations = self.annotations(made.annotations);
        let declared_args = targs.iter().map(|t| self.types.declared(t)).collect();
        self.out.externs.push(ir::ExternInstance {
            name: name.clone(),
            kind: ir::ExternKind::named(&decl.name.name),
            type_name: shown.clone(),
            type_args,
            declared_args,
            args,
            methods: Vec::new(),
            owner,
            annotations,
            span: made.span,
        });
        self.implement(id, &ty, decl, &name, made);
        Val::Extern(id, ty)
    }

    /// Creates the nameless instance for an `X(…)` that is an argument or the value of a table property.
    pub(crate) fn anonymous_instance(
        &mut self,
        decl: DeclRef,
        types: &[Ty],
        call: Call<'a, '_>,
    ) -> Val<'a> {
        let made = Instantiation {
            args: call.args,
            annotations: &[],
            init: None,
            span: call.span,
        };
        let wanted = super::generic::Wanted {
            types,
            expected: call.expected,
        };
        match decl {
            DeclRef::Extern(i) => {
                let own = self.externs[i as usize].name.name.clone();
                let name = self.direct_name(&own);
                self.extern_instance(i, types, name, made)
            }
            DeclRef::Control(i) => {
                let own = self.controls[i as usize].decl.name.name.clone();
                let name = super::unit::join(&self.unit.name, &own);
                self.control_instance(i, wanted, name, made)
            }
            DeclRef::Parser(i) => {
                let own = self.parsers[i as usize].name.name.clone();
                let name = super::unit::join(&self.unit.name, &own);
                self.parser_instance(i, wanted, name, made)
            }
            DeclRef::Package(i) => {
                let name = self.packages[i as usize].name.name.clone();
                self.package_instance(i, types, &name, made)
            }
            DeclRef::Struct(_) => {
                self.push(
                    Diagnostic::error(Code::Type, call.span, "a struct has no constructor")
                        .hint("write a list: `{ a, b }`"),
                );
                Val::Poison
            }
        }
    }
}

/// A constructor argument as an IR constant; `None` if the IR cannot represent it.
fn constant_arg(val: Val<'_>) -> Option<ir::Const> {
    match val {
        Val::Integer(n) => Some(ir::Const::Integer(n)),
        Val::Expr(_, e) => super::fold::into_const(e),
        Val::Extern(id, _) => Some(ir::Const::Extern(id)),
        _ => None,
    }
}

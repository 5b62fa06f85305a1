//! Checks and lowers abstract methods, implemented where an extern object is instantiated (P4_16 1.2.5, section 11.3.1).

use super::Checker;
use super::decls::ExternDecl;
use super::generic::Instantiation;
use super::infer::Infer;
use super::scope::Scope;
use super::types::Ty;
use super::unit::{Body, This, UnitKind, join};
use crate::ast::{self, DeclKind};
use crate::diagnostics::{Code, Diagnostic};
use crate::ir;
use crate::source::Span;

/// The abstract methods that the program implements for a top-level extern object.
#[derive(Clone)]
pub(crate) struct Bodies<'a> {
    name: String,
    ty: Ty,
    init: &'a [ast::Decl],
    /// Instances declared in the same braces as the implementations, by name.
    scope: Scope<'a>,
}

impl<'a> Checker<'a, '_> {
    /// Infers type arguments that the constructor's arguments leave open, from the types written in method implementations.
    pub(crate) fn infer_from_methods(
        &mut self,
        decl: ExternDecl<'a>,
        targs: &[Ty],
        made: Instantiation<'a>,
        infer: &mut Infer,
    ) {
        for item in made.init.unwrap_or_default() {
            let DeclKind::Function { proto, .. } = &item.kind else {
                continue;
            };
            let abstracts = decl.methods.iter().filter(|m| m.is_abstract);
            let mut named = abstracts.filter(|m| m.proto.name.name == proto.name.name);
            let Some(method) = named.next() else { continue };
            let generics = [(decl.type_params, targs)];
            let ret = method.proto.ret.as_ref();
            let sig = self.signature(&generics, &method.proto.params, ret);
            for (p, wanted) in proto.params.iter().zip(&sig.types) {
                let found = self.resolve(&p.ty);
                self.unify(wanted, &found, infer);
            }
            if let Some(ret) = &proto.ret {
                let found = self.resolve(ret);
                self.unify(&sig.ret, &found, infer);
            }
        }
    }

    /// Lowers the implementations of an object's abstract methods to actions of the control.
    pub(crate) fn implement(
        &mut self,
        id: ir::ExternId,
        ty: &Ty,
        decl: ExternDecl<'a>,
        name: &str,
        made: Instantiation<'a>,
    ) {
        if let Some(init) = made.init
            && !decl.methods.iter().any(|m| m.is_abstract)
        {
            self.push(
                Diagnostic::error(
                    Code::Type,
                    init.first().map_or(made.span, |item| item.span),
                    format!("`{}` has no abstract methods to implement", decl.name.name),
                )
                .label(decl.name.span, "declared here"),
            );
            return;
        }
        let mut done: Vec<&ast::Ident> = Vec::new();
        let mut unknown = false;
        self.push_scope();
        for item in made.init.unwrap_or_default() {
            let (proto, body) = match &item.kind {
                DeclKind::Function { proto, body } => (proto, body),
                _ => {
                    self.inner_instance(name, item);
                    continue;
                }
            };
            let method = decl
                .methods
                .iter()
                .find(|m| m.is_abstract && m.proto.name.name == proto.name.name);
            let Some(method) = method else {
                self.unknown_method(decl, proto);
                unknown = true;
                continue;
            };
            if let Some(first) = done.iter().find(|d| d.name == proto.name.name) {
                let message = format!("`{}` is implemented twice", proto.name.name);
                self.push(
                    Diagnostic::error(Code::Duplicate, proto.name.span, message)
                        .label(first.span, "first here"),
                );
                continue;
            }
            self.conforming_method(ty, decl, method, proto);
            done.push(&proto.name);
            if let UnitKind::Control(control) = self.unit.kind {
                self.implementation(id, control, ty, name, item);
            } else {
                self.checked_method(id, ty, proto, body, item);
            }
        }
        if let (UnitKind::Top, Some(init), Some(scope)) =
            (self.unit.kind, made.init, self.unit.scopes.last())
        {
            let bodies = Bodies {
                name: name.to_owned(),
                ty: ty.clone(),
                init,
                scope: scope.clone(),
            };
            self.method_bodies.insert(id, bodies);
        }
        self.pop_scope();
        // A misspelled method name is not also reported as a missing method.
        for m in decl.methods.iter().filter(|m| m.is_abstract && !unknown) {
            let name = &m.proto.name.name;
            let optional = m.annotations.iter().any(|a| a.name.name == "optional");
            if !optional && !done.iter().any(|d| d.name == *name) {
                self.push(
                    Diagnostic::error(
                        Code::Type,
                        made.span,
                        format!("the abstract method `{name}` is not implemented"),
                    )
                    .hint(format!(
                        "implement it where the object is declared: `{}(…) x = {{ {name}(…) {{ … }} }};`",
                        decl.name.name
                    )),
                );
            }
        }
    }

    /// Creates the instance `T(…) x;` in an object's braces, for the object's methods; its name is prefixed with the object's.
    fn inner_instance(&mut self, outer: &str, item: &'a ast::Decl) {
        let DeclKind::Instance {
            ty,
            args,
            name,
            init,
        } = &item.kind
        else {
            let message = "an initializer block holds only methods and instances";
            return self.err(Code::Placement, item.span, message);
        };
        let full = join(
            outer,
            &super::unit::given_name(&name.name, &item.annotations),
        );
        let made = Instantiation {
            args,
            annotations: &item.annotations,
            init: init.as_deref(),
            span: item.span,
        };
        let val = self.instance(ty, full, made);
        self.declare(name, val);
    }

    fn unknown_method(&mut self, decl: ExternDecl<'a>, proto: &ast::FunctionProto) {
        let (object, name) = (&decl.name.name, &proto.name.name);
        let mut d = Diagnostic::error(
            Code::UnknownName,
            proto.name.span,
            format!("`{object}` has no abstract method `{name}`"),
        );
        let methods = decl.methods.iter().filter(|m| m.is_abstract);
        let names = methods.map(|m| m.proto.name.name.as_str());
        if let Some(near) = super::scope::nearest(name, names) {
            d = d.hint(format!("did you mean `{near}`?"));
        }
        self.push(d);
    }

    /// Lowers an abstract method's body to an action of the current control.
    fn implementation(
        &mut self,
        id: ir::ExternId,
        control: ir::ControlId,
        ty: &Ty,
        name: &str,
        item: &'a ast::Decl,
    ) {
        let DeclKind::Function { proto, body } = &item.kind else {
            return;
        };
        let this = self.unit.this.replace(This {
            object: id,
            ty: ty.clone(),
            method: &proto.name,
        });
        let full = format!("{name}.{}", proto.name.name);
        let action = self.method_body(&full, proto, body, item);
        self.unit.this = this;
        if let Some(made) = self.out.externs.get_mut(id.index()) {
            let method = ir::Method::new(&made.kind, &proto.name.name);
            made.methods.push(ir::MethodBody {
                method,
                control,
                action,
            });
        }
    }

    /// Prepares a call of a method of `object`: copies the abstract methods that it may execute into this control.
    pub(crate) fn methods_at_hand(&mut self, object: ir::ExternId, span: Span) {
        let implemented = |d: &ExternDecl<'a>| d.methods.iter().any(|m| m.is_abstract);
        let UnitKind::Control(control) = self.unit.kind else {
            let made = self.out.externs.get(object.index());
            let decl = made.and_then(|e| {
                let same = |d: &&ExternDecl<'a>| d.name.name == e.type_name;
                self.externs.iter().find(same)
            });
            if decl.is_some_and(implemented) {
                self.checked_only(
                    span,
                    "only controls can call abstract methods: this call is in a parser or function",
                );
            }
            return;
        };
        if !self.unit.copied_methods.insert(object) {
            return;
        }
        let Some(bodies) = self.method_bodies.get(&object).cloned() else {
            return;
        };
        let scopes = std::mem::replace(&mut self.unit.scopes, vec![bodies.scope]);
        for item in bodies.init {
            self.implementation(object, control, &bodies.ty, &bodies.name, item);
        }
        self.unit.scopes = scopes;
    }

    /// Checks an abstract method's body outside of a control and drops the result, because there is no action to hold the body.
    fn checked_method(
        &mut self,
        id: ir::ExternId,
        ty: &Ty,
        proto: &'a ast::FunctionProto,
        body: &'a ast::Block,
        item: &'a ast::Decl,
    ) {
        let mut unit = super::unit::Unit::new(UnitKind::Function, String::new());
        unit.scopes = self.unit.scopes.clone();
        unit.this = Some(This {
            object: id,
            ty: ty.clone(),
            method: &proto.name,
        });
        let kept = self.unplaced;
        self.in_unit(unit, |c| {
            c.method_body(&proto.name.name, proto, body, item);
        });
        self.unplaced = kept;
    }

    /// Checks that an implementation has the parameter types and directions that the abstract method declares.
    fn conforming_method(
        &mut self,
        ty: &Ty,
        decl: ExternDecl<'a>,
        method: &'a ast::Method,
        proto: &'a ast::FunctionProto,
    ) {
        let Ty::Extern(_, class) = ty else { return };
        let sig = self.signature(
            &[(decl.type_params, class)],
            &method.proto.params,
            method.proto.ret.as_ref(),
        );
        let least = method
            .proto
            .params
            .iter()
            .filter(|p| !super::args::is_optional(p) && p.default.is_none())
            .count();
        if proto.params.len() > sig.types.len() || proto.params.len() < least {
            self.push(
                Diagnostic::error(
                    Code::Type,
                    proto.name.span,
                    format!(
                        "`{}` is declared with {} parameter{}, but has {} here",
                        proto.name.name,
                        sig.types.len(),
                        if sig.types.len() == 1 { "" } else { "s" },
                        proto.params.len()
                    ),
                )
                .label(method.proto.name.span, "declared here"),
            );
            return;
        }
        for ((p, wanted), declared) in proto.params.iter().zip(&sig.types).zip(sig.params) {
            let found = self.resolve(&p.ty);
            if found != *wanted {
                self.other_type(p.ty.span, wanted, &found, declared.span);
            }
            if p.direction != declared.direction {
                self.push(
                    Diagnostic::error(
                        Code::Type,
                        p.span,
                        "this direction differs from the abstract method's",
                    )
                    .label(declared.span, "declared here"),
                );
            }
        }
        let ret = match &proto.ret {
            Some(ty) => self.resolve(ty),
            None => Ty::Void,
        };
        if ret != sig.ret {
            let at = proto.ret.as_ref().map_or(proto.name.span, |ty| ty.span);
            self.other_type(at, &sig.ret, &ret, method.proto.name.span);
        }
    }

    /// Reports that a type in an implementation differs from the type that the abstract method declares at `declared`.
    fn other_type(&mut self, at: Span, wanted: &Ty, found: &Ty, declared: Span) {
        if wanted.is_poison() || found.is_poison() {
            return;
        }
        let wanted = self.types.show(wanted);
        let message = format!(
            "the abstract method declares {wanted} here, not {}",
            self.types.show(found)
        );
        let d = Diagnostic::error(Code::Type, at, message);
        self.push(d.label(declared, format!("declared here: {wanted}")));
    }

    fn method_body(
        &mut self,
        full: &str,
        proto: &'a ast::FunctionProto,
        body: &'a ast::Block,
        item: &'a ast::Decl,
    ) -> ir::ActionId {
        let types: Vec<Ty> = proto.params.iter().map(|p| self.resolve(&p.ty)).collect();
        let ret = match &proto.ret {
            Some(ty) => self.resolve(ty),
            None => Ty::Void,
        };
        let (params, block) = self.with_body(Body::Function, |c| {
            let mut params = c.bind_params(&proto.params, &types);
            let (result, out) = c.return_place(&ret);
            params.extend(out);
            c.unit.ret = Some((ret, result));
            (params, c.block_of(|c| c.block(body)))
        });
        let action = ir::Action {
            name: full.to_owned(),
            params,
            body: block,
            annotations: self.annotations(&item.annotations),
            span: item.span,
        };
        self.add_action(action, types)
    }
}

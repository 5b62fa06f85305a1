//! Determines the type arguments of parsers and controls: as written, or inferred from constructor arguments and from the type
//! that a package expects (P4_16 1.2.5, section 6.7).

use super::Checker;
use super::infer::Infer;
use super::types::Ty;
use super::value::Val;
use crate::ast;
use crate::source::Span;
use std::rc::Rc;

/// The parts of a parser's or control's declaration that an instantiation needs.
#[derive(Clone, Copy)]
pub(crate) struct Template<'a> {
    pub(crate) name: &'a ast::Ident,
    pub(crate) type_params: &'a [ast::Ident],
    pub(crate) params: &'a [ast::Param],
    pub(crate) ctor_params: &'a [ast::Param],
}

impl<'a> Template<'a> {
    pub(crate) fn of_control(decl: &'a ast::ControlDecl) -> Template<'a> {
        Template {
            name: &decl.name,
            type_params: &decl.type_params,
            params: &decl.params,
            ctor_params: &decl.ctor_params,
        }
    }

    pub(crate) fn of_parser(decl: &'a ast::ParserDecl) -> Template<'a> {
        Template {
            name: &decl.name,
            type_params: &decl.type_params,
            params: &decl.params,
            ctor_params: &decl.ctor_params,
        }
    }
}

/// An instantiation as written, without its type.
#[derive(Clone, Copy)]
pub(crate) struct Instantiation<'a> {
    pub(crate) args: &'a [ast::Arg],
    pub(crate) annotations: &'a [ast::Annotation],
    /// Implementations of abstract methods, in braces after `=`; `None` if none are written.
    pub(crate) init: Option<&'a [ast::Decl]>,
    pub(crate) span: Span,
}

/// Known parts of an instance's type: written type arguments, and the type that the context expects.
#[derive(Clone, Copy, Default)]
pub(crate) struct Wanted<'t> {
    pub(crate) types: &'t [Ty],
    pub(crate) expected: Option<&'t Ty>,
}

impl<'a> Checker<'a, '_> {
    /// Determines the type arguments and constructor arguments of a parser or control instance; `None` after an error.
    pub(crate) fn unit_args(
        &mut self,
        template: Template<'a>,
        wanted: Wanted<'_>,
        made: Instantiation<'a>,
    ) -> Option<(Rc<[Ty]>, Vec<Val<'a>>)> {
        let name = &template.name.name;
        let mut infer = Infer::default();
        let types = self.type_arguments(
            template.type_params,
            wanted.types,
            name,
            made.span,
            &mut infer,
        )?;
        let sig = self.signature(
            &[(template.type_params, &types)],
            template.ctor_params,
            None,
        );
        let bound = self.bind_args(template.ctor_params, made.args, name, made.span)?;
        let vals = self.eval_args(&sig, &bound, &mut infer);
        if super::args::poisoned(&vals) {
            return None;
        }
        if let Some(expected) = wanted.expected {
            self.infer_from_place(template, &types, expected, &mut infer);
        }
        let types = self.settled(&types, &mut infer, true, made.span)?;
        let values = self.constructor_args(&sig, &bound, vals, &infer)?;
        Some((types.into(), values))
    }

    /// Infers type arguments by comparing run-time parameters with those of the type that the context expects.
    fn infer_from_place(
        &mut self,
        template: Template<'a>,
        types: &[Ty],
        expected: &Ty,
        infer: &mut Infer,
    ) {
        let (place, args) = match expected {
            Ty::Control(i, args) => (
                Template::of_control(self.controls[*i as usize].decl),
                args.clone(),
            ),
            Ty::Parser(i, args) => (Template::of_parser(self.parsers[*i as usize]), args.clone()),
            _ => return,
        };
        let theirs = self.signature(&[(place.type_params, &args)], place.params, None);
        let ours = self.signature(&[(template.type_params, types)], template.params, None);
        for (own, wanted) in ours.types.iter().zip(&theirs.types) {
            if !self.types.has_vars(wanted) {
                self.unify(own, wanted, infer);
            }
        }
    }

    /// Declares each type parameter as its argument. Without arguments, a parameter becomes a type variable, which happens only
    /// in the check of a generic parser or control that has no instance.
    pub(crate) fn declare_types(&mut self, params: &'a [ast::Ident], types: &[Ty]) {
        for (i, p) in params.iter().enumerate() {
            let ty = match types.get(i) {
                Some(ty) => ty.clone(),
                None => self.types.fresh(&p.name),
            };
            self.declare(p, Val::Type(ty));
        }
    }
}

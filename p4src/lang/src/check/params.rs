//! Checks parameters of declarations (P4_16 1.2.5, section 6.8).

use super::Checker;
use super::types::Ty;
use crate::ast::{self, Direction};
use crate::diagnostics::{Code, Diagnostic};

impl<'a> Checker<'a, '_> {
    /// Checks the directions and default values of parameters against their types.
    pub(crate) fn check_params(&mut self, params: &'a [ast::Param], types: &[Ty]) {
        for (p, ty) in params.iter().zip(types) {
            let at_compile_time = matches!(ty, Ty::Str | Ty::Integer) || ty.is_object();
            if p.direction != Direction::None && at_compile_time {
                let shown = self.types.show(ty);
                self.err(
                    Code::Type,
                    p.name.span,
                    format!("a parameter of type {shown} cannot have a direction"),
                );
            }
            if let (true, Some(default)) = (super::args::is_optional(p), &p.default) {
                let message = "an `@optional` parameter cannot have a default value";
                self.push(
                    Diagnostic::error(Code::Placement, p.name.span, message)
                        .label(default.span, "the default value")
                        .hint("remove `@optional`: a default value makes a parameter optional"),
                );
            }
            if matches!(p.direction, Direction::Out | Direction::InOut)
                && let Some(default) = &p.default
            {
                self.push(
                    Diagnostic::error(
                        Code::Placement,
                        p.name.span,
                        format!(
                            "`{}` is `out` or `inout`: it cannot have a default value",
                            p.name.name
                        ),
                    )
                    .label(default.span, "the default value"),
                );
            }
        }
    }

    /// Checks the run-time parameters of a parser, control, function or action with a body.
    pub(crate) fn check_run_time_params(&mut self, params: &'a [ast::Param], types: &[Ty]) {
        self.check_params(params, types);
        for (p, ty) in params.iter().zip(types) {
            if matches!(ty, Ty::Parser(..) | Ty::Control(..) | Ty::Package(..)) {
                let shown = self.types.show(ty);
                self.push(
                    Diagnostic::error(
                        Code::Type,
                        p.name.span,
                        format!("a run-time parameter cannot be a {shown}"),
                    )
                    .hint("make it a constructor parameter: `control c(…)(T x)`"),
                );
            }
            if let Some(default) = &p.default
                && p.direction != Direction::Out
                && !self.types.has_vars(ty)
            {
                self.constant(default, ty);
            }
        }
    }

    /// Reports optional parameters of functions and actions: they always receive all arguments.
    pub(crate) fn no_optional_params(&mut self, params: &'a [ast::Param]) {
        for p in params.iter().filter(|p| super::args::is_optional(p)) {
            self.push(
                Diagnostic::error(
                    Code::Placement,
                    p.name.span,
                    "`@optional` is not allowed here",
                )
                .hint("write a default value instead: `= …`"),
            );
        }
    }

    /// Reports extern objects as parameters of actions and functions; only parsers, controls and methods take them (appendix F).
    pub(crate) fn no_objects(&mut self, params: &'a [ast::Param], types: &[Ty], what: &str) {
        for (p, ty) in params.iter().zip(types) {
            if matches!(ty, Ty::Extern(..)) {
                let shown = self.types.show(ty);
                self.push(
                    Diagnostic::error(
                        Code::Type,
                        p.ty.span,
                        format!("{what} cannot take an extern object ({shown})"),
                    )
                    .hint("pass it to a control or parser: `control c(T x) { … }`"),
                );
            }
        }
    }

    /// Checks the constructor parameters of a parser or control.
    pub(crate) fn check_constructor_params(&mut self, params: &'a [ast::Param]) {
        for p in params.iter().filter(|p| p.direction != Direction::None) {
            self.err(
                Code::Placement,
                p.name.span,
                "a constructor parameter cannot have a direction",
            );
        }
    }

    /// Checks that the names in one parameter list differ.
    pub(crate) fn check_names(&mut self, names: impl Iterator<Item = &'a ast::Ident>) {
        let mut seen: Vec<&'a ast::Ident> = Vec::new();
        for name in names {
            if let Some(first) = seen.iter().find(|n| n.name == name.name) {
                self.push(
                    Diagnostic::error(
                        Code::Duplicate,
                        name.span,
                        format!("`{}` is declared twice", name.name),
                    )
                    .label(first.span, "first here"),
                );
            }
            seen.push(name);
        }
    }
}

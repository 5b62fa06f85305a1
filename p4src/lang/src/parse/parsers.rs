//! Parses the declarations of parsers and controls.

use super::{Parsed, Parser};
use crate::ast::{
    Annotation, ControlBody, ControlDecl, Decl, DeclKind, Ident, Param, ParserBody, ParserDecl,
    SelectCase, State, Transition,
};
use crate::diagnostics::{Code, Diagnostic};
use crate::lexer::Tok;
use crate::source::Span;

/// The common start of the declarations of parsers and controls: name, type parameters and parameters.
struct Head {
    name: Ident,
    type_params: Vec<Ident>,
    params: Vec<Param>,
    ctor_params: Vec<Param>,
}

impl Parser<'_, '_> {
    /// Parses `parser P<T>(…);` or `parser P(…)(…) { … }`.
    pub(super) fn parser(&mut self) -> Parsed<DeclKind> {
        self.bump();
        let name = self.name("the parser's name")?;
        self.declare_type(&name);
        self.scoped(|p| {
            let head = p.head(name, "parser")?;
            let body = if p.eat(Tok::Semi) {
                None
            } else {
                Some(p.parser_body()?)
            };
            Ok(DeclKind::Parser(ParserDecl {
                name: head.name,
                type_params: head.type_params,
                params: head.params,
                ctor_params: head.ctor_params,
                body,
            }))
        })
    }

    /// Parses `control C<T>(…);` or `control C(…)(…) { … }`.
    pub(super) fn control(&mut self) -> Parsed<DeclKind> {
        self.bump();
        let name = self.name("the control's name")?;
        self.declare_type(&name);
        self.scoped(|p| {
            let head = p.head(name, "control")?;
            let body = if p.eat(Tok::Semi) {
                None
            } else {
                Some(p.control_body(head.name.span)?)
            };
            Ok(DeclKind::Control(ControlDecl {
                name: head.name,
                type_params: head.type_params,
                params: head.params,
                ctor_params: head.ctor_params,
                body,
            }))
        })
    }

    fn head(&mut self, name: Ident, what: &str) -> Parsed<Head> {
        let type_params = self.type_params()?;
        let params = self.params()?;
        let ctor_params = if self.kind() == Tok::LParen {
            self.params()?
        } else {
            Vec::new()
        };
        if !matches!(self.kind(), Tok::Semi | Tok::LBrace) {
            return Err(self.unexpected(&format!(
                "`{{` before the {what}'s body, or `;` to declare only its type"
            )));
        }
        Ok(Head {
            name,
            type_params,
            params,
            ctor_params,
        })
    }

    fn parser_body(&mut self) -> Parsed<ParserBody> {
        let open = self.expect(Tok::LBrace, "before the parser's body")?.span;
        let mut locals = Vec::new();
        let mut states = Vec::new();
        self.nested(|p| {
            p.items(open, "the parser", |p| {
                let start = p.span();
                let annotations = p.annotations()?;
                if p.is_word("state") && p.nth(1) == Tok::Ident && p.nth(2) == Tok::LBrace {
                    states.push(p.state(start, annotations)?);
                } else if !p.eat(Tok::Semi) {
                    locals.push(p.parser_local(start, annotations)?);
                }
                Ok(())
            })
        })?;
        Ok(ParserBody { locals, states })
    }

    fn parser_local(&mut self, start: Span, annotations: Vec<Annotation>) -> Parsed<Decl> {
        let kind = match self.kind() {
            Tok::Const => self.constant()?,
            Tok::ValueSet => self.value_set()?,
            _ if self.at_type() => self.variable_or_instance()?,
            _ => {
                return Err(self.unexpected("a state, constant, variable, instance or value set"));
            }
        };
        Ok(Decl {
            annotations,
            kind,
            span: self.since(start),
        })
    }

    fn value_set(&mut self) -> Parsed<DeclKind> {
        self.bump();
        self.expect(Tok::Lt, "after `value_set`")?;
        let ty = self.ty()?;
        self.expect(Tok::Gt, "after the value set's type")?;
        self.expect(Tok::LParen, "before the value set's size")?;
        let size = self.expr()?;
        self.expect(Tok::RParen, "after the value set's size")?;
        let name = self.name("the value set's name")?;
        self.declare_object(&name);
        self.expect(Tok::Semi, "after the value set")?;
        Ok(DeclKind::ValueSet { ty, size, name })
    }

    fn state(&mut self, start: Span, annotations: Vec<Annotation>) -> Parsed<State> {
        self.bump();
        let name = self.name("the state's name")?;
        let open = self.expect(Tok::LBrace, "before the state's body")?.span;
        let mut transition: Option<Transition> = None;
        let mut body = Vec::new();
        self.nested(|p| {
            p.scoped(|p| {
                p.items(open, "the state", |p| {
                    if let (Some(_), span) = (&transition, p.span()) {
                        return Err(p.fail(Diagnostic::error(
                            Code::Syntax,
                            span,
                            "the transition must be the last statement of a state",
                        )));
                    }
                    if p.kind() == Tok::Transition {
                        transition = Some(p.transition()?);
                    } else {
                        body.push(p.statement()?);
                    }
                    Ok(())
                })
            })
        })?;
        Ok(State {
            annotations,
            name,
            body,
            transition,
            span: self.since(start),
        })
    }

    fn transition(&mut self) -> Parsed<Transition> {
        let start = self.bump().span;
        if self.kind() != Tok::Select {
            let state = self.name("a state's name or `select`")?;
            self.expect(Tok::Semi, "after the transition")?;
            return Ok(Transition::Direct(state));
        }
        self.bump();
        self.expect(Tok::LParen, "after `select`")?;
        let mut keys = Vec::new();
        while self.kind() != Tok::RParen {
            keys.push(self.expr()?);
            if !self.eat(Tok::Comma) {
                break;
            }
        }
        self.expect(Tok::RParen, "after the values of `select`")?;
        let open = self
            .expect(Tok::LBrace, "before the cases of the select")?
            .span;
        let cases = self.items(open, "the select", |p| {
            let start = p.span();
            let keys = p.keysets()?;
            p.expect(Tok::Colon, "after the case's value")?;
            let state = p.name("a state's name")?;
            p.expect(Tok::Semi, "after the case")?;
            Ok(SelectCase {
                keys,
                state,
                span: p.since(start),
            })
        })?;
        self.eat(Tok::Semi);
        Ok(Transition::Select {
            keys,
            cases,
            span: self.since(start),
        })
    }

    fn control_body(&mut self, name: Span) -> Parsed<ControlBody> {
        let open = self.expect(Tok::LBrace, "before the control's body")?.span;
        let mut locals = Vec::new();
        let mut apply = None;
        self.nested(|p| {
            p.items(open, "the control", |p| {
                let start = p.span();
                let annotations = p.annotations()?;
                if p.is_word("apply") && matches!(p.nth(1), Tok::LBrace | Tok::At) {
                    if apply.is_some() {
                        return Err(p.fail(Diagnostic::error(
                            Code::Syntax,
                            start,
                            "this control already has an `apply` block",
                        )));
                    }
                    p.bump();
                    let mut annotations = annotations;
                    annotations.extend(p.annotations()?);
                    apply = Some(p.block(annotations, "the `apply` block")?);
                } else if !p.eat(Tok::Semi) {
                    let span = p.span();
                    let local = p.control_local(start, annotations)?;
                    if apply.is_some() {
                        p.sink.error(
                            Code::Syntax,
                            span,
                            "the `apply` block must come last in a control",
                        );
                    }
                    locals.push(local);
                }
                Ok(())
            })
        })?;
        match apply {
            Some(apply) => Ok(ControlBody { locals, apply }),
            None => Err(self.fail(
                Diagnostic::error(Code::Syntax, name, "this control has no `apply` block")
                    .hint("even an empty one must be written: `apply { }`"),
            )),
        }
    }

    fn control_local(&mut self, start: Span, annotations: Vec<Annotation>) -> Parsed<Decl> {
        let kind = match self.kind() {
            Tok::Const => self.constant()?,
            Tok::Action => self.action()?,
            Tok::Table => self.table()?,
            _ if self.at_type() => self.variable_or_instance()?,
            _ => {
                return Err(self.unexpected(
                    "a constant, variable, instance, action, table or the `apply` block",
                ));
            }
        };
        Ok(Decl {
            annotations,
            kind,
            span: self.since(start),
        })
    }
}

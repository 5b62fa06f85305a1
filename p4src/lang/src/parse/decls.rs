//! Parses top-level declarations, and declarations that are allowed at several levels.

use super::{Failed, Parsed, Parser};
use crate::ast::{
    Annotation, Decl, DeclKind, Direction, FunctionProto, Ident, Method, Param, Program, Type,
};
use crate::diagnostics::{Code, Diagnostic};
use crate::lexer::Tok;
use crate::source::Span;

impl Parser<'_, '_> {
    /// Parses the whole source into its top-level declarations.
    pub(super) fn program(&mut self) -> Program {
        let mut decls = Vec::new();
        while self.kind() != Tok::Eof && !self.sink.is_full() {
            if self.eat(Tok::Semi) {
                continue;
            }
            let before = self.at;
            match self.top_level() {
                Ok(decl) => decls.push(decl),
                Err(Failed) => {
                    self.depth = 0;
                    self.resync(before);
                    // Skip unmatched closing braces: their error has been reported.
                    while self.eat(Tok::RBrace) {}
                }
            }
        }
        Program { decls }
    }

    fn top_level(&mut self) -> Parsed<Decl> {
        let start = self.span();
        let annotations = self.annotations()?;
        if self.kind() == Tok::Eof && !annotations.is_empty() {
            return Err(self.unexpected("a declaration after the annotation"));
        }
        let kind = self.top_level_kind()?;
        Ok(Decl {
            annotations,
            kind,
            span: self.since(start),
        })
    }

    fn top_level_kind(&mut self) -> Parsed<DeclKind> {
        match self.kind() {
            Tok::Const => self.constant(),
            Tok::Extern => self.extern_decl(),
            Tok::Action => self.action(),
            Tok::Parser => self.parser(),
            Tok::Control => self.control(),
            Tok::Package => self.package(),
            Tok::Typedef => self.typedef(),
            Tok::Header | Tok::Struct | Tok::HeaderUnion => self.structure(),
            Tok::Enum => self.enumeration(),
            Tok::Error if self.nth(1) == Tok::LBrace => {
                self.bump();
                Ok(DeclKind::Error(self.name_list("the errors")?))
            }
            Tok::MatchKind if self.nth(1) == Tok::LBrace => {
                self.bump();
                Ok(DeclKind::MatchKind(self.name_list("the match kinds")?))
            }
            Tok::Ident if self.is_word("type") && self.at_new_type() => self.new_type(),
            _ if self.at_type() => self.function_or_instance(),
            Tok::Table => Err(self.misplaced("a table", "inside a control")),
            _ => Err(self.unexpected("a declaration")),
        }
    }

    fn misplaced(&mut self, what: &str, place: &str) -> Failed {
        let span = self.span();
        self.fail(Diagnostic::error(
            Code::Syntax,
            span,
            format!("{what} must be declared {place}"),
        ))
    }

    /// Whether the word `type` here begins `type T name;`; `type` may also be the name of a type.
    fn at_new_type(&self) -> bool {
        self.skip_type(self.at + 1)
            .is_some_and(|end| self.tokens.get(end).is_some_and(|t| t.kind == Tok::Ident))
    }

    /// Parses `const T x = e;`.
    pub(super) fn constant(&mut self) -> Parsed<DeclKind> {
        self.bump();
        let ty = self.ty()?;
        let name = self.name("the constant's name")?;
        let ty = self.sized_behind(ty, &name)?;
        self.expect(Tok::Assign, "after the constant's name")?;
        let init = self.expr()?;
        self.declare_object(&name);
        self.expect(Tok::Semi, "after the constant")?;
        Ok(DeclKind::Const { ty, name, init })
    }

    /// Parses a variable (`T x;`, `T x = e;`) or an instance (`T(args) x;`, `T(args) x = { … };`).
    pub(super) fn variable_or_instance(&mut self) -> Parsed<DeclKind> {
        let ty = self.ty()?;
        if self.kind() == Tok::LParen {
            return self.instance(ty);
        }
        let name = self.name("a name after the type")?;
        self.variable(ty, name)
    }

    fn variable(&mut self, ty: Type, name: Ident) -> Parsed<DeclKind> {
        let ty = self.sized_behind(ty, &name)?;
        let init = if self.eat(Tok::Assign) {
            Some(self.expr()?)
        } else {
            None
        };
        self.declare_object(&name);
        self.expect(Tok::Semi, "after the variable's declaration")?;
        Ok(DeclKind::Var { ty, name, init })
    }

    fn instance(&mut self, ty: Type) -> Parsed<DeclKind> {
        let args = self.args()?;
        let name = self.name("the instance's name")?;
        self.declare_object(&name);
        let init = if self.eat(Tok::Assign) {
            let open = self
                .expect(Tok::LBrace, "before the instance's methods")?
                .span;
            Some(self.nested(|p| p.items(open, "the instance's methods", |p| p.object_decl()))?)
        } else {
            None
        };
        self.expect(Tok::Semi, "after the instance")?;
        Ok(DeclKind::Instance {
            ty,
            args,
            name,
            init,
        })
    }

    /// Parses a declaration in an instance's block: the implementation of an abstract method, or an instance.
    fn object_decl(&mut self) -> Parsed<Decl> {
        let start = self.span();
        let annotations = self.annotations()?;
        let kind = self.function_or_instance()?;
        Ok(Decl {
            annotations,
            kind,
            span: self.since(start),
        })
    }

    /// Parses a top-level declaration that begins with a type: a function or an instance.
    fn function_or_instance(&mut self) -> Parsed<DeclKind> {
        let start = self.span();
        let first_word = self.slice(start);
        let after_type = self.skip_type(self.at);
        let named = after_type
            .and_then(|end| self.tokens.get(end..end + 2))
            .is_some_and(|t| t[0].kind == Tok::Ident && matches!(t[1].kind, Tok::LParen | Tok::Lt));
        if named {
            return self.function();
        }
        let ty = self.ty()?;
        if self.kind() == Tok::LParen {
            return self.instance(ty);
        }
        if self.kind() == Tok::Ident && matches!(self.nth(1), Tok::LBrace) {
            return Err(self.unknown_declaration(start, first_word));
        }
        let name = self.name("a function's or an instance's name")?;
        if matches!(self.kind(), Tok::Semi | Tok::Assign) {
            let span = self.since(start);
            self.fail(
                Diagnostic::error(Code::Syntax, span, "variables cannot be at top level")
                    .hint("make it a `const`, or move it into a parser or control"),
            );
            return self.variable(ty, name);
        }
        Err(self.unexpected("`(` after the name"))
    }

    fn unknown_declaration(&mut self, span: Span, word: &str) -> Failed {
        let known = [
            "header",
            "struct",
            "enum",
            "control",
            "parser",
            "action",
            "extern",
            "package",
            "header_union",
            "match_kind",
            "error",
            "table",
            "typedef",
        ];
        let mut diagnostic = Diagnostic::error(
            Code::Syntax,
            span,
            format!("expected a declaration, found `{word}`"),
        );
        if let Some(near) = known.iter().find(|k| distance_is_small(k, word)) {
            diagnostic = diagnostic.hint(format!("did you mean `{near}`?"));
        }
        self.fail(diagnostic)
    }

    fn function(&mut self) -> Parsed<DeclKind> {
        self.scoped_function(|p, proto| {
            let body = p.block(Vec::new(), "the function's body")?;
            Ok(DeclKind::Function { proto, body })
        })
    }

    /// Parses a prototype `R f<T>(params)`, then `rest`, which sees its type parameters and parameters.
    fn scoped_function<T>(
        &mut self,
        rest: impl FnOnce(&mut Self, FunctionProto) -> Parsed<T>,
    ) -> Parsed<T> {
        // The return type may name a type parameter declared after it: a name in this position is always a type.
        let ret = self.ty()?;
        let name = self.name("the function's name")?;
        self.declare_object(&name);
        self.scoped(|p| {
            let type_params = p.type_params()?;
            let params = p.params()?;
            rest(
                p,
                FunctionProto {
                    ret: Some(ret),
                    name,
                    type_params,
                    params,
                },
            )
        })
    }

    /// Parses `action a(…) { … }`.
    pub(super) fn action(&mut self) -> Parsed<DeclKind> {
        self.bump();
        let name = self.name("the action's name")?;
        self.declare_object(&name);
        self.scoped(|p| {
            let params = p.params()?;
            let body = p.block(Vec::new(), "the action's body")?;
            Ok(DeclKind::Action { name, params, body })
        })
    }

    fn extern_decl(&mut self) -> Parsed<DeclKind> {
        self.bump();
        self.annotations()?;
        let is_object = self.kind() == Tok::Ident
            && match self.nth(1) {
                Tok::LBrace | Tok::Semi => true,
                Tok::Lt => self
                    .skip_type_args(self.at + 1)
                    .is_some_and(|end| self.tokens[end].kind == Tok::LBrace),
                _ => false,
            };
        if !is_object {
            return self.scoped_function(|p, proto| {
                p.expect(Tok::Semi, "after the extern function")?;
                Ok(DeclKind::ExternFunction(proto))
            });
        }
        let name = self.name("the extern's name")?;
        self.declare_type(&name);
        self.scoped(|p| {
            let type_params = p.type_params()?;
            let methods = if p.eat(Tok::Semi) {
                Vec::new()
            } else {
                let open = p.expect(Tok::LBrace, "before the extern's methods")?.span;
                p.items(open, "the extern", |p| p.method(&name.name))?
            };
            Ok(DeclKind::Extern {
                name,
                type_params,
                methods,
            })
        })
    }

    fn method(&mut self, extern_name: &str) -> Parsed<Method> {
        let start = self.span();
        let annotations = self.annotations()?;
        let is_abstract = self.eat(Tok::Abstract);
        let proto = if self.is_word(extern_name) && self.nth(1) == Tok::LParen {
            let name = self.name("the constructor's name")?;
            FunctionProto {
                ret: None,
                name,
                type_params: Vec::new(),
                params: self.scoped(|p| p.params())?,
            }
        } else {
            self.scoped(|p| p.scoped_function(|_, proto| Ok(proto)))?
        };
        self.expect(Tok::Semi, "after the method")?;
        Ok(Method {
            annotations,
            is_abstract,
            proto,
            span: self.since(start),
        })
    }

    fn package(&mut self) -> Parsed<DeclKind> {
        self.bump();
        let name = self.name("the package's name")?;
        self.declare_type(&name);
        self.scoped(|p| {
            let type_params = p.type_params()?;
            let params = p.params()?;
            p.expect(Tok::Semi, "after the package")?;
            Ok(DeclKind::Package {
                name,
                type_params,
                params,
            })
        })
    }

    fn name_list(&mut self, what: &str) -> Parsed<Vec<Ident>> {
        self.expect(Tok::LBrace, &format!("before {what}"))?;
        let mut names = Vec::new();
        while self.kind() != Tok::RBrace {
            names.push(self.name("a name")?);
            if !self.eat(Tok::Comma) {
                break;
            }
        }
        self.close_list(what)?;
        Ok(names)
    }

    pub(super) fn close_list(&mut self, what: &str) -> Parsed<()> {
        if self.kind() != Tok::RBrace {
            return Err(self.unexpected(&format!("`,` or `}}` after {what}")));
        }
        self.bump();
        Ok(())
    }

    /// Parses `( params )` and declares the parameters' names as objects in the current scope.
    pub(super) fn params(&mut self) -> Parsed<Vec<Param>> {
        self.expect(Tok::LParen, "before the parameters")?;
        let mut params = Vec::new();
        while self.kind() != Tok::RParen {
            params.push(self.param()?);
            if !self.eat(Tok::Comma) {
                break;
            }
        }
        if self.kind() != Tok::RParen {
            return Err(self.unexpected("`,` or `)` after the parameter"));
        }
        self.bump();
        Ok(params)
    }

    fn param(&mut self) -> Parsed<Param> {
        let start = self.span();
        let annotations: Vec<Annotation> = self.annotations()?;
        let direction = match self.kind() {
            Tok::In => Direction::In,
            Tok::Out => Direction::Out,
            Tok::InOut => Direction::InOut,
            _ => Direction::None,
        };
        if direction != Direction::None {
            self.bump();
        }
        let ty = self.ty()?;
        let name = self.name("the parameter's name")?;
        let ty = self.sized_behind(ty, &name)?;
        self.declare_object(&name);
        let default = if self.eat(Tok::Assign) {
            Some(self.expr()?)
        } else {
            None
        };
        Ok(Param {
            annotations,
            direction,
            ty,
            name,
            default,
            span: self.since(start),
        })
    }
}

/// Whether two words differ by at most two edits and are long enough to suggest one for the other.
fn distance_is_small(a: &str, b: &str) -> bool {
    b.len() >= 4 && a.len().abs_diff(b.len()) <= 2 && strsim::levenshtein(a, b) <= 2
}

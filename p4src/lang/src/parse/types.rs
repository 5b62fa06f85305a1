//! Parses types and type parameters.

use super::{Parsed, Parser};
use crate::ast::{Ident, Type, TypeKind};
use crate::diagnostics::{Code, Diagnostic};
use crate::lexer::Tok;
use crate::source::Span;

/// Maximum number of array sizes after a declared name, as in `T x[2][3]`.
const MAX_SIZES_BEHIND: usize = 8;

impl Parser<'_, '_> {
    /// Whether the current token can begin a type.
    pub(super) fn at_type(&self) -> bool {
        matches!(
            self.kind(),
            Tok::Void
                | Tok::Bool
                | Tok::Error
                | Tok::MatchKind
                | Tok::String
                | Tok::Bit
                | Tok::IntType
                | Tok::Varbit
                | Tok::Tuple
                | Tok::Ident
                | Tok::Dot
        )
    }

    /// Parses a type, including header stacks `T[n]`.
    pub(super) fn ty(&mut self) -> Parsed<Type> {
        let start = self.span();
        let outer = std::mem::replace(&mut self.deepest, self.depth);
        let mut ty = self.unindexed_type()?;
        while self.eat(Tok::LBracket) {
            let size = Box::new(self.expr()?);
            self.expect(Tok::RBracket, "after the stack's size")?;
            self.wrap()?;
            ty = Type {
                kind: TypeKind::Stack {
                    elem: Box::new(ty),
                    size,
                },
                span: self.since(start),
            };
        }
        self.deepest = self.deepest.max(outer);
        Ok(ty)
    }

    /// The type of a declared name with array sizes after the name, as in C and p4c: `T x[2]`; a size there gives a warning.
    pub(super) fn sized_behind(&mut self, mut ty: Type, name: &Ident) -> Parsed<Type> {
        let mut sizes = Vec::new();
        let start = self.span();
        while self.eat(Tok::LBracket) {
            if sizes.len() == MAX_SIZES_BEHIND {
                return Err(self.too_deep());
            }
            sizes.push(Box::new(self.expr()?));
            self.expect(Tok::RBracket, "after the array's size")?;
        }
        if sizes.is_empty() {
            return Ok(ty);
        }
        let span = name.span.to(self.last_span());
        let sized: String = self.slice(ty.span).to_owned() + self.slice(self.since(start));
        let message = "in P4, an array's size follows its type, not its name";
        let hint = format!("write `{sized} {}`", name.name);
        let warning = Diagnostic::warning(Code::Syntax, span, message);
        self.sink.push(if sizes.len() == 1 {
            warning.hint(hint)
        } else {
            warning
        });
        // `T a[2][3]` has two elements of three each, like `T[3][2] a`.
        for size in sizes.into_iter().rev() {
            ty = Type {
                span: ty.span,
                kind: TypeKind::Stack {
                    elem: Box::new(ty),
                    size,
                },
            };
        }
        Ok(ty)
    }

    /// Parses a type without an array size `[n]` after it.
    pub(super) fn unindexed_type(&mut self) -> Parsed<Type> {
        let start = self.span();
        let kind = match self.kind() {
            Tok::Void => self.word(TypeKind::Void),
            Tok::Bool => self.word(TypeKind::Bool),
            Tok::Error => self.word(TypeKind::Error),
            Tok::MatchKind => self.word(TypeKind::MatchKind),
            Tok::String => self.word(TypeKind::String),
            Tok::DontCare => self.word(TypeKind::DontCare),
            Tok::Bit => {
                self.bump();
                TypeKind::Bit(self.width()?.map(Box::new))
            }
            Tok::IntType => {
                self.bump();
                match self.width()? {
                    Some(width) => TypeKind::Int(Box::new(width)),
                    None => TypeKind::Integer,
                }
            }
            Tok::Varbit => {
                self.bump();
                match self.width()? {
                    Some(width) => TypeKind::Varbit(Box::new(width)),
                    None => return Err(self.unexpected("`<` and the largest width of the varbit")),
                }
            }
            Tok::Tuple => {
                self.bump();
                if self.kind() != Tok::Lt {
                    return Err(self.unexpected("`<` after `tuple`"));
                }
                TypeKind::Tuple(self.type_args()?)
            }
            Tok::Ident | Tok::Dot => return self.named_type(start),
            _ => return Err(self.unexpected("a type")),
        };
        Ok(Type {
            kind,
            span: self.since(start),
        })
    }

    fn word(&mut self, kind: TypeKind) -> TypeKind {
        self.bump();
        kind
    }

    fn named_type(&mut self, start: Span) -> Parsed<Type> {
        let absolute = self.eat(Tok::Dot);
        let name = self.name("a type's name")?;
        let is_list = !absolute && name.name == "list";
        let mut ty = Type {
            kind: TypeKind::Name { absolute, name },
            span: self.since(start),
        };
        if self.kind() == Tok::Lt {
            let mut args = self.type_args()?;
            let span = self.since(start);
            let kind = match args.pop() {
                Some(elem) if is_list && args.is_empty() => TypeKind::List(Box::new(elem)),
                last => {
                    args.extend(last);
                    TypeKind::Specialized {
                        base: Box::new(ty),
                        args,
                    }
                }
            };
            ty = Type { kind, span };
        }
        Ok(ty)
    }

    /// Parses a type's width, `<w>`. The grammar requires parentheses around all but literals; this parser, like p4c, does not.
    fn width(&mut self) -> Parsed<Option<crate::ast::Expr>> {
        if !self.eat(Tok::Lt) {
            return Ok(None);
        }
        let width = self.expr_in_angles()?;
        self.expect(Tok::Gt, "after the width")?;
        Ok(Some(width))
    }

    /// Parses type arguments, `< types >`, where `_` is allowed.
    pub(super) fn type_args(&mut self) -> Parsed<Vec<Type>> {
        self.expect(Tok::Lt, "before the type arguments")?;
        let mut args = Vec::new();
        while self.kind() != Tok::Gt {
            args.push(self.nested(|p| p.ty())?);
            if !self.eat(Tok::Comma) {
                break;
            }
        }
        self.expect(Tok::Gt, "after the type arguments")?;
        Ok(args)
    }

    /// Parses type parameters, `<A, B>`, if there are any, and declares them as types in the current scope.
    pub(super) fn type_params(&mut self) -> Parsed<Vec<Ident>> {
        let mut params = Vec::new();
        if !self.eat(Tok::Lt) {
            return Ok(params);
        }
        while self.kind() != Tok::Gt {
            let name = self.name("a type parameter's name")?;
            self.declare_type(&name);
            params.push(name);
            if !self.eat(Tok::Comma) {
                break;
            }
        }
        self.expect(Tok::Gt, "after the type parameters")?;
        Ok(params)
    }
}

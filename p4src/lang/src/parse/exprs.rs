//! Parses expressions: precedence climbing over prefix, primary and postfix forms.

use super::scope::Meaning;
use super::{Failed, Parsed, Parser};
use crate::ast::{Arg, BinOp, Expr, ExprKind, Operation, Type, TypeKind, UnOp};
use crate::diagnostics::{Code, Diagnostic};
use crate::lexer::{Tok, parse_int};
use crate::source::Span;
use crate::spelling::unescape;

/// Precedence of a binary operator; unlike in C, bitwise operators bind tighter than comparisons (P4_16 section 8).
fn precedence(op: BinOp) -> u8 {
    match op {
        BinOp::LogOr => 1,
        BinOp::LogAnd => 2,
        BinOp::Eq | BinOp::Ne => 3,
        BinOp::Lt | BinOp::Gt | BinOp::Le | BinOp::Ge => 4,
        BinOp::Or => 5,
        BinOp::Xor => 6,
        BinOp::And => 7,
        BinOp::Shl | BinOp::Shr => 8,
        BinOp::Concat | BinOp::Add | BinOp::Sub | BinOp::AddSat | BinOp::SubSat => 9,
        BinOp::Mul | BinOp::Div | BinOp::Mod => 10,
    }
}

impl Parser<'_, '_> {
    /// Parses an expression of any form.
    pub(super) fn expr(&mut self) -> Parsed<Expr> {
        let outer = std::mem::replace(&mut self.in_angles, false);
        let expr = self.conditional_expr();
        self.in_angles = outer;
        expr
    }

    /// Parses an expression that ends at a `>` outside brackets, such as a type's width.
    pub(super) fn expr_in_angles(&mut self) -> Parsed<Expr> {
        let outer = std::mem::replace(&mut self.in_angles, true);
        let expr = self.conditional_expr();
        self.in_angles = outer;
        expr
    }

    fn conditional_expr(&mut self) -> Parsed<Expr> {
        self.nested(|p| {
            let cond = p.binary(1)?;
            if p.kind() != Tok::Question {
                return Ok(cond);
            }
            p.bump();
            let then = p.conditional_expr()?;
            p.expect(Tok::Colon, "between the two values of `?:`")?;
            let otherwise = p.conditional_expr()?;
            Ok(Expr {
                span: cond.span.to(otherwise.span),
                kind: ExprKind::Mux {
                    cond: Box::new(cond),
                    then: Box::new(then),
                    otherwise: Box::new(otherwise),
                },
            })
        })
    }

    /// Parses a chain of left-associative binary operators of precedence `min` or higher.
    fn binary(&mut self, min: u8) -> Parsed<Expr> {
        let first = self.unary()?;
        let mut rest = Vec::new();
        while let Some((op, tokens)) = self.binary_operator() {
            let tightness = precedence(op);
            if tightness < min {
                break;
            }
            self.at += tokens;
            let rhs = self.nested(|p| p.binary(tightness + 1))?;
            rest.push(Operation { op, rhs });
        }
        let Some(last) = rest.last() else {
            return Ok(first);
        };
        Ok(Expr {
            span: first.span.to(last.rhs.span),
            kind: ExprKind::Binary {
                first: Box::new(first),
                rest,
            },
        })
    }

    /// The binary operator at the current token, and its number of tokens (`>>` has two); `None` if there is none.
    fn binary_operator(&self) -> Option<(BinOp, usize)> {
        let op = match self.kind() {
            Tok::Gt | Tok::Ge if self.in_angles => return None,
            // `e[i +: w]`
            Tok::Plus | Tok::Minus if self.touches_next() && self.nth(1) == Tok::Colon => {
                return None;
            }
            Tok::Gt if self.touches_next() && self.nth(1) == Tok::Gt => {
                return Some((BinOp::Shr, 2));
            }
            Tok::Gt if self.touches_next() && self.nth(1) == Tok::Ge => return None,
            Tok::OrOr => BinOp::LogOr,
            Tok::AndAnd => BinOp::LogAnd,
            Tok::EqEq => BinOp::Eq,
            Tok::NotEq => BinOp::Ne,
            Tok::Lt => BinOp::Lt,
            Tok::Gt => BinOp::Gt,
            Tok::Le => BinOp::Le,
            Tok::Ge => BinOp::Ge,
            Tok::Pipe => BinOp::Or,
            Tok::Caret => BinOp::Xor,
            Tok::Amp => BinOp::And,
            Tok::Shl => BinOp::Shl,
            Tok::PlusPlus => BinOp::Concat,
            Tok::Plus => BinOp::Add,
            Tok::Minus => BinOp::Sub,
            Tok::AddSat => BinOp::AddSat,
            Tok::SubSat => BinOp::SubSat,
            Tok::Star => BinOp::Mul,
            Tok::Slash => BinOp::Div,
            Tok::Percent => BinOp::Mod,
            _ => return None,
        };
        Some((op, 1))
    }

    /// Whether no space separates the current token from the next.
    pub(super) fn touches_next(&self) -> bool {
        self.tokens
            .get(self.at + 1)
            .is_some_and(|next| next.span.start == self.span().end)
    }

    fn unary(&mut self) -> Parsed<Expr> {
        let start = self.span();
        let op = match self.kind() {
            Tok::Bang => UnOp::Not,
            Tok::Tilde => UnOp::BitNot,
            Tok::Minus => UnOp::Neg,
            Tok::Plus => UnOp::Plus,
            Tok::LParen if self.at_cast() => {
                self.bump();
                let ty = self.nested(|p| p.ty())?;
                self.expect(Tok::RParen, "after the type of a cast")?;
                let expr = Box::new(self.nested(|p| p.unary())?);
                return Ok(Expr {
                    span: self.since(start),
                    kind: ExprKind::Cast { ty, expr },
                });
            }
            _ => return self.postfix(),
        };
        self.bump();
        let expr = Box::new(self.nested(|p| p.unary())?);
        Ok(Expr {
            span: self.since(start),
            kind: ExprKind::Unary { op, expr },
        })
    }

    /// Parses a primary expression and any `.m`, `[i]`, `[h:l]`, `<T>(…)`, `(…)` after it.
    pub(super) fn postfix(&mut self) -> Parsed<Expr> {
        let start = self.span();
        let outer = std::mem::replace(&mut self.deepest, self.depth);
        let mut expr = self.primary()?;
        while matches!(
            self.kind(),
            Tok::Dot | Tok::LBracket | Tok::LParen | Tok::Lt
        ) {
            let next = match self.kind() {
                Tok::Dot => {
                    self.bump();
                    let member = self.member_name()?;
                    ExprKind::Member {
                        base: Box::new(expr),
                        member,
                    }
                }
                Tok::LBracket => self.index(expr)?,
                Tok::LParen => ExprKind::Call {
                    callee: Box::new(expr),
                    type_args: Vec::new(),
                    args: self.args()?,
                },
                _ if !self.at_type_args(self.may_be_type(&expr)) => break,
                _ => {
                    let type_args = self.type_args()?;
                    if self.kind() == Tok::LParen {
                        ExprKind::Call {
                            callee: Box::new(expr),
                            type_args,
                            args: self.args()?,
                        }
                    } else {
                        self.specialized(expr, type_args)
                    }
                }
            };
            self.wrap()?;
            expr = Expr {
                kind: next,
                span: self.since(start),
            };
        }
        self.deepest = self.deepest.max(outer);
        Ok(expr)
    }

    fn may_be_type(&self, expr: &Expr) -> bool {
        match &expr.kind {
            ExprKind::Name { name, .. } => self.scopes.meaning(&name.name) != Some(Meaning::Object),
            _ => false,
        }
    }

    /// Builds the generic type `N<args>` in front of a member access `.m`.
    fn specialized(&self, base: Expr, args: Vec<Type>) -> ExprKind {
        let span = self.since(base.span);
        match base.kind {
            ExprKind::Name { absolute, name } => ExprKind::Type(Type {
                kind: TypeKind::Specialized {
                    base: Box::new(Type {
                        kind: TypeKind::Name { absolute, name },
                        span: base.span,
                    }),
                    args,
                },
                span,
            }),
            // `may_be_type` accepts only names.
            other => other,
        }
    }

    /// Parses the member name after a dot: `apply` and similar words are plain names, and so are reserved words after `error.`.
    fn member_name(&mut self) -> Parsed<crate::ast::Ident> {
        self.name("a member's name after `.`")
    }

    fn index(&mut self, base: Expr) -> Parsed<ExprKind> {
        self.expect(Tok::LBracket, "before the index")?;
        let first = self.expr()?;
        let kind = if matches!(self.kind(), Tok::Plus | Tok::Minus) {
            self.part_select(base, first)?
        } else if self.eat(Tok::Colon) {
            let lo = self.expr()?;
            ExprKind::Slice {
                base: Box::new(base),
                hi: Box::new(first),
                lo: Box::new(lo),
            }
        } else {
            ExprKind::Index {
                base: Box::new(base),
                index: Box::new(first),
            }
        };
        self.expect(Tok::RBracket, "after the index")?;
        Ok(kind)
    }

    /// Parses `e[lo +: w]` or `e[hi -: w]`.
    fn part_select(&mut self, base: Expr, from: Expr) -> Parsed<ExprKind> {
        let upwards = self.bump().kind == Tok::Plus;
        self.expect(Tok::Colon, "in the slice")?;
        let width = self.expr()?;
        Ok(ExprKind::PartSelect {
            base: Box::new(base),
            from: Box::new(from),
            width: Box::new(width),
            upwards,
        })
    }

    /// Parses the arguments of a call, `( args )`.
    pub(super) fn args(&mut self) -> Parsed<Vec<Arg>> {
        self.expect(Tok::LParen, "before the arguments")?;
        self.list(Tok::RParen, "after the arguments")
    }

    /// Parses comma-separated expressions, optionally named, including `close`. A trailing comma is allowed.
    fn list(&mut self, close: Tok, context: &str) -> Parsed<Vec<Arg>> {
        let mut args = Vec::new();
        while self.kind() != close {
            let name = if self.kind() == Tok::Ident && self.nth(1) == Tok::Assign {
                let name = self.name("an argument's name")?;
                self.bump();
                Some(name)
            } else {
                None
            };
            let value = self.expr()?;
            args.push(Arg { name, value });
            if !self.eat(Tok::Comma) {
                break;
            }
        }
        if self.kind() != close {
            return Err(self.unexpected(&format!("`,` or {} {context}", close.describe())));
        }
        self.bump();
        Ok(args)
    }

    /// Parses a literal, a name, a list, an expression in parentheses, or a type before a member access.
    pub(super) fn primary(&mut self) -> Parsed<Expr> {
        let start = self.span();
        let kind = match self.kind() {
            Tok::Int => self.int()?,
            Tok::Str => {
                let text = unescape(self.slice(start));
                self.bump();
                ExprKind::Str(text)
            }
            Tok::True => self.single(ExprKind::Bool(true)),
            Tok::False => self.single(ExprKind::Bool(false)),
            Tok::This => self.single(ExprKind::This),
            Tok::Ellipsis => self.single(ExprKind::Ellipsis),
            Tok::DontCare => self.single(ExprKind::DontCare),
            Tok::Invalid => self.single(ExprKind::Invalid),
            Tok::LBrace => {
                self.bump();
                ExprKind::List(self.list(Tok::RBrace, "after the list")?)
            }
            Tok::LParen => {
                self.bump();
                let inner = self.expr()?;
                self.expect(Tok::RParen, "to close the parenthesis")?;
                return Ok(inner);
            }
            Tok::Dot => {
                self.bump();
                let name = self.name("a name after `.`")?;
                ExprKind::Name {
                    absolute: true,
                    name,
                }
            }
            Tok::Ident => {
                let name = self.name("a name")?;
                ExprKind::Name {
                    absolute: false,
                    name,
                }
            }
            Tok::Error
            | Tok::MatchKind
            | Tok::Bit
            | Tok::IntType
            | Tok::Varbit
            | Tok::Bool
            | Tok::Tuple
            | Tok::String => {
                let ty = self.ty()?;
                if !matches!(self.kind(), Tok::Dot | Tok::LParen) {
                    return Err(self.type_as_value(start));
                }
                ExprKind::Type(ty)
            }
            _ => return Err(self.unexpected("an expression")),
        };
        Ok(Expr {
            kind,
            span: self.since(start),
        })
    }

    fn type_as_value(&mut self, start: Span) -> Failed {
        let span = self.since(start);
        self.fail(
            Diagnostic::error(Code::Syntax, span, "expected an expression, found a type")
                .hint("a cast puts the type in parentheses: `(bit<8>) x`"),
        )
    }

    fn single(&mut self, kind: ExprKind) -> ExprKind {
        self.bump();
        kind
    }

    fn int(&mut self) -> Parsed<ExprKind> {
        let token = self.bump();
        // The lexer has already reported a malformed literal.
        let literal = parse_int(self.slice(token.span)).map_err(|_| Failed)?;
        Ok(ExprKind::Int {
            value: literal.value,
            width: literal.width,
            signed: literal.signed,
        })
    }
}

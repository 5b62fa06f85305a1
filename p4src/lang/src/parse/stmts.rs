//! Parses statements: blocks, assignments, calls, `if`, `switch` and loops.

use super::{Parsed, Parser};
use crate::ast::{
    Annotation, BinOp, Block, Decl, DeclKind, Expr, ExprKind, ForCollection, IfArm, Stmt, StmtKind,
    SwitchCase, SwitchLabel,
};
use crate::diagnostics::{Code, Diagnostic};
use crate::lexer::Tok;
use crate::source::Span;

impl Parser<'_, '_> {
    /// Parses a block `{ … }` in a new scope; `what` describes it in errors.
    pub(super) fn block(&mut self, annotations: Vec<Annotation>, what: &str) -> Parsed<Block> {
        let start = self.span();
        let open = self.expect(Tok::LBrace, &format!("before {what}"))?.span;
        let stmts = self.nested(|p| p.scoped(|p| p.items(open, what, |p| p.statement())))?;
        Ok(Block {
            annotations,
            stmts,
            span: self.since(start),
        })
    }

    /// Parses one statement or local declaration.
    pub(super) fn statement(&mut self) -> Parsed<Stmt> {
        self.statements += 1;
        let stmt = self.nested(|p| {
            let start = p.span();
            let kind = p.statement_kind(start)?;
            Ok(Stmt {
                kind,
                span: p.since(start),
            })
        });
        self.statements -= 1;
        stmt
    }

    fn statement_kind(&mut self, start: Span) -> Parsed<StmtKind> {
        let annotations = self.annotations()?;
        match self.kind() {
            Tok::Semi => {
                self.bump();
                Ok(StmtKind::Empty)
            }
            Tok::LBrace => Ok(StmtKind::Block(self.block(annotations, "the block")?)),
            Tok::If => self.conditional(),
            Tok::Switch => self.switch(),
            Tok::For => self.for_loop(annotations),
            Tok::Break => self.simple(StmtKind::Break, "after `break`"),
            Tok::Continue => self.simple(StmtKind::Continue, "after `continue`"),
            Tok::Exit => self.simple(StmtKind::Exit, "after `exit`"),
            Tok::Return => {
                self.bump();
                let value = if self.kind() == Tok::Semi {
                    None
                } else {
                    Some(self.expr()?)
                };
                self.expect(Tok::Semi, "after `return`")?;
                Ok(StmtKind::Return(value))
            }
            Tok::Const => self.local(start, annotations),
            Tok::Else => {
                let span = self.span();
                self.bump();
                Err(self.fail(
                    Diagnostic::error(Code::Syntax, span, "`else` without an `if` before it")
                        .hint("an `if` ends at its first `;`: put several statements in braces"),
                ))
            }
            _ if self.at_declaration() => self.local(start, annotations),
            Tok::Ident if self.is_word("while") && self.nth(1) == Tok::LParen => Err(self.fail(
                Diagnostic::error(Code::Syntax, start, "P4 has no `while`")
                    .hint("a loop is written `for (init; condition; update) { … }`"),
            )),
            _ => {
                let stmt = self.assignment_or_call()?;
                self.expect(Tok::Semi, "after the statement")?;
                Ok(stmt)
            }
        }
    }

    fn simple(&mut self, kind: StmtKind, context: &str) -> Parsed<StmtKind> {
        self.bump();
        self.expect(Tok::Semi, context)?;
        Ok(kind)
    }

    fn local(&mut self, start: Span, annotations: Vec<Annotation>) -> Parsed<StmtKind> {
        let kind = if self.kind() == Tok::Const {
            self.constant()?
        } else {
            self.variable_or_instance()?
        };
        Ok(StmtKind::Decl(Box::new(Decl {
            annotations,
            kind,
            span: self.since(start),
        })))
    }

    /// Parses `lvalue = e`, `lvalue op= e`, or a call, without the semicolon.
    fn assignment_or_call(&mut self) -> Parsed<StmtKind> {
        if !matches!(
            self.kind(),
            Tok::Ident
                | Tok::Dot
                | Tok::This
                | Tok::LParen
                | Tok::Error
                | Tok::Tuple
                | Tok::Bit
                | Tok::IntType
        ) {
            return Err(self.unexpected("a statement"));
        }
        let lhs = self.postfix()?;
        if let Some((op, tokens)) = self.assignment_operator() {
            self.at += tokens;
            let rhs = self.expr()?;
            return Ok(StmtKind::Assign { lhs, op, rhs });
        }
        match lhs.kind {
            ExprKind::Call { .. } => Ok(StmtKind::Call(lhs)),
            _ => Err(self.not_a_statement(&lhs)),
        }
    }

    fn not_a_statement(&mut self, expr: &Expr) -> super::Failed {
        let found = self.found();
        let mut diagnostic = Diagnostic::error(
            Code::Syntax,
            self.span(),
            format!("expected `=` or `(` after this, found {found}"),
        )
        .label(expr.span, "not a statement by itself");
        let word = self.slice(expr.span);
        if self.kind() == Tok::PlusPlus {
            diagnostic = diagnostic.hint("`++` joins bit strings; write `x = x + 1`");
        } else if self.kind() == Tok::EqEq {
            diagnostic = diagnostic.hint("`==` compares; an assignment is written `=`");
        } else if matches!(word, "do" | "goto" | "case") {
            diagnostic = diagnostic.hint(format!("P4 has no `{word}`"));
        }
        self.fail(diagnostic)
    }

    /// The assignment operator here: (operator, or `None` for plain `=`; its number of tokens); `None` if there is none.
    fn assignment_operator(&self) -> Option<(Option<BinOp>, usize)> {
        let op = match self.kind() {
            Tok::Assign => return Some((None, 1)),
            Tok::Gt if self.touches_next() && self.nth(1) == Tok::Ge => {
                return Some((Some(BinOp::Shr), 2));
            }
            Tok::PlusAssign => BinOp::Add,
            Tok::MinusAssign => BinOp::Sub,
            Tok::StarAssign => BinOp::Mul,
            Tok::SlashAssign => BinOp::Div,
            Tok::PercentAssign => BinOp::Mod,
            Tok::ShlAssign => BinOp::Shl,
            Tok::AndAssign => BinOp::And,
            Tok::OrAssign => BinOp::Or,
            Tok::XorAssign => BinOp::Xor,
            Tok::AddSatAssign => BinOp::AddSat,
            Tok::SubSatAssign => BinOp::SubSat,
            _ => return None,
        };
        Some((Some(op), 1))
    }

    /// Parses an `if` statement with all its `else if`s.
    fn conditional(&mut self) -> Parsed<StmtKind> {
        let mut arms = Vec::new();
        let mut otherwise = None;
        loop {
            arms.push(self.arm()?);
            if !self.eat(Tok::Else) {
                break;
            }
            if self.kind() != Tok::If {
                otherwise = Some(Box::new(self.statement()?));
                break;
            }
        }
        let end = self.last_span();
        for arm in &mut arms {
            arm.span = arm.span.to(end);
        }
        Ok(StmtKind::If { arms, otherwise })
    }

    /// Parses one arm of an `if` statement: `if (cond) then`.
    fn arm(&mut self) -> Parsed<IfArm> {
        let start = self.span();
        self.bump();
        self.expect(Tok::LParen, "after `if`")?;
        let cond = self.expr()?;
        if self.kind() == Tok::Assign {
            let span = self.span();
            return Err(self.fail(
                Diagnostic::error(Code::Syntax, span, "an assignment is not an expression")
                    .hint("equality is written `==`"),
            ));
        }
        self.expect(Tok::RParen, "after the condition")?;
        let then = self.statement()?;
        let span = self.since(start);
        Ok(IfArm { cond, then, span })
    }

    fn switch(&mut self) -> Parsed<StmtKind> {
        self.bump();
        self.expect(Tok::LParen, "after `switch`")?;
        let expr = self.expr()?;
        self.expect(Tok::RParen, "after the value of the switch")?;
        let open = self
            .expect(Tok::LBrace, "before the cases of the switch")?
            .span;
        let cases = self.items(open, "the switch", |p| p.switch_case())?;
        Ok(StmtKind::Switch { expr, cases })
    }

    fn switch_case(&mut self) -> Parsed<SwitchCase> {
        let start = self.span();
        if self.is_word("case") && self.nth(1) != Tok::Colon {
            return Err(self.fail(
                Diagnostic::error(Code::Syntax, start, "expected a label, found `case`")
                    .hint("write the label without `case`: `value: { … }`"),
            ));
        }
        let label = if self.eat(Tok::Default) {
            SwitchLabel::Default
        } else {
            SwitchLabel::Expr(self.expr()?)
        };
        let span = self.since(start);
        self.expect(Tok::Colon, "after the label")?;
        let block = match self.kind() {
            Tok::LBrace => Some(self.block(Vec::new(), "the case")?),
            Tok::At => {
                let annotations = self.annotations()?;
                Some(self.block(annotations, "the case")?)
            }
            _ => None,
        };
        Ok(SwitchCase { label, block, span })
    }

    /// Parses `for (init; cond; update) body` or `for (T x in c) body` (P4_16 1.2.5, section 12.7).
    fn for_loop(&mut self, annotations: Vec<Annotation>) -> Parsed<StmtKind> {
        self.bump();
        let open = self.at;
        self.expect(Tok::LParen, "after `for`")?;
        let parsed = self.for_header(annotations);
        // Skip the rest of the parentheses: it is not a statement.
        let close = self.partners[open] as usize;
        if parsed.is_err() && self.at <= close && close < self.tokens.len() {
            self.at = close + 1;
        }
        parsed
    }

    /// Parses the parentheses of a `for` loop, and its body.
    fn for_header(&mut self, annotations: Vec<Annotation>) -> Parsed<StmtKind> {
        self.scoped(|p| {
            let start = p.span();
            let decl_annotations = p.annotations()?;
            if p.at_declaration() && p.kind() != Tok::Const {
                let ty = p.ty()?;
                let name = p.name("the loop variable's name")?;
                p.declare_object(&name);
                if p.eat(Tok::In) {
                    let var = Box::new(Decl {
                        annotations: decl_annotations,
                        kind: DeclKind::Var {
                            ty,
                            name,
                            init: None,
                        },
                        span: p.since(start),
                    });
                    return p.for_in(var, annotations);
                }
                p.expect(Tok::Assign, "after the loop variable")?;
                let init = Some(p.expr()?);
                let span = p.since(start);
                let first = Stmt {
                    kind: StmtKind::Decl(Box::new(Decl {
                        annotations: decl_annotations,
                        kind: DeclKind::Var { ty, name, init },
                        span,
                    })),
                    span,
                };
                return p.for_classic(Some(first), annotations);
            }
            if p.kind() == Tok::Ident && p.nth(1) == Tok::In {
                let name = p.slice(start);
                let hint = format!("declare it in the loop: `for (bit<8> {name} in …)`");
                let message = format!("the loop variable `{name}` needs a type");
                return Err(p.fail(Diagnostic::error(Code::Syntax, start, message).hint(hint)));
            }
            p.for_classic(None, annotations)
        })
    }

    fn for_in(&mut self, var: Box<Decl>, annotations: Vec<Annotation>) -> Parsed<StmtKind> {
        let first = self.expr()?;
        let collection = if self.eat(Tok::Range) {
            ForCollection::Range(first, self.expr()?)
        } else {
            ForCollection::Expr(first)
        };
        self.expect(Tok::RParen, "after the collection")?;
        let body = Box::new(self.statement()?);
        Ok(StmtKind::ForIn {
            var,
            collection,
            body,
            annotations,
        })
    }

    fn for_classic(
        &mut self,
        first: Option<Stmt>,
        annotations: Vec<Annotation>,
    ) -> Parsed<StmtKind> {
        let mut init: Vec<Stmt> = first.into_iter().collect();
        if init.is_empty() || self.eat(Tok::Comma) {
            init.extend(self.for_statements(Tok::Semi)?);
        }
        self.expect(Tok::Semi, "after the loop's initialisation")?;
        if self.kind() == Tok::Semi {
            let missing =
                Diagnostic::error(Code::Syntax, self.span(), "a `for` loop needs a condition");
            return Err(self.fail(missing.hint("write `true` if only `break` ends the loop")));
        }
        let cond = self.expr()?;
        self.expect(Tok::Semi, "after the loop's condition")?;
        let update = self.for_statements(Tok::RParen)?;
        self.expect(Tok::RParen, "after the loop's update")?;
        let body = Box::new(self.statement()?);
        Ok(StmtKind::For {
            init,
            cond,
            update,
            body,
            annotations,
        })
    }

    /// Parses the comma-separated statements of a `for` loop's parentheses, which have no semicolons.
    fn for_statements(&mut self, end: Tok) -> Parsed<Vec<Stmt>> {
        let mut stmts = Vec::new();
        while self.kind() != end {
            let start = self.span();
            let annotations = self.annotations()?;
            let kind = if self.at_declaration() {
                let ty = self.ty()?;
                let name = self.name("a variable's name")?;
                self.declare_object(&name);
                let init = if self.eat(Tok::Assign) {
                    Some(self.expr()?)
                } else {
                    None
                };
                StmtKind::Decl(Box::new(Decl {
                    annotations,
                    kind: DeclKind::Var { ty, name, init },
                    span: self.since(start),
                }))
            } else {
                self.assignment_or_call()?
            };
            let span = self.since(start);
            stmts.push(Stmt { kind, span });
            if !self.eat(Tok::Comma) {
                break;
            }
        }
        Ok(stmts)
    }
}

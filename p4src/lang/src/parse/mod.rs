//! Builds the syntax tree from tokens, by recursive descent. Grammar: P4_16 1.2.5, appendix H.
//!
//! Three constructs of the grammar depend on whether a name is a type: `(T) e`, `f<T>(e)` and `T x;`. For the last, the
//! parser looks at the tokens that follow. For the others, it looks up the name among the declared names (`scope`); for an
//! undeclared name, it also looks at the following tokens, so that it reports a misspelled type as an unknown name.
//!
//! The parser pushes an error to the sink where it finds it, and resumes after the next `;` or `}` of the same list. Nesting is
//! bounded (`Limits::nesting`), so no input overflows the stack, neither in the parser nor in a traversal of the tree.

mod annotations;
mod decls;
mod derived;
mod exprs;
mod lookahead;
mod parsers;
mod scope;
mod stmts;
mod tables;
mod types;

use crate::ast::{Ident, Program};
use crate::diagnostics::{Code, Diagnostic, Sink};
use crate::lexer::{Tok, Token, lex};
use crate::limits::LIMITS;
use crate::source::Span;
use scope::{Meaning, Scopes};

/// Parses a preprocessed text. After errors, the syntax tree holds all declarations that could be parsed.
pub fn parse(text: &str, sink: &mut Sink) -> Program {
    let tokens = lex(text, sink);
    let partners = partners(&tokens);
    let mut parser = Parser {
        text,
        tokens,
        partners,
        at: 0,
        depth: 0,
        deepest: 0,
        statements: 0,
        stopped: false,
        in_angles: false,
        scopes: Scopes::default(),
        sink,
    };
    parser.program()
}

/// A failed parse, whose error is already in the sink.
struct Failed;

type Parsed<T> = Result<T, Failed>;

struct Parser<'a, 's> {
    text: &'a str,
    tokens: Vec<Token>,
    /// For each opening bracket, by its token index, the token index of its closing bracket; `u32::MAX` if there is none.
    partners: Vec<u32>,
    at: usize,
    depth: u32,
    /// The deepest nesting level in the construct being parsed. A following `.m` or `[i]` encloses it in one more level.
    deepest: u32,
    /// Number of current nesting levels that are statements and not expressions.
    statements: u32,
    /// Whether the nesting limit was reached; the parser then reports no further errors.
    stopped: bool,
    /// Whether the parser is inside `<…>`, where `>` is a closing bracket and not a comparison.
    in_angles: bool,
    scopes: Scopes<'a>,
    sink: &'s mut Sink,
}

/// Pairs the brackets `(`, `[`, `{`. A closing bracket also closes the unclosed brackets inside its own pair.
fn partners(tokens: &[Token]) -> Vec<u32> {
    let mut partners = vec![u32::MAX; tokens.len()];
    let mut open: Vec<usize> = Vec::new();
    for (index, token) in tokens.iter().enumerate() {
        let opener = match token.kind {
            Tok::LParen | Tok::LBracket | Tok::LBrace => {
                open.push(index);
                continue;
            }
            Tok::RParen => Tok::LParen,
            Tok::RBracket => Tok::LBracket,
            Tok::RBrace => Tok::LBrace,
            _ => continue,
        };
        // An unmatched `)` must not reach back over a `{`.
        let reachable = open
            .iter()
            .rev()
            .take_while(|&&o| opener == Tok::LBrace || tokens[o].kind != Tok::LBrace)
            .position(|&o| tokens[o].kind == opener);
        if let Some(back) = reachable {
            open.truncate(open.len() - back);
            if let Some(o) = open.pop() {
                partners[o] = index as u32;
            }
        }
    }
    partners
}

impl<'a> Parser<'a, '_> {
    fn token(&self) -> Token {
        self.tokens[self.at]
    }

    fn kind(&self) -> Tok {
        self.tokens[self.at].kind
    }

    /// The kind of the `n`th token after the current token; 0 is the current token.
    fn nth(&self, n: usize) -> Tok {
        self.tokens.get(self.at + n).map_or(Tok::Eof, |t| t.kind)
    }

    fn span(&self) -> Span {
        self.tokens[self.at].span
    }

    /// Span of the token before the current one.
    fn last_span(&self) -> Span {
        self.at
            .checked_sub(1)
            .map_or(Span::default(), |i| self.tokens[i].span)
    }

    /// The span from `start` to the last consumed token.
    fn since(&self, start: Span) -> Span {
        start.to(self.last_span())
    }

    fn slice(&self, span: Span) -> &'a str {
        &self.text[span.start as usize..span.end as usize]
    }

    /// Whether the current token is the identifier `text`.
    fn is_word(&self, text: &str) -> bool {
        self.kind() == Tok::Ident && self.slice(self.span()) == text
    }

    fn bump(&mut self) -> Token {
        let token = self.token();
        if token.kind != Tok::Eof {
            self.at += 1;
        }
        token
    }

    fn eat(&mut self, kind: Tok) -> bool {
        let found = self.kind() == kind;
        if found {
            self.bump();
        }
        found
    }

    /// Consumes a token of this kind; `context` completes the message "expected `;` …".
    fn expect(&mut self, kind: Tok, context: &str) -> Parsed<Token> {
        if self.kind() == kind {
            return Ok(self.bump());
        }
        if kind == Tok::Semi {
            return Err(self.missing_semicolon(context));
        }
        Err(self.unexpected(&format!("{} {context}", kind.describe())))
    }

    fn missing_semicolon(&mut self, context: &str) -> Failed {
        let found = self.found();
        self.fail(Diagnostic::error(
            Code::Syntax,
            self.last_span().after(),
            format!("expected `;` {context}, found {found}"),
        ))
    }

    /// Describes the current token for an error message.
    fn found(&self) -> String {
        let token = self.token();
        match token.kind {
            Tok::Unknown => format!("{:?}", self.slice(token.span)),
            Tok::Ident | Tok::Int | Tok::Str => {
                let text: String = self.slice(token.span).chars().take(40).collect();
                format!("`{text}`")
            }
            kind if kind.is_keyword() => format!("the reserved word {}", kind.describe()),
            kind => kind.describe().to_owned(),
        }
    }

    fn unexpected(&mut self, expected: &str) -> Failed {
        let message = format!("expected {}, found {}", expected.trim_end(), self.found());
        let mut diagnostic = Diagnostic::error(Code::Syntax, self.span(), message);
        if self.kind() == Tok::Unknown {
            diagnostic.code = Code::Token;
            diagnostic.hint = match self.slice(self.span()) {
                "#" => Some("a preprocessor directive must be the first on its line".to_owned()),
                "'" | "`" => Some("strings are written between double quotes".to_owned()),
                other => Some(format!("P4 does not use the character {other:?}")),
            };
        }
        self.fail(diagnostic)
    }

    fn fail(&mut self, mut diagnostic: Diagnostic) -> Failed {
        let last = self.last_span();
        if self.slice(last).starts_with('"') && self.slice(last).contains('\n') {
            let opening = Span::new(last.start, last.start + 1);
            diagnostic = diagnostic.label(opening, "this string spans several lines");
        }
        if !self.stopped {
            self.sink.push(diagnostic);
        }
        Failed
    }

    /// Runs `parse` one nesting level deeper.
    fn nested<T>(&mut self, parse: impl FnOnce(&mut Self) -> Parsed<T>) -> Parsed<T> {
        self.deepen()?;
        let result = parse(self);
        self.depth -= 1;
        result
    }

    /// Enters one nesting level; the caller restores `depth`.
    fn deepen(&mut self) -> Parsed<()> {
        if self.depth >= LIMITS.nesting {
            return Err(self.too_deep());
        }
        self.depth += 1;
        self.deepest = self.deepest.max(self.depth);
        Ok(())
    }

    /// Adds a nesting level around the construct parsed so far (see `deepest`), which becomes part of a new construct.
    fn wrap(&mut self) -> Parsed<()> {
        if self.deepest >= LIMITS.nesting {
            return Err(self.too_deep());
        }
        self.deepest += 1;
        Ok(())
    }

    fn too_deep(&mut self) -> Failed {
        let hint = match self.statements * 2 > self.depth {
            true => "move inner blocks into actions",
            false => "assign parts of the expression to constants or variables",
        };
        let span = self.span();
        // Stop here: parsing the rest would only report consequential errors.
        self.at = self.tokens.len() - 1;
        let failed = self.fail(
            Diagnostic::error(
                Code::Limit,
                span,
                format!(
                    "the code is nested more than {} levels deep",
                    LIMITS.nesting
                ),
            )
            .hint(hint),
        );
        self.stopped = true;
        failed
    }

    /// Parses a name, which may be a word that is reserved only in other contexts; `what` describes the name in the error.
    fn name(&mut self, what: &str) -> Parsed<Ident> {
        if self.kind() == Tok::Ident {
            let span = self.bump().span;
            return Ok(Ident {
                name: self.slice(span).to_owned(),
                span,
            });
        }
        let kind = self.kind();
        let message = format!("expected {what}, found {}", self.found());
        let mut diagnostic = Diagnostic::error(Code::Syntax, self.span(), message);
        if kind == Tok::DontCare {
            diagnostic = diagnostic.hint("`_` means don't-care and cannot be a name");
        } else if kind.is_keyword() {
            diagnostic =
                diagnostic.hint("a reserved word cannot be a name; add a suffix, as in `x_`");
        }
        Err(self.fail(diagnostic))
    }

    fn declare_type(&mut self, name: &Ident) {
        let text = self.slice(name.span);
        self.scopes.declare(text, Meaning::Type);
    }

    fn declare_object(&mut self, name: &Ident) {
        let text = self.slice(name.span);
        self.scopes.declare(text, Meaning::Object);
    }

    /// Runs `parse` in a new scope of names.
    fn scoped<T>(&mut self, parse: impl FnOnce(&mut Self) -> Parsed<T>) -> Parsed<T> {
        self.scopes.push();
        let result = parse(self);
        self.scopes.pop();
        result
    }

    /// Parses the items of a list up to its `}`, and skips items with errors. The caller has consumed the `{` at `open`.
    fn items<T>(
        &mut self,
        open: Span,
        what: &str,
        mut item: impl FnMut(&mut Self) -> Parsed<T>,
    ) -> Parsed<Vec<T>> {
        let mut items = Vec::new();
        loop {
            match self.kind() {
                Tok::RBrace => {
                    self.bump();
                    return Ok(items);
                }
                Tok::Eof => return Err(self.unclosed(open, what)),
                _ => {}
            }
            let (before, depth) = (self.at, self.depth);
            match item(self) {
                Ok(parsed) => items.push(parsed),
                Err(Failed) => {
                    self.depth = depth;
                    self.resync(before);
                }
            }
        }
    }

    fn unclosed(&mut self, open: Span, what: &str) -> Failed {
        self.fail(
            Diagnostic::error(
                Code::Syntax,
                self.span(),
                format!("expected `}}` to close {what}, found {}", self.found()),
            )
            .label(open, "opened here"),
        )
    }

    /// Skips tokens after an error in an item that began at `before`: to after the next `;` or `{ … }`, or to the list's `}`.
    fn resync(&mut self, before: usize) {
        if self.at > before && self.tokens[self.at - 1].kind == Tok::RBrace {
            return;
        }
        while self.kind() != Tok::Eof {
            match self.kind() {
                Tok::Semi => {
                    self.bump();
                    return;
                }
                Tok::RBrace if self.at > before => return,
                Tok::LBrace => {
                    self.skip_brackets();
                    if self.kind() == Tok::Semi {
                        self.bump();
                    }
                    return;
                }
                Tok::LParen | Tok::LBracket => self.skip_brackets(),
                kind if self.at > before && self.starts_line() && starts_declaration(kind) => {
                    return;
                }
                _ => {
                    self.bump();
                }
            }
        }
    }

    /// Whether the current token is the first token on its line.
    fn starts_line(&self) -> bool {
        let between = self.last_span().end as usize..self.span().start as usize;
        self.text.get(between).is_some_and(|gap| gap.contains('\n'))
    }

    /// Skips to after the bracket that closes the current one; if none closes it, skips only the current token.
    fn skip_brackets(&mut self) {
        match self.partners[self.at] {
            u32::MAX => {
                self.bump();
            }
            partner => self.at = partner as usize + 1,
        }
    }
}

/// Whether a keyword can only begin a declaration or statement, so that the parser can resume there after an error.
fn starts_declaration(kind: Tok) -> bool {
    matches!(
        kind,
        Tok::Action
            | Tok::Const
            | Tok::Control
            | Tok::Enum
            | Tok::Extern
            | Tok::For
            | Tok::Header
            | Tok::HeaderUnion
            | Tok::If
            | Tok::Package
            | Tok::Parser
            | Tok::Return
            | Tok::Struct
            | Tok::Switch
            | Tok::Table
            | Tok::Transition
            | Tok::Typedef
    )
}

//! Parser: turns tokens into a syntax tree, as written, before fields and types are resolved.
//!
//! ```text
//! or      = and { ("||" | "or") and }
//! and     = unary { ("&&" | "and") unary }
//! unary   = ("!" | "not") unary | "(" or ")" | test
//! test    = WORD [ ("==" | "!=" | "<" | "<=" | ">" | ">=") literal | "in" "{" item { "," item } "}"
//!                | "startswith" STRING ]
//! item    = literal [ ".." literal ]
//! ```

use std::ops::Range;

use super::error::{FilterError, FilterErrorKind};
use super::lex::{Spanned, Token};

/// Maximum nesting depth of a filter. It bounds recursion, since filters come from outside.
const MAX_DEPTH: usize = 64;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Syntax {
    pub kind: SyntaxKind,
    pub span: Range<usize>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum SyntaxKind {
    Or(Vec<Syntax>),
    And(Vec<Syntax>),
    Not(Box<Syntax>),
    Test { name: Name, condition: Condition },
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Name {
    pub text: String,
    pub span: Range<usize>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Condition {
    Bare,
    Compare {
        operator: Comparison,
        span: Range<usize>,
        literal: Literal,
    },
    In {
        items: Vec<Item>,
    },
    StartsWith {
        span: Range<usize>,
        literal: Literal,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Comparison {
    Equal,
    NotEqual,
    Less,
    LessEqual,
    Greater,
    GreaterEqual,
}

impl Comparison {
    pub fn text(self) -> &'static str {
        match self {
            Comparison::Equal => "==",
            Comparison::NotEqual => "!=",
            Comparison::Less => "<",
            Comparison::LessEqual => "<=",
            Comparison::Greater => ">",
            Comparison::GreaterEqual => ">=",
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Literal {
    pub kind: LiteralKind,
    pub span: Range<usize>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum LiteralKind {
    Word(String),
    Text(Vec<u8>),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Item {
    pub low: Literal,
    pub high: Option<Literal>,
}

pub(super) fn parse(tokens: &[Spanned]) -> Result<Syntax, FilterError> {
    let mut parser = Parser {
        tokens,
        at: 0,
        depth: 0,
    };
    let root = parser.or()?;
    match parser.peek() {
        Token::End => Ok(root),
        Token::Close => Err(parser
            .expected("an operator")
            .hint(Some("it has no opening parenthesis"))),
        _ => Err(parser.expected("`&&`, `||` or the end of the filter")),
    }
}

/// The token's operator if it is an operator of Wireshark's display filters that this language lacks.
fn foreign_operator(token: &Token) -> Option<&str> {
    let Token::Word(word) = token else {
        return None;
    };
    ["contains", "matches", "endswith"]
        .into_iter()
        .find(|operator| operator == word)
}

/// Parser state; `tokens` ends with `End`, which is never consumed.
struct Parser<'a> {
    tokens: &'a [Spanned],
    at: usize,
    depth: usize,
}

impl Parser<'_> {
    fn peek(&self) -> &Token {
        &self.tokens[self.at].0
    }

    fn span(&self) -> Range<usize> {
        self.tokens[self.at].1.clone()
    }

    fn advance(&mut self) {
        if self.at + 1 < self.tokens.len() {
            self.at += 1;
        }
    }

    fn eat(&mut self, token: &Token) -> bool {
        let found = self.peek() == token;
        if found {
            self.advance();
        }
        found
    }

    fn expected(&self, expected: &'static str) -> FilterError {
        let found = self.peek().describe();
        FilterError::new(FilterErrorKind::Expected { expected, found }, self.span())
    }

    fn or(&mut self) -> Result<Syntax, FilterError> {
        self.joined(&Token::Or, Self::and, SyntaxKind::Or)
    }

    fn and(&mut self) -> Result<Syntax, FilterError> {
        self.joined(&Token::And, Self::unary, SyntaxKind::And)
    }

    fn joined(
        &mut self,
        operator: &Token,
        operand: fn(&mut Self) -> Result<Syntax, FilterError>,
        join: fn(Vec<Syntax>) -> SyntaxKind,
    ) -> Result<Syntax, FilterError> {
        let first = operand(self)?;
        if self.peek() != operator {
            return Ok(first);
        }
        let mut span = first.span.clone();
        let mut parts = vec![first];
        while self.eat(operator) {
            let next = operand(self)?;
            span.end = next.span.end;
            parts.push(next);
        }
        Ok(Syntax {
            kind: join(parts),
            span,
        })
    }

    fn unary(&mut self) -> Result<Syntax, FilterError> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(FilterError::new(
                FilterErrorKind::TooDeep { limit: MAX_DEPTH },
                self.span(),
            ));
        }
        let start = self.span().start;
        let syntax = if self.eat(&Token::Not) {
            let inner = self.unary()?;
            let span = start..inner.span.end;
            Syntax {
                kind: SyntaxKind::Not(Box::new(inner)),
                span,
            }
        } else if self.eat(&Token::Open) {
            let inner = self.or()?;
            if !self.eat(&Token::Close) {
                let hint = format!("the parenthesis at byte {start} is not closed");
                return Err(self.expected("`)`").hint(Some(&hint)));
            }
            inner
        } else {
            self.test()?
        };
        self.depth -= 1;
        Ok(syntax)
    }

    fn test(&mut self) -> Result<Syntax, FilterError> {
        let Token::Word(word) = self.peek() else {
            return Err(self.expected("a field or a protocol"));
        };
        let name = Name {
            text: word.clone(),
            span: self.span(),
        };
        self.advance();
        let operator_span = self.span();
        let comparison = match self.peek() {
            Token::Equal => Some(Comparison::Equal),
            Token::NotEqual => Some(Comparison::NotEqual),
            Token::Less => Some(Comparison::Less),
            Token::LessEqual => Some(Comparison::LessEqual),
            Token::Greater => Some(Comparison::Greater),
            Token::GreaterEqual => Some(Comparison::GreaterEqual),
            _ => None,
        };
        let condition = if let Some(operator) = comparison {
            self.advance();
            Condition::Compare {
                operator,
                span: operator_span,
                literal: self.literal()?,
            }
        } else if self.eat(&Token::In) {
            self.set()?
        } else if self.eat(&Token::StartsWith) {
            Condition::StartsWith {
                span: operator_span,
                literal: self.literal()?,
            }
        } else if let Some(operator) = foreign_operator(self.peek()) {
            let kind = FilterErrorKind::UnknownOperator {
                operator: operator.to_owned(),
            };
            return Err(FilterError::new(kind, operator_span).hint(Some(
                "a switch compares whole values and beginnings: `==`, `in {…}`, `startswith \"…\"`",
            )));
        } else {
            Condition::Bare
        };
        let end = self.tokens[self.at - 1].1.end;
        let span = name.span.start..end;
        Ok(Syntax {
            kind: SyntaxKind::Test { name, condition },
            span,
        })
    }

    fn set(&mut self) -> Result<Condition, FilterError> {
        let start = self.span().start;
        if !self.eat(&Token::OpenSet) {
            return Err(self
                .expected("`{`")
                .hint(Some("write a set as {a, b, lo..hi}")));
        }
        if self.peek() == &Token::CloseSet {
            return Err(FilterError::new(
                FilterErrorKind::EmptySet,
                start..self.span().end,
            ));
        }
        let mut items = Vec::new();
        loop {
            let low = self.literal()?;
            let high = if self.eat(&Token::To) {
                Some(self.literal()?)
            } else {
                None
            };
            items.push(Item { low, high });
            if self.eat(&Token::CloseSet) {
                return Ok(Condition::In { items });
            }
            if !self.eat(&Token::Comma) {
                let hint = match self.peek() {
                    Token::End => "close the set with `}`",
                    _ => "separate values by commas, as in {80, 443, 8000..8080}",
                };
                return Err(self.expected("`,` or `}`").hint(Some(hint)));
            }
        }
    }

    fn literal(&mut self) -> Result<Literal, FilterError> {
        let kind = match self.peek() {
            Token::Word(word) => LiteralKind::Word(word.clone()),
            Token::Text(bytes) => LiteralKind::Text(bytes.clone()),
            _ => return Err(self.expected("a value")),
        };
        let span = self.span();
        self.advance();
        Ok(Literal { kind, span })
    }
}

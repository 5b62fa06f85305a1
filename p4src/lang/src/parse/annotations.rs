//! Parses annotations: `@name`, `@name(tokens)`, `@name[structured]` and `@pragma`.

use super::{Parsed, Parser};
use crate::ast::{Annotation, AnnotationBody, Ident, Literal};
use crate::diagnostics::{Code, Diagnostic};
use crate::lexer::{Tok, parse_int};
use crate::source::Span;
use crate::spelling::unescape;
use num_bigint::BigInt;

impl Parser<'_, '_> {
    /// Parses any number of annotations.
    pub(super) fn annotations(&mut self) -> Parsed<Vec<Annotation>> {
        let mut annotations = Vec::new();
        while self.kind() == Tok::At {
            annotations.push(self.annotation()?);
        }
        Ok(annotations)
    }

    fn annotation(&mut self) -> Parsed<Annotation> {
        let start = self.expect(Tok::At, "before an annotation")?.span;
        // A reserved word may be an annotation's name.
        let token = self.token();
        if token.kind != Tok::Ident && !token.kind.is_keyword() {
            return Err(self.unexpected("an annotation's name after `@`"));
        }
        self.bump();
        if token.kind == Tok::Ident && self.slice(token.span) == "pragma" {
            return self.pragma(start);
        }
        let name = Ident {
            name: self.slice(token.span).to_owned(),
            span: token.span,
        };
        let body = match self.kind() {
            Tok::LParen => self.unstructured()?,
            Tok::LBracket => self.structured()?,
            _ => AnnotationBody::None,
        };
        Ok(Annotation {
            name,
            body,
            span: self.since(start),
        })
    }

    /// Parses `@pragma name tokens` up to the end of the line, which is the older form of `@name(tokens)`.
    fn pragma(&mut self, start: Span) -> Parsed<Annotation> {
        let from = self.last_span().end as usize;
        let line_end = self.text[from..]
            .find('\n')
            .map_or(self.text.len(), |n| from + n) as u32;
        let on_line = |p: &Self| p.kind() != Tok::Eof && p.span().start < line_end;
        let token = self.token();
        if !on_line(self) || (token.kind != Tok::Ident && !token.kind.is_keyword()) {
            return Err(self.unexpected("an annotation's name after `@pragma`"));
        }
        self.bump();
        let first = self.at;
        while on_line(self) {
            self.bump();
        }
        let tokens = first..self.at;
        Ok(Annotation {
            name: Ident {
                name: self.slice(token.span).to_owned(),
                span: token.span,
            },
            body: if tokens.is_empty() {
                AnnotationBody::None
            } else {
                AnnotationBody::Unstructured {
                    text: self.folded(tokens.clone()),
                    literals: self.literals(tokens).unwrap_or_default(),
                }
            },
            span: self.since(start),
        })
    }

    /// Parses an unstructured annotation body, `( tokens )`: any tokens with balanced parentheses.
    fn unstructured(&mut self) -> Parsed<AnnotationBody> {
        let open = self.bump();
        let first = self.at;
        let mut parentheses = 0u32;
        loop {
            match self.kind() {
                Tok::LParen => parentheses += 1,
                Tok::RParen if parentheses == 0 => break,
                Tok::RParen => parentheses -= 1,
                Tok::Eof => {
                    return Err(self.fail(Diagnostic::error(
                        Code::Syntax,
                        open.span,
                        "this annotation's parenthesis is not closed",
                    )));
                }
                _ => {}
            }
            self.bump();
        }
        let tokens = first..self.at;
        self.bump();
        Ok(AnnotationBody::Unstructured {
            text: self.folded(tokens.clone()),
            literals: self.literals(tokens).unwrap_or_default(),
        })
    }

    /// The text of the tokens with one space between two tokens, as in p4c's P4Info.
    fn folded(&self, tokens: std::ops::Range<usize>) -> String {
        let texts = self.tokens[tokens].iter().map(|t| self.slice(t.span));
        texts.collect::<Vec<_>>().join(" ")
    }

    /// The literals among the tokens; `None` if there are tokens other than literals, commas, and `++` between strings.
    fn literals(&self, tokens: std::ops::Range<usize>) -> Option<Vec<Literal>> {
        let mut literals = Vec::new();
        let mut negative = false;
        let mut joined = false;
        for token in &self.tokens[tokens] {
            let text = self.slice(token.span);
            match token.kind {
                Tok::Comma => continue,
                Tok::Minus if !negative => {
                    negative = true;
                    continue;
                }
                Tok::PlusPlus if !joined && matches!(literals.last(), Some(Literal::Str(_))) => {
                    joined = true;
                    continue;
                }
                Tok::Int if !joined => {
                    let value = parse_int(text).ok()?.value;
                    let sign = if negative { -1 } else { 1 };
                    literals.push(Literal::Int(value * BigInt::from(sign)));
                }
                Tok::Str if !negative => match literals.last_mut() {
                    Some(Literal::Str(before)) if joined => before.push_str(&unescape(text)),
                    _ => literals.push(Literal::Str(unescape(text))),
                },
                Tok::True | Tok::False if !negative && !joined => {
                    literals.push(Literal::Bool(token.kind == Tok::True));
                }
                _ => return None,
            }
            (negative, joined) = (false, false);
        }
        (!negative && !joined).then_some(literals)
    }

    /// Parses a structured annotation body, `[ e, … ]` or `[ k = e, … ]`.
    fn structured(&mut self) -> Parsed<AnnotationBody> {
        self.bump();
        let mut list = Vec::new();
        let mut map = Vec::new();
        while self.kind() != Tok::RBracket {
            let keyed = self.nth(1) == Tok::Assign;
            if keyed {
                let key = self.name("a key")?;
                self.bump();
                map.push((key, self.expr()?));
            } else {
                list.push(self.expr()?);
            }
            if !list.is_empty() && !map.is_empty() {
                let span = self.last_span();
                return Err(self.fail(Diagnostic::error(
                    Code::Syntax,
                    span,
                    "an annotation is either a list or a list of `key = value`, not both",
                )));
            }
            if !self.eat(Tok::Comma) {
                break;
            }
        }
        self.expect(Tok::RBracket, "after the annotation")?;
        Ok(if map.is_empty() {
            AnnotationBody::List(list)
        } else {
            AnnotationBody::Map(map)
        })
    }
}

//! Looks ahead without building a tree, to find whether the tokens form a type or a declaration. Every lookahead is bounded, so
//! hostile input takes linear time.

use super::Parser;
use super::scope::Meaning;
use crate::lexer::Tok;

/// Maximum nesting of type arguments in a lookahead.
const MAX_LOOK_DEPTH: u32 = 16;

/// Maximum number of tokens in the width of a type in a lookahead.
const MAX_LOOK_WIDTH: usize = 64;

impl Parser<'_, '_> {
    /// Index of the token after the type at `at`; `None` if there is no type, as for a name that is declared as something else.
    pub(super) fn skip_type(&self, at: usize) -> Option<usize> {
        self.skip_type_at(at, 0)
    }

    /// Index of the token after the type arguments `< types >` at `at`; `None` if there are none.
    pub(super) fn skip_type_args(&self, at: usize) -> Option<usize> {
        self.skip_type_args_at(at, 0)
    }

    fn tok(&self, at: usize) -> Tok {
        self.tokens.get(at).map_or(Tok::Eof, |t| t.kind)
    }

    fn skip_type_at(&self, at: usize, depth: u32) -> Option<usize> {
        if depth > MAX_LOOK_DEPTH {
            return None;
        }
        let mut at = match self.tok(at) {
            Tok::Void | Tok::Bool | Tok::Error | Tok::MatchKind | Tok::String | Tok::DontCare => {
                at + 1
            }
            Tok::Bit | Tok::IntType | Tok::Varbit if self.tok(at + 1) == Tok::Lt => {
                self.skip_width(at + 2)? + 1
            }
            Tok::Bit | Tok::IntType => at + 1,
            Tok::Tuple => self.skip_type_args_at(at + 1, depth)?,
            Tok::Dot | Tok::Ident => {
                let name = at + usize::from(self.tok(at) == Tok::Dot);
                if self.tok(name) != Tok::Ident {
                    return None;
                }
                let text = self.slice(self.tokens[name].span);
                if name == at && self.scopes.meaning(text) == Some(Meaning::Object) {
                    return None;
                }
                if self.tok(name + 1) == Tok::Lt {
                    self.skip_type_args_at(name + 1, depth)?
                } else {
                    name + 1
                }
            }
            _ => return None,
        };
        while self.tok(at) == Tok::LBracket {
            at = self.partner(at)? + 1;
        }
        Some(at)
    }

    /// Index of the `>` that ends the type's width at `at`; `None` if there is none.
    fn skip_width(&self, mut at: usize) -> Option<usize> {
        for _ in 0..MAX_LOOK_WIDTH {
            at = match self.tok(at) {
                Tok::Gt => return Some(at),
                Tok::LParen | Tok::LBracket => self.partner(at)? + 1,
                Tok::Semi
                | Tok::LBrace
                | Tok::RBrace
                | Tok::RParen
                | Tok::RBracket
                | Tok::Assign
                | Tok::Eof => return None,
                _ => at + 1,
            };
        }
        None
    }

    fn skip_type_args_at(&self, at: usize, depth: u32) -> Option<usize> {
        if self.tok(at) != Tok::Lt {
            return None;
        }
        let mut at = at + 1;
        if self.tok(at) == Tok::Gt {
            return Some(at + 1);
        }
        loop {
            at = self.skip_type_at(at, depth + 1)?;
            match self.tok(at) {
                Tok::Comma => at += 1,
                Tok::Gt => return Some(at + 1),
                _ => return None,
            }
        }
    }

    fn partner(&self, at: usize) -> Option<usize> {
        match self.partners.get(at) {
            None | Some(&u32::MAX) => None,
            Some(&partner) => Some(partner as usize),
        }
    }

    /// Whether a statement or member that starts with a name or type keyword declares something, as in `T x`, `T[4] x`, `T(e) x`.
    pub(super) fn at_declaration(&self) -> bool {
        let Some(mut at) = self.skip_type_shape() else {
            return false;
        };
        if self.tok(at) == Tok::LParen {
            match self.partner(at) {
                Some(close) => at = close + 1,
                None => return false,
            }
        }
        // `T _` is a declaration too, although `_` is not a valid name.
        matches!(self.tok(at), Tok::Ident | Tok::DontCare)
    }

    /// Index of the token after a type at the current token, or `None`. Any name counts as a type: `x y` declares `y`.
    fn skip_type_shape(&self) -> Option<usize> {
        let at = self.at;
        let name = at + usize::from(self.tok(at) == Tok::Dot);
        if self.tok(name) != Tok::Ident {
            return self.skip_type(at);
        }
        let mut at = name + 1;
        if self.tok(at) == Tok::Lt {
            at = self.skip_type_args(at)?;
        }
        while self.tok(at) == Tok::LBracket {
            at = self.partner(at)? + 1;
        }
        Some(at)
    }

    /// Whether the `(` at the current token begins a cast: `(T) e`.
    pub(super) fn at_cast(&self) -> bool {
        let Some(close) = self.partner(self.at) else {
            return false;
        };
        if self.skip_type(self.at + 1) != Some(close) {
            return false;
        }
        let next = self.tok(close + 1);
        let operand_follows = matches!(
            next,
            Tok::Ident
                | Tok::Int
                | Tok::Str
                | Tok::True
                | Tok::False
                | Tok::This
                | Tok::LBrace
                | Tok::Invalid
                | Tok::Bang
                | Tok::Tilde
                | Tok::Error
                | Tok::Ellipsis
        );
        if self.is_plain_name(self.at + 1, close) {
            let text = self.slice(self.tokens[close - 1].span);
            return match self.scopes.meaning(text) {
                Some(Meaning::Type) => {
                    operand_follows
                        || matches!(next, Tok::LParen | Tok::Minus | Tok::Plus | Tok::Dot)
                }
                // A misspelled type; `(x) - y` and `(x) (y)` stay expressions.
                _ => operand_follows,
            };
        }
        operand_follows || matches!(next, Tok::LParen | Tok::Minus | Tok::Plus | Tok::Dot)
    }

    /// Whether the tokens from `at` up to `end` (exclusive) are a single name, `x` or `.x`.
    fn is_plain_name(&self, at: usize, end: usize) -> bool {
        match end - at {
            1 => self.tok(at) == Tok::Ident,
            2 => self.tok(at) == Tok::Dot,
            _ => false,
        }
    }

    /// Whether the `<` at the current token begins the type arguments of a call, or of a type before a member access.
    pub(super) fn at_type_args(&self, callee_is_type: bool) -> bool {
        match self.skip_type_args(self.at).map(|end| self.tok(end)) {
            Some(Tok::LParen) => true,
            Some(Tok::Dot) => callee_is_type,
            _ => false,
        }
    }
}

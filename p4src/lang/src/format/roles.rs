//! Determines the role of each token whose kind alone is ambiguous: `<`, `>` and `:` have several uses.

use crate::lexer::{Tok, Token};

/// The syntactic role of a token, which determines the space around it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    /// No special role: the token's kind determines its use.
    Plain,
    /// The `<` before the width of `bit<W>`.
    OpensWidth,
    /// The `>` after the width of `bit<W>`.
    ClosesWidth,
    /// The first `>` of `>>` between two operands.
    ShiftStart,
    /// The second `>` of `>>` between two operands.
    ShiftEnd,
    /// The `+` or `-` in `e[i +: w]`, directly before the colon.
    PartStart,
    /// The colon of `e[i +: w]`.
    PartEnd,
    /// The `:` after a table key, a label or a keyset.
    Label,
    /// The `:` of the conditional `c ? a : b`.
    Otherwise,
    /// A token in an annotation's parentheses, or the closing parenthesis: the formatter keeps the text before it as written.
    Verbatim,
}

/// Computes the role of each token.
pub(super) fn roles(tokens: &[Token]) -> Vec<Role> {
    let mut roles = vec![Role::Plain; tokens.len()];
    widths(tokens, &mut roles);
    shifts(tokens, &mut roles);
    colons(tokens, &mut roles);
    annotations(tokens, &mut roles);
    roles
}

/// Marks the angle brackets of `bit<W>`, `int<W>` and similar types. A `>` inside a width has to be in parentheses.
fn widths(tokens: &[Token], roles: &mut [Role]) {
    // The `<` of the open width, and the number of parentheses open in it.
    let mut open: Option<(usize, u32)> = None;
    for (n, token) in tokens.iter().enumerate() {
        let word = n.checked_sub(1).map(|before| tokens[before].kind);
        match (token.kind, &mut open) {
            (Tok::Lt, _) if matches!(word, Some(Tok::Bit | Tok::IntType | Tok::Varbit)) => {
                open = Some((n, 0));
            }
            (Tok::Gt, Some((start, 0))) => {
                roles[*start] = Role::OpensWidth;
                roles[n] = Role::ClosesWidth;
                open = None;
            }
            (Tok::LParen, Some((_, depth))) => *depth += 1,
            (Tok::RParen, Some((_, depth))) if *depth > 0 => *depth -= 1,
            (Tok::Semi | Tok::LBrace | Tok::RBrace | Tok::RParen, _) => open = None,
            _ => {}
        }
    }
}

/// Marks shift operators. Two adjacent `>` close two type argument lists if two are open; adjacent `>` and `>=` form `>>=`.
fn shifts(tokens: &[Token], roles: &mut [Role]) {
    for n in 1..tokens.len().saturating_sub(2) {
        let (first, second) = (tokens[n], tokens[n + 1]);
        if first.kind != Tok::Gt || first.span.end != second.span.start || roles[n] != Role::Plain {
            continue;
        }
        // Three in a row form no operator.
        let touch = |a: Token, b: Token| {
            a.kind == Tok::Gt && matches!(b.kind, Tok::Gt | Tok::Ge) && a.span.end == b.span.start
        };
        if touch(tokens[n - 1], first) || touch(second, tokens[n + 2]) {
            continue;
        }
        if second.kind == Tok::Ge {
            roles[n] = Role::ShiftStart;
        } else if second.kind == Tok::Gt
            && roles[n + 1] == Role::Plain
            && !closes_two(&tokens[..n], roles)
        {
            roles[n] = Role::ShiftStart;
            roles[n + 1] = Role::ShiftEnd;
        }
    }
}

/// Whether the tokens `before` end in two open type argument lists, so that the two `>` after them close both.
fn closes_two(before: &[Token], roles: &[Role]) -> bool {
    let mut open = 2;
    // Number of open parentheses and square brackets to skip; the tokens in them do not matter.
    let mut inside = 0u32;
    for (token, role) in before.iter().zip(roles).rev().take(LONGEST) {
        match token.kind {
            Tok::RParen | Tok::RBracket => inside += 1,
            Tok::LParen | Tok::LBracket if inside > 0 => inside -= 1,
            _ if inside > 0 => {}
            _ if matches!(role, Role::ShiftStart | Role::ShiftEnd) => return false,
            Tok::Gt => open += 1,
            Tok::Lt if open == 1 => return true,
            Tok::Lt => open -= 1,
            Tok::Ident | Tok::Int | Tok::Comma | Tok::Dot | Tok::DontCare => {}
            Tok::Bit | Tok::IntType | Tok::Varbit | Tok::Bool | Tok::Tuple | Tok::Error => {}
            Tok::Void | Tok::MatchKind | Tok::String => {}
            _ => return false,
        }
    }
    false
}

/// Maximum number of tokens in a type argument list; a longer list is taken for a shift, which bounds the backward search.
const LONGEST: usize = 1000;

fn colons(tokens: &[Token], roles: &mut [Role]) {
    // For each open bracket: whether it is square, and the number of `?` in it that still need their `:`.
    let mut open = vec![(false, 0u32)];
    for (n, token) in tokens.iter().enumerate() {
        let depth = open.len();
        let Some((square, waiting)) = open.last_mut() else {
            return;
        };
        match token.kind {
            Tok::LBrace | Tok::LParen | Tok::LBracket => {
                open.push((token.kind == Tok::LBracket, 0));
            }
            Tok::RBrace | Tok::RParen | Tok::RBracket if depth > 1 => {
                open.pop();
            }
            Tok::Semi => *waiting = 0,
            Tok::Question => *waiting += 1,
            Tok::Colon if *waiting > 0 => {
                *waiting -= 1;
                roles[n] = Role::Otherwise;
            }
            Tok::Colon if !*square => roles[n] = Role::Label,
            Tok::Colon => {
                if let Some(sign) = n.checked_sub(1)
                    && matches!(tokens[sign].kind, Tok::Plus | Tok::Minus)
                {
                    roles[sign] = Role::PartStart;
                    roles[n] = Role::PartEnd;
                }
            }
            _ => {}
        }
    }
}

/// Marks the body of `@name(…)` as verbatim. A structured annotation, `@name[…]`, holds expressions and is formatted.
fn annotations(tokens: &[Token], roles: &mut [Role]) {
    // Number of parentheses open in an annotation.
    let mut depth = 0;
    for (n, token) in tokens.iter().enumerate() {
        let begins = n >= 2 && tokens[n - 2].kind == Tok::At;
        if depth > 0 {
            roles[n] = Role::Verbatim;
        }
        match token.kind {
            Tok::LParen if depth > 0 || begins => depth += 1,
            Tok::RParen if depth > 0 => depth -= 1,
            _ => {}
        }
    }
}

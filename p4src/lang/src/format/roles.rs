//! What a token is for, where its kind alone does not say: `<`, `>` and `:` have several uses.

use crate::lexer::{Tok, Token};

/// The use of a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    /// Its kind says all.
    Plain,
    /// `<` before a width.
    OpensWidth,
    /// `>` behind a width.
    ClosesWidth,
    /// The first `>` of `>>` between two operands.
    ShiftStart,
    /// The second.
    ShiftEnd,
    /// `+` or `-` of `e[i +: w]`, which its colon touches.
    PartStart,
    /// That colon.
    PartEnd,
    /// `:` behind a key, a label or a keyset.
    Label,
    /// `:` of `c ? a : b`.
    Otherwise,
    /// In an annotation's parentheses, the closing one with them: the text there is what the annotation says.
    Verbatim,
}

/// One role a token.
pub(super) fn roles(tokens: &[Token]) -> Vec<Role> {
    let mut roles = vec![Role::Plain; tokens.len()];
    widths(tokens, &mut roles);
    shifts(tokens, &mut roles);
    colons(tokens, &mut roles);
    annotations(tokens, &mut roles);
    roles
}

/// `bit<W>` and its kin. A `>` in a width stands in parentheses.
fn widths(tokens: &[Token], roles: &mut [Role]) {
    // The `<` of the width that is open, and the parentheses opened in it.
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

/// Two `>` that touch close two lists of types if there are two to close; `>` and `>=` that touch are `>>=`.
fn shifts(tokens: &[Token], roles: &mut [Role]) {
    for n in 1..tokens.len().saturating_sub(2) {
        let (first, second) = (tokens[n], tokens[n + 1]);
        if first.kind != Tok::Gt || first.span.end != second.span.start || roles[n] != Role::Plain {
            continue;
        }
        // Three in a row are no operator.
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

/// Whether two `<` are open before the first of two `>`, with nothing behind them that cannot stand in a list of types.
fn closes_two(before: &[Token], roles: &[Role]) -> bool {
    let mut open = 2;
    // How many parentheses and square brackets are to be passed: what is in them does not matter.
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

/// Tokens that a list of types has at most; whatever is longer is a shift, so that looking for its start is bounded.
const LONGEST: usize = 1000;

fn colons(tokens: &[Token], roles: &mut [Role]) {
    // For each open bracket: whether it is square, and the `?` in it that wait for their `:`.
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

/// `@name(…)`. A structured one, `@name[…]`, holds expressions.
fn annotations(tokens: &[Token], roles: &mut [Role]) {
    // Parentheses that are open in one.
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

//! Formats a P4 source file: indentation, spaces, empty lines. Line breaks, comments and directives stay where they are.
//!
//! The formatter works on the tokens of one file as written, before preprocessing, so it also formats parts of programs. It
//! indents a line that begins a statement by four columns for each open brace; a continuation line keeps its distance from the
//! start of its statement. Nothing else moves, so formatting twice changes nothing.

mod roles;

use crate::diagnostics::{Diagnostics, Sink};
use crate::lexer::{Tok, Token, lex};
use crate::preprocess::{is_directive, logical_line};
use crate::source::SourceMap;
use crate::spelling::{continuation, is_continued};
use roles::{Role, roles};
use std::ops::Range;
use std::sync::Arc;

/// Columns of indentation for each open brace.
const INDENT: usize = 4;

/// Columns between tab stops, as in terminals.
const TAB: usize = 8;

/// Formats the P4 source `text`. Fails if the text cannot be split into tokens; `path` names the file in errors.
pub fn format(path: &str, text: &str) -> Result<String, Diagnostics> {
    let text = unix(text);
    let directives = directives(&text);
    let bare = without(&directives, &text);
    let mut sink = Sink::new();
    let mut tokens = lex(&bare, &mut sink);
    if sink.has_errors() {
        return Err(sink.finish(Arc::new(SourceMap::plain(path, &text))));
    }
    tokens.pop();
    let roles = roles(&tokens);
    let piece = |n: usize| Some((*tokens.get(n)?, *roles.get(n)?));
    let mut writer = Writer {
        text: &text,
        directives: &directives,
        out: String::with_capacity(text.len()),
        ..Writer::default()
    };
    let mut at = 0;
    for (n, token) in tokens.iter().enumerate() {
        let before = n.checked_sub(1).and_then(piece);
        writer.gap(at, token.span.start as usize, before, piece(n));
        writer.token(*token);
        at = token.span.end as usize;
    }
    let last = tokens.len().checked_sub(1).and_then(piece);
    writer.gap(at, text.len(), last, None);
    let mut out = writer.out.trim_end().to_owned();
    if !out.is_empty() {
        out.push('\n');
    }
    Ok(out)
}

/// The text with line ends `\n` in place of `\r\n`.
fn unix(text: &str) -> String {
    let mut lines: Vec<&str> = text.split('\n').collect();
    let whole = lines.len() - 1;
    for line in &mut lines[..whole] {
        *line = line.trim_end_matches('\r');
    }
    lines.join("\n")
}

/// Byte ranges of the preprocessor directives, with the lines that a backslash or an open comment joins to them.
fn directives(text: &str) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let mut at = 0;
    while at < text.len() {
        let line = logical_line(&text[at..]);
        if is_directive(line) {
            found.push(at..at + line.len());
        }
        at += line.len();
    }
    found
}

/// The source text with its preprocessor directives replaced by blanks, so that all byte offsets stay the same.
fn without(directives: &[Range<usize>], text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for directive in directives {
        out.push_str(&text[out.len()..directive.start]);
        out.extend(text[directive.clone()].chars().flat_map(|c| {
            let blank = if c == '\n' { '\n' } else { ' ' };
            std::iter::repeat_n(blank, c.len_utf8())
        }));
    }
    out.push_str(&text[out.len()..]);
    out
}

/// The column, from 0, of a line's first character that is not white space; tabs count up to the next tab stop.
fn column(line: &str) -> usize {
    let blank = line.len() - line.trim_start().len();
    line[..blank].chars().fold(0, |at, c| match c {
        '\t' => (at / TAB + 1) * TAB,
        _ => at + 1,
    })
}

/// Kind of a source comment that continues on the next line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Comment {
    /// A block comment, `/* …`, that is not closed yet.
    Block,
    /// A line comment that a backslash continues: `// … \`
    Line,
}

/// The comment that is open at the end of the source line; `open` is the comment that was open at its start.
fn left_open(line: &str, mut open: Option<Comment>) -> Option<Comment> {
    let goes_on = || is_continued(line).then_some(Comment::Line);
    let mut rest = line;
    loop {
        match open.take() {
            Some(Comment::Line) => return goes_on(),
            Some(Comment::Block) => {
                let Some(end) = rest.find("*/") else {
                    return Some(Comment::Block);
                };
                rest = &rest[end + 2..];
            }
            None => {}
        }
        let next = rest.find(['/', '"'])?;
        let from = &rest[next..];
        if from.starts_with("//") {
            return goes_on();
        }
        if let Some(inside) = from.strip_prefix("/*") {
            open = Some(Comment::Block);
            rest = inside;
        } else if let Some(string) = from.strip_prefix('"') {
            let end = string.find('"')?;
            rest = &string[end + 1..];
        } else {
            rest = &from[1..];
        }
    }
}

/// Position of a source line in a preprocessor directive: its first line, or a continuation of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Directive {
    First,
    Continued,
}

#[derive(Default)]
struct Writer<'t> {
    text: &'t str,
    /// Byte ranges of the preprocessor directives, in order.
    directives: &'t [Range<usize>],
    out: String,
    /// Open brackets at the current position, the innermost last.
    open: Vec<Tok>,
    /// Column (from 0) of the line on which the current statement began: before formatting, and after it.
    anchor: (usize, usize),
}

impl Writer<'_> {
    fn token(&mut self, token: Token) {
        self.out
            .push_str(&self.text[token.span.start as usize..token.span.end as usize]);
        match token.kind {
            Tok::LBrace | Tok::LParen | Tok::LBracket => self.open.push(token.kind),
            Tok::RBrace | Tok::RParen | Tok::RBracket => {
                self.open.pop();
            }
            _ => {}
        }
    }

    /// Writes the formatted gap between two tokens: spaces, line ends, comments, directives.
    fn gap(
        &mut self,
        from: usize,
        to: usize,
        before: Option<(Token, Role)>,
        next: Option<(Token, Role)>,
    ) {
        let text = self.text;
        let gap = &text[from..to];
        // Both may be parts of one token, which a backslash continues on the next line.
        if before.is_some() && next.is_some() && continuation(gap) == Some(gap.len()) {
            return self.out.push_str(gap);
        }
        if !gap.contains('\n') && before.is_some() && next.is_some() {
            if next.is_some_and(|(_, role)| role == Role::Verbatim) {
                self.out.push_str(gap);
            } else if gap.trim().is_empty() {
                let (Some(a), Some(b)) = (before, next) else {
                    return;
                };
                let space = between(a, b, gap, self.before(a.0));
                let merged = space.is_empty() && !gap.is_empty() && self.would_merge(a.0, b.0);
                self.out.push_str(if merged { " " } else { &space });
            } else {
                self.out.push_str(&format!(" {} ", gap.trim()));
            }
            return;
        }
        let (before, next) = (before.map(|b| b.0), next.map(|n| n.0));
        let mut lines = gap.split('\n').peekable();
        let mut comment = None;
        // Offset at which the next line begins.
        let mut at = from;
        if before.is_some() {
            // The rest of the line after the token.
            let trailing = lines.next().unwrap_or_default();
            at += trailing.len() + 1;
            let behind = trailing.trim();
            if !behind.is_empty() {
                let space = trailing.len() - trailing.trim_start().len();
                self.out.push_str(&" ".repeat(space.max(1)));
                self.out.push_str(behind);
            }
            comment = left_open(trailing, None);
        }
        let mut blank = 0;
        let started = |out: &str| !out.is_empty();
        while let Some(line) = lines.next() {
            let last = lines.peek().is_none();
            let content = line.trim_end();
            let directive = self.directive(at);
            at += line.len() + 1;
            if last && next.is_some() {
                // The spaces before the next token, possibly after a comment.
                self.newline(blank, before, next, started(&self.out));
                if comment.is_some() {
                    self.out.push_str(line.trim_end());
                    self.out.push(' ');
                    return;
                }
                self.indent(column(line), before, next);
                let before_it = line.trim();
                if !before_it.is_empty() {
                    self.out.push_str(before_it);
                    self.out.push(' ');
                }
                return;
            }
            let continued = directive == Some(Directive::Continued);
            if content.trim().is_empty() && comment.is_none() && !continued {
                blank += 1;
                continue;
            }
            self.newline(blank, before, None, started(&self.out));
            blank = 0;
            if comment.is_some() || continued {
                self.out.push_str(content);
            } else if directive.is_some() {
                self.out.push_str(content.trim_start());
            } else {
                self.comment_indent(column(content), before);
                self.out.push_str(content.trim_start());
            }
            if directive.is_none() {
                comment = left_open(line, comment);
            }
        }
    }

    /// The directive line that begins at byte `line`: a first or a continued line; `None` if no directive contains the line.
    fn directive(&self, line: usize) -> Option<Directive> {
        let n = self.directives.partition_point(|d| d.end <= line);
        let found = self.directives.get(n).filter(|d| d.start <= line)?;
        Some(match found.start == line {
            true => Directive::First,
            false => Directive::Continued,
        })
    }

    /// Whether an operand precedes the token `a`; if not, a minus at `a` is a sign.
    fn before(&self, a: Token) -> bool {
        let head = self.text[..a.span.start as usize].trim_end();
        head.ends_with(|c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | ')' | ']' | '}'))
            && !["return", "in"].iter().any(|word| head.ends_with(word))
    }

    /// Whether two tokens would lex differently without a space between them.
    fn would_merge(&self, a: Token, b: Token) -> bool {
        let text = |t: Token| &self.text[t.span.start as usize..t.span.end as usize];
        let joined = format!("{}{}", text(a), text(b));
        let kinds: Vec<Tok> = lex(&joined, &mut Sink::new())
            .iter()
            .map(|t| t.kind)
            .collect();
        kinds != [a.kind, b.kind, Tok::Eof]
    }

    /// Ends the output line. Keeps at most one empty line, and none after an opening or before a closing brace.
    fn newline(&mut self, blank: usize, before: Option<Token>, next: Option<Token>, started: bool) {
        if !started {
            return;
        }
        let opened =
            before.is_some_and(|t| t.kind == Tok::LBrace) && self.out.trim_end().ends_with('{');
        let closes = next.is_some_and(|t| t.kind == Tok::RBrace);
        self.out.push('\n');
        if blank > 0 && !opened && !closes {
            self.out.push('\n');
        }
    }

    fn braces(&self) -> usize {
        self.open.iter().filter(|t| **t == Tok::LBrace).count()
    }

    /// Whether a line after the token `before` begins a statement or list item; if not, it continues one.
    fn fresh(&self, before: Option<Token>) -> bool {
        let inside = self.open.last().copied();
        match before.map(|t| t.kind) {
            None | Some(Tok::Semi | Tok::LBrace | Tok::RBrace) => {
                !matches!(inside, Some(Tok::LParen | Tok::LBracket))
            }
            Some(Tok::Comma) => inside == Some(Tok::LBrace),
            _ => false,
        }
    }

    fn indent(&mut self, column: usize, before: Option<Token>, next: Option<Token>) {
        let kind = next.map(|t| t.kind);
        let new = match kind {
            Some(Tok::RBrace) => INDENT * self.braces().saturating_sub(1),
            Some(Tok::LBrace) if !matches!(self.open.last(), Some(Tok::LParen | Tok::LBracket)) => {
                INDENT * self.braces()
            }
            _ if self.fresh(before) => INDENT * self.braces(),
            _ => (self.anchor.1 + column).saturating_sub(self.anchor.0),
        };
        if self.fresh(before) || matches!(kind, Some(Tok::RBrace)) {
            self.anchor = (column, new);
        }
        self.out.push_str(&" ".repeat(new));
    }

    fn comment_indent(&mut self, column: usize, before: Option<Token>) {
        let new = if self.fresh(before) {
            INDENT * self.braces()
        } else {
            (self.anchor.1 + column).saturating_sub(self.anchor.0)
        };
        self.out.push_str(&" ".repeat(new));
    }
}

/// The space to write between tokens `a` and `b` on one line; `operand`: an operand precedes `a`, so a minus at `a` is binary.
fn between(
    (a, a_role): (Token, Role),
    (b, b_role): (Token, Role),
    written: &str,
    operand: bool,
) -> String {
    use Tok::{
        AddSat, AddSatAssign, Amp, AndAnd, AndAssign, Assign, Bang, Caret, Comma, EqEq, For, Ge,
        Gt, Ident, If, Int, LBrace, LBracket, LParen, Le, Mask, Minus, MinusAssign, NotEq,
        OrAssign, OrOr, PercentAssign, Pipe, Plus, PlusAssign, PlusPlus, Question, RBrace,
        RBracket, RParen, Semi, Shl, ShlAssign, Slash, SlashAssign, Star, StarAssign, SubSat,
        SubSatAssign, Switch, Tilde, XorAssign,
    };
    let binary = |t: Tok| {
        matches!(
            t,
            Assign
                | EqEq
                | NotEq
                | Le
                | Ge
                | AndAnd
                | OrOr
                | Pipe
                | Caret
                | Amp
                | Mask
                | Shl
                | Star
                | Slash
                | PlusPlus
                | AddSat
                | SubSat
                | Question
                | AddSatAssign
                | SubSatAssign
                | ShlAssign
                | PlusAssign
                | MinusAssign
                | StarAssign
                | SlashAssign
                | PercentAssign
                | AndAssign
                | OrAssign
                | XorAssign
        )
    };
    let one = " ".to_owned();
    let none = String::new();
    let kept = || {
        if written.is_empty() {
            String::new()
        } else {
            " ".to_owned()
        }
    };
    let word = |t: Token| matches!(t.kind, Ident | Int) || t.kind.is_keyword();
    match (a_role, b_role) {
        (Role::OpensWidth, _) | (_, Role::OpensWidth | Role::ClosesWidth | Role::Label) => {
            return none;
        }
        (Role::ShiftStart | Role::PartStart, _) => return none,
        (Role::ShiftEnd | Role::PartEnd, _) | (_, Role::ShiftStart | Role::PartStart) => {
            return one;
        }
        (Role::Otherwise, _) | (_, Role::Otherwise) => return one,
        (Role::Label, _) if b.kind != Semi => return one,
        (Role::ClosesWidth, _) if word(b) => return one,
        _ => {}
    }
    match (a.kind, b.kind) {
        (_, Semi | Comma | RParen | RBracket) | (LParen | LBracket | Bang | Tilde, _) => none,
        (Semi | Comma, _) if !written.is_empty() => written.replace('\t', " "),
        (Semi | Comma, _) | (LBrace, _) | (_, LBrace | RBrace) => one,
        (If | For | Switch, LParen) => one,
        (Ident, LParen | LBracket) => none,
        // `>>=` is two tokens that must be adjacent.
        (Gt, Ge) if written.is_empty() => none,
        (x, y) if binary(x) || binary(y) => one,
        (Plus | Minus, _) if operand => one,
        (Plus | Minus, _) => none,
        (Ident | Int | RParen | RBracket, Plus | Minus) => one,
        (RBrace | RParen | RBracket, _) if word(b) => one,
        _ => kept(),
    }
}

//! Splits P4 text into tokens. `>>` is two adjacent `>`, so `list<bit<8>>` needs no special case (P4_16 1.2.5, appendix H).

use crate::diagnostics::{Code, Sink};
use crate::limits::LIMITS;
use crate::source::Span;
use crate::spelling::{continuation, line_comment};
use num_bigint::BigInt;

/// A token and its span.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Token {
    /// Kind of the token.
    pub kind: Tok,
    /// Source span of the token.
    pub span: Span,
}

macro_rules! tokens {
    (keywords { $($kw:ident $kw_text:literal,)* } symbols { $($sym:ident $sym_text:literal,)* }) => {
        /// Kinds of tokens. Words that are reserved only in some contexts (`apply`, `key`, `actions`, `state`, `entries`, `type`,
        /// `priority`, `list`) are identifiers here.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[allow(missing_docs)]
        pub enum Tok {
            /// A name that is not a reserved word.
            Ident,
            /// An integer literal with optional width: `5`, `8w0xFF`.
            Int,
            /// A string literal, with its quotes.
            Str,
            /// A character that P4's tokens do not contain; allowed only inside an annotation.
            Unknown,
            /// The end of the input, which is the last token.
            Eof,
            $($kw,)*
            $($sym,)*
        }

        impl Tok {
            /// The name of this token kind in error messages.
            pub fn describe(self) -> &'static str {
                match self {
                    Tok::Ident => "a name",
                    Tok::Int => "an integer",
                    Tok::Str => "a string",
                    Tok::Unknown => "an unknown character",
                    Tok::Eof => "the end of the file",
                    $(Tok::$kw => concat!("`", $kw_text, "`"),)*
                    $(Tok::$sym => concat!("`", $sym_text, "`"),)*
                }
            }

            /// Whether this token kind is a reserved word.
            pub fn is_keyword(self) -> bool {
                matches!(self, $(Tok::$kw)|*)
            }
        }

        /// Whether a word is reserved, so that it cannot be a name in a P4 program.
        pub fn is_reserved(word: &str) -> bool {
            keyword(word).is_keyword()
        }

        fn keyword(text: &str) -> Tok {
            match text {
                $($kw_text => Tok::$kw,)*
                _ => Tok::Ident,
            }
        }

        /// Symbols such as `<` and `<=`, with their token kinds; of two symbols with a common prefix, the longer comes first.
        const SYMBOLS: &[(&str, Tok)] = &[$(($sym_text, Tok::$sym),)*];
    };
}

tokens! {
    keywords {
        Abstract "abstract",
        Action "action",
        Bit "bit",
        Bool "bool",
        Break "break",
        Const "const",
        Continue "continue",
        Control "control",
        Default "default",
        Else "else",
        Enum "enum",
        Error "error",
        Exit "exit",
        Extern "extern",
        False "false",
        For "for",
        Header "header",
        HeaderUnion "header_union",
        If "if",
        In "in",
        InOut "inout",
        IntType "int",
        MatchKind "match_kind",
        Out "out",
        Package "package",
        Parser "parser",
        Return "return",
        Select "select",
        String "string",
        Struct "struct",
        Switch "switch",
        Table "table",
        This "this",
        Transition "transition",
        True "true",
        Tuple "tuple",
        Typedef "typedef",
        ValueSet "value_set",
        Varbit "varbit",
        Void "void",
        DontCare "_",
    }
    symbols {
        Invalid "{#}",
        Ellipsis "...",
        Mask "&&&",
        AddSatAssign "|+|=",
        SubSatAssign "|-|=",
        ShlAssign "<<=",
        AddSat "|+|",
        SubSat "|-|",
        AndAnd "&&",
        OrOr "||",
        EqEq "==",
        NotEq "!=",
        Le "<=",
        Ge ">=",
        Shl "<<",
        PlusPlus "++",
        Range "..",
        PlusAssign "+=",
        MinusAssign "-=",
        StarAssign "*=",
        SlashAssign "/=",
        PercentAssign "%=",
        AndAssign "&=",
        OrAssign "|=",
        XorAssign "^=",
        LParen "(",
        RParen ")",
        LBracket "[",
        RBracket "]",
        LBrace "{",
        RBrace "}",
        Lt "<",
        Gt ">",
        Semi ";",
        Colon ":",
        Comma ",",
        Question "?",
        Dot ".",
        Assign "=",
        Bang "!",
        Tilde "~",
        Amp "&",
        Pipe "|",
        Caret "^",
        Plus "+",
        Minus "-",
        Star "*",
        Slash "/",
        Percent "%",
        At "@",
    }
}

/// A parsed integer literal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IntLiteral {
    /// Value of the literal as written, not truncated to its width.
    pub value: BigInt,
    /// Width of the literal in bits, from a prefix such as `8w` or `8s`; `None` without a prefix.
    pub width: Option<u32>,
    /// Whether the literal's width prefix is signed, as in `8s`.
    pub signed: bool,
}

/// Returns all tokens of a text; the last token is `Eof`. Skips comments and white space; errors go to the sink.
pub fn lex(text: &str, sink: &mut Sink) -> Vec<Token> {
    let mut lexer = Lexer {
        text,
        at: 0,
        tokens: Vec::with_capacity(text.len() / 4),
        sink,
    };
    lexer.run();
    lexer.tokens
}

struct Lexer<'a, 's> {
    text: &'a str,
    at: usize,
    tokens: Vec<Token>,
    sink: &'s mut Sink,
}

impl Lexer<'_, '_> {
    fn run(&mut self) {
        while let Some(first) = self.peek() {
            let start = self.at;
            if self.tokens.len() >= LIMITS.tokens {
                self.error(start, format!("more than {} tokens", LIMITS.tokens));
                break;
            }
            match first {
                b' ' | b'\t' | b'\n' | b'\r' | b'\x0b' | b'\x0c' => self.at += 1,
                b'\\' if self.line_continues() => self.at += 1,
                b'/' if self.rest().starts_with("//") => self.line_comment(),
                b'/' if self.rest().starts_with("/*") => self.block_comment(),
                b'a'..=b'z' | b'A'..=b'Z' | b'_' => {
                    self.skip_while(|b| b.is_ascii_alphanumeric() || b == b'_');
                    let kind = keyword(&self.text[start..self.at]);
                    self.emit(kind, start);
                }
                b'0'..=b'9' => self.number(),
                b'"' => self.string(),
                _ => self.symbol(),
            }
        }
        self.at = self.text.len();
        self.emit(Tok::Eof, self.text.len());
    }

    fn rest(&self) -> &str {
        &self.text[self.at..]
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn skip_while(&mut self, keep: impl Fn(u8) -> bool) {
        while self.peek().is_some_and(&keep) {
            self.at += 1;
        }
    }

    fn emit(&mut self, kind: Tok, start: usize) {
        let span = Span::new(start as u32, self.at as u32);
        self.tokens.push(Token { kind, span });
    }

    fn error(&mut self, start: usize, message: impl Into<String>) {
        let span = Span::new(start as u32, self.at as u32);
        self.sink.error(Code::Token, span, message);
    }

    /// Whether a backslash and a line end follow here; the preprocessor can leave such a pair in a macro's replacement.
    fn line_continues(&self) -> bool {
        continuation(self.rest()).is_some()
    }

    fn line_comment(&mut self) {
        self.at += line_comment(self.rest());
    }

    fn block_comment(&mut self) {
        let start = self.at;
        match self.rest()[2..].find("*/") {
            Some(n) => self.at += n + 4,
            None => {
                self.at = (start + 2).min(self.text.len());
                self.error(start, "this comment has no closing `*/`");
                self.at = self.text.len();
            }
        }
    }

    fn number(&mut self) {
        let start = self.at;
        self.skip_while(|b| b.is_ascii_alphanumeric() || b == b'_');
        self.emit(Tok::Int, start);
        if let Err(message) = parse_int(&self.text[start..self.at]) {
            self.error(start, message);
        }
    }

    /// Lexes a string literal, which extends to the next unescaped quote, also across line ends (P4_16 6.4.3.3).
    fn string(&mut self) {
        let start = self.at;
        self.at += 1;
        loop {
            match self.peek() {
                Some(b'"') => {
                    self.at += 1;
                    return self.emit(Tok::Str, start);
                }
                Some(b'\\') => self.at += 2,
                Some(_) => self.at += 1,
                None => break,
            }
        }
        // Resume after the end of the line, where the author most likely meant to close the string.
        let line = self.text[start..].find('\n');
        self.at = line.map_or(self.text.len(), |n| start + n);
        self.emit(Tok::Str, start);
        self.error(start, "this string has no closing quote");
    }

    fn symbol(&mut self) {
        let start = self.at;
        let rest = self.rest().as_bytes();
        // Comparing the first byte rejects nearly all symbols.
        let fits = |s: &str| s.as_bytes().first() == rest.first() && rest.starts_with(s.as_bytes());
        if let Some(&(text, kind)) = SYMBOLS.iter().find(|(s, _)| fits(s)) {
            self.at += text.len();
            return self.emit(kind, start);
        }
        let unknown = self.rest().chars().next().unwrap_or(' ');
        self.at += unknown.len_utf8();
        self.emit(Tok::Unknown, start);
    }
}

/// Parses an integer literal: `[width (w|s)] [0x|0o|0d|0b] digits`, with underscores anywhere in the digits.
pub fn parse_int(text: &str) -> Result<IntLiteral, String> {
    let (prefix, digits) = split_width(text);
    let (width, signed) = match prefix {
        None => (None, false),
        Some((width, signed)) => {
            let width: u32 = width
                .replace('_', "")
                .parse()
                .map_err(|_| format!("the width in `{text}` is too large"))?;
            (Some(width), signed)
        }
    };
    let (radix, digits) = split_radix(digits);
    if digits.len() > LIMITS.digits {
        return Err(format!("an integer has at most {} digits", LIMITS.digits));
    }
    let digits = digits.replace('_', "");
    if digits.is_empty() {
        return Err(format!("`{text}` has no digits"));
    }
    if let Some(bad) = digits.chars().find(|c| !c.is_digit(radix)) {
        return Err(format!(
            "`{bad}` is not a digit in base {radix}, in `{text}`"
        ));
    }
    let value = BigInt::parse_bytes(digits.as_bytes(), radix)
        .ok_or_else(|| format!("`{text}` is not an integer"))?;
    Ok(IntLiteral {
        value,
        width,
        signed,
    })
}

/// Whether an integer literal is hexadecimal, as `0xff` and `8w0xff` are.
pub(crate) fn is_hexadecimal(literal: &str) -> bool {
    let (_, digits) = split_width(literal);
    split_radix(digits).0 == 16
}

/// Splits off a literal's radix prefix: `0xff` → 16, `ff`.
fn split_radix(digits: &str) -> (u32, &str) {
    match digits.get(..2) {
        Some("0x" | "0X") => (16, &digits[2..]),
        Some("0b" | "0B") => (2, &digits[2..]),
        Some("0o" | "0O") => (8, &digits[2..]),
        Some("0d" | "0D") => (10, &digits[2..]),
        _ => (10, digits),
    }
}

/// Splits off a literal's width prefix: `8w5` → (`8`, unsigned), `5`; `None` without a prefix.
fn split_width(text: &str) -> (Option<(&str, bool)>, &str) {
    let end = text
        .find(|c: char| !c.is_ascii_digit() && c != '_')
        .unwrap_or(text.len());
    match text.as_bytes().get(end) {
        Some(b'w') => (Some((&text[..end], false)), &text[end + 1..]),
        Some(b's') => (Some((&text[..end], true)), &text[end + 1..]),
        _ => (None, text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spelling::unescape;

    fn kinds(text: &str) -> Vec<Tok> {
        let mut sink = Sink::new();
        lex(text, &mut sink).iter().map(|t| t.kind).collect()
    }

    #[test]
    fn integers_as_the_specification_lists_them() {
        let int = |t| {
            let i = parse_int(t).expect(t);
            (i.value.to_string(), i.width, i.signed)
        };
        assert_eq!(int("42"), ("42".into(), None, false));
        assert_eq!(int("0x2A"), ("42".into(), None, false));
        assert_eq!(int("32w255"), ("255".into(), Some(32), false));
        assert_eq!(int("8w0b10101010"), ("170".into(), Some(8), false));
        assert_eq!(int("8s0b1010_1010"), ("170".into(), Some(8), true));
        assert_eq!(int("16w0o377"), ("255".into(), Some(16), false));
        assert_eq!(int("32w0d123"), ("123".into(), Some(32), false));
        for bad in ["8w", "0x", "0b12", "12ab", "99999999999w1"] {
            assert!(parse_int(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn closing_angles_stay_apart() {
        use Tok::*;
        assert_eq!(
            kinds("list<bit<8>> x"),
            [Ident, Lt, Bit, Lt, Int, Gt, Gt, Ident, Eof]
        );
        assert_eq!(kinds("a |+|= b"), [Ident, AddSatAssign, Ident, Eof]);
        assert_eq!(kinds("{#} {"), [Invalid, LBrace, Eof]);
        assert_eq!(kinds("1..2"), [Int, Range, Int, Eof]);
    }

    #[test]
    fn faults_are_reported_and_lexing_goes_on() {
        let mut sink = Sink::new();
        let tokens = lex("a $ b \"x\n c 0x é /* d", &mut sink);
        assert_eq!(sink.error_count(), 3);
        let unknown = tokens.iter().filter(|t| t.kind == Tok::Unknown).count();
        assert_eq!(unknown, 2);
        let names = tokens.iter().filter(|t| t.kind == Tok::Ident).count();
        assert_eq!(names, 3);
    }

    #[test]
    fn strings_go_on_behind_a_backslash_that_ends_a_line() {
        for (literal, value) in [
            ("\"ab\\\ncd\"", "abcd"),
            ("\"ab\\ \r\n cd\"", "ab cd"),
            ("\"ab\\ \"", "ab\\ "),
            ("\"a\\n\\\"b\\\\\"", "a\n\"b\\"),
        ] {
            assert_eq!(unescape(literal), value, "{literal:?}");
        }
    }
}

//! Lexer: splits a filter's text into tokens, with nom.
//!
//! The meaning of a word (a name, a number, an address) depends on the field that it is compared with, so the lexer keeps it
//! whole: `10.0.0.0/8`, `2001:db8::1` and `aa:bb:cc:dd:ee:ff` are words.

use std::ops::Range;

use nom::branch::alt;
use nom::bytes::complete::{tag, take_while1};
use nom::character::complete::multispace0;
use nom::combinator::value;
use nom::{IResult, Parser};

use super::error::{FilterError, FilterErrorKind};
use crate::library::payload_bounds;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Token {
    Word(String),
    Text(Vec<u8>),
    Equal,
    NotEqual,
    Less,
    LessEqual,
    Greater,
    GreaterEqual,
    And,
    Or,
    Not,
    In,
    StartsWith,
    Open,
    Close,
    OpenSet,
    CloseSet,
    Comma,
    To,
    End,
}

impl Token {
    /// Description of the token for error messages.
    pub fn describe(&self) -> String {
        match self {
            Token::Word(word) => format!("`{word}`"),
            Token::Text(_) => "a string".to_owned(),
            Token::End => "the end of the filter".to_owned(),
            Token::Equal => "`==`".to_owned(),
            Token::NotEqual => "`!=`".to_owned(),
            Token::Less => "`<`".to_owned(),
            Token::LessEqual => "`<=`".to_owned(),
            Token::Greater => "`>`".to_owned(),
            Token::GreaterEqual => "`>=`".to_owned(),
            Token::And => "`&&`".to_owned(),
            Token::Or => "`||`".to_owned(),
            Token::Not => "`!`".to_owned(),
            Token::In => "`in`".to_owned(),
            Token::StartsWith => "`startswith`".to_owned(),
            Token::Open => "`(`".to_owned(),
            Token::Close => "`)`".to_owned(),
            Token::OpenSet => "`{`".to_owned(),
            Token::CloseSet => "`}`".to_owned(),
            Token::Comma => "`,`".to_owned(),
            Token::To => "`..`".to_owned(),
        }
    }
}

pub(super) type Spanned = (Token, Range<usize>);

/// Splits a filter's text into tokens; the last token is `End`.
pub(super) fn tokens(text: &str) -> Result<Vec<Spanned>, FilterError> {
    let mut tokens = Vec::new();
    let mut rest = skip_space(text);
    while !rest.is_empty() {
        let start = text.len() - rest.len();
        let (after, token) = token(rest, start)?;
        tokens.push((token, start..text.len() - after.len()));
        rest = skip_space(after);
    }
    tokens.push((Token::End, text.len()..text.len()));
    Ok(tokens)
}

fn skip_space(text: &str) -> &str {
    match multispace0::<_, nom::error::Error<&str>>(text) {
        Ok((rest, _)) => rest,
        Err(_) => text,
    }
}

fn token(text: &str, at: usize) -> Result<(&str, Token), FilterError> {
    if text.starts_with('"') {
        return string(text, at);
    }
    if let Ok(found) = alt((operator, word)).parse(text) {
        return Ok(found);
    }
    let found = text.chars().next().unwrap_or(' ');
    let hint = match found {
        '=' => Some("write `==` to compare"),
        '&' => Some("write `&&` or `and`; there are no bit masks, and each flag is a field"),
        '|' => Some("write `||` or `or`"),
        '[' => Some("write bytes of a payload as `tcp.payload[offset:length]`"),
        '\'' => Some("write strings in double quotes"),
        _ => None,
    };
    Err(FilterError::new(
        FilterErrorKind::UnexpectedCharacter { found },
        at..at + found.len_utf8(),
    )
    .hint(hint))
}

fn operator(text: &str) -> IResult<&str, Token> {
    alt((
        alt((
            value(Token::Equal, tag("==")),
            value(Token::NotEqual, tag("!=")),
            value(Token::LessEqual, tag("<=")),
            value(Token::GreaterEqual, tag(">=")),
            value(Token::And, tag("&&")),
            value(Token::Or, tag("||")),
            value(Token::To, tag("..")),
        )),
        alt((
            value(Token::Less, tag("<")),
            value(Token::Greater, tag(">")),
            value(Token::Not, tag("!")),
            value(Token::Open, tag("(")),
            value(Token::Close, tag(")")),
            value(Token::OpenSet, tag("{")),
            value(Token::CloseSet, tag("}")),
            value(Token::Comma, tag(",")),
        )),
    ))
    .parse(text)
}

/// Lexes a word: as many word characters as possible without running into `..`.
fn word(text: &str) -> IResult<&str, Token> {
    let (_, run) = take_while1(is_word_character).parse(text)?;
    let end = run.find("..").unwrap_or(run.len());
    let (word, rest) = text.split_at(end);
    let token = match word {
        "and" => Token::And,
        "or" => Token::Or,
        "not" => Token::Not,
        "in" => Token::In,
        "startswith" => Token::StartsWith,
        _ => match slice(rest) {
            Some((bounds, rest)) => return Ok((rest, Token::Word(format!("{word}{bounds}")))),
            None => Token::Word(word.to_owned()),
        },
    };
    Ok((rest, token))
}

/// Parses a payload slice such as `[4:2]` behind a word: its canonical spelling, and the rest of the text.
fn slice(text: &str) -> Option<(String, &str)> {
    let end = text.find(']')?;
    let (offset, length) = payload_bounds(&text[..=end])?;
    Some((format!("[{offset}:{length}]"), &text[end + 1..]))
}

fn is_word_character(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | ':' | '/' | '-')
}

/// Lexes a string `"…"` with `\"`, `\\`, `\n`, `\r`, `\t` and `\xHH`.
fn string(text: &str, at: usize) -> Result<(&str, Token), FilterError> {
    let mut bytes = Vec::new();
    let mut chars = text.char_indices().skip(1);
    while let Some((offset, c)) = chars.next() {
        match c {
            '"' => return Ok((&text[offset + 1..], Token::Text(bytes))),
            '\\' => {
                let escape = |end: usize| {
                    FilterError::new(FilterErrorKind::BadEscape, at + offset..at + end)
                };
                match chars.next() {
                    Some((_, '"')) => bytes.push(b'"'),
                    Some((_, '\\')) => bytes.push(b'\\'),
                    Some((_, 'n')) => bytes.push(b'\n'),
                    Some((_, 'r')) => bytes.push(b'\r'),
                    Some((_, 't')) => bytes.push(b'\t'),
                    Some((x, 'x')) => {
                        let byte = text
                            .get(x + 1..x + 3)
                            .filter(|digits| digits.bytes().all(|b| b.is_ascii_hexdigit()))
                            .and_then(|digits| u8::from_str_radix(digits, 16).ok())
                            .ok_or_else(|| {
                                escape(x + 1).hint(Some("`\\x` takes two hexadecimal digits"))
                            })?;
                        bytes.push(byte);
                        chars.next();
                        chars.next();
                    }
                    Some((other, c)) => {
                        return Err(escape(other + c.len_utf8())
                            .hint(Some("write \\\" \\\\ \\n \\r \\t or \\xHH")));
                    }
                    None => break,
                }
            }
            c => bytes.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
        }
    }
    Err(
        FilterError::new(FilterErrorKind::UnterminatedString, at..at + text.len())
            .hint(Some("close it with a double quote")),
    )
}

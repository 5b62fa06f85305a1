//! Evaluates the integer expressions of `#if`: 64-bit signed with wrap-around, as in C's preprocessor.

use crate::limits::LIMITS;

/// Evaluates an `#if` expression in which macros and `defined` have been replaced; remaining names are 0.
pub(super) fn evaluate(text: &str) -> Result<i64, String> {
    let mut parser = Parser {
        rest: text.trim(),
        depth: 0,
    };
    if parser.rest.is_empty() {
        return Err("expected an expression".to_owned());
    }
    let value = parser.conditional(true)?;
    if parser.rest.is_empty() {
        Ok(value)
    } else {
        Err(format!("unexpected `{}` in the expression", parser.shown()))
    }
}

struct Parser<'a> {
    rest: &'a str,
    depth: u32,
}

/// Binary operators and their precedence; an operator precedes any other operator that is its prefix.
const OPERATORS: &[(&str, u8)] = &[
    ("||", 1),
    ("&&", 2),
    ("==", 6),
    ("!=", 6),
    ("<=", 7),
    (">=", 7),
    ("<<", 8),
    (">>", 8),
    ("|", 3),
    ("^", 4),
    ("&", 5),
    ("<", 7),
    (">", 7),
    ("+", 9),
    ("-", 9),
    ("*", 10),
    ("/", 10),
    ("%", 10),
];

impl<'a> Parser<'a> {
    fn shown(&self) -> String {
        self.rest.chars().take(20).collect()
    }

    fn eat(&mut self, symbol: &str) -> bool {
        match self.rest.strip_prefix(symbol) {
            Some(rest) => {
                self.rest = rest.trim_start();
                true
            }
            None => false,
        }
    }

    fn word(&mut self) -> &'a str {
        let end = self
            .rest
            .find(|c: char| !c.is_ascii_alphanumeric() && c != '_')
            .unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(end);
        self.rest = rest.trim_start();
        word
    }

    /// Parses and evaluates `c ? a : b`. `live`: the result is used, so a division by zero in the expression is an error.
    fn conditional(&mut self, live: bool) -> Result<i64, String> {
        self.depth += 1;
        if self.depth > LIMITS.condition_depth {
            return Err(format!("over {} nested operators", LIMITS.condition_depth));
        }
        let mut value = self.binary(1, live)?;
        if self.eat("?") {
            let then = self.conditional(live && value != 0)?;
            if !self.eat(":") {
                return Err("expected `:` after `?`".to_owned());
            }
            let otherwise = self.conditional(live && value == 0)?;
            value = if value != 0 { then } else { otherwise };
        }
        self.depth -= 1;
        Ok(value)
    }

    fn binary(&mut self, min: u8, live: bool) -> Result<i64, String> {
        let mut lhs = self.unary(live)?;
        loop {
            let found = OPERATORS.iter().find(|(s, _)| self.rest.starts_with(s));
            let Some(&(symbol, tightness)) = found.filter(|(_, t)| *t >= min) else {
                return Ok(lhs);
            };
            self.eat(symbol);
            let rhs_live = match symbol {
                "&&" => live && lhs != 0,
                "||" => live && lhs == 0,
                _ => live,
            };
            let rhs = self.binary(tightness + 1, rhs_live)?;
            lhs = apply(symbol, lhs, rhs, live)?;
        }
    }

    fn unary(&mut self, live: bool) -> Result<i64, String> {
        self.depth += 1;
        if self.depth > LIMITS.condition_depth {
            return Err(format!("over {} nested operators", LIMITS.condition_depth));
        }
        let value = if self.eat("!") {
            i64::from(self.unary(live)? == 0)
        } else if self.eat("~") {
            !self.unary(live)?
        } else if self.eat("-") {
            self.unary(live)?.wrapping_neg()
        } else if self.eat("+") {
            self.unary(live)?
        } else if self.eat("(") {
            let value = self.conditional(live)?;
            if !self.eat(")") {
                return Err("expected `)`".to_owned());
            }
            value
        } else {
            self.primary()?
        };
        self.depth -= 1;
        Ok(value)
    }

    fn primary(&mut self) -> Result<i64, String> {
        match self.rest.bytes().next() {
            Some(b'0'..=b'9') => integer(self.word()),
            Some(b'a'..=b'z' | b'A'..=b'Z' | b'_') => {
                let name = self.word();
                if self.rest.starts_with('(') {
                    return Err(format!("`{name}` is not a function-like macro"));
                }
                Ok(0)
            }
            None => Err("an operand is missing at the end of the expression".to_owned()),
            Some(_) => Err(format!(
                "expected a number or a name, found `{}`",
                self.shown()
            )),
        }
    }
}

fn integer(text: &str) -> Result<i64, String> {
    let digits = text.trim_end_matches(['u', 'U', 'l', 'L']).replace('_', "");
    let lower = digits.to_ascii_lowercase();
    let parsed = if let Some(hex) = lower.strip_prefix("0x") {
        u64::from_str_radix(hex, 16)
    } else if let Some(binary) = lower.strip_prefix("0b") {
        u64::from_str_radix(binary, 2)
    } else if let Some(octal) = lower.strip_prefix("0o") {
        u64::from_str_radix(octal, 8)
    } else if lower.len() > 1 && lower.starts_with('0') {
        u64::from_str_radix(&lower, 8)
    } else {
        lower.parse()
    };
    parsed
        .map(|value| value as i64)
        .map_err(|_| format!("`{text}` is not an integer below 2^64"))
}

fn apply(symbol: &str, a: i64, b: i64, live: bool) -> Result<i64, String> {
    let shift = |by: i64| u32::try_from(by).ok().filter(|by| *by < 64);
    Ok(match symbol {
        "||" => i64::from(a != 0 || b != 0),
        "&&" => i64::from(a != 0 && b != 0),
        "|" => a | b,
        "^" => a ^ b,
        "&" => a & b,
        "==" => i64::from(a == b),
        "!=" => i64::from(a != b),
        "<" => i64::from(a < b),
        ">" => i64::from(a > b),
        "<=" => i64::from(a <= b),
        ">=" => i64::from(a >= b),
        "<<" => shift(b).map_or(0, |by| a << by),
        ">>" => shift(b).map_or(if a < 0 { -1 } else { 0 }, |by| a >> by),
        "+" => a.wrapping_add(b),
        "-" => a.wrapping_sub(b),
        "*" => a.wrapping_mul(b),
        "/" | "%" if b == 0 => {
            if live {
                return Err("division by zero".to_owned());
            }
            0
        }
        "/" => a.wrapping_div(b),
        _ => a.wrapping_rem(b),
    })
}

#[cfg(test)]
mod tests {
    use super::evaluate;

    #[test]
    fn expressions_bind_as_in_c() {
        for (text, value) in [
            ("1 + 2 * 3", 7),
            ("(1 + 2) * 3", 9),
            ("1 << 4 | 1", 17),
            ("0x10 == 16 && 010 == 8 && 0b11 == 3", 1),
            ("1 & 3 == 3", 1),
            ("!0 + ~0", 0),
            ("0 && 1 / 0", 0),
            ("1 || 1 / 0", 1),
            ("1 ? 2 : 3 / 0", 2),
            ("UNKNOWN", 0),
            ("5 - 2 - 1", 2),
            ("-7 / 2", -3),
        ] {
            assert_eq!(evaluate(text), Ok(value), "{text}");
        }
    }

    #[test]
    fn faults_are_errors() {
        for text in ["", "1 +", "1 / 0", "(1", "1 2", "f(1)", "0xg", "$"] {
            assert!(evaluate(text).is_err(), "{text}");
        }
        assert!(evaluate(&"(".repeat(100_000)).is_err());
        assert!(evaluate(&"!".repeat(100_000)).is_err());
    }
}

//! Macro definitions and their expansion, by Prosser's algorithm (on which the C standard's text is based): each token
//! carries the set of macros from whose expansion it came, and no macro of this set expands the token again.

use super::tokens::{HideSet, Kind, Token, render, tokens};
use crate::limits::LIMITS;
use hashbrown::HashMap;
use std::rc::Rc;

/// A macro definition (`#define`).
#[derive(Debug, Clone)]
pub(super) struct Macro {
    id: u32,
    /// Names of the macro's parameters; `None` for an object-like macro, which takes no arguments.
    params: Option<Vec<Rc<str>>>,
    variadic: bool,
    body: Rc<[Token]>,
}

impl Macro {
    pub(super) fn is_function(&self) -> bool {
        self.params.is_some()
    }

    fn same_as(&self, other: &Macro) -> bool {
        self.params == other.params
            && self.variadic == other.variadic
            && render(&self.body) == render(&other.body)
    }
}

/// The macros that are defined at the current position of the source.
#[derive(Debug, Default)]
pub(super) struct Macros {
    table: HashMap<Rc<str>, Macro>,
    next_id: u32,
    /// Total bytes of the final replacements of all macro calls so far.
    output: usize,
    /// Total bytes that macro expansion has processed: a token counts each time that it is replaced or passed as an argument.
    work: usize,
}

/// Source position of a macro call, for `__FILE__` and `__LINE__`.
#[derive(Debug, Clone, Copy)]
pub(super) struct CallSite<'a> {
    pub(super) file: &'a str,
    pub(super) line: u32,
}

const VA_ARGS: &str = "__VA_ARGS__";

/// The result of a `#define`.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Defined {
    New,
    /// The definition replaces an earlier definition with another body.
    Changed,
}

impl Macros {
    /// Handles `#define`; `text` is everything after the word `define`.
    pub(super) fn define(&mut self, text: &str) -> Result<Defined, String> {
        let text = text.trim_start();
        let tokens = tokens(text);
        let (name, rest) = match tokens.split_first() {
            Some((name, rest)) if name.kind == Kind::Ident => (name, rest),
            _ => return Err("expected a macro's name after `#define`".to_owned()),
        };
        if name.is("defined") || name.is("__FILE__") || name.is("__LINE__") {
            return Err(format!("`{}` cannot be redefined", name.text));
        }
        // A parameter list begins only if `(` directly follows the name.
        let (params, variadic, body) = match rest.first() {
            Some(open) if open.is("(") => {
                let (params, variadic, used) = parameters(&rest[1..])?;
                (Some(params), variadic, &rest[1 + used..])
            }
            _ => (None, false, rest),
        };
        let body = match body.first() {
            Some(space) if space.is_blank() => &body[1..],
            _ => body,
        };
        if body.first().is_some_and(|t| t.is("#")) && starts_paste(body)
            || body.len() >= 2 && starts_paste(&body[body.len() - 2..])
        {
            return Err("`##` cannot begin or end a macro's replacement".to_owned());
        }
        let defined = Macro {
            id: self.next_id,
            params,
            variadic,
            body: body.into(),
        };
        self.next_id += 1;
        let before = self.table.insert(name.text.clone(), defined.clone());
        Ok(match before {
            Some(before) if !before.same_as(&defined) => Defined::Changed,
            _ => Defined::New,
        })
    }

    pub(super) fn undefine(&mut self, name: &str) {
        self.table.remove(name);
    }

    pub(super) fn is_defined(&self, name: &str) -> bool {
        self.table.contains_key(name) || is_builtin(name)
    }

    /// The definition of the macro with this name; `None` if no such macro is defined.
    pub(super) fn called(&self, name: &str) -> Option<&Macro> {
        self.table.get(name)
    }

    /// Whether `token`, at the end of an expansion, is the name of a macro whose arguments may follow in the file.
    pub(super) fn awaits_arguments(&self, token: &Token) -> bool {
        token.kind == Kind::Ident
            && self
                .table
                .get(&token.text)
                .is_some_and(|m| m.is_function() && token.hide.binary_search(&m.id).is_err())
    }

    /// Replaces all macro calls in `input`.
    pub(super) fn expand(
        &mut self,
        input: Vec<Token>,
        site: CallSite<'_>,
    ) -> Result<Vec<Token>, String> {
        let tokens = self.expand_at(input, site, 0)?;
        self.output += tokens.iter().map(|t| t.text.len()).sum::<usize>();
        if self.output > LIMITS.expansion_bytes {
            let most = LIMITS.expansion_bytes >> 20;
            return Err(format!("macros expand to more than {most} MiB"));
        }
        Ok(tokens)
    }

    /// Whether macro expansion has exceeded one of its two limits: bytes written, or bytes processed.
    pub(super) fn exhausted(&self) -> bool {
        self.output > LIMITS.expansion_bytes || self.work > LIMITS.expansion_work
    }

    fn expand_at(
        &mut self,
        input: Vec<Token>,
        site: CallSite<'_>,
        depth: u32,
    ) -> Result<Vec<Token>, String> {
        if depth > LIMITS.macro_depth {
            return Err(format!(
                "macro calls are nested more than {} deep",
                LIMITS.macro_depth
            ));
        }
        let mut pending = input;
        pending.reverse();
        let mut out: Vec<Token> = Vec::with_capacity(pending.len());
        // The token after a replacement is not joined to it.
        let mut separate = 0usize;
        while let Some(mut token) = pending.pop() {
            if separate > pending.len() {
                token.joined = false;
                separate = 0;
            }
            if token.kind != Kind::Ident {
                out.push(token);
                continue;
            }
            if is_builtin(&token.text) {
                out.push(builtin(&token, site));
                continue;
            }
            let Some(called) = self.table.get(&token.text).cloned() else {
                out.push(token);
                continue;
            };
            if token.hide.binary_search(&called.id).is_ok() {
                out.push(token);
                continue;
            }
            let (args, hide) = if called.params.is_some() {
                let Some((args, close)) = take_arguments(&mut pending, &token.text)? else {
                    out.push(token);
                    continue;
                };
                self.spend(16 * args.iter().map(Vec::len).sum::<usize>())?;
                (args, intersection(&token.hide, &close))
            } else {
                (Vec::new(), token.hide.clone())
            };
            let args = bind(&called, args, &token.text)?;
            let mut result = self.substitute(&called, &args, site, depth)?;
            let hide = with(&hide, called.id);
            let mut cost = 0;
            for t in &mut result {
                t.hide = union(&t.hide, &hide);
                cost += t.text.len() + 16 + 4 * t.hide.len();
            }
            self.spend(cost)?;
            if let Some(first) = result.first_mut() {
                first.joined = false;
            }
            separate = pending.len();
            result.reverse();
            pending.extend(result);
        }
        Ok(out)
    }

    fn spend(&mut self, bytes: usize) -> Result<(), String> {
        self.work = self.work.saturating_add(bytes);
        if self.work > LIMITS.expansion_work {
            return Err(format!(
                "macro expansion processes more than {} MiB of text",
                LIMITS.expansion_work >> 20
            ));
        }
        Ok(())
    }

    /// The macro's body with the arguments inserted in place of parameters; applies `#` and `##`.
    fn substitute(
        &mut self,
        called: &Macro,
        args: &[Vec<Token>],
        site: CallSite<'_>,
        depth: u32,
    ) -> Result<Vec<Token>, String> {
        let body = called.body.clone();
        let params = called.params.clone();
        let argument = |token: &Token| -> Option<usize> {
            let params = params.as_ref()?;
            if token.kind != Kind::Ident {
                return None;
            }
            params.iter().position(|p| *p == token.text)
        };
        let mut expanded: Vec<Option<Vec<Token>>> = vec![None; args.len()];
        let mut out: Vec<Token> = Vec::new();
        let mut at = 0;
        let mut paste = false;
        while let Some(token) = body.get(at) {
            if starts_paste(&body[at..]) {
                while out.last().is_some_and(Token::is_blank) {
                    out.pop();
                }
                paste = true;
                at += 2;
                while body.get(at).is_some_and(Token::is_blank) {
                    at += 1;
                }
                continue;
            }
            if token.is("#") && params.is_some() {
                let mut next = at + 1;
                while body.get(next).is_some_and(Token::is_blank) {
                    next += 1;
                }
                if let Some(index) = body.get(next).and_then(argument) {
                    let text = stringify(&args[index]);
                    self.spend(text.len())?;
                    join(&mut out, vec![Token::new(Kind::Str, &text)], paste);
                    paste = false;
                    at = next + 1;
                    continue;
                }
            }
            let piece = match argument(token) {
                Some(index) => {
                    let raw = paste || next_is_paste(&body[at + 1..]);
                    let mut piece = if raw {
                        args[index].clone()
                    } else {
                        if expanded[index].is_none() {
                            let arg = args[index].clone();
                            expanded[index] = Some(self.expand_at(arg, site, depth + 1)?);
                        }
                        expanded[index].clone().unwrap_or_default()
                    };
                    let cost = piece.iter().map(|t| t.text.len() + 16).sum();
                    self.spend(cost)?;
                    if let Some(first) = piece.first_mut() {
                        first.joined = false;
                    }
                    piece
                }
                None => {
                    let mut token = token.clone();
                    // A token after an argument is not joined to it.
                    token.joined &= at == 0 || argument(&body[at - 1]).is_none();
                    vec![token]
                }
            };
            join(&mut out, piece, paste);
            paste = false;
            at += 1;
        }
        Ok(out)
    }
}

/// Appends the tokens `piece` to `out`; with `paste` (for `##`), the two tokens where they meet are merged and tokenized again.
fn join(out: &mut Vec<Token>, mut piece: Vec<Token>, paste: bool) {
    if paste && !piece.is_empty() && !out.is_empty() {
        let right = piece.remove(0);
        if let Some(left) = out.pop() {
            let text = format!("{}{}", left.text, right.text);
            let hide = intersection(&left.hide, &right.hide);
            for (index, mut token) in tokens(&text).into_iter().enumerate() {
                token.hide = hide.clone();
                token.joined = index > 0 || left.joined;
                out.push(token);
            }
        }
    }
    out.extend(piece);
}

fn starts_paste(body: &[Token]) -> bool {
    matches!(body, [a, b, ..] if a.is("#") && b.is("#") && b.joined)
}

fn next_is_paste(body: &[Token]) -> bool {
    let blank = body.iter().take_while(|t| t.is_blank()).count();
    starts_paste(&body[blank..])
}

/// Parses `a, b, ...)`: (parameter names, whether the macro is variadic, number of tokens with the parenthesis).
fn parameters(tokens: &[Token]) -> Result<(Vec<Rc<str>>, bool, usize), String> {
    let mut params: Vec<Rc<str>> = Vec::new();
    let mut variadic = false;
    let mut want_name = true;
    for (index, token) in tokens.iter().enumerate() {
        if token.is_blank() {
            continue;
        }
        if token.is(")") && (!want_name || params.is_empty()) {
            return Ok((params, variadic, index + 1));
        }
        if want_name && token.kind == Kind::Ident {
            if params.contains(&token.text) {
                return Err(format!("parameter `{}` is declared twice", token.text));
            }
            params.push(token.text.clone());
            want_name = false;
        } else if want_name && token.is(".") {
            let dots = tokens[index..].iter().take(3).filter(|t| t.is(".")).count();
            if dots == 3 && tokens.get(index + 3).is_some_and(|t| t.is(")")) {
                params.push(VA_ARGS.into());
                return Ok((params, true, index + 4));
            }
            break;
        } else if !want_name && token.is(",") {
            want_name = true;
        } else {
            break;
        }
        variadic = false;
    }
    Err("expected macro parameters, separated by commas, and `)`".to_owned())
}

/// The arguments of a macro call, and the hide set of its closing parenthesis: the macros that must not expand it again.
type Arguments = (Vec<Vec<Token>>, HideSet);

fn take_arguments(pending: &mut Vec<Token>, name: &str) -> Result<Option<Arguments>, String> {
    let open = pending.iter().rposition(|t| !t.is_blank());
    let Some(open) = open.filter(|&i| pending[i].is("(")) else {
        return Ok(None);
    };
    pending.truncate(open);
    let mut args = vec![Vec::new()];
    let mut parentheses = 0u32;
    while let Some(token) = pending.pop() {
        if token.is(")") && parentheses == 0 {
            for arg in &mut args {
                trim(arg);
            }
            return Ok(Some((args, token.hide)));
        }
        if token.is(",") && parentheses == 0 {
            args.push(Vec::new());
            continue;
        }
        if token.is("(") {
            parentheses += 1;
        } else if token.is(")") {
            parentheses -= 1;
        }
        if let Some(arg) = args.last_mut() {
            arg.push(token);
        }
    }
    Err(format!("the call of macro `{name}` has no closing `)`"))
}

fn trim(arg: &mut Vec<Token>) {
    while arg.last().is_some_and(Token::is_blank) {
        arg.pop();
    }
    let blank = arg.iter().take_while(|t| t.is_blank()).count();
    arg.drain(..blank);
}

/// Checks that a call has one argument per parameter, and joins variadic arguments to one; the error is a message.
fn bind(called: &Macro, mut args: Vec<Vec<Token>>, name: &str) -> Result<Vec<Vec<Token>>, String> {
    let Some(params) = &called.params else {
        return Ok(args);
    };
    if params.is_empty() && args.len() == 1 && args[0].is_empty() {
        args.clear();
    }
    if called.variadic {
        let fixed = params.len() - 1;
        let mut rest: Vec<Token> = Vec::new();
        for (index, arg) in args.drain(fixed.min(args.len())..).enumerate() {
            if index > 0 {
                rest.push(Token::new(Kind::Punct, ","));
                rest.push(Token::new(Kind::Space, " "));
            }
            rest.extend(arg);
        }
        if args.len() == fixed {
            args.push(rest);
        }
    }
    if args.len() != params.len() {
        return Err(format!(
            "macro `{name}` takes {} argument{}, {} given",
            params.len(),
            if params.len() == 1 { "" } else { "s" },
            args.len()
        ));
    }
    Ok(args)
}

fn stringify(arg: &[Token]) -> String {
    let mut text = String::from("\"");
    for token in arg {
        if token.kind == Kind::Str {
            for c in token.text.chars() {
                if matches!(c, '"' | '\\') {
                    text.push('\\');
                }
                text.push(c);
            }
        } else {
            text.push_str(&token.text);
        }
    }
    text.push('"');
    text
}

pub(super) fn is_builtin(name: &str) -> bool {
    matches!(name, "__FILE__" | "__LINE__")
}

fn builtin(token: &Token, site: CallSite<'_>) -> Token {
    let (kind, text) = if token.is("__LINE__") {
        (Kind::Number, site.line.to_string())
    } else {
        (Kind::Str, format!("{:?}", site.file))
    };
    Token {
        kind,
        text: text.into(),
        ..token.clone()
    }
}

fn with(set: &HideSet, id: u32) -> HideSet {
    union(set, &Rc::from([id]))
}

fn union(a: &HideSet, b: &HideSet) -> HideSet {
    if a.is_empty() {
        return b.clone();
    }
    let mut all: Vec<u32> = a.iter().chain(b.iter()).copied().collect();
    all.sort_unstable();
    all.dedup();
    all.into()
}

fn intersection(a: &HideSet, b: &HideSet) -> HideSet {
    a.iter()
        .copied()
        .filter(|id| b.binary_search(id).is_ok())
        .collect()
}

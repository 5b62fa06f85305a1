//! Scopes of declared names, searched from the innermost to the top level. A name is visible after the end of its declaration.

use super::Checker;
use super::fold;
use super::types::Ty;
use super::value::Val;
use crate::ast::Ident;
use crate::diagnostics::{Code, Diagnostic};
use crate::ir;
use crate::source::Span;
use hashbrown::HashMap;

/// A declared name and its meaning.
#[derive(Clone)]
pub(crate) struct Entry<'a> {
    pub(crate) val: Val<'a>,
    /// Span of the name in its declaration.
    pub(crate) span: Span,
    /// Byte offset in the source from which the name is visible.
    pub(crate) from: u32,
}

/// The names declared in one block.
pub(crate) type Scope<'a> = HashMap<&'a str, Entry<'a>>;

impl<'a> Checker<'a, '_> {
    pub(crate) fn push_scope(&mut self) {
        self.unit.scopes.push(Scope::new());
    }

    pub(crate) fn pop_scope(&mut self) {
        self.unit.scopes.pop();
    }

    /// Declares a name in the innermost scope, or outside of parsers, controls and functions a top-level name.
    pub(crate) fn declare(&mut self, name: &'a Ident, val: Val<'a>) {
        self.declare_from(name, val, name.span.end);
    }

    pub(crate) fn declare_from(&mut self, name: &'a Ident, val: Val<'a>, from: u32) {
        let scope = match self.unit.scopes.last_mut() {
            Some(scope) => scope,
            None => &mut self.globals,
        };
        let entry = Entry {
            val,
            span: name.span,
            from,
        };
        if let Some(old) = scope.insert(&name.name, entry) {
            self.push(
                Diagnostic::error(
                    Code::Duplicate,
                    name.span,
                    format!("`{}` is declared twice", name.name),
                )
                .label(old.span, "first here"),
            );
        }
    }

    /// Finds a name without reporting an error; `None` if it is not visible at `at`.
    pub(crate) fn find(&self, name: &str, at: Span, absolute: bool) -> Option<Val<'a>> {
        self.named(name, at, absolute).cloned()
    }

    fn named(&self, name: &str, at: Span, absolute: bool) -> Option<&Val<'a>> {
        if !absolute {
            for scope in self.unit.scopes.iter().rev() {
                if let Some(entry) = scope.get(name) {
                    return Some(&entry.val);
                }
            }
        }
        let global = self.globals.get(name).filter(|e| e.from <= at.start);
        global.map(|e| &e.val)
    }

    /// Finds a name; reports an error and returns `Poison` if there is none.
    pub(crate) fn lookup(&mut self, name: &Ident, absolute: bool) -> Val<'a> {
        if let Some(val) = self.named(&name.name, name.span, absolute) {
            let written_out = match val {
                Val::Expr(_, e) => parts(e),
                Val::List(list) => list.items.len(),
                _ => 0,
            };
            if written_out == 0 {
                return val.clone();
            }
            if !self.write_out(written_out, name.span) {
                return Val::Poison;
            }
            let val = self.find(&name.name, name.span, absolute);
            return val.unwrap_or(Val::Poison);
        }
        let text = &name.name;
        if self.match_kinds.contains(text.as_str()) {
            let kind = fold::constant(ir::Const::Str(text.clone()), ir::Type::String);
            return Val::Expr(Ty::MatchKind, kind);
        }
        let local = self.unit.locals.iter().find_map(|decl| {
            let found = decl.name().filter(|n| !absolute && n.name == *text)?;
            Some((found.span, decl.span))
        });
        if let Some((at, whole)) = local.or_else(|| self.top_names.get(text.as_str()).copied()) {
            let inside = whole.start <= name.span.start && name.span.start < whole.end;
            let message = if inside {
                format!("`{text}` is used inside its own declaration: P4 has no recursion")
            } else {
                format!("`{text}` is used before it is declared")
            };
            let code = if inside {
                Code::Cycle
            } else {
                Code::UnknownName
            };
            self.push(Diagnostic::error(code, name.span, message).label(at, "declared here"));
            return Val::Poison;
        }
        let mut d = Diagnostic::error(
            Code::UnknownName,
            name.span,
            format!("`{text}` is not declared"),
        );
        let names = self
            .unit
            .scopes
            .iter()
            .flat_map(|s| s.keys())
            .chain(self.globals.keys())
            .copied();
        if let Some(near) = nearest(text, names) {
            d = d.hint(format!("did you mean `{near}`?"));
        }
        self.push(d);
        Val::Poison
    }
}

/// Number of scalars in a composite value; 0 for a scalar.
fn parts(e: &ir::Expr) -> usize {
    match &e.kind {
        ir::ExprKind::Tuple(items) => items.iter().map(|item| parts(item).max(1)).sum(),
        _ => 0,
    }
}

/// The candidate that is closest to a misspelled `name`; the first in alphabetical order if several are. Never `name` itself,
/// which would be valid if it were allowed here.
pub(crate) fn nearest<'n>(
    name: &str,
    candidates: impl Iterator<Item = &'n str>,
) -> Option<&'n str> {
    let limit = match name.chars().count() {
        0..=2 => 1,
        3..=6 => 2,
        _ => 3,
    };
    candidates
        .filter(|c| {
            !c.is_empty() && *c != name && c.len().abs_diff(name.len()) <= limit && c.len() <= 64
        })
        .map(|c| (distance(name, c), c))
        .filter(|(d, c)| *d <= limit && *d < c.len())
        .min()
        .map(|(_, c)| c)
}

/// The edit distance between two words; 0 if only the letter case differs.
fn distance(a: &str, b: &str) -> usize {
    if a.eq_ignore_ascii_case(b) {
        return 0;
    }
    strsim::levenshtein(a, b)
}

#[cfg(test)]
mod tests {
    use super::nearest;

    #[test]
    fn suggests_the_closest_name() {
        let names = ["ethernet", "ipv4", "ipv6", "dst"];
        assert_eq!(nearest("etherent", names.into_iter()), Some("ethernet"));
        assert_eq!(nearest("IPV4", names.into_iter()), Some("ipv4"));
        assert_eq!(nearest("payload", names.into_iter()), None);
        assert_eq!(nearest("dst", names.into_iter()), None);
    }
}

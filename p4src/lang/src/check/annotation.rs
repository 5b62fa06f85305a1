//! Lowers annotations to the IR. The expressions of structured annotations are evaluated (P4_16 1.2.5, section 20.2).

use super::Checker;
use super::fold;
use super::unit::name_in;
use super::value::Val;
use crate::ast::{self, AnnotationBody, Literal};
use crate::diagnostics::{Code, Diagnostic};
use crate::ir::{self, Structured};
use crate::limits::LIMITS;
use crate::p4info::translation::{Mistake, TRANSLATION, translated};

impl<'a> Checker<'a, '_> {
    /// Lowers annotations to the IR.
    pub(crate) fn annotations(&mut self, list: &'a [ast::Annotation]) -> Vec<ir::Annotation> {
        let structured = |a: &&&ast::Annotation| {
            matches!(a.body, AnnotationBody::List(_) | AnnotationBody::Map(_))
        };
        let names: Vec<_> = list.iter().collect();
        self.check_names(names.iter().filter(structured).map(|a| &a.name));
        for a in list {
            let mixed = list
                .iter()
                .any(|b| b.name.name == a.name.name && structured(&&a) != structured(&&b));
            if mixed && structured(&&a) {
                let message = format!(
                    "`@{}` is written here both with `[…]` and without",
                    a.name.name
                );
                self.err(Code::Duplicate, a.name.span, message);
            }
            if a.name.name == "pkginfo" && matches!(a.body, AnnotationBody::None) {
                let d = Diagnostic::error(Code::Type, a.span, "`@pkginfo` needs values");
                self.push(d.hint("write `@pkginfo[name = \"…\", version = \"…\"]`"));
            }
        }
        self.check_naming(list);
        list.iter().map(|a| self.annotation(a)).collect()
    }

    /// Checks the `@name` and `@hidden` of an object: at most one of them (P4_16 1.2.5, section 18.3.3), with a valid body.
    fn check_naming(&mut self, list: &'a [ast::Annotation]) {
        let names = |a: &&ast::Annotation| matches!(a.name.name.as_str(), "name" | "hidden");
        let mut first: Option<&ast::Annotation> = None;
        for a in list.iter().filter(names) {
            let well_formed = match (&*a.name.name, &a.body) {
                ("name", _) => name_in(a).is_some_and(|name| !matches!(name, "" | ".")),
                (_, body) => matches!(body, AnnotationBody::None),
            };
            if !well_formed {
                let takes = match &*a.name.name {
                    "name" => "`@name` takes one non-empty string",
                    _ => "`@hidden` takes no value",
                };
                self.err(Code::Type, a.name.span, takes);
            }
            if let Some(first) = first {
                let message = format!(
                    "`@{}` after `@{}`: a declaration takes only one of them",
                    a.name.name, first.name.name
                );
                // p4c accepts it.
                self.push(
                    Diagnostic::warning(Code::Lint, a.span, message).label(first.span, "the first"),
                );
            }
            first = first.or(Some(a));
        }
    }

    /// Checks that a new type's `@p4runtime_translation` annotations are well-formed; `list` is their source.
    pub(crate) fn check_translations(
        &mut self,
        list: &'a [ast::Annotation],
        annotations: &[ir::Annotation],
    ) {
        let both = list.iter().zip(annotations);
        for (a, annotation) in both.filter(|(_, a)| a.name == TRANSLATION) {
            let (code, message) = match translated(annotation) {
                Ok(_) => continue,
                Err(Mistake::Form) => (
                    Code::Type,
                    format!("`@{TRANSLATION}` takes a URI and a type"),
                ),
                Err(Mistake::Width) => (
                    Code::Constant,
                    format!("the width of a translation must be 1 to {}", LIMITS.width),
                ),
            };
            let d = Diagnostic::error(code, a.span, message);
            self.push(d.hint(format!(
                "write `@{TRANSLATION}(\"uri\", bit<32>)` or `@{TRANSLATION}(\"uri\", string)`"
            )));
        }
    }

    fn annotation(&mut self, a: &'a ast::Annotation) -> ir::Annotation {
        let (text, literals, structured) = match &a.body {
            AnnotationBody::None => (String::new(), Vec::new(), None),
            AnnotationBody::Unstructured { text, literals } => {
                (text.clone(), literals.clone(), None)
            }
            AnnotationBody::List(items) => {
                let literals: Vec<_> = items.iter().filter_map(|e| self.literal_of(e)).collect();
                let shown: Vec<_> = literals.iter().map(shown).collect();
                (
                    shown.join(", "),
                    literals.clone(),
                    Some(Structured::List(literals)),
                )
            }
            AnnotationBody::Map(items) => {
                let mut pairs: Vec<(String, Literal)> = Vec::with_capacity(items.len());
                for (key, value) in items {
                    if pairs.iter().any(|(k, _)| *k == key.name) {
                        self.err(
                            Code::Duplicate,
                            key.span,
                            format!("key `{}` is given twice", key.name),
                        );
                    }
                    if let Some(value) = self.literal_of(value) {
                        pairs.push((key.name.clone(), value));
                    }
                }
                let text: Vec<_> = pairs
                    .iter()
                    .map(|(k, v)| format!("{k}={}", shown(v)))
                    .collect();
                (text.join(", "), Vec::new(), Some(Structured::Map(pairs)))
            }
        };
        ir::Annotation {
            name: a.name.name.clone(),
            text,
            literals,
            structured,
        }
    }

    /// Evaluates a constant of type int, bool or string; `None` after an error.
    fn literal_of(&mut self, e: &'a ast::Expr) -> Option<Literal> {
        let mut val = Val::Poison;
        // Statements that the expression emits are dropped: an annotation does not run.
        self.block_of(|c| val = c.expr(e, None));
        let constant = match &val {
            Val::Integer(n) => return Some(Literal::Int(n.clone())),
            Val::Poison => return None,
            Val::Expr(_, e) => fold::as_const(e),
            _ => None,
        };
        let literal = constant.and_then(|c| match c {
            ir::Const::Bool(b) => Some(Literal::Bool(*b)),
            ir::Const::Str(s) => Some(Literal::Str(s.clone())),
            c => fold::number(c).map(Literal::Int),
        });
        if literal.is_none() {
            self.err(
                Code::Constant,
                e.span,
                "an annotation takes only compile-time known numbers, strings and bools",
            );
        }
        literal
    }
}

fn shown(literal: &Literal) -> String {
    match literal {
        Literal::Int(n) => n.to_string(),
        Literal::Str(s) => format!("{s:?}"),
        Literal::Bool(b) => b.to_string(),
    }
}

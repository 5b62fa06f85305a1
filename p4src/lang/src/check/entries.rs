//! Lowers the entries written in a table, and computes their priorities (P4_16 1.2.5, section 14.2.1.4).

use super::Checker;
use super::table::EntryRules;
use super::types::Ty;
use crate::ast;
use crate::diagnostics::{Code, Diagnostic};
use crate::ir;
use crate::source::Span;
use hashbrown::HashMap;
use num_traits::ToPrimitive;

impl<'a> Checker<'a, '_> {
    pub(crate) fn table_entries(
        &mut self,
        property: &'a ast::TableProperty,
        t: &mut ir::Table,
        key_types: &[Ty],
        decls: &[&'a ast::Decl],
        rules: &EntryRules,
    ) {
        let ast::TablePropertyKind::Entries(entries) = &property.kind else {
            return;
        };
        let all_const = property.is_const;
        let mut written = Vec::with_capacity(entries.len());
        for entry in entries {
            let priority = match &entry.priority {
                Some(e) if all_const => {
                    self.push(
                        Diagnostic::error(
                            Code::Type,
                            e.span,
                            "`const entries` take no priorities: the first match wins",
                        )
                        .hint("write `entries` without `const` to set priorities"),
                    );
                    None
                }
                Some(e) => self.written_priority(e),
                None => None,
            };
            let keys = self.entry_keys(entry, key_types);
            let action = self.bound_action(&entry.action, t, decls, false);
            let (Some(keys), Some(action)) = (keys, action) else {
                continue;
            };
            self.lpm_masks(entry, &keys, t);
            t.entries.push(ir::Entry {
                keys,
                action,
                priority: 0,
                is_const: all_const || entry.is_const,
                span: entry.span,
            });
            written.push(priority);
        }
        let ordered = t
            .key
            .iter()
            .any(|k| !matches!(k.match_kind.as_str(), "exact" | "lpm" | "selector"));
        if !ordered {
            for (entry, priority) in entries.iter().zip(&written) {
                if priority.is_some() {
                    self.err(
                        Code::Type,
                        entry.span,
                        "a table with only exact and lpm fields takes no priorities",
                    );
                }
            }
            self.repeated_keys(t);
            return;
        }
        let annotated: Vec<Option<u64>> = entries.iter().map(annotated_priority).collect();
        let in_order = written.iter().all(Option::is_none);
        if let (false, Some(None), Some(first)) = (in_order, written.first(), entries.first()) {
            self.err(
                Code::Constant,
                first.span,
                "the first entry needs a priority, because others have one",
            );
            return;
        }
        let by_annotation = in_order && annotated.iter().any(Option::is_some);
        let found = if by_annotation {
            by_annotation_of(&annotated)
        } else {
            let as_written = as_written(&written, rules);
            if let Some(priorities) = &as_written {
                self.check_priorities(priorities, t, property, rules);
            }
            as_written.and_then(|p| for_the_control_plane(p, rules))
        };
        let Some(priorities) = found else {
            let span = entries.first().map(|e| e.span).unwrap_or_default();
            self.err(
                Code::Constant,
                span,
                "the priorities do not fit into 32 bits",
            );
            return;
        };
        for (entry, priority) in t.entries.iter_mut().zip(priorities) {
            entry.priority = priority;
        }
    }

    /// Reports invalid priorities of table entries, and warns of unintended ones (P4_16 1.2.5, section 14.2.1.4.1).
    fn check_priorities(
        &mut self,
        priorities: &[i64],
        t: &ir::Table,
        property: &ast::TableProperty,
        rules: &EntryRules,
    ) {
        let span = |n: usize| t.entries.get(n).map(|e| e.span).unwrap_or_default();
        if let Some(n) = priorities.iter().position(|p| *p < 0) {
            let message = format!("the priority of this entry is {}, below 0", priorities[n]);
            self.push(
                Diagnostic::error(Code::Constant, span(n), message)
                    .hint("an entry without a priority continues from the entry before it: write it explicitly"),
            );
            return;
        }
        if !silenced(property, "duplicate_priorities") {
            let mut first: HashMap<i64, usize> = HashMap::new();
            for (n, p) in priorities.iter().enumerate() {
                if let Some(first) = first.get(p) {
                    let message = format!("another entry also has priority {p}");
                    self.push(
                        Diagnostic::warning(Code::Lint, span(n), message)
                            .label(span(*first), "the other entry")
                            .hint("P4 does not define which one wins; if intended, write `@noWarn(\"duplicate_priorities\")` before `entries`"),
                    );
                } else {
                    first.insert(*p, n);
                }
            }
        }
        if silenced(property, "entries_out_of_priority_order") {
            return;
        }
        for (n, pair) in priorities.windows(2).enumerate() {
            let wrong = match rules.largest_wins {
                true => pair[0] < pair[1],
                false => pair[0] > pair[1],
            };
            if wrong {
                let message = "this entry takes precedence over the one before it";
                self.push(
                    Diagnostic::warning(Code::Lint, span(n + 1), message)
                        .label(span(n), "the one before")
                        .hint("if intended, write `@noWarn(\"entries_out_of_priority_order\")` before `entries`"),
                );
            }
        }
    }

    /// Reports table entries with the same key in a table without priorities: the second entry could never match.
    fn repeated_keys(&mut self, t: &ir::Table) {
        let mut seen: HashMap<String, Span> = HashMap::new();
        for entry in &t.entries {
            if let Some(first) = seen.insert(format!("{:?}", entry.keys), entry.span) {
                self.push(
                    Diagnostic::error(Code::Duplicate, entry.span, "another entry has this key")
                        .label(first, "the earlier entry"),
                );
            }
        }
    }

    /// Evaluates the priority that an entry gives; `None` after an error.
    fn written_priority(&mut self, e: &'a ast::Expr) -> Option<u64> {
        let n = self.integer_constant(e)?;
        match n.to_u64().filter(|n| *n <= i32::MAX as u64) {
            Some(n) => Some(n),
            None => {
                self.err(Code::Constant, e.span, format!("priority {n} is invalid"));
                None
            }
        }
    }

    fn entry_keys(&mut self, entry: &'a ast::Entry, types: &[Ty]) -> Option<Vec<ir::Keyset>> {
        if let [ast::Keyset::Default(_)] = entry.keys.as_slice() {
            return Some(vec![ir::Keyset::Any; types.len()]);
        }
        let keys = super::select::flat_keys(&entry.keys, types.len());
        if keys.len() != types.len() {
            self.err(
                Code::Type,
                entry.span,
                format!(
                    "{} keyset{} for {} key field{}",
                    keys.len(),
                    if keys.len() == 1 { "" } else { "s" },
                    types.len(),
                    if types.len() == 1 { "" } else { "s" }
                ),
            );
            return None;
        }
        let mut out = Vec::with_capacity(types.len());
        for (key, ty) in keys.into_iter().zip(types) {
            // The result of a call is not a constant, and its statements cannot run here.
            let mut set = None;
            self.block_of(|c| set = c.keyset(key, ty));
            let set = set?;
            let constant = match &set {
                ir::Keyset::Any => true,
                ir::Keyset::Value(e) => super::fold::is_constant(e),
                ir::Keyset::Mask(a, b) | ir::Keyset::Range(a, b) => {
                    super::fold::is_constant(a) && super::fold::is_constant(b)
                }
                ir::Keyset::ValueSet(_) => false,
            };
            if !constant {
                self.err(
                    Code::Constant,
                    entry.span,
                    "an entry's key must be a compile-time known value",
                );
                return None;
            }
            out.push(set);
        }
        Some(out)
    }

    /// Checks that each keyset of a table entry fits the match kind of its key field.
    fn lpm_masks(&mut self, entry: &'a ast::Entry, keys: &[ir::Keyset], t: &ir::Table) {
        for (set, key) in keys.iter().zip(&t.key) {
            let kind = key.match_kind.as_str();
            let fault = match (kind, set) {
                ("exact", ir::Keyset::Any) => Some("an exact field needs a value"),
                ("exact", ir::Keyset::Mask(..) | ir::Keyset::Range(..)) => {
                    Some("an exact field takes one value, no mask or range")
                }
                ("lpm", ir::Keyset::Range(..)) => Some("an lpm field takes a prefix, not a range"),
                ("ternary", ir::Keyset::Range(..)) => {
                    Some("a ternary field takes a mask, not a range")
                }
                ("optional", ir::Keyset::Mask(..) | ir::Keyset::Range(..)) => {
                    Some("an optional field takes one value or none")
                }
                ("range", ir::Keyset::Mask(..)) => Some("a range field takes a range, not a mask"),
                ("lpm", ir::Keyset::Mask(_, mask)) if !is_prefix(mask) => {
                    Some("an lpm field's mask must be a prefix: ones, then zeros")
                }
                _ => None,
            };
            if let Some(text) = fault {
                self.err(Code::Type, entry.span, text);
            }
        }
    }
}

fn is_prefix(mask: &ir::Expr) -> bool {
    let width = match mask.ty {
        ir::Type::Bit(w) | ir::Type::Int(w) => u64::from(w),
        _ => return true,
    };
    let ir::ExprKind::Const(ir::Const::Bits { value, .. }) = &mask.kind else {
        return true;
    };
    let zeros = value.trailing_zeros().unwrap_or(width);
    value.count_ones() + zeros == width
}

/// Whether the table property has the annotation `@noWarn("what")`.
fn silenced(property: &ast::TableProperty, what: &str) -> bool {
    let is_it = |a: &ast::Annotation| {
        a.name.name == "noWarn"
            && matches!(&a.body, ast::AnnotationBody::Unstructured { literals, .. }
                if matches!(literals.as_slice(), [ast::Literal::Str(s)] if s == what))
    };
    property.annotations.iter().any(is_it)
}

/// The number in p4c's `@priority(n)`, which predates the language's own priorities; `None` without this annotation.
fn annotated_priority(entry: &ast::Entry) -> Option<u64> {
    let annotation = entry
        .annotations
        .iter()
        .find(|a| a.name.name == "priority")?;
    match &annotation.body {
        ast::AnnotationBody::Unstructured { literals, .. } => match literals.as_slice() {
            [ast::Literal::Int(n)] => u64::try_from(n).ok(),
            _ => None,
        },
        _ => None,
    }
}

/// Entry priorities from `@priority`, where the smallest wins; the priority of an entry without it is its position, from 1.
fn by_annotation_of(annotated: &[Option<u64>]) -> Option<Vec<i32>> {
    let places: Vec<Option<u64>> = annotated
        .iter()
        .zip(1..)
        .map(|(p, place)| Some(p.unwrap_or(place)))
        .collect();
    let rules = EntryRules {
        largest_wins: false,
        delta: 1,
    };
    for_the_control_plane(as_written(&places, &rules)?, &rules)
}

/// Entry priorities as the table's rules count them. An entry without a written priority continues from the previous entry by
/// `delta`: downward from `1 + (n − 1) · delta` if the largest wins, else upward from 1.
fn as_written(written: &[Option<u64>], rules: &EntryRules) -> Option<Vec<i64>> {
    let n = written.len() as i64;
    let delta = i64::try_from(rules.delta).ok()?;
    let step = if rules.largest_wins { -delta } else { delta };
    let first = if rules.largest_wins {
        (n - 1).checked_mul(delta)?.checked_add(1)?
    } else {
        1
    };
    let mut out: Vec<i64> = Vec::with_capacity(written.len());
    for p in written {
        let value = match (p, out.last()) {
            (Some(p), _) => i64::try_from(*p).ok()?,
            (None, Some(last)) => last.checked_add(step)?,
            (None, None) => first,
        };
        out.push(value);
    }
    Some(out)
}

/// Converts entry priorities to P4Runtime's: the largest wins, all are above 0. `None` if they do not fit.
fn for_the_control_plane(mut out: Vec<i64>, rules: &EntryRules) -> Option<Vec<i32>> {
    if !rules.largest_wins {
        let top = out.iter().copied().max().unwrap_or(0);
        for p in &mut out {
            *p = top.checked_sub(*p)?.checked_add(1)?;
        }
    }
    // If the smallest priority is below 1, shift all of them up.
    let least = out.iter().copied().min().unwrap_or(1);
    let shift = if least < 1 { 1 - least } else { 0 };
    out.into_iter()
        .map(|p| i32::try_from(p.checked_add(shift)?).ok())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::{EntryRules, as_written, by_annotation_of, for_the_control_plane};

    fn run(written: &[Option<u64>], largest_wins: bool, delta: u64) -> Vec<i32> {
        let rules = EntryRules {
            largest_wins,
            delta,
        };
        let priorities = as_written(written, &rules).expect("in range");
        for_the_control_plane(priorities, &rules).expect("in range")
    }

    #[test]
    fn the_first_entry_has_the_highest_priority() {
        assert_eq!(run(&[None, None, None], true, 1), [3, 2, 1]);
        assert_eq!(run(&[None, None, None], true, 10), [21, 11, 1]);
    }

    #[test]
    fn written_priorities_are_kept() {
        assert_eq!(
            run(&[Some(50), None, Some(7), None], true, 5),
            [50, 45, 7, 2]
        );
    }

    #[test]
    fn the_smallest_annotated_priority_wins() {
        assert_eq!(
            by_annotation_of(&[Some(3), None, Some(1)]),
            Some(vec![1, 2, 3])
        );
    }

    #[test]
    fn smallest_wins_is_turned_round() {
        assert_eq!(run(&[Some(10), Some(20), None], false, 1), [12, 2, 1]);
    }
}

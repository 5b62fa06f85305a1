//! Reports recursion, which P4 does not have (P4_16 1.2.5, appendix F). With declaration before use, only the implementation of
//! an abstract method can recurse: it calls, through `this` or an object parameter, a method that executes it again.

use super::decls::ExternDecl;
use super::{Checker, Output};
use crate::ast::{Annotation, AnnotationBody, ExprKind};
use crate::diagnostics::{Code, Diagnostic};
use crate::ir::{self, ActionId, ControlId, StmtKind, visit};
use crate::source::Span;
use hashbrown::HashMap;

/// Whether a call of the extern's method `called` executes the implementation of `implemented`: both are the same method, or
/// `@synchronous` on `implemented` names `called`.
pub(super) fn executes(decl: &ExternDecl<'_>, called: &str, implemented: &str) -> bool {
    let mut methods = decl.methods.iter();
    let named = |a: &Annotation| a.name.name == "synchronous" && names(a, called);
    called == implemented
        || methods.any(|m| {
            m.is_abstract && m.proto.name.name == implemented && m.annotations.iter().any(named)
        })
}

fn names(annotation: &Annotation, method: &str) -> bool {
    match &annotation.body {
        AnnotationBody::Unstructured { text, .. } => text.split(',').any(|t| t.trim() == method),
        AnnotationBody::List(items) => items
            .iter()
            .any(|e| matches!(&e.kind, ExprKind::Name { name, .. } if name.name == method)),
        _ => false,
    }
}

impl<'a> Checker<'a, '_> {
    /// Reports recursion in the whole program. Runs after [`super::objects::resolve`], when every call names its object.
    pub(super) fn no_recursion(&mut self) {
        if self.out.externs.iter().all(|e| e.methods.is_empty()) {
            return;
        }
        let circle = Calls::new(&self.out, &self.externs).circle();
        if let Some((call, callee)) = circle {
            self.recursion(call, callee);
        }
    }

    pub(super) fn recursion(&mut self, call: Span, callee: Option<Span>) {
        let message = "this call is recursive: it leads back to the method that makes it";
        let mut d = Diagnostic::error(Code::Cycle, call, message).hint("P4 has no recursion");
        if let Some(callee) = callee {
            d = d.label(callee, "called again");
        }
        self.push(d);
    }
}

/// The call graph of the program's functions and of the actions of all controls, including abstract methods.
struct Calls {
    /// For each action or function: (the index of a callee, span of the call) for each call.
    callees: Vec<Vec<(usize, Span)>>,
    /// Source span of each action; `None` for a function.
    spans: Vec<Option<Span>>,
}

impl Calls {
    fn new(out: &Output, decls: &[ExternDecl<'_>]) -> Calls {
        let decls: HashMap<&str, &ExternDecl<'_>> =
            decls.iter().map(|d| (d.name.name.as_str(), d)).collect();
        let mut first_action = Vec::with_capacity(out.controls.len());
        let mut spans = Vec::new();
        for c in &out.controls {
            first_action.push(spans.len());
            spans.extend(c.iter().flat_map(|c| &c.actions).map(|a| Some(a.span)));
        }
        let first_function = spans.len();
        spans.extend(out.functions.iter().map(|_| None));
        let action = |c: ControlId, a: ActionId| first_action[c.index()] + a.index();
        let callees = |caller: Option<ControlId>, block: &[ir::Stmt]| {
            let mut found = Vec::new();
            visit(block, &mut |stmt| match &stmt.kind {
                StmtKind::CallFunction(id, _) => {
                    found.push((first_function + id.index(), stmt.span))
                }
                StmtKind::CallAction(id, _) => {
                    found.extend(caller.map(|c| (action(c, *id), stmt.span)));
                }
                StmtKind::CallMethod { object, method, .. } => {
                    let Some(made) = out.externs.get(object.index()) else {
                        return;
                    };
                    let Some(decl) = decls.get(made.type_name.as_str()) else {
                        return;
                    };
                    // A control executes its own copy of the methods of a top-level object.
                    let here = made.methods.iter().any(|m| Some(m.control) == caller);
                    for m in &made.methods {
                        if (!here || Some(m.control) == caller)
                            && executes(decl, method.name(), m.method.name())
                        {
                            found.push((action(m.control, m.action), stmt.span));
                        }
                    }
                }
                _ => {}
            });
            found
        };
        let mut all = Vec::with_capacity(spans.len());
        for (c, control) in (0..).zip(&out.controls) {
            let actions = control.iter().flat_map(|c| &c.actions);
            all.extend(actions.map(|a| callees(Some(ControlId(c)), &a.body)));
        }
        let functions = out.functions.iter();
        all.extend(functions.map(|f| f.as_ref().map_or(Vec::new(), |f| callees(None, &f.body))));
        Calls {
            callees: all,
            spans,
        }
    }

    /// A call that closes a cycle: (its span, span of its callee). The search has its own stack, as calls may nest deep.
    fn circle(&self) -> Option<(Span, Option<Span>)> {
        #[derive(Clone, Copy, PartialEq)]
        enum Visit {
            No,
            Open,
            Done,
        }
        let mut seen = vec![Visit::No; self.callees.len()];
        for start in 0..self.callees.len() {
            if seen[start] != Visit::No {
                continue;
            }
            seen[start] = Visit::Open;
            let mut path = vec![(start, 0)];
            while let Some((at, next)) = path.last_mut() {
                let Some((callee, call)) = self.callees[*at].get(*next).copied() else {
                    seen[*at] = Visit::Done;
                    path.pop();
                    continue;
                };
                *next += 1;
                match seen[callee] {
                    Visit::Open => return Some((call, self.spans[callee])),
                    Visit::Done => {}
                    Visit::No => {
                        seen[callee] = Visit::Open;
                        path.push((callee, 0));
                    }
                }
            }
        }
        None
    }
}

//! Checks and lowers parsers: local declarations, states, value sets.

use super::Checker;
use super::generic::Instantiation;
use super::generic::{Template, Wanted};
use super::scope::nearest;
use super::types::Ty;
use super::unit::{Body, Unit, UnitKind};
use super::value::Val;
use crate::ast::{self, DeclKind};
use crate::diagnostics::{Code, Diagnostic};
use crate::ir;

impl<'a> Checker<'a, '_> {
    /// Creates an instance of a parser.
    pub(crate) fn parser_instance(
        &mut self,
        index: u32,
        wanted: Wanted<'_>,
        full: String,
        made: Instantiation<'a>,
    ) -> Val<'a> {
        let decl = self.parsers[index as usize];
        let misplaced = matches!(self.unit.kind, UnitKind::Control(_)).then_some("control");
        let name = &decl.name.name;
        if !self.may_be_made("parser", name, decl.body.is_some(), misplaced, made.span) {
            return Val::Poison;
        }
        let template = Template::of_parser(decl);
        let Some((types, values)) = self.unit_args(template, wanted, made) else {
            return Val::Poison;
        };
        match self.parser(index, full, &types, values, made) {
            Some(id) => Val::Parser(id, index),
            None => Val::Poison,
        }
    }

    /// Checks and lowers a parser instance.
    pub(crate) fn parser(
        &mut self,
        index: u32,
        full: String,
        types: &[Ty],
        values: Vec<Val<'a>>,
        made: Instantiation<'a>,
    ) -> Option<ir::ParserId> {
        let decl = self.parsers[index as usize];
        let body = decl.body.as_ref()?;
        if !self.room(self.out.parsers.len(), made.span) {
            return None;
        }
        if !self.enter(made.span) {
            return None;
        }
        self.seen_parsers.insert(index);
        let id = ir::ParserId(self.out.parsers.len() as u32);
        self.out.parsers.push(None);
        self.parser_types.insert(id, types.into());
        let mut params = Vec::new();
        let mut init = Vec::new();
        let mut states = Vec::new();
        let unit = self.in_unit(Unit::new(UnitKind::Parser, full.clone()), |c| {
            c.declare_types(&decl.type_params, types);
            params = c.unit_params(&decl.ctor_params, values, &decl.params);
            c.push_scope();
            c.unit.locals = &body.locals;
            init = c.block_of(|c| {
                for local in &body.locals {
                    c.parser_local(local);
                }
            });
            c.unit.body = Body::State;
            states = c.states(&body.states, decl);
        });
        self.out.parsers[id.index()] = Some(ir::Parser {
            name: full,
            params,
            vars: unit.vars,
            init,
            states,
            value_sets: unit.value_sets,
            span: decl.name.span,
        });
        self.leave();
        Some(id)
    }

    fn parser_local(&mut self, decl: &'a ast::Decl) {
        let DeclKind::ValueSet { ty, size, name } = &decl.kind else {
            return self.local_decl(decl);
        };
        let mut elem = self.resolve(ty);
        if !self.may_be_in_value_set(&elem) {
            let shown = self.types.show(&elem);
            let message = format!("a value set cannot have elements of type {shown}");
            let hint = "use bit<>, int<>, bool, error, an enum, or a struct or tuple of these";
            self.push(Diagnostic::error(Code::Type, ty.span, message).hint(hint));
            elem = Ty::Poison;
        }
        let size = self.small_constant::<u64>(size).unwrap_or(0);
        let fields = self.value_set_fields(&elem);
        let id = ir::ValueSetId(self.unit.value_sets.len() as u32);
        let declared = match self.types.strukt(&elem) {
            Some(info) => info
                .fields
                .iter()
                .map(|(_, ty)| self.types.declared(ty))
                .collect(),
            None => vec![self.types.declared(&elem)],
        };
        let set = ir::ValueSet {
            name: self.full_name(&name.name, &decl.annotations),
            fields,
            declared,
            size,
            annotations: self.annotations(&decl.annotations),
        };
        self.unit.value_sets.push(set);
        self.declare(name, Val::ValueSet(id, elem));
    }

    fn may_be_in_value_set(&self, ty: &Ty) -> bool {
        match self.types.strip_new(ty) {
            Ty::Bit(_) | Ty::Int(_) | Ty::Bool | Ty::Error | Ty::Enum(_) | Ty::SerEnum(_) => true,
            Ty::Struct(i) => {
                let info = &self.types.structs[*i as usize];
                let mut fields = info.fields.iter();
                info.kind == ast::StructKind::Struct
                    && fields.all(|(_, t)| self.may_be_in_value_set(t))
            }
            Ty::Tuple(items) => items.iter().all(|t| self.may_be_in_value_set(t)),
            Ty::Poison | Ty::Var(_) => true,
            _ => false,
        }
    }

    /// The fields of a value set's members: one scalar, or those of a struct; as (name, type, match kind).
    fn value_set_fields(&self, elem: &Ty) -> Vec<(String, ir::Type, String)> {
        match elem {
            Ty::Struct(i) => {
                let info = &self.types.structs[*i as usize];
                let lowered = info.ir.map(|id| &self.types.ir[id.index()]);
                info.fields
                    .iter()
                    .enumerate()
                    .map(|(n, (name, ty))| {
                        let kind = lowered
                            .and_then(|s| s.fields.get(n))
                            .and_then(|f| f.annotations.iter().find(|a| a.name == "match"))
                            .map_or("exact".to_owned(), |a| a.text.trim().to_owned());
                        (name.clone(), self.types.ir(ty), kind)
                    })
                    .collect()
            }
            Ty::Tuple(items) => items
                .iter()
                .map(|t| (String::new(), self.types.ir(t), "exact".to_owned()))
                .collect(),
            other => vec![(String::new(), self.types.ir(other), "exact".to_owned())],
        }
    }

    fn states(&mut self, list: &'a [ast::State], decl: &'a ast::ParserDecl) -> Vec<ir::State> {
        self.unit.states.insert("accept", ir::Target::Accept);
        self.unit.states.insert("reject", ir::Target::Reject);
        // `start` is state 0; the others follow in source order.
        let mut order: Vec<&'a ast::State> = Vec::with_capacity(list.len());
        order.extend(list.iter().filter(|s| s.name.name == "start"));
        order.extend(list.iter().filter(|s| s.name.name != "start"));
        let built_in = |s: &&ast::State| matches!(s.name.name.as_str(), "accept" | "reject");
        for state in list.iter().filter(built_in) {
            self.err(
                Code::Duplicate,
                state.name.span,
                format!(
                    "state `{}` is built in and cannot be declared",
                    state.name.name
                ),
            );
        }
        order.retain(|s| !built_in(s));
        // States and the parser's own declarations share one scope (P4_16 1.2.5, section 6.8).
        for state in &order {
            if let Some(local) = self
                .unit
                .scopes
                .last()
                .and_then(|s| s.get(state.name.name.as_str()))
            {
                let message = format!("`{}` is declared twice", state.name.name);
                let first = local.span;
                self.push(
                    Diagnostic::error(Code::Duplicate, state.name.span, message)
                        .label(first, "first here"),
                );
            }
        }
        if order.first().is_none_or(|s| s.name.name != "start")
            && !list.iter().any(|s| built_in(&s))
        {
            self.push(
                Diagnostic::error(
                    Code::Architecture,
                    decl.name.span,
                    format!("parser `{}` has no state `start`", decl.name.name),
                )
                .hint("a parser starts in `state start { … }`: declare it"),
            );
        }
        for (i, state) in order.iter().enumerate() {
            let target = ir::Target::State(ir::StateId(i as u32));
            if self.unit.states.insert(&state.name.name, target).is_some() {
                self.err(
                    Code::Duplicate,
                    state.name.span,
                    format!("state `{}` is declared twice", state.name.name),
                );
            }
        }
        self.unit.written_states = order.len() as u32;
        let mut states: Vec<ir::State> = order.iter().map(|s| self.state(s)).collect();
        states.append(&mut self.unit.more_states);
        if !states.is_empty() && !ends(&states) {
            let state = &states[of_loop(&states)];
            self.push(
                Diagnostic::error(
                    Code::Cycle,
                    state.span,
                    format!("parser `{}` never ends", decl.name.name),
                )
                .hint(format!(
                    "add a transition from state `{}` that leads to `accept` or `reject`",
                    state.name
                )),
            );
        }
        states
    }

    fn state(&mut self, state: &'a ast::State) -> ir::State {
        let mut transition = ir::Transition::Direct(ir::Target::Reject);
        self.push_scope();
        let body = self.block_of(|c| {
            for stmt in &state.body {
                c.statement(stmt);
            }
            if let Some(t) = &state.transition {
                transition = c.transition(t);
            }
        });
        self.pop_scope();
        ir::State {
            name: state.name.name.clone(),
            body,
            transition,
            span: state.span,
        }
    }

    /// The transition target that a name denotes: `accept`, `reject` or a state of the parser.
    pub(crate) fn target(&mut self, name: &ast::Ident) -> ir::Target {
        if let Some(&target) = self.unit.states.get(name.name.as_str()) {
            return target;
        }
        let mut d = Diagnostic::error(
            Code::UnknownName,
            name.span,
            format!("the parser has no state `{}`", name.name),
        );
        if let Some(near) = nearest(&name.name, self.unit.states.keys().copied()) {
            d = d.hint(format!("did you mean `{near}`?"));
        }
        self.push(d);
        ir::Target::Reject
    }
}

/// Index of a state in a loop of a parser that never ends: each of its states leads to another state.
fn of_loop(states: &[ir::State]) -> usize {
    let mut seen = vec![false; states.len()];
    let mut at = 0;
    while !std::mem::replace(&mut seen[at], true) {
        let target = match &states[at].transition {
            ir::Transition::Direct(target) => Some(target),
            ir::Transition::Select { cases, .. } => cases.first().map(|(_, target)| target),
        };
        match target {
            Some(ir::Target::State(id)) => at = id.index(),
            _ => break,
        }
    }
    at
}

/// Whether a parser reaches `accept` or `reject`; a `select` that does not cover all values can reject.
fn ends(states: &[ir::State]) -> bool {
    let mut seen = vec![false; states.len()];
    let mut todo = vec![0usize];
    while let Some(at) = todo.pop() {
        if std::mem::replace(&mut seen[at], true) {
            continue;
        }
        let mut follow = |target: &ir::Target| match target {
            ir::Target::State(id) => {
                todo.push(id.index());
                false
            }
            ir::Target::Accept | ir::Target::Reject => true,
        };
        let ends = match &states[at].transition {
            ir::Transition::Direct(target) => follow(target),
            ir::Transition::Select { cases, .. } => {
                let any = |(keys, _): &(Vec<ir::Keyset>, ir::Target)| {
                    keys.iter().all(|k| matches!(k, ir::Keyset::Any))
                };
                let ends = cases.iter().filter(|(_, target)| follow(target)).count() > 0;
                ends || !cases.iter().any(any)
            }
        };
        if ends {
            return true;
        }
    }
    false
}

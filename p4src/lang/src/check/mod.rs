//! Checks the syntax tree and lowers it to the IR in one walk, which resolves names, types, constants and instances as it goes.
//!
//! 1. `decls` walks the top level in order. P4 declares before use, so each declaration is complete when the next begins. For a
//!    package instance, the parsers and controls in its arguments are checked and lowered at once (`package`, `instantiate`).
//! 2. Inside a unit (parser, control or function), `stmt`, `expr` and `call` determine types and lower the code in one step. An
//!    expression yields a `value::Val`, which keeps untyped values (integers, lists, `...`) as they are until a destination
//!    gives them a type (`coerce`). Calls inside expressions are appended to the unit's current block, in order of evaluation.
//! 3. Declarations without an instance are checked and lowered once for their diagnostics; the result is dropped.
//!
//! Recursion is bounded by `Limits::expanded_nesting` and by P4 itself: a declaration is visible only after its end.

mod action;
mod annotation;
mod apply;
mod args;
mod bound_action;
mod builtin;
mod call;
mod cast;
mod coerce;
mod constant;
mod decls;
mod entries;
mod equality;
mod expr;
mod externs;
mod fold;
mod function;
mod generic;
mod infer;
mod instantiate;
mod key;
mod loops;
mod member;
mod methods;
mod objects;
mod ops;
mod order;
mod package;
mod packet;
mod params;
mod parser;
mod pipelines;
mod recursion;
mod resolve;
mod scope;
mod select;
mod slice;
mod stmt;
mod switch;
mod table;
mod types;
mod unit;
mod value;

use crate::ast;
use crate::diagnostics::{Code, Diagnostic, Sink};
use crate::ir;
use crate::limits::LIMITS;
use crate::source::{SourceMap, Span};
use hashbrown::{HashMap, HashSet};
use std::collections::BTreeSet;
use std::rc::Rc;
use std::sync::Arc;
use types::{Ty, Types};
use unit::Unit;

/// Checks a program and lowers it. Returns `None` if `sink` has an error.
pub fn check(
    program: &ast::Program,
    source: &Arc<SourceMap>,
    sink: &mut Sink,
) -> Option<ir::Program> {
    let mut checker = Checker::new(sink, source);
    for decl in &program.decls {
        if let Some(name) = decl.name() {
            checker
                .top_names
                .entry(&name.name)
                .or_insert((name.span, decl.span));
        }
    }
    for decl in &program.decls {
        checker.top_level(decl);
        checker.main_is_an_instance(decl);
        // The sink is full: further errors would not be shown.
        if checker.sink.is_full() {
            break;
        }
    }
    checker.check_unused();
    checker.finish(program, source)
}

/// The externs, parsers, controls and functions of the IR under construction.
#[derive(Default)]
pub(crate) struct Output {
    pub(crate) externs: Vec<ir::ExternInstance>,
    pub(crate) parsers: Vec<Option<ir::Parser>>,
    pub(crate) controls: Vec<Option<ir::Control>>,
    pub(crate) functions: Vec<Option<ir::Function>>,
}

/// State of the checker for one program.
pub(crate) struct Checker<'a, 's> {
    sink: &'s mut Sink,
    pub(crate) source: Arc<SourceMap>,
    /// Diagnostics already reported: the check of a second instance of a parser or control finds the same errors again.
    said: HashSet<(Span, Code, String)>,
    pub(crate) types: Types,
    pub(crate) globals: HashMap<&'a str, scope::Entry<'a>>,
    /// Every top-level name with the spans of its first declaration, for messages about names used before they are declared.
    pub(crate) top_names: HashMap<&'a str, (Span, Span)>,
    pub(crate) structs: Vec<decls::StructDecl<'a>>,
    pub(crate) struct_cache: HashMap<(u32, Vec<Ty>), u32>,
    pub(crate) externs: Vec<decls::ExternDecl<'a>>,
    pub(crate) parsers: Vec<&'a ast::ParserDecl>,
    pub(crate) controls: Vec<decls::ControlDef<'a>>,
    pub(crate) packages: Vec<decls::PackageDecl<'a>>,
    pub(crate) functions: Vec<decls::FunctionDef<'a>>,
    pub(crate) actions: Vec<decls::ActionDef<'a>>,
    pub(crate) function_cache: HashMap<(u32, Vec<Ty>), ir::FunctionId>,
    /// Type arguments of control instances; the next field has those of parser instances.
    pub(crate) control_types: HashMap<ir::ControlId, Rc<[Ty]>>,
    pub(crate) parser_types: HashMap<ir::ParserId, Rc<[Ty]>>,
    /// Abstract methods of top-level extern objects; each control that calls them gets a copy.
    pub(crate) method_bodies: HashMap<ir::ExternId, methods::Bodies<'a>>,
    pub(crate) errors: Vec<String>,
    pub(crate) error_index: HashMap<String, u32>,
    pub(crate) match_kinds: BTreeSet<String>,
    /// The first construct that the IR cannot represent. It is an error only if the architecture's programs can run.
    pub(crate) unplaced: Option<(Span, &'static str)>,
    /// Annotations of the new types (`type T x;`), by the new type's index.
    pub(crate) newtype_annotations: Vec<Vec<ir::Annotation>>,
    pub(crate) out: Output,
    /// The parser, control or function that is being checked and lowered.
    pub(crate) unit: Unit<'a>,
    /// Pipelines of Tofino's `Pipeline` package, in order of instantiation.
    pub(crate) pipelines: Vec<pipelines::Pipeline>,
    pub(crate) main: Option<ir::Package>,
    /// Indices of parser declarations that have been lowered at least once; the next fields: controls, functions, actions.
    pub(crate) seen_parsers: HashSet<u32>,
    pub(crate) seen_controls: HashSet<u32>,
    pub(crate) seen_functions: HashSet<u32>,
    pub(crate) seen_actions: HashSet<u32>,
    pub(crate) depth: u32,
    /// Maximum nesting of the IR expressions lowered so far within the innermost source expression that is being checked.
    pub(crate) height: u32,
    pub(crate) work: u64,
    /// Number of expressions written out so far for comparisons, default values and constants (see `Limits::parts`).
    pub(crate) parts: usize,
    /// Whether the current declaration is lowered only for its diagnostics, and the result is dropped.
    pub(crate) dry: bool,
    /// Whether the current declaration is lowered with invented values of constructor parameters, or with unknown types.
    pub(crate) assumed: bool,
}

impl<'a, 's> Checker<'a, 's> {
    fn new(sink: &'s mut Sink, source: &Arc<SourceMap>) -> Self {
        Checker {
            sink,
            source: Arc::clone(source),
            said: HashSet::new(),
            types: Types::default(),
            globals: HashMap::new(),
            top_names: HashMap::new(),
            structs: Vec::new(),
            struct_cache: HashMap::new(),
            externs: Vec::new(),
            parsers: Vec::new(),
            controls: Vec::new(),
            packages: Vec::new(),
            functions: Vec::new(),
            actions: Vec::new(),
            function_cache: HashMap::new(),
            control_types: HashMap::new(),
            parser_types: HashMap::new(),
            method_bodies: HashMap::new(),
            errors: Vec::new(),
            error_index: HashMap::new(),
            match_kinds: BTreeSet::new(),
            unplaced: None,
            newtype_annotations: Vec::new(),
            out: Output::default(),
            unit: Unit::top(),
            pipelines: Vec::new(),
            main: None,
            seen_parsers: HashSet::new(),
            seen_controls: HashSet::new(),
            seen_functions: HashSet::new(),
            seen_actions: HashSet::new(),
            depth: 0,
            height: 0,
            work: 0,
            parts: 0,
            dry: false,
            assumed: false,
        }
    }

    /// Checks that the declaration named `main` is an instance of the architecture's package.
    fn main_is_an_instance(&mut self, decl: &ast::Decl) {
        let Some(name) = decl.name().filter(|n| n.name == "main") else {
            return;
        };
        // A function may be called `main` too: functions have their own name space, and the architecture calls none of them.
        let package = matches!(
            self.globals.get("main").map(|e| &e.val),
            Some(value::Val::Package(..) | value::Val::Functions(_) | value::Val::Poison)
        );
        if !package {
            self.push(
                Diagnostic::error(
                    Code::Architecture,
                    name.span,
                    "`main` must be an instance of a package",
                )
                .hint("write `Package(…) main;`"),
            );
        }
    }

    /// Assembles the IR program from the lowered instances; `None` after an error.
    fn finish(mut self, program: &ast::Program, source: &Arc<SourceMap>) -> Option<ir::Program> {
        // The error about a missing `main` points at the compiled file, not at an include.
        let mut spans = program.decls.iter().rev().map(|d| d.span);
        let end = spans
            .find(|span| source.in_main(*span))
            .unwrap_or_else(|| source.end_of_main());
        if self.main.is_none() && !self.sink.has_errors() {
            self.push(
                Diagnostic::error(Code::Architecture, end, "no package named `main`")
                    .hint("instantiate the architecture's package at the end: `Package(…) main;`"),
            );
        }
        self.name_by_pipeline();
        self.unique_names();
        let runs = self.main.as_ref().map(|main| self.arch(main));
        if let (Some((span, what)), Some(arch)) = (self.unplaced, runs)
            && !matches!(arch, ir::Arch::Other(_))
        {
            self.err(Code::Unsupported, span, what);
        }
        if !self.sink.has_errors() && objects::resolve(&mut self.out).is_err() {
            let message = "too many method calls on extern parameters, for too many objects";
            self.err(Code::Limit, end, message);
        }
        if !self.sink.has_errors() {
            self.no_recursion();
        }
        if self.sink.has_errors() {
            return None;
        }
        let main = self.main.take()?;
        if matches!(self.arch(&main), ir::Arch::Tna | ir::Arch::T2na) {
            self.leave_out_verify();
        }
        let annotations = std::mem::take(&mut self.newtype_annotations);
        let new_types = self.types.newtypes.iter().zip(annotations);
        let new_types = new_types
            .map(|((name, under), annotations)| ir::NewType {
                name: name.clone(),
                under: self.types.declared(under),
                annotations,
            })
            .collect();
        let ser_enums = self.types.ser_enums.iter();
        let ser_enums = ser_enums
            .map(|e| ir::SerEnum {
                name: e.name.clone(),
                repr: self.types.ir(&e.repr),
                members: e.members.clone(),
            })
            .collect();
        Some(ir::Program {
            arch: self.arch(&main),
            types: self.types.ir,
            enums: self.types.enums,
            new_types,
            ser_enums,
            errors: self.errors,
            externs: self.out.externs,
            parsers: self.out.parsers.into_iter().collect::<Option<_>>()?,
            controls: self.out.controls.into_iter().collect::<Option<_>>()?,
            functions: self.out.functions.into_iter().collect::<Option<_>>()?,
            main,
            source: Arc::clone(source),
        })
    }

    /// Checks that objects that the control plane sees have unique names (P4_16 1.2.5, section 18.3.3); instances of one type
    /// may share a name only through `@name`.
    fn unique_names(&mut self) {
        let mut seen: HashMap<String, Vec<(&str, Span)>> = HashMap::new();
        let mut twice = Vec::new();
        let mut see = |kind: &'static str, name: &str, span: Span| {
            let others = seen.entry(name.to_owned()).or_default();
            let first = others.iter().find(|other| other.0 == kind);
            // A top-level action counts once, however many controls have a copy of it.
            if let Some(&first) = first.or(others.first())
                && (kind != "action" || first != (kind, span))
            {
                twice.push((name.to_owned(), first, (kind, span)));
            }
            others.push((kind, span));
        };
        use crate::p4info::{applied_tables, is_hidden};
        for c in self.out.controls.iter().flatten() {
            // Constructor arguments may decide which one of two tables with the same name is applied.
            let applied = applied_tables(c);
            let applied = || applied.iter().filter_map(|n| c.tables.get(*n));
            for t in applied().filter(|t| !is_hidden(&t.annotations)) {
                see("table", &t.name, t.span);
            }
            let offered = applied().flat_map(|t| &t.actions);
            for id in offered.map(|a| a.action).collect::<BTreeSet<_>>() {
                if let Some(action) = c.actions.get(id.index())
                    && !is_hidden(&action.annotations)
                {
                    see("action", &action.name, action.span);
                }
            }
        }
        for e in &self.out.externs {
            if !is_hidden(&e.annotations) {
                see("object", &e.name, e.span);
            }
        }
        for (name, (one, first), (other, span)) in twice {
            let named = format!("have the control-plane name `{name}`");
            let d = match one == other {
                true => {
                    let message = format!("two {one}s {named}");
                    Diagnostic::error(Code::Duplicate, span, message)
                }
                // p4c accepts it: P4Info has a separate list for each kind.
                false => {
                    let message = format!("this {other} and the {one} before it {named}");
                    Diagnostic::warning(Code::Lint, span, message)
                }
            };
            self.push(
                d.label(first, "the first")
                    .hint("rename one of them with `@name(\"…\")`"),
            );
        }
    }

    /// Reports a diagnostic, unless the same diagnostic was already reported.
    pub(crate) fn push(&mut self, diagnostic: Diagnostic) {
        let key = (diagnostic.span, diagnostic.code, diagnostic.message.clone());
        if self.said.insert(key) {
            self.sink.push(diagnostic);
        }
    }

    pub(crate) fn err(&mut self, code: Code, span: Span, message: impl Into<String>) {
        self.push(Diagnostic::error(code, span, message));
    }

    pub(crate) fn warn(&mut self, code: Code, span: Span, message: impl Into<String>) {
        self.push(Diagnostic::warning(code, span, message));
    }

    /// Notes a construct that is legal but that no target can run; it becomes an error if the program's architecture can run.
    pub(crate) fn checked_only(&mut self, span: Span, what: &'static str) {
        if !self.dry {
            self.unplaced.get_or_insert((span, what));
        }
    }

    /// Reports `expected T, found U`, unless an error was already reported for either type.
    pub(crate) fn mismatch(&mut self, span: Span, expected: &Ty, found: &Ty) {
        if expected.is_poison() || found.is_poison() {
            return;
        }
        let text = format!(
            "expected {}, found {}",
            self.types.show(expected),
            self.types.show(found)
        );
        let mut d = Diagnostic::error(Code::Type, span, text);
        // `(bool) n` is legal only for 0 and 1.
        let to_bool = *found == Ty::Integer && *self.types.strip_new(expected) == Ty::Bool;
        if cast::castable(&self.types, found, expected) && !to_bool {
            d = d.hint(format!(
                "cast it: `({}) {}`",
                self.types.show(expected),
                self.operand(span)
            ));
        } else if *expected == Ty::Bool && matches!(found, Ty::Bit(_) | Ty::Int(_) | Ty::Integer) {
            d = d.hint(match self.source.slice(span) {
                "0" => "write `false`".to_owned(),
                "1" => "write `true`".to_owned(),
                _ => format!("compare it: `{} != 0`", self.operand(span)),
            });
        }
        self.push(d);
    }

    /// The source of an expression for a hint, in parentheses if it needs them after a cast or before an operator.
    fn operand(&self, span: Span) -> String {
        let text = self.source.slice(span);
        let simple = |c: char| c.is_ascii_alphanumeric() || "_.[]:".contains(c);
        match text {
            "" => "…".to_owned(),
            _ if text.len() > 40 || text.contains(['\n', '\\']) => "…".to_owned(),
            _ if text.chars().all(simple) => text.to_owned(),
            _ => format!("({text})"),
        }
    }

    /// Enters a nesting level; returns `false` and reports an error if a limit is reached. Pair with [`Self::leave`].
    pub(crate) fn enter(&mut self, span: Span) -> bool {
        self.work += 1;
        if self.depth >= LIMITS.expanded_nesting {
            let most = LIMITS.expanded_nesting;
            let message = format!("declarations are nested more than {most} levels deep");
            self.err(Code::Limit, span, message);
            return false;
        }
        if self.work > LIMITS.work {
            let message = format!("more than {} statements and expressions", LIMITS.work);
            self.push(
                Diagnostic::error(Code::Limit, span, message)
                    .hint("each instance of a parser or control counts separately"),
            );
            return false;
        }
        self.depth += 1;
        true
    }

    pub(crate) fn leave(&mut self) {
        self.depth -= 1;
    }

    /// Counts expressions that the lowering writes out; `false` if the total exceeds the limit, with an error the first time.
    pub(crate) fn write_out(&mut self, parts: usize, span: Span) -> bool {
        let was_full = self.parts > LIMITS.parts;
        self.parts = self.parts.saturating_add(parts);
        if self.parts <= LIMITS.parts {
            return true;
        }
        if was_full {
            return false;
        }
        let message = format!(
            "comparisons, default values and constants expand to more than {} parts",
            LIMITS.parts
        );
        self.push(
            Diagnostic::error(Code::Limit, span, message).hint(
                "`==` expands to a comparison per field, a constant to its value at each use",
            ),
        );
        false
    }

    /// Whether the limit allows one more instance, when `made` of its kind exist; reports an error if not.
    pub(crate) fn room(&mut self, made: usize, span: Span) -> bool {
        if made < LIMITS.instances {
            return true;
        }
        let message = format!("more than {} instances of one kind", LIMITS.instances);
        self.push(
            Diagnostic::error(Code::Limit, span, message)
                .hint("nested instances multiply: two per level, over thirty levels, are 2³⁰"),
        );
        false
    }

    /// Lowers a declaration only for its diagnostics and drops the result. `assumed`: it has invented values or unknown types.
    pub(crate) fn dry_run(&mut self, assumed: bool, run: impl FnOnce(&mut Self)) {
        if self.sink.is_full() {
            return;
        }
        let marks = (
            self.out.externs.len(),
            self.out.parsers.len(),
            self.out.controls.len(),
            self.out.functions.len(),
            self.pipelines.len(),
        );
        let was = std::mem::replace(&mut self.dry, true);
        self.assumed = assumed;
        run(self);
        self.dry = was;
        self.assumed = false;
        self.out.externs.truncate(marks.0);
        self.out.parsers.truncate(marks.1);
        self.out.controls.truncate(marks.2);
        self.out.functions.truncate(marks.3);
        self.pipelines.truncate(marks.4);
        self.function_cache.retain(|_, id| id.index() < marks.3);
        self.method_bodies.retain(|id, _| id.index() < marks.0);
    }
}

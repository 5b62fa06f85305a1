//! Warns of reads of header fields on paths where the header is invalid, and of reads of values that no path has set.
//!
//! The analysis goes through each parser state by state, then through the controls after it, and into every call. At each point
//! it knows the set of paths that lead there. A path is a combination of facts: a header is valid; a value equals a constant
//! with which the program compares it. `if (hdr.tcp.isValid())` therefore proves also `hdr.ipv4` valid if no path extracts TCP
//! without IPv4, and `if (meta.has_tcp == 1)` proves `hdr.tcp` valid if the parser sets both together.
//!
//! If a set of paths becomes too large, the analysis forgets the relations between its facts. It stops at a limit in a program
//! that is too large. A warning reports each of these cases.
//!
//! The analysis does not follow packets that the parser rejects, elements of stacks, unions, and conditions that compare a
//! value other than with `==` and `!=`.

mod calls;
mod conditions;
mod known;
mod parsers;
mod paths;
mod state;
mod statements;
mod tables;
mod values;

use crate::ast::Direction;
use crate::diagnostics::{Code, Diagnostic, Diagnostics, Sink};
use crate::ir::{
    Arch, Control, ExternFunction, Package, PackageArg, Param, ParserId, Program, StmtKind, Type,
    Var, visit,
};
use crate::source::Span;
use paths::Diagrams;
use state::{Facts, Kind, State, VarPart, VarParts};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Returns warnings about reads of invalid headers and unset values; none for an architecture that this compiler does not know.
pub fn check(program: &Program) -> Diagnostics {
    let mut found = BTreeMap::new();
    if !matches!(program.arch, Arch::Other(_)) {
        let mut chains = Vec::new();
        collect(&program.main, &mut chains);
        for chain in &chains {
            let mut walk = Walk::new(program);
            walk.chain(chain);
            walk.restart();
            walk.chain(chain);
            found.append(&mut walk.warnings());
        }
    }
    let mut sink = Sink::new();
    for ((span, message), hint) in found {
        sink.push(Diagnostic::warning(Code::Lint, span, message).hint(hint));
    }
    sink.finish(Arc::clone(&program.source))
}

/// A parser or control that the architecture runs.
#[derive(Clone, Copy)]
enum Block {
    Parser(ParserId),
    Control(crate::ir::ControlId),
}

/// Collects chains of blocks: each parser of the package, with the controls that run after it.
fn collect(package: &Package, chains: &mut Vec<Vec<Block>>) {
    for (name, arg) in &package.args {
        match arg {
            PackageArg::Parser(id) => chains.push(vec![Block::Parser(*id)]),
            // A ghost thread processes no packets.
            PackageArg::Control(id) if name != "ghost" => {
                if let Some(chain) = chains.last_mut() {
                    chain.push(Block::Control(*id));
                }
            }
            PackageArg::Package(inner) => collect(inner, chains),
            _ => {}
        }
    }
}

/// Whether the program calls one of the given extern functions.
fn calls(program: &Program, functions: &[ExternFunction]) -> bool {
    let mut found = false;
    for control in &program.controls {
        let actions = control.actions.iter().map(|action| &action.body);
        for block in actions.chain([&control.body]) {
            visit(block, &mut |stmt| {
                found |= matches!(&stmt.kind, StmtKind::CallExtern { function, .. }
                    if functions.contains(function));
            });
        }
    }
    found
}

/// The paths that leave a block through a `return` (`ret`), a `break` (`brk`) or a `continue` (`next`).
#[derive(Default)]
struct Jumps {
    ret: State,
    brk: State,
    next: State,
}

/// A call of a parser, control or function that the analysis follows.
#[derive(Clone, Copy)]
struct Frame<'p> {
    /// Index of this frame in [`Walk::frames`].
    number: usize,
    unit: Unit<'p>,
}

/// A parser, a control or a function of the program.
#[derive(Clone, Copy)]
struct Unit<'p> {
    /// Number of this parser, control or function, unique among all of them.
    number: u32,
    name: &'p str,
    vars: &'p [Var],
    /// The control itself; `None` for a parser or function.
    control: Option<&'p Control>,
}

impl<'p> Unit<'p> {
    fn control(program: &'p Program, id: crate::ir::ControlId) -> Unit<'p> {
        let control = &program.controls[id.index()];
        Unit {
            number: 1 << 24 | id.0,
            name: &control.name,
            vars: &control.vars,
            control: Some(control),
        }
    }

    fn parser(program: &'p Program, id: ParserId) -> Unit<'p> {
        let parser = &program.parsers[id.index()];
        Unit {
            number: 2 << 24 | id.0,
            name: &parser.name,
            vars: &parser.vars,
            control: None,
        }
    }

    fn function(program: &'p Program, id: crate::ir::FunctionId) -> Unit<'p> {
        let function = &program.functions[id.index()];
        Unit {
            number: 3 << 24 | id.0,
            name: &function.name,
            vars: &function.vars,
            control: None,
        }
    }
}

/// Warnings: the keys are source span and message, the values are hints.
type Warnings = BTreeMap<(Span, String), String>;

struct Walk<'p> {
    program: &'p Program,
    places: VarParts,
    facts: Facts,
    /// Whether this is the first of two walks: it takes all paths and finds the relevant facts, which the second walk follows.
    is_first: bool,
    diagrams: Diagrams,
    /// For each frame, the variables that are aliases: (index, the caller's variable or part that it stands for).
    frames: Vec<BTreeMap<u32, VarPart>>,
    jumps: Jumps,
    exit: State,
    /// Source span of the current statement; `unit` is the name of its parser, control or function.
    span: Span,
    unit: &'p str,
    /// Field reads: (span, field name), to (name of the header, whether it is valid on some path, whether it is on all paths).
    reads: BTreeMap<(Span, String), (String, bool, bool)>,
    found: Warnings,
    /// Names of parsers, controls and functions in which a set of paths became too large, with the span where it first did.
    coarse: BTreeMap<&'p str, Span>,
    /// Name of the parser, control or function, and span, at which the analysis reached its limit; `None` if it reached none.
    stopped: Option<(&'p str, Span)>,
    steps: u32,
    /// Whether the program clones packets from ingress.
    clones: bool,
    /// Whether user metadata may already be set when a packet enters ingress again: the program resubmits or recirculates.
    keeps_metadata: bool,
}

/// Index of the egress control among v1model's blocks, from 0.
const V1MODEL_EGRESS: usize = 3;
/// Maximum number of statements that the analysis visits; each visit of a statement counts.
const MAX_STEPS: u32 = 200_000;
/// Maximum number of decision diagram nodes that the analysis creates.
const MAX_NODES: usize = 4_000_000;
/// Maximum number of facts (a header is valid, a value equals a constant) that the analysis follows.
const MAX_FACTS: usize = 4_000;

/// Replaces `Unit::number` for the variables that a parser and the controls after it share, such as the headers.
const SHARED: u32 = u32::MAX;

impl<'p> Walk<'p> {
    fn new(program: &'p Program) -> Walk<'p> {
        use ExternFunction::{
            Clone, Clone3, ClonePreservingFieldList, Recirculate, RecirculatePreservingFieldList,
            Resubmit, ResubmitPreservingFieldList,
        };
        let again = [
            Recirculate,
            RecirculatePreservingFieldList,
            Resubmit,
            ResubmitPreservingFieldList,
        ];
        Walk {
            program,
            places: VarParts::default(),
            facts: Facts::default(),
            is_first: true,
            diagrams: Diagrams::new(),
            frames: Vec::new(),
            jumps: Jumps::default(),
            exit: State::default(),
            span: Span::default(),
            unit: "",
            reads: BTreeMap::new(),
            found: BTreeMap::new(),
            coarse: BTreeMap::new(),
            stopped: None,
            steps: 0,
            clones: calls(program, &[Clone, Clone3, ClonePreservingFieldList]),
            keeps_metadata: calls(program, &again),
        }
    }

    /// Prepares the second walk, which follows the facts that the first walk found.
    fn restart(&mut self) {
        self.facts.number();
        self.is_first = false;
        self.frames.clear();
        self.exit = State::default();
        self.reads.clear();
        self.found.clear();
        self.stopped = None;
        self.steps = 0;
    }

    fn warnings(self) -> Warnings {
        let mut found = self.found;
        for ((span, field), (header, some, all)) in self.reads {
            let (message, hint) = match (some, all) {
                (_, true) => continue,
                (true, false) => (
                    format!("`{field}` is read where `{header}` may be invalid"),
                    format!("read it under `if ({header}.isValid())`"),
                ),
                (false, false) => (
                    format!("`{field}` is read where `{header}` is always invalid"),
                    "extract the header or call `setValid()` first".to_owned(),
                ),
            };
            found.insert((span, message), hint);
        }
        for (unit, span) in self.coarse {
            let message = format!(
                "reads in `{unit}` were checked approximately: its headers and values have too many combinations"
            );
            let hint = "warnings from here on may concern paths that no packet takes";
            found.insert((span, message), hint.to_owned());
        }
        if let Some((unit, span)) = self.stopped {
            let message = format!(
                "reads in `{unit}` were checked only up to here: the program with all its calls is too large"
            );
            let hint = "reads after this statement were not checked";
            found.insert((span, message), hint.to_owned());
        }
        found
    }

    fn chain(&mut self, chain: &[Block]) {
        let paths = self.facts.start(&mut self.diagrams);
        let mut state = State::default().on(paths);
        let mut parsed = State::default();
        for (n, block) in chain.iter().enumerate() {
            if (&self.program.arch, n) == (&Arch::V1model, V1MODEL_EGRESS) {
                state = self.between(state, &parsed);
            }
            let (unit, params) = match block {
                Block::Parser(id) => {
                    let params = &self.program.parsers[id.index()].params;
                    (Unit::parser(self.program, *id), params)
                }
                Block::Control(id) => {
                    let params = &self.program.controls[id.index()].params;
                    (Unit::control(self.program, *id), params)
                }
            };
            let frame = self.top(unit, params, &mut state);
            state = match block {
                Block::Parser(id) => {
                    parsed = self.parser(frame, *id, state);
                    parsed.clone()
                }
                Block::Control(_) => {
                    let Some(control) = unit.control else { return };
                    let ended = self.body(frame, &control.body, state);
                    let exit = std::mem::take(&mut self.exit);
                    self.join(ended, exit)
                }
            };
            if self.stopped.is_some() {
                return;
            }
        }
    }

    /// The paths from v1model's ingress to its egress. Dropped packets are left out. Clones made in ingress are added, with the
    /// headers that the parser left and unknown metadata, some of which a clone may keep.
    fn between(&mut self, state: State, parsed: &State) -> State {
        let dropped = self.dropped();
        let (_, state) = self.split(state, dropped);
        if !self.clones {
            return state;
        }
        let mut clone = parsed.clone();
        self.forget_where(&mut clone, |value| value.kind == Kind::Variable);
        self.join(state, clone)
    }

    /// The fact that a packet will be dropped unless a later statement sends it.
    fn dropped(&mut self) -> u32 {
        let place = self.places.root((SHARED, u32::MAX));
        self.fact(&place)
    }

    /// Binds a block's parameters. The first of each struct type is one variable for all blocks; others count as set and valid.
    fn top(&mut self, unit: Unit<'p>, params: &[Param], state: &mut State) -> Frame<'p> {
        let mut bound = BTreeMap::new();
        let mut types = BTreeSet::new();
        let is_parser = unit.control.is_none();
        for param in params {
            let ty = &unit.vars[param.var.index()].ty;
            let Type::Struct(id) = ty else {
                continue;
            };
            let first = types.insert(*id);
            let key = if first {
                id.0
            } else {
                u32::MAX - 1 - param.var.0
            };
            let place = self.places.root((SHARED, key));
            let name = self.program.types[id.index()].name.as_str();
            let given = !first
                || name == "standard_metadata_t"
                || name.starts_with("psa_")
                || name.contains("intrinsic_metadata");
            // A user's metadata that is only an `in` parameter was set by an earlier pass.
            if given || is_parser && param.direction == Direction::In {
                self.give(&place, ty, state);
            } else if is_parser && param.direction == Direction::InOut && self.keeps_metadata {
                self.forget_in(&place, state);
                for (i, field) in (0..).zip(&self.program.types[id.index()].fields) {
                    if field.annotations.iter().any(|a| a.name == "field_list") {
                        let number = self.places.number(&place.field(i));
                        state.set.insert(number);
                    }
                }
            }
            bound.insert(param.var.0, place);
        }
        self.frame(unit, bound)
    }

    /// Marks all values in a variable or part (`place`) as set, and all its headers as valid.
    fn give(&mut self, place: &VarPart, ty: &Type, state: &mut State) {
        let mut headers = Vec::new();
        self.headers(place, ty, &mut headers);
        for header in headers {
            let fact = self.fact(&header);
            self.hold(state, fact, true);
        }
        self.forget_in(place, state);
        let number = self.places.number(place);
        state.set.insert(number);
    }

    fn frame(&mut self, unit: Unit<'p>, bound: BTreeMap<u32, VarPart>) -> Frame<'p> {
        self.frames.push(bound);
        Frame {
            number: self.frames.len() - 1,
            unit,
        }
    }
}

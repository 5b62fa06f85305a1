//! Reads of fields of headers that are invalid on some path, and of values that no path has set.
//!
//! Each parser is followed state by state, then the controls behind it, each call with what holds at its place. What is known
//! at a place are the sets of headers that may be valid there together, so that `if (hdr.tcp.isValid())` also knows of
//! `hdr.ipv4` where no path extracts the one without the other.
//!
//! What is not followed: packets that the parser rejects, elements of stacks, unions, conditions that tell of a header by
//! its fields. A program with too many combinations gets no warning.

mod calls;
mod state;
mod values;

use crate::ast::Direction;
use crate::diagnostics::{Code, Diagnostic, Diagnostics, Sink};
use crate::ir::{
    Arch, Arg, Control, ExternFunction, Package, PackageArg, Param, ParserId, Program, Stmt,
    StmtKind, Table, Target, Transition, Type, Var, VarId, visit,
};
use crate::source::Span;
use calls::number;
use state::{Place, Places, State};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The warnings, for programs of the architectures that packets run through.
pub fn check(program: &Program) -> Diagnostics {
    let mut found = BTreeMap::new();
    if !matches!(program.arch, Arch::Other(_)) {
        let mut chains = Vec::new();
        collect(&program.main, &mut chains);
        for (number, chain) in chains.iter().enumerate() {
            let mut walk = Walk::new(program, number as u32);
            walk.chain(chain);
            if !walk.gave_up {
                found.append(&mut walk.found);
            }
        }
    }
    let mut sink = Sink::new();
    for ((span, message), hint) in found {
        sink.push(Diagnostic::warning(Code::Lint, span, message).hint(hint));
    }
    sink.finish(Arc::clone(&program.source))
}

/// A block of the architecture.
#[derive(Clone, Copy)]
enum Block {
    Parser(ParserId),
    Control(crate::ir::ControlId),
}

/// Parsers, each with the controls behind it.
fn collect(package: &Package, chains: &mut Vec<Vec<Block>>) {
    for (name, arg) in &package.args {
        match arg {
            PackageArg::Parser(id) => chains.push(vec![Block::Parser(*id)]),
            // A ghost thread sees no packet.
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

fn clones(program: &Program) -> bool {
    let mut found = false;
    for control in &program.controls {
        let actions = control.actions.iter().map(|action| &action.body);
        for block in actions.chain([&control.body]) {
            visit(block, &mut |stmt| {
                found |= matches!(
                    &stmt.kind,
                    StmtKind::CallExtern {
                        function: ExternFunction::Clone
                            | ExternFunction::Clone3
                            | ExternFunction::ClonePreservingFieldList,
                        ..
                    }
                );
            });
        }
    }
    found
}

/// Where jumps out of a block lead.
#[derive(Default)]
struct Jumps {
    ret: State,
    brk: State,
    next: State,
}

/// A unit that runs.
#[derive(Clone, Copy)]
struct Frame<'p> {
    /// Its variables' places, behind [`Walk::frames`].
    number: usize,
    vars: &'p [Var],
    control: Option<&'p Control>,
}

struct Walk<'p> {
    program: &'p Program,
    /// Of this chain, for places of its own.
    chain: u32,
    places: Places,
    /// Where each frame's variables lie that are not its own.
    frames: Vec<BTreeMap<u32, Place>>,
    jumps: Jumps,
    exit: State,
    /// What each action of the table that was applied last left, and the variables that tell of it.
    outcome: Option<Outcome<'p>>,
    span: Span,
    found: BTreeMap<(Span, String), String>,
    steps: u32,
    gave_up: bool,
    /// The program makes clones of ingress.
    clones: bool,
}

struct Outcome<'p> {
    table: &'p Table,
    hit: Option<VarId>,
    action_run: Option<VarId>,
    /// By action; the last is that of none.
    after: Vec<State>,
}

/// Position of egress among v1model's blocks.
const V1MODEL_EGRESS: usize = 3;
/// Statements, each as often as it is met.
const MAX_STEPS: u32 = 200_000;

impl<'p> Walk<'p> {
    fn new(program: &'p Program, chain: u32) -> Walk<'p> {
        Walk {
            program,
            chain,
            places: Places::default(),
            frames: Vec::new(),
            jumps: Jumps::default(),
            exit: State::default(),
            outcome: None,
            span: Span::default(),
            found: BTreeMap::new(),
            steps: 0,
            gave_up: false,
            clones: clones(program),
        }
    }

    fn chain(&mut self, chain: &[Block]) {
        let mut state = State::start();
        let mut parsed = State::default();
        for (n, block) in chain.iter().enumerate() {
            if (&self.program.arch, n) == (&Arch::V1model, V1MODEL_EGRESS) {
                state = self.between(state, &parsed);
            }
            let (vars, params, control) = match block {
                Block::Parser(id) => {
                    let parser = &self.program.parsers[id.index()];
                    (&parser.vars, &parser.params, None)
                }
                Block::Control(id) => {
                    let control = &self.program.controls[id.index()];
                    (&control.vars, &control.params, Some(control))
                }
            };
            let frame = self.top(vars, params, control, &mut state);
            state = match block {
                Block::Parser(id) => {
                    parsed = self.parser(frame, *id, state);
                    parsed.clone()
                }
                Block::Control(_) => {
                    let Some(control) = control else { return };
                    let ended = self.body(frame, &control.body, state);
                    ended.joined(std::mem::take(&mut self.exit))
                }
            };
            if self.gave_up {
                return;
            }
        }
    }

    /// From v1model's ingress to its egress: without what was dropped, and with the clones of ingress, which enter egress as
    /// the parser has left them.
    fn between(&mut self, state: State, parsed: &State) -> State {
        let dropped = self.dropped();
        let (_, state) = state.split(dropped);
        match self.clones {
            true => state.joined(parsed.clone()),
            false => state,
        }
    }

    /// The bit of packets that are dropped if nothing sends them after all.
    fn dropped(&mut self) -> u32 {
        let place = self.places.root((self.chain, u32::MAX, u32::MAX));
        self.bit(&place)
    }

    /// A block's parameters: the first of each type is one value in all blocks of a chain. Nothing is said of a second one.
    fn top(
        &mut self,
        vars: &'p [Var],
        params: &[Param],
        control: Option<&'p Control>,
        state: &mut State,
    ) -> Frame<'p> {
        let mut bound = BTreeMap::new();
        let mut types = BTreeSet::new();
        for param in params {
            let Type::Struct(id) = &vars[param.var.index()].ty else {
                continue;
            };
            let first = types.insert(*id);
            let key = if first {
                id.0
            } else {
                u32::MAX - 1 - param.var.0
            };
            let place = self.places.root((self.chain, u32::MAX, key));
            let name = self.program.types[id.index()].name.as_str();
            let given = !first
                || name == "standard_metadata_t"
                || name.starts_with("psa_")
                || name.contains("intrinsic_metadata");
            // Metadata of the user's own that only come in are an earlier pass's.
            if given || control.is_none() && param.direction == Direction::In {
                self.give(&place, &vars[param.var.index()].ty, state);
            }
            bound.insert(param.var.0, place);
        }
        self.frame(vars, control, bound)
    }

    /// Everything in there is set and valid.
    fn give(&mut self, place: &Place, ty: &Type, state: &mut State) {
        let mut headers = Vec::new();
        self.headers(place, ty, &mut headers);
        for header in headers {
            let bit = self.bit(&header);
            state.set_valid(bit, true);
        }
        let number = self.places.number(place);
        state.set.insert(number);
    }

    fn frame(
        &mut self,
        vars: &'p [Var],
        control: Option<&'p Control>,
        bound: BTreeMap<u32, Place>,
    ) -> Frame<'p> {
        self.frames.push(bound);
        Frame {
            number: self.frames.len() - 1,
            vars,
            control,
        }
    }

    fn bit(&mut self, header: &Place) -> u32 {
        let bit = self.places.bit(header);
        self.gave_up |= bit >= u128::BITS;
        bit.min(u128::BITS - 1)
    }

    /// What a body leaves, `return` included.
    fn body(&mut self, frame: Frame<'p>, block: &'p [Stmt], state: State) -> State {
        let outer = std::mem::take(&mut self.jumps);
        let end = self.block(frame, block, state);
        let inner = std::mem::replace(&mut self.jumps, outer);
        end.joined(inner.ret)
    }

    fn parser(&mut self, frame: Frame<'p>, id: ParserId, state: State) -> State {
        let parser = &self.program.parsers[id.index()];
        let state = self.block(frame, &parser.init, state);
        let mut before = vec![State::default(); parser.states.len()];
        let mut accepted = State::default();
        let mut waiting = vec![(0, state)];
        while let Some((at, state)) = waiting.pop() {
            let (Some(before), Some(here)) = (before.get_mut(at), parser.states.get(at)) else {
                continue;
            };
            if !before.join(state) || self.gave_up {
                continue;
            }
            let before = before.clone();
            let mut after = self.block(frame, &here.body, before);
            self.span = here.span;
            let mut targets = Vec::new();
            match &here.transition {
                Transition::Direct(target) => targets.push(*target),
                Transition::Select { keys, cases } => {
                    for key in keys {
                        self.read(frame, key, &mut after);
                    }
                    targets.extend(cases.iter().map(|(_, target)| *target));
                }
            }
            for target in targets {
                match target {
                    Target::Accept => {
                        accepted.join(after.clone());
                    }
                    Target::Reject => {}
                    Target::State(id) => waiting.push((id.index(), after.clone())),
                }
            }
        }
        accepted
    }

    fn block(&mut self, frame: Frame<'p>, block: &'p [Stmt], mut state: State) -> State {
        for stmt in block {
            if state.is_unreachable() || self.gave_up {
                break;
            }
            self.steps += 1;
            self.gave_up |= self.steps > MAX_STEPS || state.is_too_large();
            self.span = stmt.span;
            let outcome = self.outcome.take();
            state = self.stmt(frame, stmt, state, outcome);
        }
        state
    }

    fn stmt(
        &mut self,
        frame: Frame<'p>,
        stmt: &'p Stmt,
        mut state: State,
        outcome: Option<Outcome<'p>>,
    ) -> State {
        match &stmt.kind {
            StmtKind::Assign(to, value) => {
                self.read(frame, value, &mut state);
                self.assign(frame, to, Some(value), &mut state);
                if self.sends(frame, to) {
                    let dropped = self.dropped();
                    state.set_valid(dropped, false);
                }
            }
            StmtKind::Reset(to) => self.reset(frame, to, &mut state),
            StmtKind::If(arms, otherwise) => {
                let mut after = State::default();
                for (n, arm) in arms.iter().enumerate() {
                    state = self.block(frame, &arm.before, state);
                    self.span = arm.span;
                    let split = outcome
                        .as_ref()
                        .filter(|_| n == 0)
                        .and_then(|o| o.by_hit(&arm.cond));
                    let (yes, no) = match split {
                        Some(split) => split,
                        None => self.condition(frame, &arm.cond, state),
                    };
                    after.join(self.block(frame, &arm.then, yes));
                    state = no;
                }
                after.join(self.block(frame, otherwise, state));
                return after;
            }
            StmtKind::Switch {
                value,
                cases,
                default,
            } => {
                let ran = outcome.filter(|o| o.is_action_run(value));
                if ran.is_none() {
                    self.read(frame, value, &mut state);
                }
                let mut after = State::default();
                let mut rest = ran.as_ref().map(|o| o.after.clone());
                for (labels, block) in cases {
                    let mut enters = State::default();
                    match &mut rest {
                        Some(rest) => {
                            for at in labels.iter().filter_map(number) {
                                if let Some(state) = rest.get_mut(at) {
                                    enters.join(std::mem::take(state));
                                }
                            }
                        }
                        None => enters = state.clone(),
                    }
                    after.join(self.block(frame, block, enters));
                }
                let enters = match rest {
                    Some(rest) => rest.into_iter().fold(State::default(), State::joined),
                    None => state,
                };
                after.join(self.block(frame, default, enters));
                return after;
            }
            StmtKind::Loop {
                cond_stmts,
                cond,
                body,
                update,
            } => {
                let outer = std::mem::take(&mut self.jumps);
                let mut head = State::default();
                let mut after = State::default();
                while head.join(state) && !self.gave_up {
                    let before = self.block(frame, cond_stmts, head.clone());
                    self.span = stmt.span;
                    let (yes, no) = self.condition(frame, cond, before);
                    after.join(no);
                    let end = self.block(frame, body, yes);
                    let end = end.joined(std::mem::take(&mut self.jumps.next));
                    after.join(std::mem::take(&mut self.jumps.brk));
                    state = self.block(frame, update, end);
                }
                let inner = std::mem::replace(&mut self.jumps, outer);
                self.jumps.ret.join(inner.ret);
                return after;
            }
            StmtKind::Atomic(block, _) => return self.block(frame, block, state),
            StmtKind::Break => {
                self.jumps.brk.join(state);
                return State::default();
            }
            StmtKind::Continue => {
                self.jumps.next.join(state);
                return State::default();
            }
            StmtKind::Return => {
                self.jumps.ret.join(state);
                return State::default();
            }
            StmtKind::Exit => {
                self.exit.join(state);
                return State::default();
            }
            StmtKind::ApplyTable {
                table,
                hit,
                action_run,
            } => return self.table(frame, table.index(), (*hit, *action_run), state),
            StmtKind::CallAction(id, args) => return self.action(frame, *id, args, state),
            StmtKind::ApplyControl(id, args) => {
                let control = &self.program.controls[id.index()];
                let key = (self.chain, 1 << 24 | id.0);
                let inner = (&control.vars[..], Some(control));
                let called = self.call(frame, inner, key, (&control.params, args), &mut state);
                return self.body(called, &control.body, state);
            }
            StmtKind::ApplyParser(id, args) => {
                let parser = &self.program.parsers[id.index()];
                let key = (self.chain, 2 << 24 | id.0);
                let inner = (&parser.vars[..], None);
                let called = self.call(frame, inner, key, (&parser.params, args), &mut state);
                return self.parser(called, *id, state);
            }
            StmtKind::CallFunction(id, args) => {
                let function = &self.program.functions[id.index()];
                let key = (self.chain, 3 << 24 | id.0);
                let inner = (&function.vars[..], None);
                let called = self.call(frame, inner, key, (&function.params, args), &mut state);
                return self.body(called, &function.body, state);
            }
            StmtKind::CallMethod { args, result, .. } => {
                self.external(frame, args, result.as_ref(), &mut state);
            }
            StmtKind::CallExtern {
                function,
                args,
                result,
                ..
            } => match function {
                // What these name are fields, not their values.
                ExternFunction::Clone3 | ExternFunction::Resubmit | ExternFunction::Recirculate => {
                }
                ExternFunction::VerifyChecksum
                | ExternFunction::VerifyChecksumWithPayload
                | ExternFunction::UpdateChecksum
                | ExternFunction::UpdateChecksumWithPayload => {
                    let (mut asked, not) = match args.first() {
                        Some(Arg::In(condition)) => self.condition(frame, condition, state),
                        _ => (state, State::default()),
                    };
                    if !asked.is_unreachable() {
                        self.external(frame, args.get(1..).unwrap_or_default(), None, &mut asked);
                    }
                    return asked.joined(not);
                }
                _ => {
                    self.external(frame, args, result.as_ref(), &mut state);
                    if *function == ExternFunction::MarkToDrop {
                        let dropped = self.dropped();
                        state.set_valid(dropped, true);
                    }
                }
            },
            StmtKind::Extract {
                header,
                varbit_bits,
                ..
            } => {
                if let Some(bits) = varbit_bits {
                    self.read(frame, bits, &mut state);
                }
                self.assign(frame, header, None, &mut state);
            }
            StmtKind::Advance { bits, .. } => self.read(frame, bits, &mut state),
            StmtKind::Lookahead { dst, .. } | StmtKind::PacketLength { dst, .. } => {
                self.assign(frame, dst, None, &mut state);
            }
            StmtKind::Verify(condition, _) => return self.condition(frame, condition, state).0,
            StmtKind::SetValid(header) => self.set_valid(frame, header, true, &mut state),
            StmtKind::SetInvalid(header) => self.set_valid(frame, header, false, &mut state),
            StmtKind::Emit { .. } | StmtKind::Push(..) | StmtKind::Pop(..) => {}
        }
        state
    }
}

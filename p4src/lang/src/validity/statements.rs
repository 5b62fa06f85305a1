//! Analyzes statements: the effect of each statement on the paths that reach it.

use super::calls::value;
use super::state::State;
use super::{Frame, MAX_NODES, MAX_STEPS, Unit, Walk};
use crate::ir::{Arg, ExternFunction, Stmt, StmtKind};

/// Maximum number of analysis rounds of a loop before relations between facts are dropped, so that the paths become stable.
pub(super) const MAX_ROUNDS: u32 = 8;

impl<'p> Walk<'p> {
    /// The analysis state at the end of a body; its `return`s lead there too.
    pub(super) fn body(&mut self, frame: Frame<'p>, block: &'p [Stmt], state: State) -> State {
        let outer = std::mem::take(&mut self.jumps);
        let end = self.block(frame, block, state);
        let inner = std::mem::replace(&mut self.jumps, outer);
        self.join(end, inner.ret)
    }

    pub(super) fn block(&mut self, frame: Frame<'p>, block: &'p [Stmt], mut state: State) -> State {
        for stmt in block {
            if state.is_unreachable() || self.stopped.is_some() {
                break;
            }
            self.steps += 1;
            self.span = stmt.span;
            self.unit = frame.unit.name;
            if self.steps > MAX_STEPS || self.diagrams.len() > MAX_NODES {
                self.stop();
            }
            let before = state.paths;
            state = self.stmt(frame, stmt, state);
            if state.paths != before {
                self.bound(&mut state);
            }
        }
        state
    }

    fn stmt(&mut self, frame: Frame<'p>, stmt: &'p Stmt, mut state: State) -> State {
        match &stmt.kind {
            StmtKind::Assign(to, value) => {
                self.read(frame, value, &mut state);
                self.assign(frame, to, Some(value), &mut state);
                if self.sends(frame, to) {
                    let dropped = self.dropped();
                    self.hold(&mut state, dropped, false);
                }
            }
            StmtKind::Reset(to) => self.reset(frame, to, &mut state),
            StmtKind::If(arms, otherwise) => {
                let mut after = State::default();
                for arm in arms {
                    state = self.block(frame, &arm.before, state);
                    self.span = arm.span;
                    let (yes, no) = self.condition(frame, &arm.cond, state);
                    let then = self.block(frame, &arm.then, yes);
                    after = self.join(after, then);
                    state = no;
                }
                let otherwise = self.block(frame, otherwise, state);
                return self.join(after, otherwise);
            }
            StmtKind::Switch {
                value: of,
                cases,
                default,
            } => {
                self.read(frame, of, &mut state);
                let mut after = State::default();
                for (labels, block) in cases {
                    let mut enters = State::default();
                    for label in labels {
                        let (yes, no) = self.equal(frame, of, value(label).as_ref(), state);
                        enters = self.join(enters, yes);
                        state = no;
                    }
                    let end = self.block(frame, block, enters);
                    after = self.join(after, end);
                }
                let end = self.block(frame, default, state);
                return self.join(after, end);
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
                let mut rounds = 0;
                while self.enters(&mut head, state, rounds) && self.stopped.is_none() {
                    rounds += 1;
                    let before = self.block(frame, cond_stmts, head.clone());
                    self.span = stmt.span;
                    let (yes, no) = self.condition(frame, cond, before);
                    after = self.join(after, no);
                    let end = self.block(frame, body, yes);
                    let next = std::mem::take(&mut self.jumps.next);
                    let end = self.join(end, next);
                    let left = std::mem::take(&mut self.jumps.brk);
                    after = self.join(after, left);
                    state = self.block(frame, update, end);
                }
                let inner = std::mem::replace(&mut self.jumps, outer);
                let ret = std::mem::take(&mut self.jumps.ret);
                self.jumps.ret = self.join(ret, inner.ret);
                return after;
            }
            StmtKind::Atomic(block, _) => return self.block(frame, block, state),
            StmtKind::Break => {
                let others = std::mem::take(&mut self.jumps.brk);
                self.jumps.brk = self.join(others, state);
                return State::default();
            }
            StmtKind::Continue => {
                let others = std::mem::take(&mut self.jumps.next);
                self.jumps.next = self.join(others, state);
                return State::default();
            }
            StmtKind::Return => {
                let others = std::mem::take(&mut self.jumps.ret);
                self.jumps.ret = self.join(others, state);
                return State::default();
            }
            StmtKind::Exit => {
                let others = std::mem::take(&mut self.exit);
                self.exit = self.join(others, state);
                return State::default();
            }
            StmtKind::ApplyTable {
                table,
                hit,
                action_run,
            } => return self.table(frame, table.index(), (*hit, *action_run), state),
            StmtKind::CallAction(id, args) => return self.action(frame, *id, args, None, state),
            StmtKind::ApplyControl(id, args) => {
                let control = &self.program.controls[id.index()];
                let unit = Unit::control(self.program, *id);
                let called = self.call(frame, unit, (&control.params, args), &mut state);
                return self.body(called, &control.body, state);
            }
            StmtKind::ApplyParser(id, args) => {
                let params = &self.program.parsers[id.index()].params;
                let unit = Unit::parser(self.program, *id);
                let called = self.call(frame, unit, (params, args), &mut state);
                return self.parser(called, *id, state);
            }
            StmtKind::CallFunction(id, args) => {
                let function = &self.program.functions[id.index()];
                let unit = Unit::function(self.program, *id);
                let called = self.call(frame, unit, (&function.params, args), &mut state);
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
                // The arguments of these functions name fields and do not read their values.
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
                    return self.join(asked, not);
                }
                _ => {
                    self.external(frame, args, result.as_ref(), &mut state);
                    if *function == ExternFunction::MarkToDrop {
                        let dropped = self.dropped();
                        self.hold(&mut state, dropped, true);
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

//! The second executor: a plain interpreter that walks p4lang's IR, statement by statement, on values of any size.
//!
//! It is written for comparison with the specification (P4_16 1.2.5; section numbers are beside the code), not for speed. It
//! shares the decisions of a load ([`crate::op::bindings`]) and the state of tables and extern objects with the machine
//! ([`crate::exec`]); a block's parameters are read from the frame at its start and written back at its end. It runs what needs
//! a closer look: packets that are traced, reads of undefined values, and tests that compare both executors.
//!
//! ```text
//! value, arith     values, operations      place, expr      l-values, expressions
//! stmt, call       statements, calls       parser           states, packet_in, packet_out
//! table            lookup and action       methods, salu, predicate  extern objects
//! psa, v1model, tna   features that only these have
//! frame            parameters of blocks    event, watch     the events of a trace
//! ```

pub(crate) mod arith;
pub(crate) mod bits;
mod call;
pub(crate) mod dialect;
mod discarded;
pub mod event;
mod expr;
pub(crate) mod frame;
mod methods;
mod parser;
pub(crate) mod poison;
mod residual;
mod stmt;
mod table;
pub(crate) mod value;
pub(crate) mod var_path;
pub(crate) mod watch;

use crate::op::Code;
use crate::op::bindings::{Block, Gates, UnitId};
use crate::op::block::{BlockEnd, BlockRun};
use crate::op::region::MetaField;
use crate::rules::{InvalidFields, Rules};
use crate::state::State;
use dialect::Interpreted;
use p4lang::ast::Direction;
use p4lang::ir::{Action, Control, ControlId, ExternId, Param, Parser, Program, Type, Var};
use p4lang::source::Span;
use poison::Fill;
use std::collections::BTreeMap;
use std::sync::Arc;
use value::Value;
use watch::Watch;

/// The reason why the statements after the current one do not run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stop {
    Break,
    Continue,
    Return,
    /// `exit` (P4_16 12.5), or the step limit is reached in a loop.
    Exit,
    /// The parser rejects the packet (P4_16 13.4).
    Reject,
}

pub(crate) type Result<T> = std::result::Result<T, Stop>;

/// The parser, control or function whose names are in scope.
#[derive(Clone, Copy)]
pub(crate) enum EnvUnit<'p> {
    Parser(&'p Parser),
    Control(ControlId, &'p Control),
    Function,
}

/// A parser, control or function that is running, with the values of its variables by number.
pub(crate) struct Env<'p> {
    pub(crate) scope: EnvUnit<'p>,
    pub(crate) declared: &'p [Var],
    pub(crate) vars: Vec<Value>,
}

/// The method of a register action (TNA) that is running.
#[derive(Clone)]
pub(crate) struct RunningMethod<'p> {
    pub(crate) action: &'p Action,
    /// The original value of the register's cell, for predicates.
    pub(crate) original: Value,
}

/// The interpreter's state that lasts from block to block.
#[derive(Debug)]
pub(crate) struct Reference {
    dialect: &'static dyn Interpreted,
    program: Arc<Program>,
    pub(crate) watch: Watch,
    shadow: frame::Shadow,
    /// Color that each direct meter without explicit calls gave the packet last, by meter.
    colours: BTreeMap<ExternId, u64>,
}

/// Counts of failures in the run of one block.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    pub(crate) out_of_steps: bool,
    pub(crate) failed_assertions: u64,
}

/// State that the run of a block may change.
pub(crate) struct Memory<'a> {
    pub(crate) frame: &'a mut [u64],
    pub(crate) state: &'a mut State,
    pub(crate) marks: &'a mut Vec<u32>,
}

/// The run of one block in the interpreter.
pub(crate) struct Interpreter<'a, 'p> {
    pub(crate) dialect: &'static dyn Interpreted,
    pub(crate) program: &'p Program,
    pub(crate) code: &'a Code,
    pub(crate) state: &'a mut State,
    pub(crate) frame: &'a mut [u64],
    pub(crate) packet: &'a [u8],
    pub(crate) out: &'a mut Vec<u8>,
    pub(crate) now_ns: u64,
    pub(crate) watch: &'a mut Watch,
    pub(crate) colours: &'a mut BTreeMap<ExternId, u64>,
    pub(crate) marks: &'a mut Vec<u32>,
    /// Number of bits of the packet that the parser has read so far.
    pub(crate) cursor: usize,
    /// Remaining number of steps (parser states and loop iterations) of the block.
    pub(crate) steps: u32,
    pub(crate) error: u64,
    pub(crate) counts: Counts,
    /// TNA: slots that decide whether the deparser's mirror, resubmission and digest requests have an effect.
    pub(crate) gates: Gates,
    /// TNA: whether the slot that gates mirror requests is undefined. Only this one can be, in ingress, where it is no
    /// validity.
    pub(crate) undefined_mirror: bool,
    /// TNA: residual checksums that are computed at the end of the parser.
    pub(crate) residuals: Vec<residual::Residual<'p>>,
    /// TNA: the register action's method that is running; `None` outside of such methods.
    pub(crate) method: Option<RunningMethod<'p>>,
    /// The running parser or control and the functions that it called, innermost last.
    pub(crate) envs: Vec<Env<'p>>,
    pub(crate) span: Span,
}

impl Reference {
    /// Creates the interpreter of a program; `poison`: seed of the pattern that marks undefined values.
    pub(crate) fn new(
        program: Arc<Program>,
        dialect: &'static dyn Interpreted,
        poison: Option<u64>,
    ) -> Reference {
        let mut fill = poison.map_or_else(Fill::default, Fill::poison);
        // If undefined bits are marked, the fields that BMv2 keeps are as undefined as in P4_16.
        fill.invalid = match Rules::for_program(&program).invalid {
            InvalidFields::Kept if fill.marks() => InvalidFields::Zero,
            invalid => invalid,
        };
        Reference {
            dialect,
            program: discarded::kept(&program),
            watch: Watch::new(fill),
            shadow: frame::Shadow::default(),
            colours: BTreeMap::new(),
        }
    }

    /// Runs one block of the program on the frame and the state.
    pub(crate) fn run(
        &mut self,
        code: &Code,
        block: Block,
        memory: Memory<'_>,
        run: BlockRun<'_>,
        steps: u32,
    ) -> (BlockEnd, Counts) {
        let program = Arc::clone(&self.program);
        let bound = &code.bindings.blocks[block.number as usize];
        let (scope, declared, params) = unit(&program, bound.unit);
        if let UnitId::Parser(_) = bound.unit {
            self.shadow.begin(&code.bindings.carried);
        }
        let mut vars = vec![Value::Nothing; declared.len()];
        for (param, slot) in params.iter().zip(&bound.params) {
            if let Some(slot) = slot {
                let ty = &declared[param.var.index()].ty;
                let fill = &mut self.watch.fill;
                // An `out` parameter starts undefined (P4_16 6.8), unless it is metadata of the architecture.
                if param.direction == Direction::Out && fill.marks() && !is_intrinsic(&program, ty)
                {
                    continue;
                }
                let mut value = self.shadow.read(&program, memory.frame, *slot, ty, fill);
                if bound.gates != Gates::default() {
                    // The types by which a Tofino's deparser selects its further outputs are not values there: an
                    // unassigned type selects nothing, whatever it is compared with. As in the machine it reads as 0, and
                    // the gate is closed.
                    value.clear_invalid_fields();
                }
                vars[param.var.index()] = value;
            }
        }
        for (var, value) in declared.iter().zip(&mut vars) {
            if *value == Value::Nothing {
                *value = Value::undefined(&program, &var.ty, &mut self.watch.fill);
            }
        }
        let keeps_fields = self.watch.fill.invalid.are_written();
        let undefined = |slot| self.shadow.undefined(memory.frame, slot) != 0;
        let undefined_mirror = bound.gates.mirror.is_some_and(undefined);
        let mut interpreter = Interpreter {
            dialect: self.dialect,
            program: &program,
            code,
            state: memory.state,
            frame: memory.frame,
            packet: run.packet,
            out: run.out,
            now_ns: run.now_ns,
            watch: &mut self.watch,
            colours: &mut self.colours,
            marks: memory.marks,
            cursor: run.cursor,
            steps,
            error: 0,
            counts: Counts::default(),
            gates: bound.gates,
            undefined_mirror,
            residuals: Vec::new(),
            method: None,
            envs: vec![Env {
                scope,
                declared,
                vars,
            }],
            span: Span::default(),
        };
        interpreter.whole(scope);
        let ended = BlockEnd {
            cursor: interpreter.cursor,
            error: interpreter.error,
        };
        let Interpreter {
            counts,
            envs,
            frame,
            ..
        } = interpreter;
        for (param, slot) in params.iter().zip(&bound.params) {
            let written = matches!(param.direction, Direction::Out | Direction::InOut);
            if let (Some(slot), true, Some(env)) = (slot, written, envs.first()) {
                let value = &env.vars[param.var.index()];
                // Only PSA's deparsers have such parameters.
                let leaves =
                    param.direction == Direction::Out && matches!(bound.unit, UnitId::Control(_));
                self.shadow
                    .write(frame, *slot, value, (keeps_fields, leaves));
            }
        }
        if let Some(left) = bound.left {
            frame[left.cleared as usize] = 0;
            frame[left.error as usize] = ended.error;
        }
        (ended, counts)
    }

    /// Reports metadata fields that a block has left undefined and by which the architecture decides about the packet.
    pub(crate) fn decides(
        &mut self,
        code: &Code,
        block: Block,
        frame: &[u64],
        fields: &[(MetaField, &str)],
    ) {
        let span = match code.bindings.blocks[block.number as usize].unit {
            UnitId::Parser(id) => self.program.parsers[id.index()].span,
            UnitId::Control(id) => self.program.controls[id.index()].span,
        };
        for (field, name) in fields {
            let slot = field.slot();
            let undefined = slot.map_or(0, |slot| self.shadow.undefined(frame, slot));
            if undefined & field.mask() != 0 {
                let what = watch::decisive(name);
                self.watch.undefined(what, &self.program, span);
            }
        }
    }

    /// Takes out the record of undefined bits. [`Self::put_back`] restores it once the frame has its present contents again.
    pub(crate) fn set_aside(&mut self) -> frame::Shadow {
        std::mem::take(&mut self.shadow)
    }

    /// Restores the record of undefined bits that [`Reference::set_aside`] returned.
    pub(crate) fn put_back(&mut self, shadow: frame::Shadow) {
        self.shadow = shadow;
    }

    pub(crate) fn name(&self, code: &Code, block: Block) -> &str {
        match code.bindings.blocks[block.number as usize].unit {
            UnitId::Parser(id) => &self.program.parsers[id.index()].name,
            UnitId::Control(id) => &self.program.controls[id.index()].name,
        }
    }

    /// Describes the first block parameter or v1model request that differs between two executors' frames; `None`: all are
    /// equal.
    pub(crate) fn difference(
        &self,
        code: &Code,
        block: Block,
        fast: &[u64],
        reference: &[u64],
    ) -> Option<String> {
        let bindings = &code.bindings;
        let bound = &bindings.blocks[block.number as usize];
        let (_, declared, params) = unit(&self.program, bound.unit);
        for ((param, slot), size) in params.iter().zip(&bound.params).zip(&bound.sizes) {
            let ty = &declared[param.var.index()].ty;
            let Some(slot) = *slot else { continue };
            // Equal slots mean equal values; the converse does not hold for invalid headers.
            let slots = slot as usize..(slot + size) as usize;
            if fast[slots.clone()] == reference[slots] {
                continue;
            }
            let read = |frame: &[u64]| {
                let nothing = frame::Shadow::default();
                let fill = &mut Fill::default();
                nothing.read(&self.program, frame, slot, ty, fill)
            };
            let (a, b) = (read(fast), read(reference));
            if a != b {
                let of = |value| watch::fields_of(&self.program, ty, &param.name, value);
                let pairs = (of(&a), of(&b));
                return Some(watch::first_difference(&pairs.0, &pairs.1));
            }
        }
        bindings.requests.slots().find_map(|slot| {
            let (a, b) = (fast[slot as usize], reference[slot as usize]);
            (a != b).then(|| format!("request in slot {slot}: {a}, reference {b}"))
        })
    }
}

/// Whether a type is metadata that an architecture sets before a block runs.
fn is_intrinsic(program: &Program, ty: &Type) -> bool {
    let Type::Struct(id) = ty else { return false };
    let mut annotations = program.types[id.index()].annotations.iter();
    annotations.any(|a| a.name == "__intrinsic_metadata")
}

/// The scope, variables and parameters of a parser or control.
fn unit(program: &Program, unit: UnitId) -> (EnvUnit<'_>, &[Var], &[Param]) {
    match unit {
        UnitId::Parser(id) => {
            let parser = &program.parsers[id.index()];
            (EnvUnit::Parser(parser), &parser.vars, &parser.params)
        }
        UnitId::Control(id) => {
            let control = &program.controls[id.index()];
            (
                EnvUnit::Control(id, control),
                &control.vars,
                &control.params,
            )
        }
    }
}

impl<'p> Interpreter<'_, 'p> {
    /// Runs a block's parser or control from start to end.
    fn whole(&mut self, scope: EnvUnit<'p>) {
        let _ended = match scope {
            EnvUnit::Parser(parser) => {
                self.watch.block(&parser.name, self.program, parser.span);
                let ended = self.parser_body(parser);
                self.settle_residuals();
                ended
            }
            EnvUnit::Control(_, control) => {
                self.watch.block(&control.name, self.program, control.span);
                self.block(&control.body)
            }
            EnvUnit::Function => Ok(()),
        };
    }

    pub(crate) fn env(&mut self) -> &mut Env<'p> {
        let last = self.envs.len() - 1;
        &mut self.envs[last]
    }

    pub(crate) fn undefined(&mut self, ty: &Type) -> Value {
        Value::undefined(self.program, ty, &mut self.watch.fill)
    }

    /// Takes the steps that the loop iteration or parser state at this source position costs. If fewer are left, the block
    /// fails with `ParserTimeout`, and `Err(otherwise)` is returned.
    fn step(&mut self, at: Span, otherwise: Stop) -> Result<()> {
        let cost = self.code.bindings.rounds.get(&at).copied();
        match self.steps.checked_sub(cost.unwrap_or(1)) {
            Some(left) => {
                self.steps = left;
                Ok(())
            }
            None => {
                self.counts.out_of_steps = true;
                self.error = self.code.errors.parser_timeout;
                Err(otherwise)
            }
        }
    }

    /// Raises a parser error (P4_16 13.2): records its number, and makes the parser reject the packet.
    pub(crate) fn fail<T>(&mut self, error: u64) -> Result<T> {
        self.error = error;
        let name = self.program.errors.get(error as usize);
        self.watch
            .error(name.map_or("?", String::as_str), self.program, self.span);
        Err(Stop::Reject)
    }

    /// The number of the error with this name, as core.p4 declares it; 0 if there is none.
    pub(crate) fn error_named(&self, name: &str) -> u64 {
        let found = self.program.errors.iter().position(|e| e == name);
        found.unwrap_or(0) as u64
    }
}

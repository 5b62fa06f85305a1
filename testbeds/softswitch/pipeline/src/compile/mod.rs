//! Compiles IR to [`Code`], once at load. Every call is inlined: P4 has no recursion.
//!
//! Arguments are copied in and out as P4_16 6.8 demands, unless nobody can observe that: a callee sees nothing of its caller
//! but the arguments, so a control, parser or function may work directly on places that do not overlap (`call`).

#[cfg(test)]
mod alone;
pub(crate) mod call;
mod coalesce;
pub mod dialect;
mod effects;
pub(crate) mod expr;
mod finish;
mod flow;
pub(crate) mod layout;
pub(crate) mod location;
pub(crate) mod methods;
pub(crate) mod objects;
mod parser;
mod roll;
mod rounds;
mod stmt;
pub mod surroundings;
mod tables;
mod tidy;
mod values;

use crate::error::LoadError;
use crate::limits::LIMITS;
use crate::op::ErrorCodes;
use crate::op::bindings::{self, Bindings, Block};
use crate::op::{Code, Mark, Op, Slot, Target};
use crate::rules::Rules;
use crate::state::State;
use dialect::Dialect;
use hashbrown::{HashMap, HashSet};
use p4lang::ir::{Const, Control, ControlId, ExternId, Parser, ParserId, Program, Var};
use p4lang::source::Span;

/// Number of slots for constants, which come first.
const CONSTANT_SLOTS: u32 = LIMITS.constants;

/// The control, parser or function that is being compiled.
#[derive(Clone, Copy)]
pub(crate) enum Unit<'p> {
    Control(ControlId, &'p Control),
    Parser(&'p Parser),
    Function,
}

/// The names and jump targets of the control, parser or function that is being compiled.
pub(crate) struct Scope<'p> {
    pub(crate) unit: Unit<'p>,
    pub(crate) vars: &'p [Var],
    pub(crate) slots: Vec<Slot>,
    pub(crate) ret: Target,
    pub(crate) exit: Target,
    pub(crate) reject: Target,
    pub(crate) loops: Vec<(Target, Target)>,
}

/// A program during compilation.
pub struct Compiler<'p> {
    pub(crate) dialect: &'static dyn Dialect,
    /// The architecture's rules for generic code.
    pub rules: &'static Rules,
    /// The program that is compiled.
    pub program: &'p Program,
    /// Settings of the switch on which the generated code depends.
    pub wanted: Wanted,
    /// The code generated so far.
    pub code: Code,
    /// The positions of the program's declared objects.
    pub bindings: Bindings,
    /// Tables and externs, as the program declares them.
    pub state: State,
    /// Registers as the control plane sees them.
    pub registers: Vec<crate::externs::register::Info>,
    /// For each direct meter, the slot in which the application of its table stores the color.
    pub(crate) direct_meters: HashMap<ExternId, Slot>,
    pub(crate) errors: HashMap<&'p str, u32>,
    /// Allocation of slots.
    pub frame: Frame,
    pub(crate) labels: Labels,
    pub(crate) types: layout::Types,
    pub(crate) scope: Scope<'p>,
    pub(crate) span: Span,
    pub(crate) rounds: rounds::Rounds,
    /// Index of each trace mark (state, table or action) in the code's list of marks.
    pub(crate) marks: HashMap<Mark, u32>,
    pub(crate) taken: Taken,
    /// State of TNA programs.
    pub tofino: surroundings::TofinoContext,
    pub v1model: surroundings::V1modelContext,
}

/// Settings of the switch, from its config, on which the generated code depends.
#[derive(Debug, Clone, Copy)]
pub struct Wanted {
    /// Seed of all random numbers.
    pub seed: u64,
    /// Whether the code contains marks for the trace.
    pub trace: bool,
    /// Maximum number of steps of a block; 0: unknown.
    pub max_steps: u32,
}

/// The allocation of slots.
#[derive(Debug, Default)]
pub struct Frame {
    /// The first free slot.
    pub(crate) top: u32,
    /// Slots of constants of one word.
    pub(crate) single: HashMap<u64, Slot>,
    /// For each block, the first of the slots that only this block uses.
    pub(crate) own: Vec<Slot>,
    /// Slots that the architecture accesses individually.
    pub pinned: Vec<(Slot, u32)>,
    /// Ends of statements: position of the next instruction, and a slot. The values from this slot on are not read any more.
    pub(crate) dead: Vec<(Target, Slot)>,
}

/// Jump targets.
#[derive(Debug, Default)]
pub(crate) struct Labels {
    /// Position of each label in the code, once the label is placed.
    pub(crate) positions: Vec<u32>,
    /// Labels of `exit` that a jump uses.
    pub(crate) exits: HashSet<Target>,
}

/// Amounts of limited resources that the program has used so far.
#[derive(Debug, Default)]
pub(crate) struct Taken {
    /// Slots that are moved to or from bytes so far.
    pub(crate) moved_slots: u32,
    /// Bytes of the cells of extern objects so far.
    pub(crate) cells_bytes: u64,
}

pub(crate) type Result<T> = std::result::Result<T, LoadError>;

impl<'p> Compiler<'p> {
    /// Declares tables and externs; [`Compiler::parser`] and [`Compiler::control`] add blocks.
    pub fn new(
        program: &'p Program,
        dialect: &'static dyn Dialect,
        wanted: Wanted,
    ) -> Result<Compiler<'p>> {
        let errors = program
            .errors
            .iter()
            .enumerate()
            .map(|(i, e)| (e.as_str(), i as u32))
            .collect();
        let mut compiler = Compiler {
            dialect,
            rules: Rules::for_program(program),
            program,
            wanted,
            code: Code {
                frame: CONSTANT_SLOTS,
                ..Code::default()
            },
            bindings: Bindings::default(),
            state: State::default(),
            registers: Vec::new(),
            direct_meters: HashMap::new(),
            errors,
            frame: Frame {
                top: CONSTANT_SLOTS,
                ..Frame::default()
            },
            labels: Labels::default(),
            types: layout::Types::new(program),
            scope: Scope {
                unit: Unit::Function,
                vars: &[],
                slots: Vec::new(),
                ret: 0,
                exit: 0,
                reject: 0,
                loops: Vec::new(),
            },
            span: Span::default(),
            rounds: rounds::Rounds::default(),
            marks: HashMap::new(),
            taken: Taken::default(),
            tofino: surroundings::TofinoContext::default(),
            v1model: surroundings::V1modelContext::default(),
        };
        // Slot 0: target of writes to metadata that the architecture does not have.
        compiler.constant(0)?;
        dialect.begin(&mut compiler);
        compiler.code.errors = compiler.error_codes();
        compiler.declare_objects()?;
        compiler.declare_tables()?;
        compiler.declare_value_sets()?;
        Ok(compiler)
    }

    /// Codes of the errors that the machine raises.
    fn error_codes(&self) -> ErrorCodes {
        let code = |name| self.errors.get(name).copied().unwrap_or(0).into();
        ErrorCodes {
            packet_too_short: code("PacketTooShort"),
            header_too_short: code("HeaderTooShort"),
            parser_timeout: code("ParserTimeout"),
            invalid_argument: code("ParserInvalidArgument"),
        }
    }

    /// Compiles a top-level parser whose parameters are in the given slots (`None` for the packet). `left`: see
    /// [`bindings::BoundBlock`].
    pub fn parser(
        &mut self,
        id: ParserId,
        params: &[Option<Slot>],
        left: Option<bindings::ParserResults>,
    ) -> Result<Block> {
        let parser = &self.program.parsers[id.index()];
        let block = self.bind(
            bindings::UnitId::Parser(id),
            (&parser.params, &parser.vars),
            params,
            left,
        )?;
        let end = self.label();
        let top = self.frame.top;
        let slots = self.unit_slots(&parser.vars, &parser.params, params)?;
        let scope = self.scope(Unit::Parser(parser), &parser.vars, slots, end);
        let outer = std::mem::replace(&mut self.scope, scope);
        self.span = parser.span;
        self.parser_body(parser, end)?;
        self.place(end);
        self.dialect.parser_ends(self)?;
        if let Some(bindings::ParserResults { error, cleared }) = left {
            self.op(Op::Verdict { error, cleared })?;
        }
        self.scope = outer;
        self.frame.top = top;
        self.op(Op::End)?;
        Ok(block)
    }

    /// Compiles a top-level control whose parameters are in the given slots.
    pub fn control(&mut self, id: ControlId, params: &[Option<Slot>]) -> Result<Block> {
        let control = &self.program.controls[id.index()];
        let block = self.bind(
            bindings::UnitId::Control(id),
            (&control.params, &control.vars),
            params,
            None,
        )?;
        let end = self.label();
        let top = self.frame.top;
        let slots = self.unit_slots(&control.vars, &control.params, params)?;
        let scope = self.scope(Unit::Control(id, control), &control.vars, slots, end);
        let outer = std::mem::replace(&mut self.scope, scope);
        self.span = control.span;
        self.block(&control.body)?;
        self.scope = outer;
        self.frame.top = top;
        self.place(end);
        self.op(Op::End)?;
        Ok(block)
    }

    fn bind(
        &mut self,
        unit: bindings::UnitId,
        (declared, vars): (&[p4lang::ir::Param], &[Var]),
        params: &[Option<Slot>],
        left: Option<bindings::ParserResults>,
    ) -> Result<Block> {
        let sizes = declared.iter().map(|p| self.size(&vars[p.var.index()].ty));
        let sizes = sizes.collect::<Result<_>>()?;
        self.bindings.blocks.push(bindings::BoundBlock {
            unit,
            params: params.to_vec(),
            sizes,
            gates: self.tofino.gates,
            left,
        });
        self.code.entries.push(self.code.ops.len() as Target);
        self.frame.own.push(self.frame.top);
        Ok(Block {
            number: (self.bindings.blocks.len() - 1) as u32,
        })
    }

    fn scope(&self, unit: Unit<'p>, vars: &'p [Var], slots: Vec<Slot>, end: Target) -> Scope<'p> {
        Scope {
            unit,
            vars,
            slots,
            ret: end,
            exit: end,
            reject: end,
            loops: Vec::new(),
        }
    }

    pub(crate) fn op(&mut self, op: Op) -> Result<()> {
        if self.code.ops.len() >= LIMITS.instructions {
            return self.too_large(format!("more than {} instructions", LIMITS.instructions));
        }
        let op = match op {
            Op::Zero { d, n: 1 } => Op::Mov {
                d,
                s: self.constant(0)?,
            },
            op => op,
        };
        self.count_words(&op);
        self.code.ops.push(op);
        Ok(())
    }

    /// The label that an `exit` at this point jumps to.
    fn exit(&mut self) -> Target {
        self.labels.exits.insert(self.scope.exit);
        self.scope.exit
    }

    pub(crate) fn label(&mut self) -> Target {
        self.labels.positions.push(u32::MAX);
        (self.labels.positions.len() - 1) as Target
    }

    pub(crate) fn place(&mut self, label: Target) {
        self.labels.positions[label as usize] = self.code.ops.len() as u32;
    }

    /// Allocates slots, which stay allocated until `top` is reset.
    pub fn alloc(&mut self, n: u32) -> Result<Slot> {
        let slot = self.frame.top;
        self.frame.top = slot.saturating_add(n);
        if self.frame.top > LIMITS.slots {
            let what = "slots of 64 bits for variables";
            return self.too_large(format!("more than {} {what}", LIMITS.slots));
        }
        self.code.frame = self.code.frame.max(self.frame.top);
        Ok(slot)
    }

    /// The slot of a constant of up to 64 bits.
    pub(crate) fn constant(&mut self, value: u64) -> Result<Slot> {
        if let Some(slot) = self.frame.single.get(&value) {
            return Ok(*slot);
        }
        let slot = self.constants(&[value])?;
        self.frame.single.insert(value, slot);
        Ok(slot)
    }

    fn constants(&mut self, words: &[u64]) -> Result<Slot> {
        let slot = self.code.constants.len() as Slot;
        if slot + words.len() as u32 > CONSTANT_SLOTS {
            let what = "different constants of 64 bits";
            return self.too_large(format!("more than {CONSTANT_SLOTS} {what}"));
        }
        self.code.constants.extend_from_slice(words);
        Ok(slot)
    }

    pub(crate) fn error_slot(&mut self, name: &str) -> Result<Slot> {
        let code = self.errors.get(name).copied().unwrap_or(0);
        self.constant(code.into())
    }

    fn mark(&mut self, mark: impl FnOnce() -> Mark) -> Result<()> {
        if self.wanted.trace {
            // Equal messages share one mark: both executors name it by its first occurrence.
            let (mark, next) = (mark(), self.code.marks.len() as u32);
            let i = *self.marks.entry(mark.clone()).or_insert(next);
            if i == next {
                self.code.marks.push(mark);
            }
            self.op(Op::Trace(i))?;
        }
        Ok(())
    }

    pub(crate) fn unsupported<T>(&self, what: impl Into<String>) -> Result<T> {
        Err(LoadError::Unsupported {
            what: what.into(),
            span: self.span,
        })
    }

    pub(crate) fn too_large<T>(&self, what: impl Into<String>) -> Result<T> {
        Err(LoadError::TooLarge {
            what: what.into(),
            span: self.span,
        })
    }

    /// Allocates slots for the variables of a control, parser or function; those of its parameters are given.
    fn unit_slots(
        &mut self,
        vars: &'p [Var],
        params: &[p4lang::ir::Param],
        given: &[Option<Slot>],
    ) -> Result<Vec<Slot>> {
        let mut bound = HashMap::new();
        for (param, slot) in params.iter().zip(given) {
            bound.insert(param.var.index(), slot.unwrap_or(0));
        }
        let mut slots = Vec::with_capacity(vars.len());
        for (i, var) in vars.iter().enumerate() {
            if let Some(slot) = bound.get(&i) {
                slots.push(*slot);
                continue;
            }
            let n = self.size(&var.ty)?;
            let slot = self.alloc(n)?;
            // Clears stale validity from a unit that used these slots before.
            if self.holds_states(&var.ty) {
                self.op(Op::Zero { d: slot, n })?;
            }
            slots.push(slot);
        }
        Ok(slots)
    }
}

/// A constant as a number, if it fits.
pub fn const_u64(value: &Const) -> Option<u64> {
    match value {
        Const::Bits { value, .. } => u64::try_from(value).ok(),
        Const::Integer(value) => u64::try_from(value).ok(),
        Const::Bool(b) => Some((*b).into()),
        Const::Enum(_, i) | Const::Error(i) => Some((*i).into()),
        _ => None,
    }
}

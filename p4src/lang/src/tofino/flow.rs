//! The table dependency graph: computes when each value is known, in a walk from the first statement to the last.
//!
//! Each value has the stage of the pipe *at whose end* it is known: 0 for the parser's output. The rules assume the best that
//! the hardware can do, so the resulting number of stages is a lower bound:
//!
//! - A table's stage is one after the stages of its key and of the conditions before it (match dependency). The action that
//!   ran, and constants that actions set, control later tables in the *same* stage (successor dependency); action data and sums
//!   are known one stage later (match and action dependency).
//! - An addition, a bitwise operation, a shift, or an ordered comparison of two variables takes a stage. Equality, masks, logic
//!   and comparisons with constants take none: gateways (condition units of a stage) evaluate them.
//! - Constants and copies that are assigned under conditions take none: a compiler may test the conditions instead. A flag such
//!   as `outcome` is therefore known when its conditions are. Writing it into a header takes one more stage.
//! - A register, counter or meter takes one stage, the same for all its calls. The hash unit computes slices, casts and
//!   concatenations of its index at no cost.
//! - The hash unit evaluates operators in a block `@in_hash { … }` at no cost.
//! - A hash costs nothing as an operand, and takes a stage in keys, conditions and other hashes.

mod externs;
mod values;

use std::collections::{BTreeMap, BTreeSet};

use super::field_path::{FieldPath, Unit};
use super::memory;
use crate::ir::{
    ActionId, Arg, Control, ControlId, Expr, ExprKind, ExternId, FunctionId, Program, Stmt,
    StmtKind, TableId, VarId,
};
use crate::source::Span;

/// The timing of a value: the stage of the pipe at whose end the value is known.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Val {
    /// The stage at whose end the value is known; 0 for the parser's output.
    pub at: u32,
    /// Index (in [`Flow::ops`]) of the operation that takes this stage; `None` if no operation does.
    pub by: Option<usize>,
    /// Whether the value comes directly from a hash unit.
    hash: bool,
    /// Whether the value is action data (an argument in a table entry): a field that receives it is known one stage later.
    data: bool,
}

impl Val {
    fn max(self, other: Val) -> Val {
        let later = if other.at > self.at { other } else { self };
        Val {
            hash: self.hash && other.hash,
            data: self.data || other.data,
            ..later
        }
    }
}

/// An object that occupies one stage of the pipe.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Node {
    Table(ControlId, TableId),
    Register(ExternId),
    Statistics(ExternId),
    /// An ALU instruction, or a write to a field.
    Alu,
}

/// An operation that takes a stage of the pipe.
#[derive(Debug, Clone, Copy)]
pub(super) struct Op {
    pub node: Node,
    pub stage: u32,
    /// Index of the operation whose result this operation needs; `None` if it needs none.
    pub after: Option<usize>,
    pub span: Span,
}

/// The result of the walk through a control: operations, stages and uses of values.
#[derive(Debug, Default)]
pub(super) struct Flow {
    pub ops: Vec<Op>,
    /// Earliest stage of each object that occupies a stage, and the span of its first use.
    pub nodes: BTreeMap<Node, (u32, Span)>,
    /// Registers that one packet would use twice: (register, span of the second use, span of the first use).
    pub twice: Vec<(ExternId, Span, Span)>,
    /// Registers that a table's action accesses: they need no logical table (one of a stage's places for tables) of their own.
    pub in_tables: BTreeSet<ExternId>,
    /// Fields that exact crossbars carry to match and hash units: (bits, span of the first use). Next field: ternary crossbars.
    pub exact: BTreeMap<FieldPath, (u64, Span)>,
    pub ternary: BTreeMap<FieldPath, (u64, Span)>,
    /// Output of hash units: (bits, span) for each hash object, and (`None`) for each distinct index of a register or counter.
    pub hash_bits: BTreeMap<(Option<ExternId>, String), (u64, Span)>,
    /// Uses of values: (field that receives it, field that is read); `None` if the value itself has an effect, as in a key.
    pub uses: Vec<(Option<FieldPath>, FieldPath)>,
    /// Indices of those elements of `uses` in which a table's key reads the field.
    pub key_uses: BTreeSet<usize>,
    /// For each hash, the fields that receive its results, and the hashed fields with their bits.
    pub hashed: BTreeMap<ExternId, Hashed>,
    /// Header fields of more than 16 bits that an ALU computes, with the span of the first computation.
    pub words: BTreeMap<FieldPath, Span>,
}

/// A hash function's results and inputs.
#[derive(Debug, Default)]
pub(super) struct Hashed {
    pub results: Vec<FieldPath>,
    pub inputs: BTreeMap<FieldPath, (u64, Span)>,
}

impl Flow {
    /// Whether hash distribution (it moves hash results to ALUs) carries a hash: not if nothing or only a table's key reads it.
    pub fn is_distributed(&self, hash: ExternId) -> bool {
        let moved = self.places_used(|n| !self.key_uses.contains(&n));
        let read = |result: &FieldPath| moved.iter().any(|l| l.holds(result) || result.holds(l));
        (self.hashed.get(&hash)).is_some_and(|hashed| hashed.results.iter().any(read))
    }

    pub fn depth(&self) -> u32 {
        self.ops.iter().map(|op| op.stage).max().unwrap_or(0)
    }

    /// The fields whose values have an effect, directly or after copies to other fields.
    pub fn live(&self) -> BTreeSet<FieldPath> {
        self.places_used(|_| true)
    }

    /// The fields whose values have an effect, considering only the elements of `uses` whose indices `counts` accepts.
    fn places_used(&self, counts: impl Fn(usize) -> bool) -> BTreeSet<FieldPath> {
        let mut live = BTreeSet::new();
        loop {
            let before = live.len();
            let uses = self.uses.iter().enumerate();
            for (_, (to, from)) in uses.filter(|(n, _)| counts(*n)) {
                let wanted = to
                    .as_ref()
                    .is_none_or(|to| live.iter().any(|l: &FieldPath| l.holds(to) || to.holds(l)));
                if wanted && !live.contains(from) {
                    live.insert(from.clone());
                }
            }
            if live.len() == before {
                return live;
            }
        }
    }

    /// The operations on the longest dependency chain, from the first stage to the last.
    pub fn critical_path(&self) -> Vec<Op> {
        let mut path = Vec::new();
        let mut at = (0..self.ops.len()).max_by_key(|&i| (self.ops[i].stage, usize::MAX - i));
        while let Some(i) = at {
            path.push(self.ops[i]);
            at = self.ops[i].after.filter(|&before| before < i);
        }
        path.reverse();
        path
    }
}

/// Walks through a control and everything that it calls, and computes when each value is known.
pub(super) fn walk(program: &Program, control: ControlId) -> Flow {
    let mut floors = BTreeMap::new();
    // A register that is called at two places is in the stage of the later call, which delays the earlier one. Repeat until the
    // stages are stable. The result is a lower bound after any number of rounds.
    let mut flow = Flow::default();
    for _ in 0..MAX_ROUNDS {
        let mut walk = Walk::new(program, floors);
        let cx = Cx {
            unit: control.0,
            control: Some(control),
            ctl: Val::default(),
            table: None,
            in_hash: false,
        };
        if let Some(c) = program.controls.get(control.index()) {
            walk.block(cx, &c.body);
        }
        let found: BTreeMap<Node, u32> =
            walk.flow.nodes.iter().map(|(n, (s, _))| (*n, *s)).collect();
        let settled = found == walk.floors;
        flow = walk.flow;
        if settled {
            break;
        }
        floors = found;
    }
    flow
}

/// Maximum number of walks through a control; they are repeated until the stages of its tables and registers are stable.
const MAX_ROUNDS: usize = 5;

/// The context of the statement that the walk has reached.
#[derive(Clone, Copy)]
struct Cx {
    unit: Unit,
    control: Option<ControlId>,
    /// Timing of the conditions around this statement: the stage at whose end they are known.
    ctl: Val,
    /// Stage of the table whose action contains the statement; `None` outside of table actions.
    table: Option<u32>,
    /// Whether the statement is under `@in_hash`: the hash unit computes, and operators take no instruction.
    in_hash: bool,
}

/// The consumer of a value, which determines the cost of computing it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Reader {
    Alu,
    /// A table key, a condition or a hash.
    Match,
    /// The index of a register or counter.
    Index,
}

struct Walk<'p> {
    program: &'p Program,
    alias: BTreeMap<(Unit, VarId), FieldPath>,
    vals: BTreeMap<FieldPath, Val>,
    log: Vec<(FieldPath, Option<Val>)>,
    floors: BTreeMap<Node, u32>,
    runs: BTreeMap<ExternId, (u32, Span)>,
    span: Span,
    flow: Flow,
}

impl<'p> Walk<'p> {
    fn new(program: &'p Program, floors: BTreeMap<Node, u32>) -> Walk<'p> {
        Walk {
            program,
            alias: BTreeMap::new(),
            vals: BTreeMap::new(),
            log: Vec::new(),
            floors,
            runs: BTreeMap::new(),
            span: Span::default(),
            flow: Flow::default(),
        }
    }

    fn control(&self, cx: Cx) -> Option<&'p Control> {
        self.program.controls.get(cx.control?.index())
    }

    fn block(&mut self, cx: Cx, block: &'p [Stmt]) {
        for stmt in block {
            self.span = stmt.span;
            self.stmt(cx, stmt);
        }
    }

    fn stmt(&mut self, cx: Cx, stmt: &'p Stmt) {
        match &stmt.kind {
            StmtKind::Assign(lv, e) => self.assign(cx, lv, e),
            StmtKind::Reset(lv) => {
                let place = self.place(cx.unit, lv);
                self.write(place, Val::default());
            }
            StmtKind::If(arms, otherwise) => self.arms(cx, arms, otherwise),
            StmtKind::Switch {
                value,
                cases,
                default,
            } => {
                let inner = Cx {
                    ctl: self.cond(cx, value),
                    ..cx
                };
                self.branches(cases.len() + 1, |w, n| {
                    w.block(inner, cases.get(n).map_or(default, |(_, block)| block));
                });
            }
            StmtKind::Loop {
                cond_stmts,
                cond,
                body,
                update,
            } => {
                self.block(cx, cond_stmts);
                let inner = Cx {
                    ctl: self.cond(cx, cond),
                    ..cx
                };
                self.block(inner, body);
                self.block(inner, update);
            }
            StmtKind::Atomic(block, annotations) => {
                let in_hash = annotations.iter().any(|a| a.name == "in_hash");
                let inner = Cx {
                    in_hash: in_hash || cx.in_hash,
                    ..cx
                };
                self.block(inner, block);
            }
            StmtKind::ApplyTable {
                table,
                hit,
                action_run,
            } => self.table(cx, *table, [*hit, *action_run]),
            StmtKind::CallAction(action, args) => self.action(cx, *action, args),
            StmtKind::ApplyControl(id, args) => {
                if let Some(callee) = self.program.controls.get(id.index()) {
                    let inner = Cx {
                        unit: id.0,
                        control: Some(*id),
                        ..cx
                    };
                    self.bind(cx, id.0, callee.params.iter().map(|p| p.var), args);
                    self.block(inner, &callee.body);
                }
            }
            StmtKind::CallFunction(FunctionId(id), args) => {
                if let Some(callee) = self.program.functions.get(*id as usize) {
                    let unit = self.program.controls.len() as u32 + id;
                    self.bind(cx, unit, callee.params.iter().map(|p| p.var), args);
                    self.block(
                        Cx {
                            unit,
                            control: None,
                            ..cx
                        },
                        &callee.body,
                    );
                }
            }
            StmtKind::CallMethod {
                object,
                method,
                args,
                result,
                ..
            } => {
                self.method(cx, (*object, method), args, result.as_ref());
            }
            StmtKind::CallExtern { args, result, .. } => {
                let inputs = self.args(cx, args, Reader::Alu).max(cx.ctl);
                let val = self.op(Node::Alu, inputs, cx.table.unwrap_or(0));
                self.results(cx, args, result.as_ref(), val);
            }
            StmtKind::SetValid(lv) | StmtKind::SetInvalid(lv) => {
                let place = self.place(cx.unit, lv).valid();
                self.write(place, cx.ctl);
                self.op(Node::Alu, cx.ctl, cx.table.unwrap_or(0));
            }
            _ => {}
        }
    }

    /// Binds a callee's parameters to the caller's fields: those that the callee writes, and those that it only reads.
    fn bind(&mut self, cx: Cx, unit: Unit, params: impl Iterator<Item = VarId>, args: &[Arg]) {
        for (var, arg) in params.zip(args) {
            self.alias.remove(&(unit, var));
            match arg {
                Arg::Out(lv)
                | Arg::InOut(lv)
                | Arg::InOutSaved { to: lv, .. }
                | Arg::In(Expr {
                    kind: ExprKind::Read(lv),
                    ..
                }) => {
                    let place = self.place(cx.unit, lv);
                    self.alias.insert((unit, var), place);
                }
                Arg::In(e) => {
                    let val = self.eval(cx, e, Reader::Alu);
                    self.goes_to(cx, e, Some(&FieldPath::new(unit, var)));
                    self.write(FieldPath::new(unit, var), val);
                }
                Arg::Object(_) | Arg::Extern(_) | Arg::Ignore => {
                    self.write(FieldPath::new(unit, var), Val::default())
                }
            }
        }
    }

    fn table(&mut self, cx: Cx, id: TableId, known: [Option<VarId>; 2]) {
        let Some((control, table)) = self
            .control(cx)
            .and_then(|c| Some((c, c.tables.get(id.index())?)))
        else {
            return;
        };
        let span = self.span;
        self.span = table.span;
        let exact = table
            .key
            .iter()
            .all(|k| matches!(k.match_kind.as_str(), "exact" | "selector" | "dleft_hash"));
        let algorithmic = memory::is_algorithmic(self.program, table);
        let mut inputs = cx.ctl;
        let before = self.flow.uses.len();
        for key in &table.key {
            inputs = inputs.max(self.eval(cx, &key.expr, Reader::Match));
            // The compiler chooses the crossbars of an algorithmic table.
            if !algorithmic {
                self.carry(cx, &key.expr, !exact);
            }
        }
        (self.flow.key_uses).extend(before..self.flow.uses.len());
        let Some(owner) = cx.control else { return };
        let stage = self.op(
            Node::Table(owner, id),
            Val {
                data: false,
                ..inputs
            },
            0,
        );
        self.span = span;
        // Decisions that depend on the matched entry take effect in the same stage.
        let decided = Val {
            at: stage.at - 1,
            ..stage
        };
        for var in known.into_iter().flatten() {
            self.write(FieldPath::new(cx.unit, var), decided);
        }
        let inner = Cx {
            ctl: decided,
            table: Some(stage.at),
            ..cx
        };
        self.branches(table.actions.len(), |w, n| {
            let offered = &table.actions[n];
            let Some(action) = control.actions.get(offered.action.index()) else {
                return;
            };
            w.block(inner, &offered.calls);
            let directed = action.params.iter().take(offered.args.len()).map(|p| p.var);
            w.bind(cx, cx.unit, directed, &offered.args);
            for param in action.params.iter().skip(offered.args.len()) {
                w.write(
                    FieldPath::new(cx.unit, param.var),
                    Val {
                        data: true,
                        ..decided
                    },
                );
            }
            w.block(inner, &action.body);
        });
        self.span = span;
    }

    fn action(&mut self, cx: Cx, id: ActionId, args: &[Arg]) {
        let Some(action) = self.control(cx).and_then(|c| c.actions.get(id.index())) else {
            return;
        };
        self.bind(cx, cx.unit, action.params.iter().map(|p| p.var), args);
        self.block(cx, &action.body);
    }
}

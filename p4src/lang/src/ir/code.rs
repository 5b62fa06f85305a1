//! Statements, places, expressions.

pub use crate::ast::BinOp;

use super::*;

/// Statements in order.
pub type Block = Vec<Stmt>;

/// A statement.
#[derive(Debug, Clone)]
pub struct Stmt {
    /// Which.
    pub kind: StmtKind,
    /// Place.
    pub span: Span,
}

/// Which statement.
#[derive(Debug, Clone)]
pub enum StmtKind {
    /// Copies a value; a header's validity with it. Both sides have one type.
    Assign(LValue, Expr),
    /// Makes the value undefined: headers invalid, the rest 0 (a local's declaration without initialiser, an `out` parameter).
    Reset(LValue),
    /// `if`: runs the first arm whose condition holds, else the block. A chain of `else if`s is as long as its source, so its
    /// arms stand side by side.
    If(Vec<Arm>, Block),
    /// Runs the block of the first label equal to the value, else the default.
    Switch {
        /// `bit`, `int`, enum, error; for `switch (t.apply().action_run)` a temporary with the index into the table's actions
        /// (as `Type::Bit(32)`).
        value: Expr,
        /// Labels (constants) and their block; fall-through is expanded.
        cases: Vec<(Vec<Const>, Block)>,
        /// `default`, empty if none.
        default: Block,
    },
    /// Runs while the condition holds; `cond_stmts` before each test; `update` after each body, also after `continue`.
    Loop {
        /// Hoisted calls of the condition.
        cond_stmts: Block,
        /// Condition.
        cond: Expr,
        /// Body.
        body: Block,
        /// Update.
        update: Block,
    },
    /// `@atomic { … }` and plain blocks with annotations.
    Atomic(Block, Vec<Annotation>),
    /// Leaves the innermost loop.
    Break,
    /// Next round of the innermost loop.
    Continue,
    /// Leaves the action, function, or control.
    Return,
    /// Leaves everything up to the pipeline's end (P4_16 12.5).
    Exit,
    /// Applies a table.
    ApplyTable {
        /// Which, of this control.
        table: TableId,
        /// Set to whether an entry matched.
        hit: Option<VarId>,
        /// Set to the index (into the table's actions) of the action that ran.
        action_run: Option<VarId>,
    },
    /// Calls an action of this control.
    CallAction(ActionId, Args),
    /// Applies a control.
    ApplyControl(ControlId, Args),
    /// Applies a parser.
    ApplyParser(ParserId, Args),
    /// Calls a function.
    CallFunction(FunctionId, Args),
    /// Calls a method of an extern object.
    CallMethod {
        /// On which.
        object: ExternId,
        /// Which; overloads differ in the number of arguments.
        method: Method,
        /// Type arguments, given or inferred.
        type_args: Vec<Type>,
        /// Arguments.
        args: Vec<Arg>,
        /// Where the result goes; `None` if there is none, or the program discards it.
        result: Option<LValue>,
        /// Its type.
        returns: Type,
    },
    /// Calls an extern function (`mark_to_drop`, `hash`, …).
    CallExtern {
        /// Which.
        function: ExternFunction,
        /// Type arguments, given or inferred.
        type_args: Vec<Type>,
        /// Arguments.
        args: Vec<Arg>,
        /// Where the result goes; `None` if there is none, or the program discards it.
        result: Option<LValue>,
        /// Its type.
        returns: Type,
    },
    /// `pkt.extract(h)`; with the varbit field's length in bits if two arguments. Extracting to a stack's `next` is a
    /// path that ends in [`Access::Next`].
    Extract {
        /// The `packet_in`.
        packet: VarId,
        /// Header (or union member).
        header: LValue,
        /// Length of the varbit field, bits.
        varbit_bits: Option<Expr>,
    },
    /// `pkt.advance(bits)`, and `extract<T>(_)`.
    Advance {
        /// The `packet_in`.
        packet: VarId,
        /// Bits.
        bits: Expr,
    },
    /// `dst = pkt.lookahead<T>()`
    Lookahead {
        /// The `packet_in`.
        packet: VarId,
        /// Destination; its type is T.
        dst: LValue,
    },
    /// `dst = pkt.length()`, bytes, `bit<32>`.
    PacketLength {
        /// The `packet_in`.
        packet: VarId,
        /// Destination.
        dst: LValue,
    },
    /// `pkt.emit(x)`: header, stack, union, or struct of those.
    Emit {
        /// The `packet_out`.
        packet: VarId,
        /// What.
        value: LValue,
    },
    /// `verify(cond, error)`
    Verify(Expr, Expr),
    /// `h.setValid()`
    SetValid(LValue),
    /// `h.setInvalid()`
    SetInvalid(LValue),
    /// `stack.push_front(n)`
    Push(LValue, u32),
    /// `stack.pop_front(n)`
    Pop(LValue, u32),
}

/// An arm of an `if`.
#[derive(Debug, Clone)]
pub struct Arm {
    /// Hoisted calls of the condition; run if no arm before this one was taken. Those of the first arm stand before the `if`.
    pub before: Block,
    /// Condition.
    pub cond: Expr,
    /// What runs if it holds.
    pub then: Block,
    /// From this arm's `if` to the end of the chain.
    pub span: Span,
}

impl StmtKind {
    /// `if (cond) { then } else { otherwise }`
    pub fn branch(cond: Expr, then: Block, otherwise: Block, span: Span) -> StmtKind {
        let arm = Arm {
            before: Vec::new(),
            cond,
            then,
            span,
        };
        StmtKind::If(vec![arm], otherwise)
    }
}

/// An argument.
#[derive(Debug, Clone)]
pub enum Arg {
    /// By value.
    In(Expr),
    /// Copied out at the end; undefined at the start.
    Out(LValue),
    /// Copied in and out.
    InOut(LValue),
    /// Copied in and out, where a later argument's calls may change the place: the value it had before them.
    InOutSaved {
        /// Copied in: a temporary.
        value: Expr,
        /// Copied out to.
        to: LValue,
    },
    /// An extern object: a `packet_in`/`packet_out` parameter of the calling unit.
    Object(VarId),
    /// An extern instance.
    Extern(ExternId),
    /// `out` argument that nobody wants (`_`).
    Ignore,
}

/// Arguments of a call within the program, one for each parameter, in the parameters' order.
#[derive(Debug, Clone, Default)]
pub struct Args {
    list: Vec<Arg>,
    /// Of named arguments that were written in another order: where each was written.
    written: Vec<u32>,
}

impl Args {
    /// `written` tells where each of the first arguments stood in the call.
    pub fn in_order(list: Vec<Arg>, written: Vec<u32>) -> Args {
        Args { list, written }
    }

    /// Adds an argument that is copied out behind all others.
    pub fn push(&mut self, arg: Arg) {
        let last = self.list.len() as u32;
        if !self.written.is_empty() {
            self.written.resize(self.list.len(), last);
            self.written.push(last);
        }
        self.list.push(arg);
    }

    /// The positions of all arguments, as they are copied out: in the order of the call (P4_16 1.2.5, section 6.8).
    pub fn copied_out(&self) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.list.len()).collect();
        order.sort_by_key(|&i| self.written.get(i).map_or(i, |at| *at as usize));
        order
    }

    /// Without their order.
    pub fn into_list(self) -> Vec<Arg> {
        self.list
    }
}

impl std::ops::Deref for Args {
    type Target = [Arg];

    fn deref(&self) -> &[Arg] {
        &self.list
    }
}

impl std::ops::DerefMut for Args {
    fn deref_mut(&mut self) -> &mut [Arg] {
        &mut self.list
    }
}

impl<'a> IntoIterator for &'a Args {
    type Item = &'a Arg;
    type IntoIter = std::slice::Iter<'a, Arg>;

    fn into_iter(self) -> Self::IntoIter {
        self.list.iter()
    }
}

/// A place: a variable and a path into it.
#[derive(Debug, Clone, PartialEq)]
pub struct LValue {
    /// Variable.
    pub var: VarId,
    /// Path.
    pub path: Vec<Access>,
    /// Type at its end.
    pub ty: Type,
}

/// A step of a path.
#[derive(Debug, Clone, PartialEq)]
pub enum Access {
    /// Field by index.
    Field(u32),
    /// Element of a stack; out of range: reads are undefined (0), writes do nothing.
    Index(Box<Expr>),
    /// `stack.next`: the element at `nextIndex`; in an extract it advances the index; past the end: error `StackOutOfBounds`.
    Next,
    /// `stack.last`
    Last,
    /// Bits `hi ..= lo`; last step only.
    Slice(u32, u32),
}

/// A pure expression.
#[derive(Debug, Clone, PartialEq)]
pub struct Expr {
    /// Which.
    pub kind: ExprKind,
    /// Type.
    pub ty: Type,
}

/// Which expression.
#[derive(Debug, Clone, PartialEq)]
pub enum ExprKind {
    /// Constant.
    Const(Const),
    /// Reads a place. What the fields of an invalid header hold is the target's affair.
    Read(LValue),
    /// `h.isValid()`
    IsValid(LValue),
    /// `stack.lastIndex` (`bit<32>`)
    LastIndex(LValue),
    /// `op e`
    Unary(UnOp, Box<Expr>),
    /// Both sides have the type of the result, except comparisons (bool) and shifts (right side any width).
    Binary(BinOp, Box<Expr>, Box<Expr>),
    /// Between `bit`, `int`, `bool`; widths change as P4_16 8.11 says.
    Cast(Box<Expr>),
    /// Bits `hi ..= lo` of a value.
    Slice(Box<Expr>, u32, u32),
    /// `a ++ b`
    Concat(Box<Expr>, Box<Expr>),
    /// `c ? a : b`, both sides pure.
    Mux(Box<Expr>, Box<Expr>, Box<Expr>),
    /// List or tuple or struct value, by field in order. Type: `Tuple` or `Struct` (a header's is valid).
    Tuple(Vec<Expr>),
    /// The invalid header `{#}`.
    InvalidHeader,
}

/// Unary operators.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UnOp {
    /// `!` on bool
    Not,
    /// `~`
    BitNot,
    /// `-`, modulo 2^W
    Neg,
}

/// The same as [`visit`], to change them.
pub fn visit_mut(block: &mut [Stmt], see: &mut impl FnMut(&mut Stmt)) {
    for stmt in block {
        see(stmt);
        match &mut stmt.kind {
            StmtKind::If(arms, otherwise) => {
                for arm in arms {
                    visit_mut(&mut arm.before, see);
                    visit_mut(&mut arm.then, see);
                }
                visit_mut(otherwise, see);
            }
            StmtKind::Switch { cases, default, .. } => {
                for (_, block) in cases {
                    visit_mut(block, see);
                }
                visit_mut(default, see);
            }
            StmtKind::Loop {
                cond_stmts,
                body,
                update,
                ..
            } => {
                visit_mut(cond_stmts, see);
                visit_mut(body, see);
                visit_mut(update, see);
            }
            StmtKind::Atomic(block, _) => visit_mut(block, see),
            _ => {}
        }
    }
}

/// All statements of a block, outer ones first.
pub fn visit<'p>(block: &'p [Stmt], see: &mut impl FnMut(&'p Stmt)) {
    for stmt in block {
        see(stmt);
        match &stmt.kind {
            StmtKind::If(arms, otherwise) => {
                for arm in arms {
                    visit(&arm.before, see);
                    visit(&arm.then, see);
                }
                visit(otherwise, see);
            }
            StmtKind::Switch { cases, default, .. } => {
                for (_, block) in cases {
                    visit(block, see);
                }
                visit(default, see);
            }
            StmtKind::Loop {
                cond_stmts,
                body,
                update,
                ..
            } => {
                visit(cond_stmts, see);
                visit(body, see);
                visit(update, see);
            }
            StmtKind::Atomic(block, _) => visit(block, see),
            _ => {}
        }
    }
}

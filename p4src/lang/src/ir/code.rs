//! Statements, lvalues, expressions.

pub use crate::ast::BinOp;

use super::*;

/// Statements in order.
pub type Block = Vec<Stmt>;

/// A statement.
#[derive(Debug, Clone)]
pub struct Stmt {
    /// Kind of statement.
    pub kind: StmtKind,
    /// Source span.
    pub span: Span,
}

/// The kind of a statement.
#[derive(Debug, Clone)]
pub enum StmtKind {
    /// Copies a value, for a header with its validity. Both sides have the same type.
    Assign(LValue, Expr),
    /// Makes the value undefined: headers invalid, all else 0 (for a local declared without initializer, or an `out` parameter).
    Reset(LValue),
    /// `if`: runs the first arm whose condition holds, else the block. The arms of a chain of `else if`s form a flat list,
    /// because the chain can be as long as the source.
    If(Vec<Arm>, Block),
    /// Runs the block of the first label equal to the value, else the default block.
    Switch {
        /// A `bit`, `int`, enum or error value; for `switch (t.apply().action_run)` a temporary with the index into the table's
        /// actions (as `Type::Bit(32)`).
        value: Expr,
        /// Labels (constants) and their blocks; fall-through is expanded.
        cases: Vec<(Vec<Const>, Block)>,
        /// Block of `default`; empty if there is none.
        default: Block,
    },
    /// Loops while the condition holds; runs `cond_stmts` before each test, `update` after each body, also after `continue`.
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
    /// Continues with the next iteration of the innermost loop.
    Continue,
    /// Returns from the action, function, or control.
    Return,
    /// Ends the whole processing of this pipeline (P4_16 12.5).
    Exit,
    /// Applies a table.
    ApplyTable {
        /// The table, in this control.
        table: TableId,
        /// Receives whether an entry matched.
        hit: Option<VarId>,
        /// Receives the index (into the table's actions) of the action that ran.
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
        /// The extern object.
        object: ExternId,
        /// The method; overloads differ in the number of arguments.
        method: Method,
        /// Type arguments, given or inferred.
        type_args: Vec<Type>,
        /// Arguments.
        args: Vec<Arg>,
        /// Destination of the result; `None` if the method returns nothing or the program discards the result.
        result: Option<LValue>,
        /// Type of the result.
        returns: Type,
    },
    /// Calls an extern function (`mark_to_drop`, `hash`, …).
    CallExtern {
        /// The function.
        function: ExternFunction,
        /// Type arguments, given or inferred.
        type_args: Vec<Type>,
        /// Arguments.
        args: Vec<Arg>,
        /// Destination of the result; `None` if the function returns nothing or the program discards the result.
        result: Option<LValue>,
        /// Type of the result.
        returns: Type,
    },
    /// `pkt.extract(h)`; with two arguments, also the varbit field's length in bits. For an extraction into a stack's `next`, the
    /// path ends in [`Access::Next`].
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
        /// Number of bits.
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
        /// The emitted value.
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
    /// Hoisted calls of the condition; run if no earlier arm was taken. Those of the first arm precede the `if`.
    pub before: Block,
    /// Condition.
    pub cond: Expr,
    /// Block that runs if the condition holds.
    pub then: Block,
    /// From this arm's `if` to the end of the chain.
    pub span: Span,
}

impl StmtKind {
    /// Builds `if (cond) { then } else { otherwise }`.
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
    /// Passed by value.
    In(Expr),
    /// Copied out at the end of the call; undefined at the start.
    Out(LValue),
    /// Copied in at the start and out at the end.
    InOut(LValue),
    /// Copied in and out; `value` saves the argument's value because calls in a later argument may change it.
    InOutSaved {
        /// Temporary that is copied in.
        value: Expr,
        /// Destination of the copy-out.
        to: LValue,
    },
    /// An extern object: a `packet_in`/`packet_out` parameter of the calling unit.
    Object(VarId),
    /// An extern instance.
    Extern(ExternId),
    /// `out` argument that the caller discards (`_`).
    Ignore,
}

/// Arguments of a call within the program, one for each parameter, in the parameters' order.
#[derive(Debug, Clone, Default)]
pub struct Args {
    list: Vec<Arg>,
    /// For named arguments in another order than the parameters: position of each argument in the call. Else empty.
    written: Vec<u32>,
}

impl Args {
    /// `written` holds the position in the call of each of the first arguments.
    pub fn in_order(list: Vec<Arg>, written: Vec<u32>) -> Args {
        Args { list, written }
    }

    /// Adds an argument that is copied out after all others.
    pub fn push(&mut self, arg: Arg) {
        let last = self.list.len() as u32;
        if !self.written.is_empty() {
            self.written.resize(self.list.len(), last);
            self.written.push(last);
        }
        self.list.push(arg);
    }

    /// Indices of the arguments in the order in which they are copied out: the order of the call (P4_16 1.2.5, section 6.8).
    pub fn copied_out(&self) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.list.len()).collect();
        order.sort_by_key(|&i| self.written.get(i).map_or(i, |at| *at as usize));
        order
    }

    /// Returns the arguments without the order of the call.
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

/// An lvalue: a variable and a path into it.
#[derive(Debug, Clone, PartialEq)]
pub struct LValue {
    /// Variable.
    pub var: VarId,
    /// Path.
    pub path: Vec<Access>,
    /// Type of the part that the path selects.
    pub ty: Type,
}

/// A step of a path.
#[derive(Debug, Clone, PartialEq)]
pub enum Access {
    /// Field by index.
    Field(u32),
    /// Element of a stack; if the index is out of range, reads are undefined (0) and writes have no effect.
    Index(Box<Expr>),
    /// `stack.next`: the element at `nextIndex`. An extract advances the index; past the end: error `StackOutOfBounds`.
    Next,
    /// `stack.last`
    Last,
    /// Bits `hi ..= lo`; only as the last step.
    Slice(u32, u32),
}

/// A pure expression.
#[derive(Debug, Clone, PartialEq)]
pub struct Expr {
    /// Kind of expression.
    pub kind: ExprKind,
    /// Type.
    pub ty: Type,
}

/// The kind of an expression.
#[derive(Debug, Clone, PartialEq)]
pub enum ExprKind {
    /// Constant.
    Const(Const),
    /// Reads an lvalue. The target defines the values of an invalid header's fields.
    Read(LValue),
    /// `h.isValid()`
    IsValid(LValue),
    /// `stack.lastIndex` (`bit<32>`)
    LastIndex(LValue),
    /// `op e`
    Unary(UnOp, Box<Expr>),
    /// Both operands have the result's type, except in comparisons (result `bool`) and shifts (right operand of any width).
    Binary(BinOp, Box<Expr>, Box<Expr>),
    /// Cast between `bit`, `int` and `bool`; widths change as in P4_16 8.11.
    Cast(Box<Expr>),
    /// Bits `hi ..= lo` of a value.
    Slice(Box<Expr>, u32, u32),
    /// `a ++ b`
    Concat(Box<Expr>, Box<Expr>),
    /// `c ? a : b`; both branches are pure.
    Mux(Box<Expr>, Box<Expr>, Box<Expr>),
    /// List, tuple or struct value, fields in order. Its type is `Tuple` or `Struct`; a header value is valid.
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

/// Like [`visit`], with mutable statements.
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

/// Visits all statements of a block, outer ones first.
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

//! Statements, lvalues and expressions of the checked program (IR).

pub use crate::ast::BinOp;

use super::*;

/// Statements in order.
pub type Block = Vec<Stmt>;

/// A statement.
#[derive(Debug, Clone)]
pub struct Stmt {
    /// Kind of the statement, with its operands.
    pub kind: StmtKind,
    /// Source span of the statement.
    pub span: Span,
}

/// The kind of a statement.
#[derive(Debug, Clone)]
pub enum StmtKind {
    /// Assignment: copies a value; a header is copied with its validity. Both sides have the same type.
    Assign(LValue, Expr),
    /// Makes a variable undefined: headers invalid, all else 0 (for a local without initializer, or an `out` parameter).
    Reset(LValue),
    /// `if`: runs the first arm whose condition holds; if none does, the block (`else`). The arms of a chain of `else if`s form
    /// a flat list, because the chain can be as long as the source.
    If(Vec<Arm>, Block),
    /// `switch`: runs the block of the first label that equals the value; if no label does, the default block.
    Switch {
        /// The compared `bit`, `int`, enum or error value. For `switch (t.apply().action_run)` it is a temporary with the index
        /// into the table's actions (as `Type::Bit(32)`).
        value: Expr,
        /// Cases: (constant labels, block that runs if the value equals one of them); fall-through is expanded.
        cases: Vec<(Vec<Const>, Block)>,
        /// Block of `default`; empty if the switch has none.
        default: Block,
    },
    /// Loops while the condition holds; runs `cond_stmts` before each test, `update` after each body, also after `continue`.
    Loop {
        /// Statements with the calls that the condition contains; run before each test of the condition.
        cond_stmts: Block,
        /// The loop runs while this condition holds.
        cond: Expr,
        /// Body of the loop.
        body: Block,
        /// Statements that run after each iteration, also after `continue`.
        update: Block,
    },
    /// A block with annotations, such as `@atomic { … }`.
    Atomic(Block, Vec<Annotation>),
    /// `break`: leaves the innermost loop.
    Break,
    /// `continue`: starts the next iteration of the innermost loop.
    Continue,
    /// Returns from the action, function, or control.
    Return,
    /// `exit`: ends the whole processing of this pipeline (P4_16 12.5).
    Exit,
    /// `t.apply()`: applies a table of this control.
    ApplyTable {
        /// The applied table.
        table: TableId,
        /// Boolean variable that receives whether an entry matched; `None` if the program does not use it.
        hit: Option<VarId>,
        /// Variable that receives the index, in the table's actions, of the action that ran; `None` if the program does not use
        /// it.
        action_run: Option<VarId>,
    },
    /// Calls an action of this control with these arguments.
    CallAction(ActionId, Args),
    /// Applies another control with these arguments.
    ApplyControl(ControlId, Args),
    /// Applies another parser with these arguments.
    ApplyParser(ParserId, Args),
    /// Calls a function with these arguments.
    CallFunction(FunctionId, Args),
    /// Calls a method of an extern object.
    CallMethod {
        /// The extern object whose method is called.
        object: ExternId,
        /// The called method; overloads differ in the number of arguments.
        method: Method,
        /// Type arguments of the call, as written or inferred.
        type_args: Vec<Type>,
        /// Arguments of the call.
        args: Vec<Arg>,
        /// Destination of the result; `None` if the method returns nothing or the program discards the result.
        result: Option<LValue>,
        /// Type of the method's result.
        returns: Type,
    },
    /// Calls an extern function (`mark_to_drop`, `hash`, …).
    CallExtern {
        /// The called extern function.
        function: ExternFunction,
        /// Type arguments of the call, as written or inferred.
        type_args: Vec<Type>,
        /// Arguments of the call.
        args: Vec<Arg>,
        /// Destination of the result; `None` if the function returns nothing or the program discards the result.
        result: Option<LValue>,
        /// Type of the function's result.
        returns: Type,
    },
    /// `pkt.extract(h)`: extracts a header; with two arguments, the second is the varbit field's length in bits. For an
    /// extraction into a stack's `next`, the path ends in [`Access::Next`].
    Extract {
        /// The `packet_in` parameter from which the header is extracted.
        packet: VarId,
        /// The header (or union member) that is extracted.
        header: LValue,
        /// Length of the header's varbit field in bits; `None` if the call gives no length.
        varbit_bits: Option<Expr>,
    },
    /// `pkt.advance(bits)`, and `extract<T>(_)`: skips bits of the packet.
    Advance {
        /// The `packet_in` parameter whose position advances.
        packet: VarId,
        /// Number of bits to skip.
        bits: Expr,
    },
    /// `dst = pkt.lookahead<T>()`: reads bits of the packet without consuming them.
    Lookahead {
        /// The `packet_in` parameter that is read.
        packet: VarId,
        /// Destination of the bits that are read; its type is T.
        dst: LValue,
    },
    /// `dst = pkt.length()`: the packet's length in bytes, as `bit<32>`.
    PacketLength {
        /// The `packet_in` parameter of the packet.
        packet: VarId,
        /// Destination of the length.
        dst: LValue,
    },
    /// `pkt.emit(x)`: appends a header, stack, union, or struct of those to the packet.
    Emit {
        /// The `packet_out` parameter to which the value is appended.
        packet: VarId,
        /// The emitted value.
        value: LValue,
    },
    /// `verify(cond, error)`: the parser rejects with the error if the condition is false.
    Verify(Expr, Expr),
    /// `h.setValid()`: makes the header valid.
    SetValid(LValue),
    /// `h.setInvalid()`: makes the header invalid.
    SetInvalid(LValue),
    /// `stack.push_front(n)`: shifts the elements of a header stack up by n.
    Push(LValue, u32),
    /// `stack.pop_front(n)`: shifts the elements of a header stack down by n.
    Pop(LValue, u32),
}

/// An arm of an `if` statement: a condition and its block.
#[derive(Debug, Clone)]
pub struct Arm {
    /// Statements with the calls in the condition, run if no earlier arm was taken. Those of the first arm precede the `if`.
    pub before: Block,
    /// Condition under which the arm is taken.
    pub cond: Expr,
    /// Block that runs if the condition holds.
    pub then: Block,
    /// Source span from this arm's `if` to the end of the chain of `else if`s.
    pub span: Span,
}

impl StmtKind {
    /// Builds the statement `if (cond) { then } else { otherwise }`.
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

/// An argument of a call.
#[derive(Debug, Clone)]
pub enum Arg {
    /// An `in` argument, passed by value.
    In(Expr),
    /// An `out` argument: undefined at the start of the call, copied out at its end.
    Out(LValue),
    /// An `inout` argument: copied in at the start of the call and out at its end.
    InOut(LValue),
    /// An `inout` argument whose value is saved before the call, because calls in a later argument may change it.
    InOutSaved {
        /// Saved value that is copied in.
        value: Expr,
        /// Lvalue to which the value is copied out.
        to: LValue,
    },
    /// An extern object that is a `packet_in` or `packet_out` parameter of the caller.
    Object(VarId),
    /// An extern object that is an instance.
    Extern(ExternId),
    /// An `out` argument that the caller discards (`_`).
    Ignore,
}

/// Arguments of a call within the program, one for each parameter, in the parameters' order.
#[derive(Debug, Clone, Default)]
pub struct Args {
    list: Vec<Arg>,
    /// For each argument, its position in the call as written, from 0; empty if the call has the parameters' order.
    written: Vec<u32>,
}

impl Args {
    /// Creates arguments in the parameters' order. `written`: for the first arguments, their positions in the call, from 0.
    pub fn in_order(list: Vec<Arg>, written: Vec<u32>) -> Args {
        Args { list, written }
    }

    /// Appends an argument that is copied out after all other arguments.
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

    /// Returns the arguments in the parameters' order.
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

/// An lvalue: a variable, and a path to the part of it that is read or written.
#[derive(Debug, Clone, PartialEq)]
pub struct LValue {
    /// The variable.
    pub var: VarId,
    /// Steps from the variable to the part; empty for the whole variable.
    pub path: Vec<Access>,
    /// Type of the part that the path selects.
    pub ty: Type,
}

/// A step of an lvalue's path.
#[derive(Debug, Clone, PartialEq)]
pub enum Access {
    /// A field of a struct, header or union, by its index.
    Field(u32),
    /// An element of a stack, by its index; if the index is out of range, reads are undefined (0) and writes have no effect.
    Index(Box<Expr>),
    /// `stack.next`: the element at `nextIndex`. An extract advances that index; past the end it fails with `StackOutOfBounds`.
    Next,
    /// `stack.last`: the last extracted element of a header stack.
    Last,
    /// Bits `hi ..= lo` of the value, as (hi, lo); only the last step of a path.
    Slice(u32, u32),
}

/// An expression without side effects.
#[derive(Debug, Clone, PartialEq)]
pub struct Expr {
    /// Kind of the expression, with its operands.
    pub kind: ExprKind,
    /// Type of the expression's value.
    pub ty: Type,
}

/// The kind of an expression.
#[derive(Debug, Clone, PartialEq)]
pub enum ExprKind {
    /// A compile-time constant.
    Const(Const),
    /// Reads an lvalue. The target defines the values of an invalid header's fields.
    Read(LValue),
    /// `h.isValid()`: whether a header is valid.
    IsValid(LValue),
    /// `stack.lastIndex` as `bit<32>`: the index of the last extracted element of a header stack.
    LastIndex(LValue),
    /// A unary operation, `op e`.
    Unary(UnOp, Box<Expr>),
    /// A binary operation, `a op b`. Both operands have the result's type, except in comparisons (result `bool`) and shifts
    /// (right operand of any width).
    Binary(BinOp, Box<Expr>, Box<Expr>),
    /// Cast between `bit`, `int` and `bool`; widths change as in P4_16 8.11.
    Cast(Box<Expr>),
    /// A slice: bits `hi ..= lo` of a value, as (value, hi, lo).
    Slice(Box<Expr>, u32, u32),
    /// A concatenation of bit strings, `a ++ b`.
    Concat(Box<Expr>, Box<Expr>),
    /// A conditional expression, `c ? a : b`, as (c, a, b); both branches are free of side effects.
    Mux(Box<Expr>, Box<Expr>, Box<Expr>),
    /// A list, tuple or struct value, with its fields in order. Its type is `Tuple` or `Struct`; a header value is valid.
    Tuple(Vec<Expr>),
    /// The invalid header, `{#}`.
    InvalidHeader,
}

/// Unary operators.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UnOp {
    /// Logical negation, `!` on `bool`.
    Not,
    /// Bitwise complement, `~`.
    BitNot,
    /// Negation, `-`, modulo 2^W.
    Neg,
}

/// Visits all statements of a block, outer ones first, and lets `see` change them.
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

/// Visits all statements of a block and of the blocks inside it, outer ones first.
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

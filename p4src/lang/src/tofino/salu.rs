//! Checks RegisterActions against the capabilities of a stateful ALU.

use std::collections::BTreeSet;

use super::expr::{is_comparison, is_const, width};
use super::field_path::reads;
use super::limits::{ChipLimits, LARGE_CONSTANTS, REGISTER_ACTIONS, UPDATES_OF_A_WORD};
use crate::diagnostics::{Code, Diagnostic};
use crate::ir::{
    Access, Action, BinOp, Const, Expr, ExprKind, ExternId, ExternInstance, ExternKind, LValue,
    Program, Stmt, StmtKind, Type, VarId,
};
use crate::source::Span;

/// The register of a RegisterAction, from its constructor arguments; `None` if no argument is an extern object.
pub(super) fn register_of(program: &Program, object: ExternId) -> Option<ExternId> {
    let instance = program.externs.get(object.index())?;
    instance.args.iter().find_map(|(_, arg)| match arg {
        Const::Extern(id) => Some(*id),
        _ => None,
    })
}

/// The actions that hold the bodies of a RegisterAction's abstract methods.
fn bodies<'p>(program: &'p Program, instance: &'p ExternInstance) -> Vec<&'p Action> {
    // Copies in other controls are identical.
    let Some(first) = instance.methods.first() else {
        return Vec::new();
    };
    let Some(control) = program.controls.get(first.control.index()) else {
        return Vec::new();
    };
    let methods = instance.methods.iter();
    methods
        .filter(|m| m.control == first.control)
        .filter_map(|m| control.actions.get(m.action.index()))
        .collect()
}

/// The packet fields that a RegisterAction reads.
pub(super) fn inputs(program: &Program, object: ExternId) -> Vec<LValue> {
    let Some(instance) = program.externs.get(object.index()) else {
        return Vec::new();
    };
    let mut found: Vec<LValue> = Vec::new();
    for body in bodies(program, instance) {
        let look = Look::at(body);
        for lv in look.inputs {
            if !found.iter().any(|f| f.var == lv.var && f.path == lv.path) {
                found.push(lv);
            }
        }
    }
    found
}

/// Bits of a register cell, and of each of its words; `None` if a register cannot have this type.
pub(super) fn cell(program: &Program, ty: &Type) -> Option<(u32, u32)> {
    match ty {
        Type::Bit(w) | Type::Int(w) => Some((*w, *w)),
        Type::Struct(id) => {
            let fields = &program.types.get(id.index())?.fields;
            match fields.as_slice() {
                [a, b] if width(&a.ty) > 0 && width(&a.ty) == width(&b.ty) => {
                    let w = u32::try_from(width(&a.ty)).ok()?;
                    Some((2 * w, w))
                }
                [a] => cell(program, &a.ty),
                _ => None,
            }
        }
        _ => None,
    }
}

/// The operations in the body of a RegisterAction's method.
#[derive(Default)]
struct Look {
    memory: Vec<VarId>,
    outs: Vec<VarId>,
    locals: BTreeSet<VarId>,
    inputs: Vec<LValue>,
    comparisons: Vec<(Expr, Span)>,
    constants: BTreeSet<num_bigint::BigInt>,
    /// Assignments to the register cell: (word, value, span).
    updates: Vec<(Vec<Access>, Expr, Span)>,
    outputs: Vec<(Expr, Span)>,
    /// The first operator that no stateful ALU supports, with its span.
    foreign: Option<(&'static str, Span)>,
    /// Span of the first update of a cell that computes with a word already updated in the same body; `None` without one.
    again: Option<Span>,
    branches: bool,
}

impl Look {
    fn at(action: &Action) -> Look {
        let mut look = Look::default();
        for (n, param) in action.params.iter().enumerate() {
            if n == 0 {
                look.memory.push(param.var)
            } else {
                look.outs.push(param.var)
            }
        }
        let mut written = Vec::new();
        look.block(&action.body, &mut written);
        look
    }

    fn block(&mut self, block: &[Stmt], written: &mut Vec<Vec<Access>>) {
        for stmt in block {
            match &stmt.kind {
                StmtKind::Assign(lv, e) => self.assign(lv, e, stmt.span, written),
                StmtKind::If(arms, otherwise) => {
                    self.branches = true;
                    let mut after = written.clone();
                    let mut either = |look: &mut Look, block: &[Stmt]| {
                        let mut inside = written.clone();
                        look.block(block, &mut inside);
                        for path in inside {
                            if !after.contains(&path) {
                                after.push(path);
                            }
                        }
                    };
                    for arm in arms {
                        either(self, &arm.before);
                        self.condition(&arm.cond, arm.span);
                        either(self, &arm.then);
                    }
                    either(self, otherwise);
                    *written = after;
                }
                StmtKind::Atomic(block, _) => self.block(block, written),
                _ => {}
            }
        }
    }

    fn assign(&mut self, lv: &LValue, e: &Expr, span: Span, written: &mut Vec<Vec<Access>>) {
        self.expression(e, span);
        // Assigning a word to itself needs no instruction.
        let stays = matches!(&e.kind, ExprKind::Read(from) if from == lv);
        if self.memory.contains(&lv.var) {
            if stays {
                return;
            }
            let mut rereads = false;
            if !matches!(e.kind, ExprKind::Read(_)) {
                reads(e, &mut |r| {
                    rereads |= self.memory.contains(&r.var) && written.contains(&r.path)
                });
            }
            if rereads {
                self.again = self.again.or(Some(span));
            }
            written.push(lv.path.clone());
            if !self
                .updates
                .iter()
                .any(|(path, old, _)| *path == lv.path && old == e)
            {
                self.updates.push((lv.path.clone(), e.clone(), span));
            }
        } else if self.outs.contains(&lv.var) {
            self.outputs.push((e.clone(), span));
        } else {
            self.locals.insert(lv.var);
        }
    }

    fn condition(&mut self, cond: &Expr, span: Span) {
        match &cond.kind {
            ExprKind::Binary(BinOp::LogAnd | BinOp::LogOr, a, b) => {
                self.condition(a, span);
                self.condition(b, span);
            }
            ExprKind::Unary(_, a) => self.condition(a, span),
            ExprKind::Binary(op, a, b) if is_comparison(*op) => {
                self.expression(cond, span);
                // `a != b`, `a > b`, `b < a` and `a <= b` share one comparator.
                let (kind, a, b) = match op {
                    BinOp::Eq | BinOp::Ne => (BinOp::Eq, a, b),
                    BinOp::Lt | BinOp::Ge => (BinOp::Lt, a, b),
                    _ => (BinOp::Lt, b, a),
                };
                let normal = Expr {
                    kind: ExprKind::Binary(kind, a.clone(), b.clone()),
                    ty: Type::Bool,
                };
                if !self.comparisons.iter().any(|(c, _)| *c == normal) {
                    self.comparisons.push((normal, span));
                }
            }
            _ => self.expression(cond, span),
        }
    }

    fn expression(&mut self, e: &Expr, span: Span) {
        let mut operands = Vec::new();
        reads(e, &mut |lv| operands.push(lv.clone()));
        for lv in operands {
            let own = self.memory.contains(&lv.var)
                || self.outs.contains(&lv.var)
                || self.locals.contains(&lv.var);
            if !own && !self.inputs.contains(&lv) {
                self.inputs.push(lv);
            }
        }
        self.operators(e, span);
    }

    fn operators(&mut self, e: &Expr, span: Span) {
        match &e.kind {
            ExprKind::Const(Const::Bits { value, ty }) => {
                let mut value = num_bigint::BigInt::from(value.clone());
                let bits = width(ty);
                // −1 has all bits set.
                if bits > 0 && value >= num_bigint::BigInt::from(1) << (bits - 1) {
                    value -= num_bigint::BigInt::from(1) << bits;
                }
                if value < (-8).into() || value > 7.into() {
                    self.constants.insert(value);
                }
            }
            ExprKind::Binary(op, a, b) => {
                let name = match op {
                    BinOp::Mul => Some("multiplication"),
                    BinOp::Div => Some("division"),
                    BinOp::Mod => Some("remainder"),
                    BinOp::Shl | BinOp::Shr if !is_const(b) => Some("shift by a variable"),
                    _ => None,
                };
                if let Some(name) = name {
                    self.foreign = self.foreign.or(Some((name, span)));
                }
                self.operators(a, span);
                self.operators(b, span);
            }
            ExprKind::Unary(_, a) | ExprKind::Cast(a) | ExprKind::Slice(a, ..) => {
                self.operators(a, span)
            }
            ExprKind::Concat(a, b) => {
                self.operators(a, span);
                self.operators(b, span);
            }
            _ => {}
        }
    }
}

/// Errors in a register's type and in all its RegisterActions.
pub(super) fn check(program: &Program, register: ExternId, limits: &ChipLimits) -> Vec<Diagnostic> {
    let mut faults = Vec::new();
    let Some(instance) = program.externs.get(register.index()) else {
        return faults;
    };
    if !matches!(
        instance.kind,
        ExternKind::Register | ExternKind::DirectRegister
    ) {
        return faults;
    }
    let fault = |span: Span, message: String| Diagnostic::error(Code::Architecture, span, message);
    let cell = instance.type_args.first().and_then(|ty| cell(program, ty));
    match cell {
        Some((bits, word)) if matches!(word, 1 | 8 | 16 | 32) && bits <= limits.cell_bits && !(word == 1 && bits > 1) => {}
        Some((bits, word)) if limits.cell_bits >= 128 && word == 64 && bits <= 128 => {}
        _ => faults.push(fault(
            instance.span,
            format!(
                "a register's cell is bit<1>, or one or two words of 8, 16 or 32 bits ({} bits in all on {})",
                limits.cell_bits, limits.name
            ),
        )),
    }
    let one_bit = cell == Some((1, 1));
    let pair = cell.is_some_and(|(bits, word)| bits > word);
    let mut constants = BTreeSet::new();
    let actions: Vec<&ExternInstance> = program
        .externs
        .iter()
        .filter(|e| {
            matches!(
                e.kind,
                ExternKind::RegisterAction | ExternKind::DirectRegisterAction
            )
        })
        .filter(|e| {
            e.args
                .iter()
                .any(|(_, arg)| *arg == Const::Extern(register))
        })
        .collect();
    if let Some(fifth) = actions.get(REGISTER_ACTIONS) {
        faults.push(fault(
            fifth.span,
            format!(
                "`{}` has {} RegisterActions: a stateful ALU holds {REGISTER_ACTIONS}",
                instance.name,
                actions.len()
            ),
        ));
    }
    for action in &actions {
        for body in bodies(program, action) {
            let look = Look::at(body);
            constants.extend(look.constants.iter().cloned());
            faults.extend(check_body(&look, limits, one_bit, pair, action.span));
        }
    }
    if constants.len() > LARGE_CONSTANTS {
        faults.push(fault(
            instance.span,
            format!(
                "the RegisterActions of `{}` have {} constants outside -8..7: a stateful ALU holds {LARGE_CONSTANTS}",
                instance.name,
                constants.len()
            ),
        ));
    }
    faults
}

fn check_body(
    look: &Look,
    limits: &ChipLimits,
    one_bit: bool,
    pair: bool,
    at: Span,
) -> Vec<Diagnostic> {
    let mut faults = Vec::new();
    let mut fault = |span: Span, message: String| {
        faults.push(Diagnostic::error(Code::Architecture, span, message))
    };
    if let Some((name, span)) = look.foreign {
        fault(span, format!("a stateful ALU does not support {name}"));
    }
    if let Some((_, span)) = look.comparisons.get(limits.comparators) {
        fault(
            *span,
            format!(
                "this RegisterAction makes {} comparisons: a stateful ALU has {}",
                look.comparisons.len(),
                limits.comparators
            ),
        );
    }
    let mut words: Vec<&LValue> = Vec::new();
    for input in &look.inputs {
        if !words
            .iter()
            .any(|w| w.var == input.var && w.path == input.path)
        {
            words.push(input);
        }
    }
    if words.len() > limits.inputs {
        fault(
            at,
            format!(
                "this RegisterAction reads {} fields of the packet: a stateful ALU takes {}",
                words.len(),
                limits.inputs
            ),
        );
    }
    if look.outs.len() > limits.outputs {
        fault(
            at,
            format!(
                "this RegisterAction returns {} values: a stateful ALU returns {}",
                look.outs.len(),
                limits.outputs
            ),
        );
    }
    if let Some(span) = look.again {
        fault(
            span,
            "this uses a word that the same RegisterAction has already computed: \
                     a stateful ALU computes each word once"
                .to_owned(),
        );
    }
    let mut per_word: Vec<(&Vec<Access>, usize)> = Vec::new();
    for (path, value, span) in &look.updates {
        match per_word.iter_mut().find(|(p, _)| *p == path) {
            Some((_, count)) => {
                *count += 1;
                if *count == UPDATES_OF_A_WORD + 1 {
                    fault(
                        *span,
                        format!(
                            "a stateful ALU has {UPDATES_OF_A_WORD} instructions per word; this assignment needs one more"
                        ),
                    );
                }
            }
            None => per_word.push((path, 1)),
        }
        if one_bit && !is_const(value) && !matches!(value.kind, ExprKind::Read(_)) {
            fault(
                *span,
                "a one-bit cell can only be set, cleared and read".to_owned(),
            );
        }
    }
    // The second ALU computes the second word; if there is none, the ALU can compute a value that is only returned.
    let computed: Vec<&(Expr, Span)> = look
        .outputs
        .iter()
        .filter(|(e, _)| !is_plain(e) && !look.updates.iter().any(|(_, v, _)| v == e))
        .collect();
    if pair && let Some((_, span)) = computed.first() {
        fault(*span, "a RegisterAction on a pair can return only an input, a word of the cell or a value written to it".to_owned());
    }
    faults
}

fn is_plain(e: &Expr) -> bool {
    match &e.kind {
        ExprKind::Read(_) | ExprKind::Const(_) => true,
        ExprKind::Cast(e) | ExprKind::Slice(e, ..) => is_plain(e),
        _ => false,
    }
}

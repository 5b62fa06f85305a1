//! Identifies header and metadata fields by storage: a parameter of a called control counts as the variable of the caller.

use crate::ir::{Access, Const, ExprKind, LValue, VarId};

/// Number of the control or function that owns a variable: a control's index, or the number of controls + a function's index.
pub(super) type Unit = u32;

/// A step from a value to a part of it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Step {
    Field(u32),
    Index(u64),
    /// An element of a stack whose index depends on the packet.
    Some,
    /// The validity of a header.
    Valid,
}

/// A variable or a part of it, such as a header or field. In sorted order, the parts of a value follow the value.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct FieldPath {
    pub root: (Unit, VarId),
    pub path: Vec<Step>,
}

impl FieldPath {
    pub fn new(unit: Unit, var: VarId) -> FieldPath {
        FieldPath {
            root: (unit, var),
            path: Vec::new(),
        }
    }

    /// The part to which `path` leads from this variable or part. A slice of a field counts as the whole field.
    pub fn follow(mut self, path: &[Access]) -> FieldPath {
        for access in path {
            self.path.push(match access {
                Access::Field(n) => Step::Field(*n),
                Access::Index(e) => match &e.kind {
                    ExprKind::Const(Const::Bits { value, .. }) => {
                        value.try_into().map_or(Step::Some, Step::Index)
                    }
                    _ => Step::Some,
                },
                Access::Next | Access::Last => Step::Some,
                Access::Slice(..) => break,
            });
        }
        self
    }

    pub fn valid(mut self) -> FieldPath {
        self.path.push(Step::Valid);
        self
    }

    pub fn holds(&self, other: &FieldPath) -> bool {
        self.root == other.root && other.path.starts_with(&self.path)
    }
}

/// Calls `visit` for each variable or field that an expression reads, in order.
pub(super) fn reads<'e>(e: &'e crate::ir::Expr, visit: &mut impl FnMut(&'e LValue)) {
    match &e.kind {
        ExprKind::Const(_) | ExprKind::InvalidHeader => {}
        ExprKind::Read(lv) | ExprKind::IsValid(lv) | ExprKind::LastIndex(lv) => visit(lv),
        ExprKind::Unary(_, a) | ExprKind::Cast(a) | ExprKind::Slice(a, ..) => reads(a, visit),
        ExprKind::Binary(_, a, b) | ExprKind::Concat(a, b) => {
            reads(a, visit);
            reads(b, visit);
        }
        ExprKind::Mux(a, b, c) => {
            reads(a, visit);
            reads(b, visit);
            reads(c, visit);
        }
        ExprKind::Tuple(all) => all.iter().for_each(|e| reads(e, visit)),
    }
}

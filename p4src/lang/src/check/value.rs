//! The value of an expression before a destination gives it a type.

use super::types::Ty;
use crate::ast;
use crate::ir;
use crate::source::Span;
use num_bigint::BigInt;
use std::rc::Rc;

/// The value of an expression.
#[derive(Debug, Clone, Default)]
pub(crate) enum Val<'a> {
    /// A value whose error has been reported.
    #[default]
    Poison,
    /// `int`, still without a width.
    Integer(BigInt),
    /// A typed value; a constant if the expression is one.
    Expr(Ty, ir::Expr),
    /// A value that has a place.
    Place(LVal),
    /// `{ … }`
    List(Rc<ListVal<'a>>),
    /// `{#}`
    Invalid,
    /// `_`
    DontCare,
    /// `...`
    Ellipsis,
    /// A type's name.
    Type(Ty),
    /// The name of a generic or instantiable type: `S`, `Register`, `MyIngress`.
    Decl(DeclRef),
    /// An extern instance.
    Extern(ir::ExternId, Ty),
    /// A parameter of an extern type: `packet_in`.
    Object(ir::VarId, Ty),
    /// A parser instance and its declaration.
    Parser(ir::ParserId, u32),
    /// A control instance and its declaration.
    Control(ir::ControlId, u32),
    /// A package instance.
    Package(Rc<ir::Package>, Ty),
    /// A table of this control.
    Table(ir::TableId),
    /// A value set of this parser.
    ValueSet(ir::ValueSetId, Ty),
    /// An action of this control.
    Action(ir::ActionId, &'a ast::Decl),
    /// A top-level action: [`super::Checker::actions`].
    GlobalAction(u32),
    /// Functions that share a name: [`super::Checker::functions`].
    Functions(Rc<[u32]>),
    /// `this`
    This,
}

/// A declaration that needs arguments before it is a type or an instance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DeclRef {
    Struct(u32),
    Extern(u32),
    Parser(u32),
    Control(u32),
    Package(u32),
}

/// `{ … }` with untyped items.
#[derive(Debug, Clone)]
pub(crate) struct ListVal<'a> {
    pub(crate) items: Vec<Item<'a>>,
    /// Whether it ends in `...`.
    pub(crate) rest: bool,
}

/// An item of a list.
#[derive(Debug, Clone)]
pub(crate) struct Item<'a> {
    pub(crate) name: Option<&'a ast::Ident>,
    pub(crate) val: Val<'a>,
    pub(crate) span: Span,
}

/// A place that can be read, and written unless it is read-only.
#[derive(Debug, Clone)]
pub(crate) struct LVal {
    pub(crate) ty: Ty,
    pub(crate) lv: ir::LValue,
    /// The reason why it must not be written; `None` if it may be.
    pub(crate) read_only: Option<&'static str>,
}

impl LVal {
    pub(crate) fn read(self) -> (Ty, ir::Expr) {
        let ty = self.lv.ty.clone();
        (
            self.ty,
            ir::Expr {
                kind: ir::ExprKind::Read(self.lv),
                ty,
            },
        )
    }
}

impl Val<'_> {
    /// A description of the value's kind, for a message.
    pub(crate) fn what(&self) -> &'static str {
        match self {
            Val::Poison => "nothing",
            Val::Integer(_) | Val::Expr(..) | Val::Place(_) => "a value",
            Val::List(_) => "a list",
            Val::Invalid => "an invalid header",
            Val::DontCare => "`_`",
            Val::Ellipsis => "`...`",
            Val::Type(_) | Val::Decl(_) => "a type",
            Val::Extern(..) | Val::Object(..) => "an extern object",
            Val::Parser(..) => "a parser",
            Val::Control(..) => "a control",
            Val::Package(..) => "a package",
            Val::Table(_) => "a table",
            Val::ValueSet(..) => "a value set",
            Val::Action(..) | Val::GlobalAction(_) => "an action",
            Val::Functions(_) => "a function",
            Val::This => "`this`",
        }
    }
}

//! The value of an expression during checking, before a destination gives it a type.

use super::types::Ty;
use crate::ast;
use crate::ir;
use crate::source::Span;
use num_bigint::BigInt;
use std::rc::Rc;

/// The value of an expression during checking.
#[derive(Debug, Clone, Default)]
pub(crate) enum Val<'a> {
    /// A value whose error has already been reported.
    #[default]
    Poison,
    /// A compile-time number of type `int`, still without a width.
    Integer(BigInt),
    /// A typed value that is no lvalue; a constant if the expression is constant.
    Expr(Ty, ir::Expr),
    /// An lvalue, which can be read, and written unless it is read-only.
    Place(LVal),
    /// A list `{ … }`, still without a type.
    List(Rc<ListVal<'a>>),
    /// The invalid header `{#}`.
    Invalid,
    /// The don't-care `_`.
    DontCare,
    /// The default initializer `...`.
    Ellipsis,
    /// A type, given by its name.
    Type(Ty),
    /// The name of a generic or instantiable type without arguments: `S`, `Register`, `MyIngress`.
    Decl(DeclRef),
    /// An extern instance and its type.
    Extern(ir::ExternId, Ty),
    /// A parameter whose type is an extern, such as `packet_in`: its variable and type.
    Object(ir::VarId, Ty),
    /// A parser instance, and the index of its declaration.
    Parser(ir::ParserId, u32),
    /// A control instance, and the index of its declaration.
    Control(ir::ControlId, u32),
    /// A package instance and its type.
    Package(Rc<ir::Package>, Ty),
    /// A table of the current control.
    Table(ir::TableId),
    /// A value set of the current parser, and the type of its members.
    ValueSet(ir::ValueSetId, Ty),
    /// An action of the current control, and its declaration.
    Action(ir::ActionId, &'a ast::Decl),
    /// A top-level action: index into [`super::Checker::actions`].
    GlobalAction(u32),
    /// Functions that share a name: indices into [`super::Checker::functions`].
    Functions(Rc<[u32]>),
    /// The object `this` in an abstract method.
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

/// A list `{ … }` with items that have no type yet.
#[derive(Debug, Clone)]
pub(crate) struct ListVal<'a> {
    pub(crate) items: Vec<Item<'a>>,
    /// Whether the list ends in `...`, which stands for default values.
    pub(crate) rest: bool,
}

/// An item of a list `{ … }`.
#[derive(Debug, Clone)]
pub(crate) struct Item<'a> {
    pub(crate) name: Option<&'a ast::Ident>,
    pub(crate) val: Val<'a>,
    pub(crate) span: Span,
}

/// An lvalue during checking: it can be read, and written unless it is read-only.
#[derive(Debug, Clone)]
pub(crate) struct LVal {
    pub(crate) ty: Ty,
    pub(crate) lv: ir::LValue,
    /// The reason why the lvalue must not be written; `None` if it may be written.
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
    /// Describes the value's kind for a message, such as "a table".
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

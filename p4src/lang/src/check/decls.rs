//! Checks top-level declarations, in source order.

use super::Checker;
use super::types::{SerEnumInfo, StructInfo, Ty};
use super::value::{DeclRef, Val};
use crate::ast::{self, Decl, DeclKind, StructKind};
use crate::diagnostics::{Code, Diagnostic};
use crate::ir;
use crate::limits::LIMITS;
use crate::source::Span;
use hashbrown::HashMap;
use std::rc::Rc;

/// A declaration of a struct, header or union.
#[derive(Clone, Copy)]
pub(crate) struct StructDecl<'a> {
    pub(crate) kind: StructKind,
    pub(crate) name: &'a ast::Ident,
    pub(crate) type_params: &'a [ast::Ident],
    pub(crate) fields: &'a [ast::Field],
    pub(crate) annotations: &'a [ast::Annotation],
}

/// A declaration of an extern object type.
#[derive(Clone, Copy)]
pub(crate) struct ExternDecl<'a> {
    pub(crate) name: &'a ast::Ident,
    pub(crate) type_params: &'a [ast::Ident],
    pub(crate) methods: &'a [ast::Method],
}

/// A declaration of a control.
#[derive(Clone, Copy)]
pub(crate) struct ControlDef<'a> {
    pub(crate) decl: &'a ast::ControlDecl,
    pub(crate) annotations: &'a [ast::Annotation],
    pub(crate) span: Span,
}

/// A declaration of a package type.
#[derive(Clone, Copy)]
pub(crate) struct PackageDecl<'a> {
    pub(crate) name: &'a ast::Ident,
    pub(crate) type_params: &'a [ast::Ident],
    pub(crate) params: &'a [ast::Param],
}

/// A declaration of a function or extern function.
#[derive(Clone, Copy)]
pub(crate) struct FunctionDef<'a> {
    pub(crate) proto: &'a ast::FunctionProto,
    /// Body of the function; `None` for an extern function.
    pub(crate) body: Option<&'a ast::Block>,
}

/// A declaration of a top-level action.
#[derive(Clone, Copy)]
pub(crate) struct ActionDef<'a> {
    pub(crate) decl: &'a Decl,
}

impl<'a> Checker<'a, '_> {
    /// Checks one top-level declaration.
    pub(crate) fn top_level(&mut self, decl: &'a Decl) {
        // Evaluated only for their errors; each user of the annotations evaluates them again.
        self.annotations(&decl.annotations);
        let end = decl.span.end;
        match &decl.kind {
            DeclKind::Const { ty, name, init } => {
                let val = self.constant_decl(ty, init);
                self.declare_from(name, val, end);
            }
            DeclKind::Instance {
                ty,
                args,
                name,
                init,
            } => self.top_instance(decl, ty, args, name, init.as_deref()),
            DeclKind::Extern {
                name,
                type_params,
                methods,
            } => {
                let index = self.externs.len() as u32;
                self.externs.push(ExternDecl {
                    name,
                    type_params,
                    methods,
                });
                self.types.extern_names.push(name.name.clone());
                self.declare(name, Val::Decl(DeclRef::Extern(index)));
                self.check_extern(index);
            }
            DeclKind::ExternFunction(proto) => self.function_decl(proto, None, end),
            DeclKind::Function { proto, body } => self.function_decl(proto, Some(body), end),
            DeclKind::Action { name, .. } => {
                self.actions.push(ActionDef { decl });
                let index = self.actions.len() as u32 - 1;
                self.declare_from(name, Val::GlobalAction(index), end);
            }
            DeclKind::Parser(p) => {
                self.applied_type(&p.ctor_params, &p.params, &p.type_params);
                self.parsers.push(p);
                self.types.parser_names.push(p.name.name.clone());
                let index = self.parsers.len() as u32 - 1;
                self.declare_from(&p.name, Val::Decl(DeclRef::Parser(index)), end);
            }
            DeclKind::Control(c) => {
                self.applied_type(&c.ctor_params, &c.params, &c.type_params);
                self.controls.push(ControlDef {
                    decl: c,
                    annotations: &decl.annotations,
                    span: decl.span,
                });
                self.types.control_names.push(c.name.name.clone());
                let index = self.controls.len() as u32 - 1;
                self.declare_from(&c.name, Val::Decl(DeclRef::Control(index)), end);
            }
            DeclKind::Package {
                name,
                type_params,
                params,
            } => {
                self.check_constructor_params(params);
                self.packages.push(PackageDecl {
                    name,
                    type_params,
                    params,
                });
                self.types.package_names.push(name.name.clone());
                let index = self.packages.len() as u32 - 1;
                self.check_names(params.iter().map(|p| &p.name));
                self.check_names(type_params.iter());
                let vars = self.rigid(type_params);
                self.signature(&[(type_params, &vars)], params, None);
                self.declare_from(name, Val::Decl(DeclRef::Package(index)), end);
            }
            DeclKind::Table(t) => self.misplaced(&t.name, "a table must be in a control"),
            DeclKind::ValueSet { name, .. } => {
                self.misplaced(name, "a value set must be in a parser");
            }
            DeclKind::Var { name, .. } => self.misplaced(
                name,
                "a variable must be in a parser or control, not at the top level",
            ),
            _ => self.type_decl(decl, end),
        }
    }

    fn misplaced(&mut self, name: &ast::Ident, message: &str) {
        self.err(Code::Placement, name.span, message);
    }

    /// Checks what the declarations of parsers and controls have in common.
    fn applied_type(
        &mut self,
        ctor_params: &'a [ast::Param],
        params: &'a [ast::Param],
        type_params: &'a [ast::Ident],
    ) {
        self.check_constructor_params(ctor_params);
        self.no_optional_params(ctor_params);
        self.check_names(params.iter().map(|p| &p.name));
        self.check_names(type_params.iter());
    }

    /// Checks a top-level declaration of a type; the type is visible from the byte `end` on.
    fn type_decl(&mut self, decl: &'a Decl, end: u32) {
        match &decl.kind {
            DeclKind::Typedef { ty, name } => {
                let val = match ty {
                    ast::TypeOrDecl::Type(ty) => self.typedef(ty),
                    ast::TypeOrDecl::Decl(inner) => {
                        self.top_level(inner);
                        match inner.name() {
                            Some(id) => self
                                .globals
                                .get(id.name.as_str())
                                .map_or(Val::Poison, |e| e.val.clone()),
                            None => Val::Poison,
                        }
                    }
                };
                self.declare_from(name, val, end);
            }
            DeclKind::NewType { ty, name } => {
                let ty = self.new_type(decl, ty, name);
                self.declare_from(name, Val::Type(ty), end);
            }
            DeclKind::Struct {
                kind,
                name,
                type_params,
                fields,
            } => {
                let index = self.structs.len() as u32;
                self.structs.push(StructDecl {
                    kind: *kind,
                    name,
                    type_params,
                    fields,
                    annotations: &decl.annotations,
                });
                let val = if type_params.is_empty() {
                    Val::Type(self.struct_instance(index, &[], name.span))
                } else {
                    // Checked over its own type parameters, so that unused generics are checked too.
                    let vars: Vec<Ty> = type_params
                        .iter()
                        .map(|p| self.types.fresh(&p.name))
                        .collect();
                    self.struct_instance(index, &vars, name.span);
                    Val::Decl(DeclRef::Struct(index))
                };
                self.declare_from(name, val, end);
            }
            DeclKind::Enum {
                repr,
                name,
                members,
            } => {
                let ty = match repr {
                    None => self.plain_enum(name, members),
                    Some(repr) => self.ser_enum(repr, name, members),
                };
                self.declare_from(name, Val::Type(ty), end);
            }
            DeclKind::Error(members) => {
                for member in members {
                    if self.error_index.contains_key(&member.name) {
                        self.twice("error", member);
                        continue;
                    }
                    self.error_index
                        .insert(member.name.clone(), self.errors.len() as u32);
                    self.errors.push(member.name.clone());
                }
            }
            DeclKind::MatchKind(members) => {
                for member in members {
                    if !self.match_kinds.insert(member.name.clone()) {
                        self.twice("match kind", member);
                    }
                }
            }
            _ => {}
        }
    }

    fn twice(&mut self, what: &str, member: &ast::Ident) {
        let message = format!("{what} `{}` is declared twice", member.name);
        self.err(Code::Duplicate, member.span, message);
    }

    /// Checks a declaration of a new type, `type bit<9> name;` (P4_16 1.2.5, section 7.2.13).
    fn new_type(&mut self, decl: &'a Decl, ty: &'a ast::Type, name: &'a ast::Ident) -> Ty {
        let mut under = self.resolve(ty);
        if self.types.depth(&under) >= LIMITS.type_nesting {
            self.type_too_deep(ty.span);
            under = Ty::Poison;
        }
        let ok = matches!(
            self.types.strip_new(&under),
            Ty::Bit(_) | Ty::Int(_) | Ty::Bool | Ty::Poison
        );
        if !ok {
            let shown = self.types.show(&under);
            self.err(
                Code::Type,
                ty.span,
                format!("`type` takes a bit<>, int<> or bool, not {shown}"),
            );
        }
        self.types.newtypes.push((name.name.clone(), under));
        let annotations = self.annotations(&decl.annotations);
        self.check_translations(&decl.annotations, &annotations);
        self.newtype_annotations.push(annotations);
        Ty::New(self.types.newtypes.len() as u32 - 1)
    }

    /// Resolves the type that a `typedef` names, and checks that it is allowed there (P4_16 1.2.5, section 7.2.12).
    fn typedef(&mut self, ty: &'a ast::Type) -> Val<'a> {
        match self.type_name(ty) {
            Val::Type(of @ (Ty::Void | Ty::MatchKind | Ty::Str)) => {
                let message = format!("`typedef` cannot name the type {}", self.types.show(&of));
                self.err(Code::Type, ty.span, message);
                Val::Poison
            }
            val => val,
        }
    }

    fn plain_enum(&mut self, name: &'a ast::Ident, members: &'a [ast::EnumMember]) -> Ty {
        self.has_members(name, members);
        self.unique_members(members);
        for m in members {
            if let Some(value) = &m.value {
                self.err(
                    Code::Type,
                    value.span,
                    "only an enum with an underlying type (`enum bit<8> E`) takes member values",
                );
            }
        }
        self.types.enums.push(ir::EnumType {
            name: name.name.clone(),
            members: members.iter().map(|m| m.name.name.clone()).collect(),
        });
        Ty::Enum(self.types.enums.len() as u32 - 1)
    }

    fn ser_enum(
        &mut self,
        repr: &'a ast::Type,
        name: &'a ast::Ident,
        members: &'a [ast::EnumMember],
    ) -> Ty {
        self.has_members(name, members);
        self.unique_members(members);
        let ty = self.resolve(repr);
        if !matches!(ty, Ty::Bit(_) | Ty::Int(_) | Ty::Poison) {
            let shown = self.types.show(&ty);
            self.err(
                Code::Type,
                repr.span,
                format!("the underlying type of an enum must be a bit<> or int<>, not {shown}"),
            );
        }
        let ty = self.types.strip_new(&ty).clone();
        // Members may refer to earlier ones, so the type exists while they are evaluated.
        let index = self.types.ser_enums.len();
        self.types.ser_enums.push(SerEnumInfo {
            name: name.name.clone(),
            repr: ty.clone(),
            members: Vec::new(),
        });
        self.push_scope();
        for m in members {
            let Some(value) = &m.value else {
                self.err(
                    Code::Constant,
                    m.name.span,
                    format!(
                        "`{}` needs a value: the enum has an underlying type",
                        m.name.name
                    ),
                );
                continue;
            };
            if let Some(c @ ir::Const::Bits { .. }) = self.member_value(value, &ty) {
                let e = super::fold::constant(c.clone(), self.types.ir(&ty));
                self.declare(&m.name, Val::Expr(Ty::SerEnum(index as u32), e));
                if let ir::Const::Bits { value, .. } = c {
                    self.types.ser_enums[index]
                        .members
                        .push((m.name.name.clone(), value));
                }
            } else {
                // The member is invalid but stays declared, so that its uses are not reported.
                self.declare(&m.name, Val::Poison);
                let members = &mut self.types.ser_enums[index].members;
                members.push((m.name.name.clone(), Default::default()));
            }
        }
        self.pop_scope();
        Ty::SerEnum(index as u32)
    }

    fn has_members(&mut self, name: &'a ast::Ident, members: &[ast::EnumMember]) {
        if members.is_empty() {
            let message = format!("enum `{}` has no members", name.name);
            self.err(Code::Type, name.span, message);
        }
    }

    fn unique_members(&mut self, members: &'a [ast::EnumMember]) {
        let mut seen = HashMap::new();
        for m in members {
            if let Some(first) = seen.insert(m.name.name.as_str(), m.name.span) {
                let message = format!("member `{}` is declared twice", m.name.name);
                self.push(
                    Diagnostic::error(Code::Duplicate, m.name.span, message)
                        .label(first, "first here"),
                );
            }
        }
    }

    fn function_decl(
        &mut self,
        proto: &'a ast::FunctionProto,
        body: Option<&'a ast::Block>,
        end: u32,
    ) {
        if body.is_some() {
            self.no_optional_params(&proto.params);
        }
        let index = self.functions.len() as u32;
        self.functions.push(FunctionDef { proto, body });
        let name = &proto.name;
        let known = match self.globals.get(name.name.as_str()) {
            Some(super::scope::Entry {
                val: Val::Functions(list),
                ..
            }) => Some(list.clone()),
            _ => None,
        };
        match known {
            Some(list) => {
                let same = list.iter().any(|&i| {
                    let other = self.functions[i as usize].proto;
                    other.params.len() == proto.params.len()
                        && other
                            .params
                            .iter()
                            .zip(&proto.params)
                            .all(|(a, b)| a.name.name == b.name.name)
                });
                if same {
                    self.err(
                        Code::Duplicate,
                        name.span,
                        format!(
                            "function `{}` with these parameters is declared twice",
                            name.name
                        ),
                    );
                }
                let all: Rc<[u32]> = list.iter().copied().chain([index]).collect();
                if let Some(entry) = self.globals.get_mut(name.name.as_str()) {
                    entry.val = Val::Functions(all);
                }
            }
            None => self.declare_from(name, Val::Functions(Rc::from([index])), end),
        }
    }

    /// Adds a new struct type, with its type arguments, to the checker's tables.
    pub(crate) fn add_struct(
        &mut self,
        mut info: StructInfo,
        ir: ir::StructType,
        keep: bool,
    ) -> Ty {
        if keep {
            info.ir = Some(ir::TypeId(self.types.ir.len() as u32));
            self.types.ir.push(ir);
        }
        self.types.structs.push(info);
        Ty::Struct(self.types.structs.len() as u32 - 1)
    }
}

//! Resolves types as written to [`Ty`], and instantiates generic structs.

use super::Checker;
use super::types::{StructInfo, Ty};
use super::value::{DeclRef, Val};
use crate::ast::{self, StructKind, TypeKind};
use crate::diagnostics::{Code, Diagnostic};
use crate::ir;
use crate::limits::LIMITS;
use crate::source::Span;
use hashbrown::HashMap;
use num_traits::ToPrimitive;
use std::rc::Rc;

impl<'a> Checker<'a, '_> {
    /// Resolves a type as written; a generic type needs its type arguments.
    pub(crate) fn resolve(&mut self, ty: &'a ast::Type) -> Ty {
        match self.type_name(ty) {
            Val::Type(t) => t,
            Val::Decl(decl) => self.specialize(decl, &[], ty.span),
            _ => Ty::Poison,
        }
    }

    /// Resolves a type as written, or the name of a generic type without type arguments.
    pub(crate) fn type_name(&mut self, ty: &'a ast::Type) -> Val<'a> {
        if !self.enter(ty.span) {
            return Val::Poison;
        }
        let val = self.type_name_inner(ty);
        self.leave();
        val
    }

    fn type_name_inner(&mut self, ty: &'a ast::Type) -> Val<'a> {
        if let TypeKind::Name { absolute, name } = &ty.kind {
            return self.named_type(name, *absolute);
        }
        let Some(t) = self.written_type(ty) else {
            return Val::Poison;
        };
        if self.types.nodes(&t) > LIMITS.type_nodes || self.types.leaves(&t) > LIMITS.type_leaves {
            self.type_too_large(ty.span);
            return Val::Poison;
        }
        if self.types.depth(&t) > LIMITS.type_nesting {
            self.type_too_deep(ty.span);
            return Val::Poison;
        }
        Val::Type(t)
    }

    /// Resolves a type that is more than a name; `None` if it is only a name.
    fn written_type(&mut self, ty: &'a ast::Type) -> Option<Ty> {
        Some(match &ty.kind {
            TypeKind::Void => Ty::Void,
            TypeKind::Bool => Ty::Bool,
            TypeKind::Error => Ty::Error,
            TypeKind::MatchKind => Ty::MatchKind,
            TypeKind::String => Ty::Str,
            TypeKind::Integer => Ty::Integer,
            TypeKind::DontCare => Ty::DontCare,
            TypeKind::Bit(None) => Ty::Bit(1),
            TypeKind::Bit(Some(w)) => self
                .size(w, LIMITS.width, "width")
                .map_or(Ty::Poison, Ty::Bit),
            TypeKind::Int(w) => self.int_type(w),
            TypeKind::Varbit(w) => self
                .size(w, LIMITS.varbit_width, "width")
                .map_or(Ty::Poison, Ty::Varbit),
            TypeKind::Name { .. } => self.resolve(ty),
            TypeKind::Specialized { base, args } => self.specialized_type(base, args, ty.span)?,
            TypeKind::Stack { elem, size } => self.array_type(elem, size)?,
            TypeKind::Tuple(items) => self.tuple_type(items)?,
            TypeKind::List(elem) => self.list_type(elem)?,
        })
    }

    fn int_type(&mut self, width: &'a ast::Expr) -> Ty {
        match self.size(width, LIMITS.width, "width") {
            Some(0) => {
                self.err(Code::Constant, width.span, "an int<> has at least one bit");
                Ty::Poison
            }
            Some(w) => Ty::Int(w),
            None => Ty::Poison,
        }
    }

    fn named_type(&mut self, name: &'a ast::Ident, absolute: bool) -> Val<'a> {
        match self.lookup(name, absolute) {
            val @ (Val::Type(_) | Val::Decl(_) | Val::Poison) => val,
            other => {
                let what = other.what();
                self.err(
                    Code::Type,
                    name.span,
                    format!("`{}` is {what}, not a type", name.name),
                );
                Val::Poison
            }
        }
    }

    /// Resolves a generic type with its type arguments.
    fn specialized_type(
        &mut self,
        base: &'a ast::Type,
        args: &'a [ast::Type],
        span: Span,
    ) -> Option<Ty> {
        let base_val = self.type_name(base);
        let left_open = args.iter().find(|a| matches!(a.kind, TypeKind::DontCare));
        if let (Val::Decl(DeclRef::Struct(_)), Some(arg)) = (&base_val, left_open) {
            let message = "a struct or header cannot take `_` as a type argument";
            let hint = "`_` is inferred only in calls and in instances of externs and packages";
            self.push(Diagnostic::error(Code::Type, arg.span, message).hint(hint));
            return None;
        }
        let args: Vec<Ty> = args.iter().map(|a| self.resolve(a)).collect();
        Some(match base_val {
            Val::Decl(decl) => self.specialize(decl, &args, span),
            Val::Poison => Ty::Poison,
            _ => {
                self.err(Code::Type, base.span, "this type takes no type arguments");
                Ty::Poison
            }
        })
    }

    fn array_type(&mut self, elem: &'a ast::Type, size: &'a ast::Expr) -> Option<Ty> {
        let elem_ty = self.resolve(elem);
        let n = self.size(size, LIMITS.stack, "size");
        let storable = match self.types.strip_new(&elem_ty) {
            Ty::Stack(inner, _) => !self.types.holds_validity(inner),
            Ty::Bit(_)
            | Ty::Int(_)
            | Ty::Varbit(_)
            | Ty::Bool
            | Ty::Error
            | Ty::Enum(_)
            | Ty::SerEnum(_)
            | Ty::Struct(_)
            | Ty::Var(_)
            | Ty::Poison => true,
            _ => false,
        };
        if !storable {
            return self.cannot_hold("an array", "elements", &elem_ty, elem.span);
        }
        self.types.array_of(&elem_ty);
        Some(match n {
            Some(n) if !elem_ty.is_poison() => Ty::Stack(Rc::new(elem_ty), n),
            _ => Ty::Poison,
        })
    }

    fn tuple_type(&mut self, items: &'a [ast::Type]) -> Option<Ty> {
        let mut fields = Vec::with_capacity(items.len());
        for item in items {
            let field = self.resolve(item);
            if matches!(field, Ty::Str | Ty::Void | Ty::DontCare | Ty::List(_)) || field.is_object()
            {
                return self.cannot_hold("a tuple", "a field", &field, item.span);
            }
            fields.push(field);
        }
        Some(Ty::Tuple(fields.into()))
    }

    fn list_type(&mut self, elem: &'a ast::Type) -> Option<Ty> {
        let elem_ty = self.resolve(elem);
        if matches!(elem_ty, Ty::Void) || elem_ty.is_object() {
            return self.cannot_hold("a list", "elements", &elem_ty, elem.span);
        }
        Some(Ty::List(Rc::new(elem_ty)))
    }

    fn cannot_hold(&mut self, holder: &str, what: &str, ty: &Ty, span: Span) -> Option<Ty> {
        let shown = self.types.show(ty);
        let message = format!("{holder} cannot hold {what} of type {shown}");
        self.err(Code::Type, span, message);
        None
    }

    pub(super) fn type_too_deep(&mut self, span: Span) {
        let message = format!("types nested more than {} levels deep", LIMITS.type_nesting);
        self.err(Code::Limit, span, message);
    }

    fn type_too_large(&mut self, span: Span) {
        let message = format!(
            "type too large: more than {} names in it, or more than {} scalars in its values",
            LIMITS.type_nodes, LIMITS.type_leaves
        );
        self.err(Code::Limit, span, message);
    }

    /// Evaluates the width of a type or the size of a stack: a constant in `0 ..= max`. Like p4c, this accepts empty arrays.
    fn size(&mut self, e: &'a ast::Expr, max: u32, what: &str) -> Option<u32> {
        let n = self.integer_constant(e)?;
        match n.to_u32().filter(|n| *n <= max) {
            Some(n) => Some(n),
            None => {
                self.err(
                    Code::Constant,
                    e.span,
                    format!("the {what} is {n}; it must be 0 to {max}"),
                );
                None
            }
        }
    }

    /// Applies a generic type's declaration to its type arguments.
    pub(crate) fn specialize(&mut self, decl: DeclRef, args: &[Ty], span: Span) -> Ty {
        let (name, wanted): (&str, usize) = match decl {
            DeclRef::Struct(i) => {
                let d = self.structs[i as usize];
                (&d.name.name, d.type_params.len())
            }
            DeclRef::Extern(i) => {
                let d = self.externs[i as usize];
                (&d.name.name, d.type_params.len())
            }
            DeclRef::Parser(i) => {
                let d = self.parsers[i as usize];
                (&d.name.name, d.type_params.len())
            }
            DeclRef::Control(i) => {
                let d = self.controls[i as usize].decl;
                (&d.name.name, d.type_params.len())
            }
            DeclRef::Package(i) => {
                let d = self.packages[i as usize];
                (&d.name.name, d.type_params.len())
            }
        };
        if args.len() != wanted {
            let message = format!(
                "`{name}` takes {wanted} type argument{}, {} given",
                if wanted == 1 { "" } else { "s" },
                args.len()
            );
            self.err(Code::Type, span, message);
            return Ty::Poison;
        }
        if args.iter().any(Ty::is_poison) {
            return Ty::Poison;
        }
        let itself = |arg: &Ty| match (decl, arg) {
            (DeclRef::Extern(i), Ty::Extern(j, _)) => i == *j,
            _ => false,
        };
        if args.iter().any(itself) {
            self.err(
                Code::Type,
                span,
                "a type cannot have itself as a type argument",
            );
            return Ty::Poison;
        }
        let shared: Rc<[Ty]> = args.into();
        let ty = match decl {
            DeclRef::Struct(i) => self.struct_instance(i, args, span),
            DeclRef::Extern(i) => Ty::Extern(i, shared),
            DeclRef::Parser(i) => Ty::Parser(i, shared),
            DeclRef::Control(i) => Ty::Control(i, shared),
            DeclRef::Package(i) => Ty::Package(i, shared),
        };
        if self.types.nodes(&ty) > LIMITS.type_nodes {
            self.type_too_large(span);
            return Ty::Poison;
        }
        ty
    }

    /// The type of a generic struct with its type arguments; each such type is created once.
    pub(crate) fn struct_instance(&mut self, index: u32, args: &[Ty], span: Span) -> Ty {
        if let Some(&i) = self.struct_cache.get(&(index, args.to_vec())) {
            return Ty::Struct(i);
        }
        if self.types.structs.len() >= LIMITS.structs {
            let message = format!("more than {} structs, headers and unions", LIMITS.structs);
            self.err(Code::Limit, span, message);
            return Ty::Poison;
        }
        if !self.enter(span) {
            return Ty::Poison;
        }
        let decl = self.structs[index as usize];
        // A declaration sees the top level and its own type parameters, not the scope of its use.
        let scopes = std::mem::take(&mut self.unit.scopes);
        self.push_scope();
        for (param, arg) in decl.type_params.iter().zip(args) {
            self.declare(param, Val::Type(arg.clone()));
        }
        let mut fields: Vec<(String, Ty)> = Vec::new();
        let mut by_name: HashMap<String, u32> = HashMap::new();
        for f in decl.fields {
            let ty = self.resolve(&f.ty);
            let ty = self.field_type(decl.kind, ty, f);
            let n = fields.len() as u32;
            if let Some(first) = by_name.insert(f.name.name.clone(), n) {
                let message = format!("field `{}` is declared twice", f.name.name);
                let first = decl.fields.get(first as usize).map(|f| f.name.span);
                let mut d = Diagnostic::error(Code::Duplicate, f.name.span, message);
                if let Some(first) = first {
                    d = d.label(first, "first here");
                }
                self.push(d);
            }
            fields.push((f.name.name.clone(), ty));
        }
        self.unit.scopes = scopes;
        self.leave();
        let leaves = fields.iter().fold(1u64, |sum, (_, ty)| {
            sum.saturating_add(self.types.leaves(ty))
        });
        if leaves > LIMITS.type_leaves {
            self.type_too_large(decl.name.span);
            return Ty::Poison;
        }
        let depth = 1 + fields
            .iter()
            .map(|(_, ty)| self.types.depth(ty))
            .max()
            .unwrap_or(0);
        if depth > LIMITS.type_nesting {
            self.type_too_deep(decl.name.span);
            return Ty::Poison;
        }

        let name = self.types.instance_name(&decl.name.name, args);
        let keep = !args.iter().any(|a| self.types.has_vars(a));
        let mut field_annotations: Vec<_> = decl
            .fields
            .iter()
            .map(|f| self.annotations(&f.annotations))
            .collect();
        let annotations = self.annotations(decl.annotations);
        let lowered = ir::StructType {
            name: name.clone(),
            kind: decl.kind,
            fields: fields
                .iter()
                .zip(&mut field_annotations)
                .map(|((name, ty), annotations)| ir::FieldType {
                    name: name.clone(),
                    ty: self.types.ir(ty),
                    declared: self.types.declared(ty),
                    annotations: std::mem::take(annotations),
                })
                .collect(),
            annotations,
        };
        let info = StructInfo {
            name,
            kind: decl.kind,
            bits: self.struct_bits(decl.kind, &fields),
            plain: fields.iter().all(|(_, ty)| self.types.has_a_layout(ty)),
            fields,
            leaves,
            depth,
            index: by_name,
            ir: None,
            origin: (index, args.into()),
        };
        let ty = self.add_struct(info, lowered, keep);
        if let Ty::Struct(i) = ty {
            self.struct_cache.insert((index, args.to_vec()), i);
        }
        ty
    }

    fn struct_bits(&self, kind: StructKind, fields: &[(String, Ty)]) -> (u64, u64) {
        let mut total = (0u64, 0u64);
        for (i, (_, ty)) in fields.iter().enumerate() {
            let (min, max) = self.types.bits(ty).unwrap_or((0, 0));
            total = match kind {
                StructKind::Union if i == 0 => (min, max),
                StructKind::Union => (total.0.min(min), total.1.max(max)),
                _ => (total.0.saturating_add(min), total.1.saturating_add(max)),
            };
        }
        total
    }

    /// Checks that a type may be a field of a struct of this kind (P4_16 1.2.5, section 7.2.9); returns `Poison` if it may not.
    fn field_type(&mut self, kind: StructKind, ty: Ty, f: &ast::Field) -> Ty {
        let bare = self.types.strip_new(&ty);
        let ok = match kind {
            StructKind::Header => {
                // A struct or stack in a header must have a fixed size, so that offsets are known.
                let varies = matches!(bare, Ty::Struct(_) | Ty::Stack(..))
                    && self.types.bits(bare).is_some_and(|(min, max)| min != max);
                self.types.has_a_layout(bare) && !varies
            }
            StructKind::Union => {
                matches!(bare, Ty::Var(_) | Ty::Poison) || self.types.is_header(bare)
            }
            StructKind::Struct => {
                !matches!(
                    bare,
                    Ty::Void | Ty::Integer | Ty::MatchKind | Ty::Str | Ty::DontCare | Ty::List(_)
                ) && !bare.is_object()
            }
        };
        if ok {
            return ty;
        }
        let what = match kind {
            StructKind::Header => "a header",
            StructKind::Union => "a header union",
            StructKind::Struct => "a struct",
        };
        let message = format!(
            "{what} cannot hold a field of type {}",
            self.types.show(&ty)
        );
        let mut d = Diagnostic::error(Code::Type, f.ty.span, message);
        if kind == StructKind::Header && matches!(bare, Ty::Enum(_)) {
            d = d.hint("write an underlying type: `enum bit<8> E { A = 0 }`");
        }
        self.push(d);
        Ty::Poison
    }
}

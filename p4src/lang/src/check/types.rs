//! The checker's types. Structural types are reference-counted; every named type is an index into [`Types`], so comparing
//! two types never walks a declaration.

use crate::ast::StructKind;
use crate::ir;
use crate::limits::LIMITS;
use hashbrown::HashMap;
use num_bigint::BigUint;
use std::rc::Rc;

/// A type. `Poison` is the type of an expression with a reported error; it is compatible with every other type.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Ty {
    Poison,
    Void,
    Bool,
    Error,
    MatchKind,
    Str,
    /// The type `int`: arbitrary precision, only at compile time.
    Integer,
    Bit(u32),
    Int(u32),
    Varbit(u32),
    /// A struct, header or union: index into [`Types::structs`]. Instances of a generic struct are interned.
    Struct(u32),
    /// An enum without a representation: index into [`Types::enums`].
    Enum(u32),
    /// An enum with a representation: index into [`Types::ser_enums`].
    SerEnum(u32),
    /// A new type, `type T x;`: index into [`Types::newtypes`].
    New(u32),
    Stack(Rc<Ty>, u32),
    Tuple(Rc<[Ty]>),
    List(Rc<Ty>),
    /// An extern object type: index of its declaration, and the type arguments.
    Extern(u32, Rc<[Ty]>),
    Parser(u32, Rc<[Ty]>),
    Control(u32, Rc<[Ty]>),
    Package(u32, Rc<[Ty]>),
    /// A type variable: a type parameter of a declaration that is being checked, or one that is to be inferred.
    Var(u32),
    /// `_` as a type argument: any type.
    DontCare,
}

impl Ty {
    pub(crate) fn is_poison(&self) -> bool {
        matches!(self, Ty::Poison)
    }

    /// The width of `bit<W>` or `int<W>`; `None` for other types.
    pub(crate) fn width(&self) -> Option<u32> {
        match self {
            Ty::Bit(w) | Ty::Int(w) => Some(*w),
            _ => None,
        }
    }

    /// Whether values of the type exist only at compile time and can be neither copied nor stored.
    pub(crate) fn is_object(&self) -> bool {
        matches!(
            self,
            Ty::Extern(..) | Ty::Parser(..) | Ty::Control(..) | Ty::Package(..)
        )
    }
}

/// A struct, header or union with its type arguments substituted.
#[derive(Debug)]
pub(crate) struct StructInfo {
    pub(crate) name: String,
    pub(crate) kind: StructKind,
    pub(crate) fields: Vec<(String, Ty)>,
    /// Index of each field, by field name.
    pub(crate) index: HashMap<String, u32>,
    /// Size of a value in bits: (minimum, maximum). A union has the sizes of its longest member.
    pub(crate) bits: (u64, u64),
    /// Number of scalars in a value of the type, plus one for the type itself.
    pub(crate) leaves: u64,
    /// Levels of structs, stacks and tuples in the type, including the type itself.
    pub(crate) depth: u32,
    /// Whether all fields of the type are allowed in a header.
    pub(crate) plain: bool,
    /// Index of the generic declaration, and the type arguments.
    pub(crate) origin: (u32, Rc<[Ty]>),
    /// Id of the type in the IR; `None` for a type that contains type variables.
    pub(crate) ir: Option<ir::TypeId>,
}

/// An enum with a representation, such as `enum bit<8> E`.
#[derive(Debug)]
pub(crate) struct SerEnumInfo {
    pub(crate) name: String,
    pub(crate) repr: Ty,
    pub(crate) members: Vec<(String, BigUint)>,
}

/// All named types of a program.
#[derive(Debug, Default)]
pub(crate) struct Types {
    pub(crate) structs: Vec<StructInfo>,
    pub(crate) enums: Vec<ir::EnumType>,
    pub(crate) ser_enums: Vec<SerEnumInfo>,
    /// One-field structs that represent the elements of `T[n]` in the IR if T is not a struct.
    pub(crate) elements: HashMap<Ty, ir::TypeId>,
    /// New types (`type T x;`): (name, underlying type).
    pub(crate) newtypes: Vec<(String, Ty)>,
    /// Names of type variables, by number.
    pub(crate) vars: Vec<String>,
    /// Names of extern declarations, by index; the next fields: names of parsers, controls and packages.
    pub(crate) extern_names: Vec<String>,
    pub(crate) parser_names: Vec<String>,
    pub(crate) control_names: Vec<String>,
    pub(crate) package_names: Vec<String>,
    /// Struct, header and union types that the IR contains so far.
    pub(crate) ir: Vec<ir::StructType>,
}

impl Types {
    /// Creates a new type variable with this name.
    pub(crate) fn fresh(&mut self, name: &str) -> Ty {
        self.vars.push(name.to_owned());
        Ty::Var(self.vars.len() as u32 - 1)
    }

    /// The type as a user would write it in P4.
    pub(crate) fn show(&self, ty: &Ty) -> String {
        let mut out = String::new();
        self.write(&mut out, ty);
        out
    }

    fn write(&self, out: &mut String, ty: &Ty) {
        let named = |out: &mut String, name: &str, args: &[Ty]| {
            out.push_str(name);
            if !args.is_empty() {
                self.write_args(out, args);
            }
        };
        match ty {
            Ty::Poison => out.push_str("(unknown)"),
            Ty::Void => out.push_str("void"),
            Ty::Bool => out.push_str("bool"),
            Ty::Error => out.push_str("error"),
            Ty::MatchKind => out.push_str("match_kind"),
            Ty::Str => out.push_str("string"),
            Ty::Integer => out.push_str("int"),
            Ty::Bit(w) => out.push_str(&format!("bit<{w}>")),
            Ty::Int(w) => out.push_str(&format!("int<{w}>")),
            Ty::Varbit(w) => out.push_str(&format!("varbit<{w}>")),
            Ty::Struct(i) => out.push_str(&self.structs[*i as usize].name),
            Ty::Enum(i) => out.push_str(&self.enums[*i as usize].name),
            Ty::SerEnum(i) => out.push_str(&self.ser_enums[*i as usize].name),
            Ty::New(i) => out.push_str(&self.newtypes[*i as usize].0),
            Ty::Stack(elem, n) => {
                self.write(out, elem);
                out.push_str(&format!("[{n}]"));
            }
            Ty::Tuple(items) => {
                out.push_str("tuple");
                self.write_args(out, items);
            }
            Ty::List(elem) => {
                out.push_str("list");
                self.write_args(out, std::slice::from_ref(elem));
            }
            Ty::Extern(i, args) => named(out, &self.extern_names[*i as usize], args),
            Ty::Parser(i, args) => named(out, &self.parser_names[*i as usize], args),
            Ty::Control(i, args) => named(out, &self.control_names[*i as usize], args),
            Ty::Package(i, args) => named(out, &self.package_names[*i as usize], args),
            Ty::Var(i) => out.push_str(&self.vars[*i as usize]),
            Ty::DontCare => out.push('_'),
        }
    }

    fn write_args(&self, out: &mut String, args: &[Ty]) {
        out.push('<');
        for (i, arg) in args.iter().enumerate() {
            if i > 0 {
                out.push_str(", ");
            }
            self.write(out, arg);
        }
        out.push('>');
    }

    /// The name of a generic type with its type arguments: `S<bit<8>, T>`.
    pub(crate) fn instance_name(&self, base: &str, args: &[Ty]) -> String {
        let mut out = base.to_owned();
        if !args.is_empty() {
            self.write_args(&mut out, args);
        }
        out
    }

    /// Replaces a new type by its underlying type, repeatedly, until the type is no new type.
    pub(crate) fn strip_new<'t>(&'t self, mut ty: &'t Ty) -> &'t Ty {
        while let Ty::New(i) = ty {
            ty = &self.newtypes[*i as usize].1;
        }
        ty
    }

    /// Lowers a type to its run-time type in the IR.
    pub(crate) fn ir(&self, ty: &Ty) -> ir::Type {
        match ty {
            Ty::Void | Ty::Poison | Ty::DontCare | Ty::MatchKind => ir::Type::Void,
            Ty::Bool => ir::Type::Bool,
            Ty::Error => ir::Type::Error,
            Ty::Str => ir::Type::String,
            // Only at compile time; a value of this type that reaches the IR is `Const::Integer`.
            Ty::Integer => ir::Type::Bit(32),
            // An unbound type parameter occurs only in declarations that are checked and then dropped.
            Ty::Var(_) => ir::Type::Bit(1),
            Ty::Bit(w) => ir::Type::Bit(*w),
            Ty::Int(w) => ir::Type::Int(*w),
            Ty::Varbit(w) => ir::Type::Varbit(*w),
            Ty::Struct(i) => {
                ir::Type::Struct(self.structs[*i as usize].ir.unwrap_or(ir::TypeId(0)))
            }
            Ty::Enum(i) => ir::Type::Enum(ir::EnumId(*i)),
            Ty::SerEnum(i) => self.ir(&self.ser_enums[*i as usize].repr),
            Ty::New(_) => self.ir(self.strip_new(ty)),
            Ty::Stack(elem, n) => match self.ir(elem) {
                ir::Type::Struct(id) => ir::Type::Stack(id, *n),
                _ => match self.elements.get(&**elem) {
                    Some(id) => ir::Type::Stack(*id, *n),
                    None => ir::Type::Void,
                },
            },
            Ty::Tuple(items) => ir::Type::Tuple(items.iter().map(|t| self.ir(t)).collect()),
            Ty::List(elem) => ir::Type::Tuple(vec![self.ir(elem)]),
            Ty::Extern(i, _) => ir::Type::Extern(self.extern_names[*i as usize].clone()),
            Ty::Parser(i, _) => ir::Type::Extern(self.parser_names[*i as usize].clone()),
            Ty::Control(i, _) => ir::Type::Extern(self.control_names[*i as usize].clone()),
            Ty::Package(i, _) => ir::Type::Extern(self.package_names[*i as usize].clone()),
        }
    }

    /// The IR's description of a type under its name in the source.
    pub(crate) fn declared(&self, ty: &Ty) -> ir::Declared {
        match ty {
            Ty::New(i) => ir::Declared::New(*i),
            Ty::SerEnum(i) => ir::Declared::SerEnum(*i),
            Ty::Tuple(items) => {
                ir::Declared::Tuple(items.iter().map(|t| self.declared(t)).collect())
            }
            _ => ir::Declared::Plain(self.ir(ty)),
        }
    }

    /// The one-field struct that represents an array's element in the IR; `None` if the element is a struct itself.
    pub(crate) fn element(&self, elem: &Ty) -> Option<ir::TypeId> {
        self.elements.get(elem).copied()
    }

    /// Prepares the lowering of arrays with elements of type `elem`.
    pub(crate) fn array_of(&mut self, elem: &Ty) {
        let lowered = self.ir(elem);
        if matches!(lowered, ir::Type::Struct(_)) || self.elements.contains_key(elem) {
            return;
        }
        let id = ir::TypeId(self.ir.len() as u32);
        self.ir.push(ir::StructType {
            name: self.show(elem),
            kind: StructKind::Struct,
            fields: vec![ir::FieldType {
                name: "value".to_owned(),
                ty: lowered,
                declared: self.declared(elem),
                annotations: Vec::new(),
            }],
            annotations: Vec::new(),
        });
        self.elements.insert(elem.clone(), id);
    }

    /// Size of a value in bits, (minimum, maximum); `None` if the type has no size.
    pub(crate) fn bits(&self, ty: &Ty) -> Option<(u64, u64)> {
        Some(match ty {
            Ty::Bool => (1, 1),
            Ty::Bit(w) | Ty::Int(w) => (u64::from(*w), u64::from(*w)),
            Ty::Varbit(w) => (0, u64::from(*w)),
            Ty::Struct(i) => self.structs[*i as usize].bits,
            Ty::SerEnum(i) => return self.bits(&self.ser_enums[*i as usize].repr),
            Ty::New(_) => return self.bits(self.strip_new(ty)),
            Ty::Stack(elem, n) => {
                let (min, max) = self.bits(elem)?;
                (
                    min.saturating_mul(u64::from(*n)),
                    max.saturating_mul(u64::from(*n)),
                )
            }
            Ty::Tuple(items) => {
                let mut sum = (0u64, 0u64);
                for item in items.iter() {
                    let (min, max) = self.bits(item)?;
                    sum = (sum.0.saturating_add(min), sum.1.saturating_add(max));
                }
                sum
            }
            _ => return None,
        })
    }

    pub(crate) fn strukt(&self, ty: &Ty) -> Option<&StructInfo> {
        match ty {
            Ty::Struct(i) => Some(&self.structs[*i as usize]),
            _ => None,
        }
    }

    pub(crate) fn is_header(&self, ty: &Ty) -> bool {
        self.strukt(ty)
            .is_some_and(|s| s.kind == StructKind::Header)
    }

    pub(crate) fn is_union(&self, ty: &Ty) -> bool {
        self.strukt(ty).is_some_and(|s| s.kind == StructKind::Union)
    }

    /// Whether the type is a header or header union.
    pub(crate) fn holds_validity(&self, ty: &Ty) -> bool {
        self.strukt(ty)
            .is_some_and(|s| s.kind != StructKind::Struct)
    }

    /// Whether a header may have a field of this type, because the type's declaration determines its bits.
    pub(crate) fn has_a_layout(&self, ty: &Ty) -> bool {
        match self.strip_new(ty) {
            Ty::Bit(_) | Ty::Int(_) | Ty::Varbit(_) | Ty::Bool | Ty::SerEnum(_) => true,
            Ty::Var(_) | Ty::Poison => true,
            Ty::Stack(elem, _) => self.has_a_layout(elem),
            Ty::Struct(i) => {
                let info = &self.structs[*i as usize];
                info.kind == StructKind::Struct && info.plain
            }
            _ => false,
        }
    }

    /// Whether the type mentions a type variable. Named types were checked when they were created.
    pub(crate) fn has_vars(&self, ty: &Ty) -> bool {
        match ty {
            Ty::Var(_) | Ty::DontCare => true,
            Ty::Struct(i) => self.structs[*i as usize].ir.is_none(),
            Ty::Stack(elem, _) | Ty::List(elem) => self.has_vars(elem),
            Ty::Tuple(items)
            | Ty::Extern(_, items)
            | Ty::Parser(_, items)
            | Ty::Control(_, items)
            | Ty::Package(_, items) => items.iter().any(|t| self.has_vars(t)),
            _ => false,
        }
    }

    /// Number of scalars in a value of the type.
    pub(crate) fn leaves(&self, ty: &Ty) -> u64 {
        match self.strip_new(ty) {
            Ty::Struct(i) => self.structs[*i as usize].leaves,
            Ty::Stack(elem, n) => self.leaves(elem).saturating_mul(u64::from(*n)),
            Ty::Tuple(items) => items
                .iter()
                .fold(1, |sum: u64, t| sum.saturating_add(self.leaves(t))),
            _ => 1,
        }
    }

    /// Nesting depth of structs, stacks, tuples and new types in the type.
    pub(crate) fn depth(&self, ty: &Ty) -> u32 {
        match ty {
            Ty::Struct(i) => self.structs[*i as usize].depth,
            Ty::Stack(elem, _) | Ty::List(elem) => 1 + self.depth(elem),
            Ty::Tuple(items) => 1 + items.iter().map(|t| self.depth(t)).max().unwrap_or(0),
            Ty::New(i) => 1 + self.depth(&self.newtypes[*i as usize].1),
            _ => 0,
        }
    }

    /// Number of names in the fully written type, counted up to just over `Limits::type_nodes`.
    pub(crate) fn nodes(&self, ty: &Ty) -> usize {
        match ty {
            Ty::Stack(elem, _) | Ty::List(elem) => 1 + self.nodes(elem),
            Ty::Tuple(items)
            | Ty::Extern(_, items)
            | Ty::Parser(_, items)
            | Ty::Control(_, items)
            | Ty::Package(_, items) => {
                let mut sum = 1;
                for item in items.iter() {
                    sum += self.nodes(item);
                    if sum > LIMITS.type_nodes {
                        break;
                    }
                }
                sum
            }
            _ => 1,
        }
    }
}

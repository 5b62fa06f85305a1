//! Computes the layout of types in slots of the frame and in packets.
//!
//! A scalar takes one slot per 64 bits, low limb first; a varbit its length in bits, then its limbs; a header its
//! validity, then its fields; a stack its `nextIndex`, then its elements; a field with its own validity is followed by
//! it. [`Compiler::parts`] is the only definition of this order.

use super::{Compiler, Result};
use crate::bits::{MAX_BITS, limbs};
use crate::limits::LIMITS;
use crate::op::codec::LayoutField;
use crate::op::{Layout, Slot};
use hashbrown::HashMap;
use p4lang::ast::StructKind;
use p4lang::ir::{Expr, ExprKind, Program, Type, TypeId};
use std::rc::Rc;

/// A part of a value: a field of a struct, header, union or tuple, or an element of a stack.
#[derive(Debug, Clone)]
pub(crate) struct Part {
    /// First slot of the part, relative to the whole value.
    pub at: u32,
    pub ty: Type,
    /// Slot of the field's own validity (TNA's metadata), relative to the whole value; `None` if it has none.
    pub validity: Option<u32>,
}

/// Slots of all fields of a struct or header type.
#[derive(Debug, Clone)]
pub(crate) struct Offsets {
    parts: Rc<[Part]>,
    size: u32,
    /// Whether the type has slots that are not bits of its fields, such as a validity.
    states: bool,
}

/// Cache of the layouts of the program's types.
#[derive(Debug)]
pub(crate) struct Types {
    /// Packet layout of each type, as an index into the code's layouts.
    pub(crate) layouts: HashMap<Type, u32>,
    /// Slots of the fields of each struct, by type; `None`: not yet computed.
    pub(crate) offsets: Vec<Option<Rc<Offsets>>>,
}

impl Types {
    /// Creates an empty cache.
    pub(crate) fn new(program: &Program) -> Types {
        Types {
            layouts: HashMap::new(),
            offsets: vec![None; program.types.len()],
        }
    }
}

impl Compiler<'_> {
    /// Number of slots that a value of this type takes.
    pub fn size(&mut self, ty: &Type) -> Result<u32> {
        Ok(match ty {
            Type::Bool | Type::Error | Type::Enum(_) => 1,
            Type::Bit(w) | Type::Int(w) if *w > MAX_BITS => {
                return self.unsupported(format!("values of {w} bits (the limit is {MAX_BITS})"));
            }
            Type::Varbit(w) if *w > MAX_BITS => {
                return self.unsupported(format!("varbit of {w} bits (the limit is {MAX_BITS})"));
            }
            Type::Bit(w) | Type::Int(w) => limbs(*w),
            Type::Varbit(w) => 1 + w.div_ceil(64),
            Type::Struct(id) => self.offsets(*id)?.size,
            Type::Stack(id, n) => {
                let stride = self.offsets(*id)?.size;
                match stride.checked_mul(*n).and_then(|all| all.checked_add(1)) {
                    Some(n) => n,
                    None => return self.unsupported("a header stack of that size"),
                }
            }
            Type::Tuple(types) => {
                let mut sum = 0;
                for ty in types {
                    sum += self.size(ty)?;
                }
                sum
            }
            Type::Void | Type::String | Type::Extern(_) => 0,
        })
    }

    pub(crate) fn kind(&self, id: TypeId) -> StructKind {
        self.program.types[id.index()].kind
    }

    /// The parts of a value of this type, in the order of slots. A scalar has no parts.
    pub(crate) fn parts(&mut self, ty: &Type) -> Result<Rc<[Part]>> {
        let (first, types) = match ty {
            Type::Struct(id) => return Ok(Rc::clone(&self.offsets(*id)?.parts)),
            Type::Tuple(types) => (0, types.clone()),
            Type::Stack(id, n) => (1, vec![Type::Struct(*id); *n as usize]),
            _ => (0, Vec::new()),
        };
        let (mut at, mut parts) = (first, Vec::with_capacity(types.len()));
        for ty in types {
            let size = self.size(&ty)?;
            parts.push(Part {
                at,
                ty,
                validity: None,
            });
            at += size;
        }
        Ok(parts.into())
    }

    fn offsets(&mut self, id: TypeId) -> Result<Rc<Offsets>> {
        if let Some(offsets) = &self.types.offsets[id.index()] {
            return Ok(Rc::clone(offsets));
        }
        let program = self.program;
        let ty = &program.types[id.index()];
        let header = ty.kind == StructKind::Header;
        let (mut size, mut states, mut parts) = (header.into(), header, Vec::new());
        for field in &ty.fields {
            let at = size;
            size += self.size(&field.ty)?;
            let own = self.rules.own_validity(ty, field);
            parts.push(Part {
                at,
                ty: field.ty.clone(),
                validity: own.then_some(size),
            });
            size += u32::from(own);
            states |= own || self.holds_states(&field.ty);
        }
        let offsets = Rc::new(Offsets {
            parts: parts.into(),
            size,
            states,
        });
        self.types.offsets[id.index()] = Some(Rc::clone(&offsets));
        Ok(offsets)
    }

    /// Whether a value of this type contains a validity or a stack.
    pub(crate) fn holds_states(&self, ty: &Type) -> bool {
        match ty {
            Type::Struct(id) => self.types.offsets[id.index()]
                .as_ref()
                .is_some_and(|o| o.states),
            Type::Stack(..) => true,
            Type::Tuple(types) => types.iter().any(|t| self.holds_states(t)),
            _ => false,
        }
    }

    /// First slot and type of a named field of a struct that starts at slot 0; `None` if there is no such field.
    pub fn named_field(&mut self, ty: &Type, name: &str) -> Result<Option<(u32, Type)>> {
        let Type::Struct(id) = ty else {
            return Ok(None);
        };
        let fields = &self.program.types[id.index()].fields;
        let Some(i) = fields.iter().position(|f| f.name == name) else {
            return Ok(None);
        };
        let part = self.parts(ty)?[i].clone();
        Ok(Some((part.at, part.ty)))
    }

    /// The packet layout of a type, as an index into the code's layouts.
    pub(crate) fn layout(&mut self, ty: &Type) -> Result<u32> {
        if let Some(&i) = self.types.layouts.get(ty) {
            self.count_moved(self.code.layouts[i as usize].slots)?;
            return Ok(i);
        }
        let mut layout = Layout {
            header: self.is_header(ty),
            ..Layout::default()
        };
        layout.slots = self.size(ty)?;
        self.flatten(ty, 0, &mut layout)?;
        // A header with a varbit is not padded, because its variable part must fill the bytes.
        if self.is_padded(ty) && layout.varbit.is_none() {
            layout.bits = layout.bits.next_multiple_of(8);
        }
        let i = self.code.layouts.len() as u32;
        self.code.layouts.push(layout);
        self.types.layouts.insert(ty.clone(), i);
        Ok(i)
    }

    /// Compiles a value that will be moved to bytes: returns its layout, and the first slot of the value until the statement
    /// ends. Parts of a list stay in their own slots, which the layout names.
    pub(crate) fn spread(&mut self, e: &Expr) -> Result<(u32, Slot)> {
        if !matches!(e.kind, ExprKind::Tuple(_)) {
            let layout = self.layout(&e.ty)?;
            if !self.is_filled(layout) {
                return Ok((layout, self.expr(e)?));
            }
        }
        let mut layout = Layout::default();
        self.spread_parts(e, &mut layout)?;
        self.code.layouts.push(layout);
        Ok(((self.code.layouts.len() - 1) as u32, 0))
    }

    /// Whether a layout has padding bits after its last field, which are not part of the value.
    fn is_filled(&self, layout: u32) -> bool {
        let layout = &self.code.layouts[layout as usize];
        let end = layout.fields.last().map_or(0, |f| f.offset + f.width);
        layout.varbit.is_none() && end < layout.bits
    }

    fn spread_parts(&mut self, e: &Expr, layout: &mut Layout) -> Result<()> {
        if let ExprKind::Tuple(parts) = &e.kind {
            return parts.iter().try_for_each(|e| self.spread_parts(e, layout));
        }
        let slot = self.expr(e)?;
        layout.slots = layout.slots.max(slot + self.size(&e.ty)?);
        self.flatten(&e.ty, slot, layout)
    }

    pub(crate) fn is_header(&self, ty: &Type) -> bool {
        matches!(ty, Type::Struct(id) if self.kind(*id) == StructKind::Header)
    }

    /// Whether a value of this type is padded to whole bytes in a packet.
    fn is_padded(&self, ty: &Type) -> bool {
        matches!(ty, Type::Struct(id) if self.rules.is_padded(&self.program.types[id.index()]))
    }

    pub(crate) fn is_union(&self, ty: &Type) -> bool {
        matches!(ty, Type::Struct(id) if self.kind(*id) == StructKind::Union)
    }

    pub(crate) fn flatten(&mut self, ty: &Type, slot: u32, layout: &mut Layout) -> Result<()> {
        let width = match ty {
            Type::Bool => 1,
            Type::Bit(w) | Type::Int(w) => *w,
            Type::Error | Type::Enum(_) => 32,
            Type::Varbit(w) => {
                if layout.varbit.is_some() {
                    return self.unsupported("two varbit fields in one value");
                }
                self.count_moved(w.div_ceil(64))?;
                layout.varbit = Some(layout.fields.len());
                layout.fields.push(LayoutField {
                    slot,
                    offset: layout.bits,
                    width: *w,
                });
                return Ok(());
            }
            Type::Struct(_) | Type::Tuple(_) | Type::Stack(..) if !self.is_union(ty) => {
                for part in self.parts(ty)?.iter() {
                    self.flatten(&part.ty, slot + part.at, layout)?;
                }
                return Ok(());
            }
            _ => return self.unsupported("a value of this type as a sequence of bits"),
        };
        self.add_field(slot, width, layout)
    }

    /// Appends a field of this width in bits to a layout.
    pub(crate) fn add_field(&mut self, slot: Slot, width: u32, layout: &mut Layout) -> Result<()> {
        self.count_moved(width.div_ceil(64).max(1))?;
        layout.fields.push(LayoutField {
            slot,
            offset: layout.bits,
            width,
        });
        layout.bits += width;
        Ok(())
    }

    /// Counts slots of moved values, which determine time and memory of compilation; returns an error beyond the limit.
    fn count_moved(&mut self, slots: u32) -> Result<()> {
        self.taken.moved_slots = self.taken.moved_slots.saturating_add(slots);
        if self.taken.moved_slots > LIMITS.moved_slots {
            let what = "slots of 64 bits in data that is extracted, emitted, hashed, digested or stored in registers";
            return self.too_large(format!("more than {} {what}", LIMITS.moved_slots));
        }
        Ok(())
    }

    /// Appends the first slot and number of slots of each header in a value that starts at `slot`.
    pub(crate) fn headers_in(
        &mut self,
        ty: &Type,
        slot: u32,
        headers: &mut Vec<(u32, u32)>,
    ) -> Result<()> {
        if self.is_header(ty) {
            let n = self.size(ty)?;
            headers.push((slot, n));
            return Ok(());
        }
        for part in self.parts(ty)?.iter() {
            self.headers_in(&part.ty, slot + part.at, headers)?;
        }
        Ok(())
    }

    /// Appends the runs of slots (first, number) that `==` compares in values of this type: all but the `nextIndex` of stacks
    /// and the validities of metadata fields, which are not part of the value.
    pub(crate) fn compared(
        &mut self,
        ty: &Type,
        slot: u32,
        ranges: &mut Vec<(u32, u32)>,
    ) -> Result<()> {
        let mut push = |at: u32, n: u32| match ranges.last_mut() {
            Some((start, len)) if *start + *len == at => *len += n,
            _ => ranges.push((at, n)),
        };
        match ty {
            Type::Struct(_) | Type::Tuple(_) | Type::Stack(..) => {
                if self.is_header(ty) {
                    push(slot, 1);
                }
                for part in self.parts(ty)?.iter() {
                    self.compared(&part.ty, slot + part.at, ranges)?;
                }
            }
            _ => push(slot, self.size(ty)?),
        }
        Ok(())
    }
}

/// Width of a scalar type in bits.
pub(crate) fn width(ty: &Type) -> u32 {
    match ty {
        Type::Bool => 1,
        Type::Bit(w) | Type::Int(w) => *w,
        Type::Error | Type::Enum(_) => 32,
        _ => 64,
    }
}

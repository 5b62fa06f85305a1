//! Locates L-values: the slots that a variable's path denotes, and how these are read and written.

use super::layout::width;
use super::{Compiler, Result, Unit};
use crate::bits::limbs;
use crate::op::{Element, Op, Slot, T3, WideOp, WidePlan};
use p4lang::ir::{Access, LValue, Type};

/// The location of an l-value in the frame. Its slots are relative to the last stack element in `elements`, if there is one.
#[derive(Debug, Clone)]
pub(crate) struct Location {
    pub slot: Slot,
    /// Validity of the header that contains the l-value; `None` if no header does.
    pub guard: Option<Guard>,
    /// Header union of which the l-value is a member: first slot, number of slots; `None`: it is not in a union.
    pub union: Option<(Slot, u32)>,
    /// Stack elements with a dynamic index, from the outermost; the slots of an inner stack are relative to the element
    /// that contains it.
    pub elements: Vec<Element>,
    /// Bits `hi ..= lo` of the l-value, if it is a slice.
    pub slice: Option<(u32, u32)>,
    /// Type of the l-value; for a slice, of the whole value.
    pub ty: Type,
    /// Slot of the stack's `nextIndex` that an extract to this l-value advances; `None` if it advances none.
    pub next: Option<Slot>,
    /// Slot of the field's own validity, which a write sets to 1; `None` except for some of TNA's intrinsic metadata.
    pub validates: Option<Slot>,
}

/// The position of the validity of the header that contains an l-value.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Guard {
    /// Number of stack elements around the header, from the outermost element around the l-value on.
    pub around: usize,
    /// Slot of the validity, relative to the innermost of the stack elements around the header.
    pub slot: Slot,
}

/// A location's stack elements, copied to temporary slots, the outermost first: index in the code, first temporary slot.
struct LoadedElements(Vec<(u32, Slot)>);

impl LoadedElements {
    /// First temporary slot of the stack element with number `elements`, from 1 for the outermost; 0 for number 0.
    fn within(&self, elements: usize) -> Slot {
        match elements.checked_sub(1).and_then(|n| self.0.get(n)) {
            Some((_, slots)) => *slots,
            None => 0,
        }
    }

    fn base(&self) -> Slot {
        self.within(self.0.len())
    }
}

impl Location {
    /// Whether the location is a plain run of slots, without guard, union, stack element or slice.
    pub fn is_plain(&self) -> bool {
        self.guard.is_none()
            && self.union.is_none()
            && self.elements.is_empty()
            && self.slice.is_none()
            && self.validates.is_none()
    }
}

impl Compiler<'_> {
    pub(crate) fn locate(&mut self, lvalue: &LValue) -> Result<Location> {
        let var = lvalue.var.index();
        let mut place = Location {
            slot: self.scope.slots[var],
            guard: None,
            union: None,
            elements: Vec::new(),
            slice: None,
            ty: self.scope.vars[var].ty.clone(),
            next: None,
            validates: None,
        };
        for access in &lvalue.path {
            self.step(&mut place, access)?;
        }
        Ok(place)
    }

    /// Locates an argument that is copied out after a call. The location is fixed before: the callee may change variables from
    /// which an index was computed (P4_16 6.8).
    pub(crate) fn locate_fixed(&mut self, lvalue: &LValue) -> Result<Location> {
        let mut place = self.locate(lvalue)?;
        for element in &mut place.elements {
            let (index, s) = (self.alloc(1)?, element.index);
            self.op(Op::Mov { d: index, s })?;
            element.index = index;
        }
        Ok(place)
    }

    fn step(&mut self, place: &mut Location, access: &Access) -> Result<()> {
        match access {
            Access::Field(i) => {
                place.next = None;
                let Some(part) = self.parts(&place.ty)?.get(*i as usize).cloned() else {
                    return self.unsupported("a field of this type");
                };
                if let Type::Struct(id) = &place.ty {
                    let owner = &self.program.types[id.index()];
                    self.tofino
                        .met(&owner.name, &owner.fields[*i as usize].name);
                }
                place.validates = part.validity.map(|own| place.slot + own);
                if self.is_union(&place.ty) {
                    place.union = Some((place.slot, self.size(&place.ty)?));
                } else {
                    place.union = None;
                    if self.is_header(&place.ty) {
                        place.guard = Some(Guard {
                            around: place.elements.len(),
                            slot: place.slot,
                        });
                    }
                }
                place.slot += part.at;
                place.ty = part.ty;
            }
            Access::Slice(hi, lo) => place.slice = Some((*hi, *lo)),
            Access::Index(_) | Access::Next | Access::Last => {
                let Type::Stack(id, count) = place.ty else {
                    return self.unsupported("an index into this type");
                };
                let by_number = matches!(access, Access::Index(_));
                if !by_number && !place.elements.is_empty() {
                    return self.unsupported("`next` or `last` of a stack inside a stack element");
                }
                let stack = place.slot;
                place.ty = Type::Struct(id);
                let stride = self.size(&place.ty)?;
                let index = match access {
                    Access::Index(e) => {
                        if let Some(i) = super::expr::literal(e).filter(|i| *i < count.into()) {
                            place.slot = stack + 1 + i as u32 * stride;
                            return Ok(());
                        }
                        let wide = width(&e.ty);
                        let index = self.expr(e)?;
                        if wide > 64 {
                            self.saturate(index, wide)?
                        } else {
                            index
                        }
                    }
                    Access::Next => {
                        let limit = self.constant(count.into())?;
                        let ok = self.alloc(1)?;
                        self.op(Op::Lt(T3 {
                            w: 64,
                            d: ok,
                            a: stack,
                            b: limit,
                        }))?;
                        self.check_bounds(ok)?;
                        place.next = Some(stack);
                        stack
                    }
                    _ => {
                        self.check_bounds(stack)?;
                        let (one, index) = (self.constant(1)?, self.alloc(1)?);
                        self.op(Op::Sub(T3 {
                            w: 64,
                            d: index,
                            a: stack,
                            b: one,
                        }))?;
                        index
                    }
                };
                place.elements.push(Element {
                    stack,
                    count,
                    stride,
                    index,
                });
                place.slot = 0;
            }
        }
        Ok(())
    }

    /// In a parser: compiles raising `StackOutOfBounds` if the slot `ok` is zero.
    fn check_bounds(&mut self, ok: Slot) -> Result<()> {
        if !matches!(self.scope.unit, Unit::Parser(_)) {
            return Ok(());
        }
        let (go_on, reject) = (self.label(), self.scope.reject);
        let error = self.error_slot("StackOutOfBounds")?;
        self.op(Op::JumpIf { c: ok, to: go_on })?;
        self.op(Op::Fail { error, to: reject })?;
        self.place(go_on);
        Ok(())
    }

    pub(crate) fn element(&mut self, element: Element) -> u32 {
        self.code.elements.push(element);
        (self.code.elements.len() - 1) as u32
    }

    pub(crate) fn saturate(&mut self, slot: Slot, width: u32) -> Result<Slot> {
        let d = self.alloc(1)?;
        self.wide(WidePlan {
            op: WideOp::Saturate,
            d: (d, 64),
            a: (slot, width),
            b: (d, 64),
            signed: false,
        })?;
        Ok(d)
    }

    pub(crate) fn wide(&mut self, plan: WidePlan) -> Result<()> {
        self.code.wide.push(plan);
        self.op(Op::Wide((self.code.wide.len() - 1) as u32))
    }

    /// Compiles loading the stack elements of a location into temporary slots.
    fn loaded(&mut self, place: &Location) -> Result<LoadedElements> {
        let mut loaded = LoadedElements(Vec::with_capacity(place.elements.len()));
        for element in &place.elements {
            let e = self.element(Element {
                stack: loaded.base() + element.stack,
                ..*element
            });
            let d = self.alloc(element.stride)?;
            self.op(Op::LoadElement { e, d })?;
            loaded.0.push((e, d));
        }
        Ok(loaded)
    }

    pub(crate) fn load(&mut self, place: &Location) -> Result<Slot> {
        let slot = self.loaded(place)?.base() + place.slot;
        match place.slice {
            None => Ok(slot),
            Some((hi, lo)) => {
                let d = self.alloc(limbs(hi - lo + 1))?;
                self.slice(d, slot, width(&place.ty), hi, lo)?;
                Ok(d)
            }
        }
    }

    pub(crate) fn slice(&mut self, d: Slot, a: Slot, from: u32, hi: u32, lo: u32) -> Result<()> {
        let w = hi - lo + 1;
        if from <= 64 {
            return self.op(Op::Slice {
                lo: lo as u8,
                w: w as u8,
                d,
                a,
            });
        }
        self.wide(WidePlan {
            op: WideOp::Slice(lo),
            d: (d, w),
            a: (a, from),
            b: (a, from),
            signed: false,
        })
    }

    /// Compiles writing the value at slot `s` to a location.
    pub(crate) fn store(&mut self, place: &Location, s: Slot) -> Result<()> {
        let top = self.frame.top;
        let loaded = self.loaded(place)?;
        let base = loaded.base();
        let slot = base + place.slot;
        let n = self.size(&place.ty)?;
        let s = match place.slice {
            None => s,
            Some((hi, lo)) => {
                let (whole, part) = (width(&place.ty), hi - lo + 1);
                let d = self.alloc(n)?;
                if whole <= 64 {
                    self.op(Op::Insert {
                        lo: lo as u8,
                        w: part as u8,
                        d,
                        a: slot,
                        s,
                    })?;
                } else {
                    let op = WideOp::Insert(lo);
                    self.wide(WidePlan {
                        op,
                        d: (d, whole),
                        a: (slot, whole),
                        b: (s, part),
                        signed: false,
                    })?;
                }
                d
            }
        };
        let guard = place.guard.filter(|_| !self.rules.invalid.are_written());
        match guard.map(|guard| loaded.within(guard.around) + guard.slot) {
            None => self.copy(slot, s, n)?,
            Some(g) if n == 1 => self.op(Op::MovIf { g, d: slot, s })?,
            Some(g) => self.op(Op::CopyIf { g, d: slot, s, n })?,
        }
        if let Some(validity) = place.validates {
            let one = self.constant(1)?;
            self.op(Op::Mov {
                d: base + validity,
                s: one,
            })?;
        }
        self.only_member(place, base, n)?;
        self.write_back(&loaded)?;
        self.frame.top = top;
        Ok(())
    }

    /// A write to a union's member makes the other members invalid: if the member is then valid, because at most one is; if
    /// invalid, because `u.h = invalid;` and `u.h.setInvalid();` apply to the whole union (P4_16 8.21).
    pub(crate) fn only_member(&mut self, place: &Location, base: Slot, n: u32) -> Result<()> {
        let Some((first, size)) = place.union else {
            return Ok(());
        };
        let (first, slot) = (base + first, base + place.slot);
        let (before, behind) = (slot - first, first + size - slot - n);
        for (d, n) in [(first, before), (slot + n, behind)] {
            if n > 0 {
                self.op(Op::Zero { d, n })?;
            }
        }
        Ok(())
    }

    fn write_back(&mut self, loaded: &LoadedElements) -> Result<()> {
        for &(e, s) in loaded.0.iter().rev() {
            self.op(Op::StoreElement { e, s })?;
        }
        Ok(())
    }

    /// Compiles `change` for the slots of an unsliced location; a stack element is loaded before and written back after it.
    pub(crate) fn in_place(
        &mut self,
        place: &Location,
        change: impl FnOnce(&mut Self, Slot) -> Result<()>,
    ) -> Result<()> {
        let loaded = self.loaded(place)?;
        let base = loaded.base();
        change(self, base + place.slot)?;
        let n = self.size(&place.ty)?;
        self.only_member(place, base, n)?;
        self.write_back(&loaded)
    }

    pub(crate) fn copy(&mut self, d: Slot, s: Slot, n: u32) -> Result<()> {
        match n {
            0 => Ok(()),
            _ if d == s => Ok(()),
            1 => self.op(Op::Mov { d, s }),
            _ => self.op(Op::Copy { d, s, n }),
        }
    }
}

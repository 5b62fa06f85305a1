//! Where the parameters of an architecture's blocks lie in the frame.

use crate::bindings::Left;
use crate::compile::Compiler;
use crate::error::LoadError;
use crate::exec::bits::mask;
use crate::op::Slot;
use p4lang::ir::{Param, Type, Var};

/// A scalar of the metadata, its slot and its bits. One that the program's include does not declare is the first slot,
/// whose constant is 0, and has no bits.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Field {
    slot: Slot,
    mask: u64,
}

impl Field {
    #[inline(always)]
    pub(crate) fn set(self, frame: &mut [u64], value: u64) {
        frame[self.slot as usize] = value & self.mask;
    }

    /// Its slot, if there is one.
    pub(crate) fn slot(self) -> Option<Slot> {
        (self.mask != 0).then_some(self.slot)
    }

    /// Which bits of the slot are its.
    pub(crate) fn mask(self) -> u64 {
        self.mask
    }

    /// No more than these of its bits.
    pub(crate) fn bits(self, mask: u64) -> Field {
        Field {
            mask: self.mask & mask,
            ..self
        }
    }

    /// The slot behind it: where a field of TNA's metadata has its validity.
    pub(crate) fn following(self) -> Field {
        self.slot().map_or(self, |slot| Field {
            slot: slot + 1,
            mask: 1,
        })
    }

    #[inline(always)]
    pub(crate) fn get(self, frame: &[u64]) -> u64 {
        frame[self.slot as usize]
    }
}

/// A parameter's slots.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Region {
    pub(crate) slot: Slot,
    pub(crate) size: u32,
}

impl Region {
    pub(crate) fn zero(self, frame: &mut [u64]) {
        let slots = &mut frame[self.slot as usize..(self.slot + self.size) as usize];
        // From 2 KiB on, `memset` uses an instruction that takes longer to start than they take to store.
        slots.chunks_mut(128).for_each(|part| part.fill(0));
    }

    pub(crate) fn of(self, frame: &[u64]) -> &[u64] {
        &frame[self.slot as usize..(self.slot + self.size) as usize]
    }

    /// Takes what the deparser wrote for the next parser; the types are equal (the package's type parameters).
    pub(crate) fn copy_from(self, frame: &mut [u64], from: Region) {
        let n = self.size.min(from.size) as usize;
        frame.copy_within(
            from.slot as usize..from.slot as usize + n,
            self.slot as usize,
        );
    }

    pub(crate) fn load(self, frame: &mut [u64], image: &[u64]) {
        let to = &mut frame[self.slot as usize..(self.slot + self.size) as usize];
        for (to, from) in to.iter_mut().zip(image) {
            *to = *from;
        }
    }
}

/// Where a parser leaves its error for the blocks behind it, even if nobody looks, and what it clears.
pub(crate) fn left(
    compiler: &mut Compiler<'_>,
    error: Field,
    cleared: Option<Slot>,
) -> Result<Left, LoadError> {
    let error = match error.slot() {
        Some(slot) => slot,
        None => compiler.alloc(1)?,
    };
    let cleared = cleared.unwrap_or(error);
    Ok(Left { error, cleared })
}

/// Lays out the parameters of blocks.
pub(crate) struct Binder<'c, 'p> {
    pub(crate) compiler: &'c mut Compiler<'p>,
}

impl<'p> Binder<'_, 'p> {
    pub(crate) fn region(
        &mut self,
        vars: &'p [Var],
        params: &'p [Param],
        i: usize,
    ) -> Result<(Region, &'p Type), LoadError> {
        let Some(param) = params.get(i) else {
            return Err(LoadError::Shape(format!(
                "a block has {} parameters",
                params.len()
            )));
        };
        let ty = &vars[param.var.index()].ty;
        let size = self.compiler.size(ty)?;
        Ok((
            Region {
                slot: self.compiler.alloc(size)?,
                size,
            },
            ty,
        ))
    }

    pub(crate) fn field(
        &mut self,
        (region, ty): (Region, &Type),
        name: &str,
    ) -> Result<Field, LoadError> {
        let found = self.compiler.named_field(ty, name)?;
        let pinned = &mut self.compiler.pinned;
        Ok(found.map_or(Field::default(), |(offset, ty)| {
            pinned.push((region.slot + offset, 1));
            let width = match ty {
                Type::Bit(w) => w,
                Type::Bool => 1,
                _ => 32,
            };
            Field {
                slot: region.slot + offset,
                mask: mask(width.min(64)),
            }
        }))
    }
}

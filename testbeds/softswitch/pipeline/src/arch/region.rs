//! Assigns slots of the frame to the parameters of an architecture's blocks and to the fields that it accesses.

use crate::bits::mask;
use crate::compile::Compiler;
use crate::error::LoadError;
use crate::op::Slot;
use crate::op::bindings::ParserResults;
pub(crate) use crate::op::region::{MetaField, Region};
use p4lang::ir::{Param, Type, Var};

/// Slots for a parser's results: for its error, which later blocks may read, and the slot that is cleared when it ends.
pub(crate) fn left(
    compiler: &mut Compiler<'_>,
    error: MetaField,
    cleared: Option<Slot>,
) -> Result<ParserResults, LoadError> {
    let error = match error.slot() {
        Some(slot) => slot,
        None => compiler.alloc(1)?,
    };
    let cleared = cleared.unwrap_or(error);
    Ok(ParserResults { error, cleared })
}

/// Assigns slots of the frame to block parameters.
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
                "a block has only {} parameters",
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
    ) -> Result<MetaField, LoadError> {
        let found = self.compiler.named_field(ty, name)?;
        let pinned = &mut self.compiler.frame.pinned;
        Ok(found.map_or(MetaField::default(), |(offset, ty)| {
            pinned.push((region.slot + offset, 1));
            let width = match ty {
                Type::Bit(w) => w,
                Type::Bool => 1,
                _ => 32,
            };
            MetaField {
                slot: region.slot + offset,
                mask: mask(width.min(64)),
            }
        }))
    }
}

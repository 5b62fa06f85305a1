//! Layouts of values that the control plane sees: elements of registers, digest messages.

use super::{Compiler, Result};
use crate::op::Layout;
use p4lang::ir::Type;

impl Compiler<'_> {
    /// The layout of a type with its scalars as in a packet, but with each header's validity before the header's fields.
    pub(crate) fn values(&mut self, ty: &Type) -> Result<Layout> {
        let mut layout = Layout {
            slots: self.size(ty)?,
            ..Layout::default()
        };
        self.list(ty, 0, &mut layout)?;
        Ok(layout)
    }

    fn list(&mut self, ty: &Type, slot: u32, layout: &mut Layout) -> Result<()> {
        if self.is_header(ty) {
            self.add_field(slot, 1, layout)?;
        }
        match ty {
            Type::Struct(_) | Type::Tuple(_) | Type::Stack(..) if !self.is_union(ty) => {
                let parts = self.parts(ty)?;
                let mut parts = parts.iter();
                parts.try_for_each(|part| self.list(&part.ty, slot + part.at, layout))
            }
            _ => self.flatten(ty, slot, layout),
        }
    }
}

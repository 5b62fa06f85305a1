//! Values that a control plane sees whole: elements of registers, digest messages.

use super::{Compiler, Result};
use crate::op::Layout;
use p4lang::ast::StructKind;
use p4lang::ir::Type;

impl Compiler<'_> {
    /// The scalars of a type and where they lie: as its layout in a packet, with each header's validity before its fields.
    pub(super) fn values(&mut self, ty: &Type) -> Result<Layout> {
        let mut layout = Layout {
            slots: self.size(ty)?,
            ..Layout::default()
        };
        self.list(ty, 0, &mut layout)?;
        Ok(layout)
    }

    fn list(&mut self, ty: &Type, slot: u32, layout: &mut Layout) -> Result<()> {
        match ty {
            Type::Struct(id) if self.kind(*id) != StructKind::Union => {
                if self.is_header(ty) {
                    self.add_field(slot, 1, layout)?;
                }
                let program = self.program;
                for (i, field) in program.types[id.index()].fields.iter().enumerate() {
                    let at = slot + self.field_offset(*id, i as u32)?;
                    self.list(&field.ty, at, layout)?;
                }
                Ok(())
            }
            Type::Tuple(types) => {
                let mut at = slot;
                for ty in types {
                    self.list(ty, at, layout)?;
                    at += self.size(ty)?;
                }
                Ok(())
            }
            Type::Stack(id, n) => {
                let ty = Type::Struct(*id);
                let stride = self.size(&ty)?;
                (0..*n).try_for_each(|i| self.list(&ty, slot + 1 + i * stride, layout))
            }
            _ => self.flatten(ty, slot, layout),
        }
    }
}

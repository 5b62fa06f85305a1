//! The state of a description in progress, and what all its parts use.

use super::Preamble;
use super::annotations::{annotation_texts, structured};
use super::package::documentation;
use crate::ids::{Ids, Prefix};
use crate::ir::{self, Type};

/// Describes a program whose objects have been numbered.
pub(super) struct Builder<'p> {
    pub(super) program: &'p ir::Program,
    pub(super) ids: Ids,
}

impl Builder<'_> {
    /// Number, name and annotations of an object.
    pub(super) fn preamble(
        &self,
        prefix: Prefix,
        name: &str,
        annotations: &[ir::Annotation],
    ) -> Preamble {
        let (brief, description) = documentation(annotations);
        Preamble {
            id: self.ids.id(prefix, name),
            name: name.to_owned(),
            alias: self.ids.alias(name),
            annotations: annotation_texts(annotations),
            brief,
            description,
            structured: structured(annotations),
        }
    }

    /// Bits that a value takes in the protocol.
    pub(super) fn width(&self, ty: &Type) -> u32 {
        match ty {
            Type::Bit(w) | Type::Int(w) | Type::Varbit(w) => *w,
            Type::Bool => 1,
            Type::Struct(id) => {
                let fields = self.program.types.get(id.index()).map(|t| t.fields.iter());
                fields.map_or(0, |f| f.map(|f| self.width(&f.ty)).sum())
            }
            Type::Tuple(types) => types.iter().map(|t| self.width(t)).sum(),
            _ => 0,
        }
    }
}

//! The state of a P4Info under construction, shared by the modules that build its sections.

use super::Preamble;
use super::annotations::{annotation_texts, structured};
use super::package::documentation;
use crate::ids::{Ids, Prefix};
use crate::ir::{self, Type};

/// Builds the P4Info of a program whose objects already have ids.
pub(super) struct Builder<'p> {
    pub(super) program: &'p ir::Program,
    pub(super) ids: Ids,
}

impl Builder<'_> {
    /// The id, name, alias and annotations of an object.
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

    /// Width in bits of a value of this type in P4Runtime messages.
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

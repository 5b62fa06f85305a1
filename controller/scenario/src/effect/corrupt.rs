//! `corrupt: {field: ip.ttl, xor: 0x01}`: bits of a field turn over, and checksums are left as they were unless they are to
//! be `mended`: that is what corruption is.

use parser_gen::Library;
use parser_gen::engine::Action;
use parser_gen::rewrite::{Rewrite, To};

use super::set::{are_mended, report, value};
use super::{Behaviour, Effect, Fate, Kind};
use crate::schema::reader;

/// Bits turn over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Corrupt {
    /// What changes.
    pub rewrite: Rewrite,
    /// As it is written: `ip.ttl by 0x1`.
    pub told: String,
}

pub(super) const KIND: Kind = Kind {
    word: "corrupt",
    read: |sink, written| {
        let node = written.needed(sink, "{field: ip.ttl, xor: 0x01}")?;
        let fields = reader::fields(sink, node, "`corrupt`", &["field", "xor"], &["checksums"])?;
        let field = reader::text(sink, fields.get("field")?, "`field`")?;
        let mask = value(sink, fields.get("xor")?, "xor")?;
        let mends = match fields.get("checksums") {
            Some(node) => are_mended(sink, node)?,
            None => false,
        };
        let change = [(field.value.as_str(), To::Xor(mask))];
        match Rewrite::new(&Library::builtin(), &change, mends) {
            Ok(rewrite) => Some(Effect::Corrupt(Corrupt {
                rewrite,
                told: format!("{} by {mask:#x}", field.value),
            })),
            Err(error) => {
                report(sink, field.span, &error);
                None
            }
        }
    },
};

impl Behaviour for Corrupt {
    fn word(&self) -> &'static str {
        KIND.word
    }

    fn verb(&self) -> &'static str {
        "corrupts"
    }

    fn action(&self) -> Action {
        Action::Rewrite(self.rewrite.clone())
    }

    fn compose(&self, _w: u32, _fate: &mut Fate) {}

    fn rewrite(&self) -> Option<&Rewrite> {
        Some(&self.rewrite)
    }
}

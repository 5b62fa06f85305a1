//! Converts register cells and digest messages between P4Runtime messages and the scalars that the program stores.

use super::{Binding, NewName, Sdn};
use p4lang::p4info::{Digest, Register};
use p4lang::runtime::Value;
use p4rt::status::UpdateError;
use p4rt::translate::TranslateError;
use p4rt::translate::cells::{Element, index_from_proto, index_to_proto};
use p4rt::translate::data::Names;
use p4rt::v1;

/// Translates the strings within a register cell or digest message to numbers, and back.
struct Strings<'a> {
    sdn: &'a Sdn,
    /// Widths in bits of the scalars that the program stores, in order.
    widths: &'a [u32],
}

impl Names for Strings<'_> {
    fn value(&self, uri: &str, text: &[u8], scalar: usize) -> Result<Value, TranslateError> {
        let width = self.widths.get(scalar).copied().unwrap_or(u128::BITS);
        let value = self.sdn.value(uri, text, width, NewName::Named);
        value.map_err(TranslateError::Name)
    }

    fn text(&self, uri: &str, value: &Value) -> Result<Vec<u8>, TranslateError> {
        Ok(self.sdn.text(uri, value))
    }
}

impl Binding {
    fn strings(&self, register: u32) -> Strings<'_> {
        let widths = self.register_widths.get(&register);
        Strings {
            sdn: &self.sdn,
            widths: widths.map_or(&[], Vec::as_slice),
        }
    }

    fn register(&self, id: u32) -> Result<&Register, UpdateError> {
        let register = self.index.registers.with_id(id);
        register.ok_or_else(|| TranslateError::unknown_id::<Register>(id).into())
    }

    /// Converts a register write from P4Runtime: the register, the cell's index (`None`: all cells), the scalars to write.
    pub(in crate::server) fn register_write(
        &self,
        entry: &v1::RegisterEntry,
    ) -> Result<(&Register, Option<u64>, Vec<Value>), UpdateError> {
        let register = self.register(entry.register_id)?;
        let data = entry.data.as_ref();
        let data = data.ok_or(TranslateError::Unset { what: "data" })?;
        let cell = index_from_proto(&register.preamble.name, entry.index, register.size)?;
        let names = self.strings(entry.register_id);
        let scalars = Element::from(register).from_proto(data, self.index.types(), &names)?;
        Ok((register, cell, scalars))
    }

    /// Converts the scalars of a register cell to P4Runtime.
    pub(in crate::server) fn register_to_proto(
        &self,
        id: u32,
        cell: u64,
        scalars: &[Value],
    ) -> Result<v1::RegisterEntry, UpdateError> {
        let register = self.register(id)?;
        let data =
            Element::from(register).to_proto(scalars, self.index.types(), &self.strings(id))?;
        Ok(v1::RegisterEntry {
            register_id: id,
            index: Some(index_to_proto(cell)),
            data: Some(data),
        })
    }

    /// Converts the scalars of a digest message to P4Runtime.
    pub(in crate::server) fn digest_to_proto(
        &self,
        digest: &Digest,
        scalars: &[Value],
    ) -> Result<v1::P4Data, TranslateError> {
        // Strings in digests are only read, never written.
        let names = Strings {
            sdn: &self.sdn,
            widths: &[],
        };
        Element::from(digest).to_proto(scalars, self.index.types(), &names)
    }
}

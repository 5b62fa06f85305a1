//! Translates the metadata of packets from and to the controller (P4Runtime 1.4, section 16.1).

use super::TranslateError;
use super::matches::check_width;
use crate::bytes;
use crate::v1;
use p4lang::p4info::ControllerPacketMetadata;
use p4lang::runtime::Value;

/// Encodes the values of a controller packet header, given in declared order, as P4Runtime metadata.
pub fn packet_metadata(
    header: &ControllerPacketMetadata,
    values: &[Value],
) -> Result<Vec<v1::PacketMetadata>, TranslateError> {
    if values.len() != header.metadata.len() {
        let (name, declared) = (&header.preamble.name, header.metadata.len());
        return Err(TranslateError::Malformed(format!(
            "{name} needs {declared} fields, not {}",
            values.len()
        )));
    }
    let field = |(field, value): (&p4lang::p4info::PacketMetadata, &Value)| {
        check_width(&field.name, value, field.bitwidth)?;
        Ok(v1::PacketMetadata {
            metadata_id: field.id,
            value: value.to_be_bytes(),
        })
    };
    header.metadata.iter().zip(values).map(field).collect()
}

/// Decodes P4Runtime metadata into the values of a controller packet header, in declared order.
pub fn packet_fields(
    header: &ControllerPacketMetadata,
    metadata: &[v1::PacketMetadata],
) -> Result<Vec<Value>, TranslateError> {
    let owner = || header.preamble.name.clone();
    if let Some(stray) = metadata.iter().find(|m| {
        header
            .metadata
            .iter()
            .all(|field| field.id != m.metadata_id)
    }) {
        let field = format!("with id {}", stray.metadata_id);
        return Err(TranslateError::UnknownField {
            owner: owner(),
            kind: "field",
            field,
        });
    }
    let value = |field: &p4lang::p4info::PacketMetadata| {
        let name = || field.name.clone();
        let mut given = metadata
            .iter()
            .filter(|given| given.metadata_id == field.id);
        match (given.next(), given.next()) {
            (Some(_), Some(_)) => Err(TranslateError::Twice {
                owner: owner(),
                kind: "field",
                field: name(),
            }),
            (None, _) => Err(TranslateError::Missing {
                owner: owner(),
                kind: "field",
                field: name(),
            }),
            (Some(given), None) => bytes::decode(&given.value, field.bitwidth).map_err(|source| {
                TranslateError::Value {
                    field: name(),
                    source,
                }
            }),
        }
    };
    header.metadata.iter().map(value).collect()
}

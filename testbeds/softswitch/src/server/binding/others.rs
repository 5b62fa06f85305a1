//! Converts ports, value sets and controller headers between P4Runtime messages and the program.

use super::{Binding, Form, HeaderField, NewName, invalid};
use p4lang::p4info::{ControllerPacketMetadata, SdnType, ValueSet};
use p4lang::runtime::Value;
use p4rt::rpc::Code;
use p4rt::status::UpdateError;
use p4rt::v1;
use pipeline::FieldKey;

impl Binding {
    fn port_names(&self) -> Option<&str> {
        match self.index.translation("PortId_t") {
            Some((uri, SdnType::String)) => Some(uri),
            _ => None,
        }
    }

    /// Number of the port that a client names, by number or by name.
    pub(in crate::server) fn port(&self, port: &[u8]) -> Result<u32, UpdateError> {
        let value = match self.port_names() {
            Some(uri) => self.sdn.value(uri, port, u32::BITS, NewName::Named)?,
            None => p4rt::bytes::decode(port, u32::BITS).map_err(|source| {
                p4rt::translate::TranslateError::Value {
                    field: "port".to_owned(),
                    source,
                }
            })?,
        };
        Ok(value.to().unwrap_or(u32::MAX))
    }

    /// The number or the name of a port, whichever clients use in this program.
    pub(in crate::server) fn port_to_proto(&self, port: u32) -> Vec<u8> {
        match self.port_names() {
            Some(uri) => self.sdn.text(uri, &u128::from(port).into()),
            None => p4rt::bytes::encode(port.into()),
        }
    }

    /// Converts the members of a value set from P4Runtime.
    pub(in crate::server) fn value_set_members(
        &self,
        entry: &v1::ValueSetEntry,
    ) -> Result<Vec<Vec<FieldKey>>, UpdateError> {
        let id = entry.value_set_id;
        let set = self.index.value_sets.with_id(id);
        let (Some(set), Some(fields)) = (set, self.value_sets.get(&id)) else {
            return Err(p4rt::translate::TranslateError::unknown_id::<ValueSet>(id).into());
        };
        let owner = &set.preamble.name;
        let mut members = Vec::new();
        for member in &entry.members {
            let stray = |m: &&v1::FieldMatch| fields.iter().all(|f| f.info.id != m.field_id);
            if let Some(stray) = member.r#match.iter().find(stray) {
                return Err(invalid(format!(
                    "{owner} has no field with id {}",
                    stray.field_id
                )));
            }
            let mut keys = Vec::new();
            for field in fields {
                let mut given = member
                    .r#match
                    .iter()
                    .filter(|m| m.field_id == field.info.id);
                keys.push(match (given.next(), given.next()) {
                    (Some(_), Some(_)) => {
                        let id = field.info.id;
                        return Err(invalid(format!(
                            "{owner}: the field with id {id} is given twice"
                        )));
                    }
                    (Some(given), None) => field.key(owner, given, &self.sdn, NewName::Named)?,
                    (None, _) => field.left_out(owner)?,
                });
            }
            members.push(keys);
        }
        Ok(members)
    }

    /// Converts a value set to P4Runtime.
    pub(in crate::server) fn value_set_to_proto(
        &self,
        id: u32,
        members: &[Vec<FieldKey>],
    ) -> Result<v1::ValueSetEntry, UpdateError> {
        let fields = self.value_sets.get(&id).map_or(&[][..], Vec::as_slice);
        let mut proto = v1::ValueSetEntry {
            value_set_id: id,
            members: Vec::new(),
        };
        for member in members {
            let mut matches = Vec::new();
            for (field, key) in fields.iter().zip(member) {
                matches.extend(field.to_proto("value set", key, &self.sdn)?);
            }
            proto.members.push(v1::ValueSetMember { r#match: matches });
        }
        Ok(proto)
    }

    /// Converts a packet-out's metadata to its controller header's fields: width in bits and value, in the program's order.
    pub(in crate::server) fn header_values(
        &self,
        header: &ControllerPacketMetadata,
        metadata: &[v1::PacketMetadata],
    ) -> Result<Vec<(u32, Value)>, UpdateError> {
        let layout = self.header_layout(header);
        // Parsed as numbers; strings, which are not numbers, are handled separately.
        let mut numbers = metadata.to_vec();
        for field in layout {
            let Some(declared) = field.metadata.map(|at| &header.metadata[at]) else {
                continue;
            };
            let mut given = numbers
                .iter_mut()
                .filter(|m| m.metadata_id == declared.id)
                .peekable();
            if field.padding && given.peek().is_none() {
                drop(given);
                numbers.push(v1::PacketMetadata {
                    metadata_id: declared.id,
                    value: vec![0],
                });
            } else if let Form::Text(_) = field.form {
                given.for_each(|m| m.value = vec![0]);
            }
        }
        let values = p4rt::translate::packet_fields(header, &numbers)?;
        let value = |field: &HeaderField| {
            let Some(at) = field.metadata else {
                return Ok((field.width, Value::ZERO));
            };
            let declared = &header.metadata[at];
            if let Form::Text(uri) = &field.form {
                let mut given = metadata.iter().filter(|m| m.metadata_id == declared.id);
                let text = given.next().map_or(&[][..], |m| &m.value);
                return Ok((
                    field.width,
                    self.sdn.value(uri, text, field.width, NewName::Named)?,
                ));
            }
            if !values[at].fits(field.width) {
                let message = format!("`{}` does not fit into {} bits", declared.name, field.width);
                return Err(UpdateError::new(Code::OutOfRange, message));
            }
            Ok((field.width, values[at].clone()))
        };
        layout.iter().map(value).collect()
    }

    /// Widths in bits of a controller header's fields, in the program's order.
    pub(in crate::server) fn header_widths(&self, header: &ControllerPacketMetadata) -> Vec<u32> {
        self.header_layout(header).iter().map(|f| f.width).collect()
    }

    /// Converts the values of a controller header, given in the program's order, to the metadata of a packet-in.
    pub(in crate::server) fn header_to_proto(
        &self,
        header: &ControllerPacketMetadata,
        values: &[Value],
    ) -> Vec<v1::PacketMetadata> {
        let fields = self.header_layout(header).iter().zip(values);
        let metadata = |(field, value): (&HeaderField, &Value)| {
            Some(v1::PacketMetadata {
                metadata_id: header.metadata[field.metadata?].id,
                value: match &field.form {
                    Form::Number => value.to_be_bytes(),
                    Form::Text(uri) => self.sdn.text(uri, value),
                },
            })
        };
        fields.filter_map(metadata).collect()
    }

    fn header_layout(&self, header: &ControllerPacketMetadata) -> &[HeaderField] {
        let fields = self.headers.get(&header.preamble.id);
        fields.map_or(&[], Vec::as_slice)
    }
}

impl Binding {
    /// Replaces the names of ports in a multicast group or clone session by their numbers.
    pub(in crate::server) fn number_ports(
        &self,
        entity: &mut v1::Entity,
    ) -> Result<(), UpdateError> {
        use v1::replica::PortKind;
        if self.port_names().is_none() {
            return Ok(());
        }
        for replica in replicas(entity) {
            if let Some(PortKind::Port(port)) = &replica.port_kind {
                let number = p4rt::bytes::encode(self.port(port)?.into());
                replica.port_kind = Some(PortKind::Port(number));
            }
        }
        Ok(())
    }

    /// Writes the ports of a multicast group or clone session as byte strings, as the client did.
    pub(in crate::server) fn name_ports(&self, entity: &mut v1::Entity) {
        use v1::replica::PortKind;
        for replica in replicas(entity) {
            #[allow(deprecated)]
            if let Some(PortKind::EgressPort(port)) = replica.port_kind {
                replica.port_kind = Some(PortKind::Port(self.port_to_proto(port)));
            }
        }
    }
}

fn replicas(entity: &mut v1::Entity) -> &mut [v1::Replica] {
    use v1::entity::Entity as Kind;
    use v1::packet_replication_engine_entry::Type as Replication;
    match &mut entity.entity {
        Some(Kind::PacketReplicationEngineEntry(entry)) => match &mut entry.r#type {
            Some(Replication::MulticastGroupEntry(group)) => &mut group.replicas,
            Some(Replication::CloneSessionEntry(session)) => &mut session.replicas,
            None => &mut [],
        },
        _ => &mut [],
    }
}

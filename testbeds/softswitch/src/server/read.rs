//! Read (P4Runtime 1.4, section 13).

use super::batch::cells;
use super::config::{EntryKey, Loaded, Notes};
use super::*;
use crate::dataplane::Dataplane;
use p4rt::rpc::Code;
use p4rt::status::{self, UpdateError};
use p4rt::translate::{Item, Part, TranslateError, entity_name};
use v1::entity::Entity as Kind;
use v1::packet_replication_engine_entry::Type as Replication;

/// Entities in one response: with the largest entries still under the 4 MiB that clients accept.
const ENTITIES_PER_RESPONSE: usize = 1024;
/// Cells read between two frames.
const CELLS_PER_TURN: u64 = 4096;

type Read = Result<Vec<v1::Entity>, UpdateError>;

impl Service {
    /// The responses, and at the end the error if a query failed.
    pub(super) async fn read_entities(
        &self,
        request: v1::ReadRequest,
    ) -> Result<Vec<Result<v1::ReadResponse, Status>>, Status> {
        self.arbitration().check_device(request.device_id)?;
        // Shared: no write changes anything until all queries are answered.
        let pipelines = self.pipelines.read().await;
        let loaded = pipelines.target().ok_or_else(no_pipeline)?;
        let (mut entities, mut results) = (Vec::new(), Vec::new());
        for query in &request.entities {
            match self.answer(query, loaded).await? {
                Ok(found) => {
                    entities.extend(found);
                    results.push(Ok(()));
                }
                Err(error) => results.push(Err(error)),
            }
        }
        let chunk = |entities: &[v1::Entity]| {
            Ok(v1::ReadResponse {
                entities: entities.to_vec(),
            })
        };
        let responses = entities.chunks(ENTITIES_PER_RESPONSE).map(chunk);
        Ok(responses
            .chain(status::of_batch(&results).map(Err))
            .collect())
    }

    async fn answer(&self, query: &v1::Entity, loaded: &Loaded) -> Result<Read, Status> {
        let index = &loaded.index;
        let items = match &query.entity {
            None => {
                return Ok(Err(UpdateError::new(
                    Code::InvalidArgument,
                    "the entity is not set",
                )));
            }
            Some(Kind::TableEntry(entry)) => self.entries(entry, index).await?,
            Some(Kind::PacketReplicationEngineEntry(entry)) => self.replication(entry).await?,
            Some(Kind::RegisterEntry(entry)) => self.registers(entry, index).await?,
            Some(Kind::CounterEntry(entry)) => self.counters(entry, index).await?,
            Some(other) => {
                let what = entity_name(other).to_owned();
                Err(TranslateError::Unsupported { what }.into())
            }
        };
        Ok(items.and_then(|items| {
            items
                .iter()
                .map(|item| loaded.notes.entity(item, index))
                .collect()
        }))
    }

    async fn entries(
        &self,
        query: &v1::TableEntry,
        index: &Index,
    ) -> Result<Result<Vec<Item>, UpdateError>, Status> {
        let tables: Vec<String> = match query.table_id {
            0 => index
                .tables
                .iter()
                .map(|table| table.preamble.name.clone())
                .collect(),
            id => match index.tables.with_id(id) {
                Some(table) => vec![table.preamble.name.clone()],
                None => return Ok(Err(TranslateError::UnknownId { kind: "table", id }.into())),
            },
        };
        if query.is_default_action {
            let defaults = move |program: &mut dyn Dataplane| {
                let item = |table: &String| {
                    let action = program.default_action(table);
                    action.map(|action| Item::DefaultAction {
                        table: table.clone(),
                        action: Some(action),
                    })
                };
                tables.iter().filter_map(item).collect::<Vec<_>>()
            };
            return Ok(Ok(self.ask(defaults).await?));
        }
        // A key names one entry. Without one, a priority alone may still narrow the answer.
        let wanted = if query.r#match.is_empty() {
            None
        } else {
            let entity = v1::Entity {
                entity: Some(Kind::TableEntry(query.clone())),
            };
            match Item::from_entity(&entity, index, Part::Key) {
                Ok(Item::TableEntry(entry)) => Some(entry),
                Ok(_) => None,
                Err(error) => return Ok(Err(error.into())),
            }
        };
        let priority = query.priority;
        let entries = move |program: &mut dyn Dataplane| match wanted {
            Some(entry) => program
                .entry(&entry)
                .into_iter()
                .map(Item::TableEntry)
                .collect(),
            None => {
                let entries = tables.iter().flat_map(|table| program.entries(table));
                entries
                    .filter(|entry| priority == 0 || entry.priority == priority)
                    .map(Item::TableEntry)
                    .collect()
            }
        };
        Ok(Ok(self.ask(entries).await?))
    }

    async fn replication(
        &self,
        query: &v1::PacketReplicationEngineEntry,
    ) -> Result<Result<Vec<Item>, UpdateError>, Status> {
        let (id, what, items): (u32, &str, Vec<Item>) = match &query.r#type {
            None => {
                return Ok(Err(UpdateError::new(
                    Code::InvalidArgument,
                    "the type is not set",
                )));
            }
            Some(Replication::MulticastGroupEntry(group)) => {
                let id = group.multicast_group_id;
                let groups = move |program: &mut dyn Dataplane| match id {
                    0 => program.multicast_groups(),
                    id => program.multicast_group(id).into_iter().collect(),
                };
                let groups = self.ask(groups).await?;
                (
                    id,
                    "multicast group",
                    groups.into_iter().map(Item::MulticastGroup).collect(),
                )
            }
            Some(Replication::CloneSessionEntry(session)) => {
                let id = session.session_id;
                let sessions = move |program: &mut dyn Dataplane| match id {
                    0 => program.clone_sessions(),
                    id => program.clone_session(id).into_iter().collect(),
                };
                let sessions = self.ask(sessions).await?;
                (
                    id,
                    "clone session",
                    sessions.into_iter().map(Item::CloneSession).collect(),
                )
            }
        };
        if id != 0 && items.is_empty() {
            return Ok(Err(UpdateError::new(
                Code::NotFound,
                format!("no {what} {id}"),
            )));
        }
        Ok(Ok(items))
    }

    async fn registers(
        &self,
        query: &v1::RegisterEntry,
        index: &Index,
    ) -> Result<Result<Vec<Item>, UpdateError>, Status> {
        let arrays = index
            .registers
            .iter()
            .map(|r| (r.preamble.id, r.preamble.name.as_str(), r.size));
        let arrays = match which(arrays, "register", query.register_id, query.index) {
            Ok(arrays) => arrays,
            Err(error) => return Ok(Err(error)),
        };
        self.each_cell(arrays, |program, name, cell| {
            let fields = program.read_register(name, cell)?;
            Ok(Item::Register {
                name: name.to_owned(),
                index: Some(cell),
                fields,
            })
        })
        .await
    }

    async fn counters(
        &self,
        query: &v1::CounterEntry,
        index: &Index,
    ) -> Result<Result<Vec<Item>, UpdateError>, Status> {
        let arrays = index
            .counters
            .iter()
            .map(|c| (c.preamble.id, c.preamble.name.as_str(), c.size));
        let arrays = match which(arrays, "counter", query.counter_id, query.index) {
            Ok(arrays) => arrays,
            Err(error) => return Ok(Err(error)),
        };
        self.each_cell(arrays, |program, name, cell| {
            let value = Some(program.read_counter(name, cell)?);
            Ok(Item::Counter {
                name: name.to_owned(),
                index: Some(cell),
                value,
            })
        })
        .await
    }

    async fn each_cell(
        &self,
        arrays: Vec<(String, std::ops::Range<u64>)>,
        read: impl Fn(&dyn Dataplane, &str, u64) -> Result<Item, UpdateError> + Copy + Send + 'static,
    ) -> Result<Result<Vec<Item>, UpdateError>, Status> {
        let mut items = Vec::new();
        for (name, cells) in arrays {
            let mut start = cells.start;
            while start < cells.end {
                let end = cells.end.min(start.saturating_add(CELLS_PER_TURN));
                let name = name.clone();
                let turn = move |program: &mut dyn Dataplane| {
                    (start..end)
                        .map(|cell| read(program, &name, cell))
                        .collect::<Result<Vec<_>, _>>()
                };
                match self.ask(turn).await? {
                    Ok(cells) => items.extend(cells),
                    Err(error) => return Ok(Err(error)),
                }
                start = end;
            }
        }
        Ok(Ok(items))
    }

    async fn ask<R: Send + 'static>(
        &self,
        question: impl FnOnce(&mut dyn Dataplane) -> R + Send + 'static,
    ) -> Result<R, Status> {
        let answer = self
            .driver
            .run(move |core| Some(question(core.target()?)))
            .await
            .map_err(stopped)?;
        answer.ok_or_else(no_pipeline)
    }
}

/// The arrays and cells that a query selects.
fn which<'a>(
    arrays: impl Iterator<Item = (u32, &'a str, i64)>,
    kind: &'static str,
    id: u32,
    index: Option<v1::Index>,
) -> Result<Vec<(String, std::ops::Range<u64>)>, UpdateError> {
    let cell = match index {
        None => None,
        Some(v1::Index { index }) => match u64::try_from(index) {
            Ok(cell) => Some(cell),
            Err(_) => {
                return Err(UpdateError::new(
                    Code::InvalidArgument,
                    format!("index {index} is negative"),
                ));
            }
        },
    };
    if id == 0 && cell.is_some() {
        return Err(UpdateError::new(
            Code::InvalidArgument,
            format!("an index without a {kind}"),
        ));
    }
    let mut selected = Vec::new();
    for (_, name, size) in arrays.filter(|(array, ..)| id == 0 || *array == id) {
        if cell.is_some_and(|cell| cell >= u64::try_from(size).unwrap_or(0)) {
            let (name, index) = (name.to_owned(), cell.unwrap_or(0));
            return Err(TranslateError::IndexOutOfRange { name, index, size }.into());
        }
        selected.push((name.to_owned(), cells(cell, size)));
    }
    match selected.is_empty() && id != 0 {
        true => Err(TranslateError::UnknownId { kind, id }.into()),
        false => Ok(selected),
    }
}

impl Notes {
    /// The entity of an item, with what clients have attached to it.
    fn entity(&self, item: &Item, index: &Index) -> Result<v1::Entity, UpdateError> {
        let mut entity = item.to_entity(index)?;
        match &mut entity.entity {
            Some(Kind::TableEntry(entry)) => {
                if let Some(note) = EntryKey::of(item).and_then(|key| self.entries.get(&key)) {
                    entry.metadata.clone_from(&note.metadata);
                    #[allow(deprecated)]
                    {
                        entry.controller_metadata = note.controller_metadata;
                    }
                }
            }
            Some(Kind::PacketReplicationEngineEntry(entry)) => match &mut entry.r#type {
                Some(Replication::MulticastGroupEntry(group)) => {
                    let id = group.multicast_group_id;
                    group.metadata = self.groups.get(&id).cloned().unwrap_or_default();
                    self.restore_ports((true, id), &mut group.replicas);
                }
                Some(Replication::CloneSessionEntry(session)) => {
                    self.restore_ports((false, session.session_id), &mut session.replicas);
                }
                None => {}
            },
            _ => {}
        }
        Ok(entity)
    }

    /// Ports that were written as byte strings are read as such.
    fn restore_ports(&self, key: (bool, u32), replicas: &mut [v1::Replica]) {
        use v1::replica::PortKind;
        if !self.port_bytes.contains(&key) {
            return;
        }
        for replica in replicas {
            #[allow(deprecated)]
            if let Some(PortKind::EgressPort(port)) = replica.port_kind {
                replica.port_kind = Some(PortKind::Port(p4rt::bytes::encode(port.into())));
            }
        }
    }
}

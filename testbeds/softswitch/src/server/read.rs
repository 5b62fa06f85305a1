//! The call Read (P4Runtime 1.4, section 13). The results are collected while no write runs, in steps between which
//! frames move; they are converted to messages only as the client takes them, so that a slow client delays no other.

/// Unwraps a result within a query. An error of the query ends it and becomes its result; a stopped switch ends the whole call.
macro_rules! wanted {
    ($result:expr) => {
        match $result {
            Ok(wanted) => wanted,
            Err(error) => return Ok(Err(UpdateError::from(error))),
        }
    };
}

mod answer;
mod objects;
mod select;

use super::binding::{self, Binding, DefaultState, ReadFlags};
use super::config::Loaded;
use super::op;
use super::*;
use answer::{Answer, Responses};
use objects::digests;
use p4rt::rpc::Code;
use p4rt::status::{self, UpdateError};
use p4rt::translate::Item;
use pipeline::{CounterValue, EntryRef, EntryState, MeterCell, Note, Noted, Switch};
use select::{Array, Filter, Wanted, wanted_tables};
use std::ops::Range;
use v1::entity::Entity as Kind;
use v1::packet_replication_engine_entry::Type as Replication;

/// Number of table entries or array cells that a Read call reads before the packet loop processes frames again.
const PER_TURN: u64 = 1024;
/// Maximum number of Read calls whose clients have not taken all results.
pub(super) const READS: usize = 64;

type Found = Result<Vec<Answer>, UpdateError>;

impl Service {
    /// Answers all queries of a Read call. If a query failed, its error follows the responses.
    pub(super) async fn read_entities(
        &self,
        request: v1::ReadRequest,
    ) -> Result<ResponseStream<v1::ReadResponse>, Status> {
        let access = {
            let arbitration = self.arbitration();
            arbitration.check_device(request.device_id)?;
            arbitration.access(&request.role)
        };
        let permit = Arc::clone(&self.reads).try_acquire_owned();
        let permit = permit
            .map_err(|_| Status::resource_exhausted(format!("{READS} reads run; retry later")))?;
        // Held shared: no write changes anything until all queries are answered.
        let pipelines = self.pipelines.read().await;
        let loaded = pipelines.target().ok_or_else(no_pipeline)?;
        let (mut answers, mut results) = (Vec::new(), Vec::new());
        for query in &request.entities {
            match self.answer(query, loaded, &access).await? {
                Ok(found) => {
                    answers.extend(found);
                    results.push(Ok(()));
                }
                Err(error) => results.push(Err(error)),
            }
        }
        let responses = Responses {
            binding: Arc::clone(&loaded.binding),
            answers: answers.into_iter(),
            taken: 0,
            end: status::of_batch(&results, "reads"),
            _permit: permit,
        };
        Ok(Box::pin(tokio_stream::iter(responses)))
    }

    async fn answer(
        &self,
        query: &v1::Entity,
        loaded: &Loaded,
        access: &Access,
    ) -> Result<Found, Status> {
        let Some(query) = &query.entity else {
            let message = "the entity is not set";
            return Ok(Err(UpdateError::new(Code::InvalidArgument, message)));
        };
        let index = &loaded.binding.index;
        match query {
            Kind::TableEntry(entry) => self.table_entries(entry, loaded, access).await,
            Kind::DirectCounterEntry(entry) => self.direct_counters(entry, loaded, access).await,
            Kind::DirectMeterEntry(entry) => self.direct_meters(entry, loaded, access).await,
            Kind::ActionProfileMember(member) => self.members(member, index, access).await,
            Kind::ActionProfileGroup(group) => self.groups(group, index, access).await,
            Kind::MeterEntry(entry) => self.meters(entry, index, access).await,
            Kind::CounterEntry(entry) => self.counters(entry, index, access).await,
            Kind::RegisterEntry(entry) => self.registers(entry, index, access).await,
            Kind::ValueSetEntry(entry) => self.value_sets(entry, loaded, access).await,
            Kind::DigestEntry(entry) => Ok(digests(entry, loaded, access)),
            Kind::PacketReplicationEngineEntry(entry) => self.replication(entry, loaded).await,
            // No architecture has extern entries: a wildcard read of them is empty.
            Kind::ExternEntry(entry) if entry.extern_type_id == 0 && entry.extern_id == 0 => {
                Ok(Ok(Vec::new()))
            }
            Kind::ExternEntry(_) => Ok(Err(op::extern_entries())),
        }
    }

    async fn table_entries(
        &self,
        query: &v1::TableEntry,
        loaded: &Loaded,
        access: &Access,
    ) -> Result<Found, Status> {
        let binding = &loaded.binding;
        let flags = ReadFlags::from_query(query);
        let tables = match wanted_tables(query, binding, access) {
            Ok(tables) => tables,
            Err(error) if error == binding::no_entry() => return Ok(Ok(Vec::new())),
            Err(error) => return Ok(Err(error)),
        };
        let filter = Filter::from_query(query);
        let mut found = Vec::new();
        for Wanted {
            id,
            position,
            entry,
        } in tables
        {
            if query.is_default_action {
                let read = move |_, switch: &mut Switch| {
                    let (bound, _) = switch.default_bound(position)?;
                    let (counter, meter) = switch.default_direct(position)?;
                    Some(DefaultState {
                        bound: bound.clone(),
                        counter,
                        meter,
                        note: switch.note(Noted::Default(position)),
                    })
                };
                let state = self.control(read).await?;
                found.extend(state.map(|state| Answer::Default(id, Box::new(state), flags)));
                continue;
            }
            if let Some(EntryRef::Entry(priority, key)) = entry {
                let read = move |now, switch: &mut Switch| {
                    let number = switch.entry_number(position, priority, &key)?;
                    switch.entry_state(now, position, number)
                };
                let state = self.control(read).await?;
                let state = state.filter(|state| filter.passes(state, id, binding));
                found.extend(state.map(|state| Answer::Entry(id, Box::new(state), flags)));
                continue;
            }
            let states = self.entries(position).await?;
            let passing = states.into_iter().filter(|s| filter.passes(s, id, binding));
            found.extend(passing.map(|state| Answer::Entry(id, Box::new(state), flags)));
        }
        Ok(Ok(found))
    }

    /// Reads all entries of the table with index `position`, with frames processed in between.
    async fn entries(&self, position: usize) -> Result<Vec<EntryState>, Status> {
        let mut states = Vec::new();
        let mut next = 0;
        loop {
            let turn = move |now: u64, switch: &mut Switch| {
                let end = switch.entry_numbers(position);
                let until = end.min(next + PER_TURN as u32);
                let states = (next..until).filter_map(|n| switch.entry_state(now, position, n));
                (states.collect::<Vec<_>>(), (until < end).then_some(until))
            };
            let (turn, more) = self.control(turn).await?;
            states.extend(turn);
            match more {
                Some(from) => next = from,
                None => return Ok(states),
            }
        }
    }

    /// Reads the direct counters and meters of all entries of a table, or of one entry.
    async fn direct(
        &self,
        table: Wanted,
        answer: impl Fn(EntryRef, CounterValue, MeterCell) -> Answer,
    ) -> Result<Found, Status> {
        let position = table.position;
        let cells = move |now: u64, switch: &mut Switch, from: u32, only: Option<EntryRef>| {
            let end = switch.entry_numbers(position);
            let numbers = match &only {
                Some(EntryRef::Entry(priority, key)) => switch
                    .entry_number(position, *priority, key)
                    .map_or(0..0, |n| n..n + 1),
                _ => from..end.min(from + PER_TURN as u32),
            };
            let until = numbers.end;
            let mut found = Vec::new();
            for number in numbers {
                if let Some(state) = switch.entry_state(now, position, number) {
                    let meter = switch.entry_meter(position, number);
                    let at = EntryRef::Entry(state.priority, state.key);
                    found.push((at, state.counter, meter.unwrap_or_default()));
                }
            }
            (found, (only.is_none() && until < end).then_some(until))
        };
        if table.entry == Some(EntryRef::Default) {
            let read = move |_, switch: &mut Switch| switch.default_direct(position);
            let read = self.control(read).await?;
            let read = read.into_iter();
            let found = read.map(|(counter, meter)| answer(EntryRef::Default, counter, meter));
            return Ok(Ok(found.collect()));
        }
        let (mut found, mut from) = (Vec::new(), 0);
        loop {
            let only = table.entry.clone();
            let turn = move |now, switch: &mut Switch| cells(now, switch, from, only);
            let (turn, more) = self.control(turn).await?;
            found.extend(
                turn.into_iter()
                    .map(|(at, counter, meter)| answer(at, counter, meter)),
            );
            match more {
                Some(next) => from = next,
                None => break,
            }
        }
        if table.entry.is_some() && found.is_empty() {
            return Ok(Err(binding::no_entry()));
        }
        Ok(Ok(found))
    }

    async fn replication(
        &self,
        query: &v1::PacketReplicationEngineEntry,
        loaded: &Loaded,
    ) -> Result<Found, Status> {
        let (id, what, items): (u32, &str, Vec<(Item, Note)>) = match &query.r#type {
            None => {
                let message = "the type is not set";
                return Ok(Err(UpdateError::new(Code::InvalidArgument, message)));
            }
            Some(Replication::MulticastGroupEntry(group)) => {
                let id = group.multicast_group_id;
                let read = move |_, switch: &mut Switch| {
                    let groups = switch.multicast_groups().into_iter();
                    let groups = groups.filter(|g| id == 0 || g.id == id);
                    groups
                        .map(|g| (switch.note(Noted::Group(g.id)), Item::MulticastGroup(g)))
                        .map(|(note, item)| (item, note))
                        .collect()
                };
                (id, "multicast group", self.control(read).await?)
            }
            Some(Replication::CloneSessionEntry(session)) => {
                let id = session.session_id;
                let read = move |_, switch: &mut Switch| {
                    let sessions = switch.clone_sessions().into_iter();
                    let sessions = sessions.filter(|s| id == 0 || s.id == id);
                    sessions
                        .map(|s| (switch.note(Noted::Session(s.id)), Item::CloneSession(s)))
                        .map(|(note, item)| (item, note))
                        .collect()
                };
                (id, "clone session", self.control(read).await?)
            }
        };
        let entity = |(item, note): &(Item, Note)| noted(item, note, &loaded.binding);
        let entities: Result<Vec<_>, _> = items.iter().map(entity).collect();
        Ok(entities.and_then(|entities| {
            let found = entities.into_iter().map(|e| Answer::Ready(Box::new(e)));
            some(found.collect(), id != 0, what)
        }))
    }

    async fn each_cell(
        &self,
        arrays: Vec<Array>,
        read: impl Fn(&Switch, u32, &str, Range<u64>) -> Result<Answer, pipeline::ExternError>
        + Copy
        + Send
        + 'static,
    ) -> Result<Found, Status> {
        let mut found = Vec::new();
        for (id, name, cells) in arrays {
            let name: Arc<str> = name.into();
            let mut start = cells.start;
            while start < cells.end {
                let end = cells.end.min(start.saturating_add(PER_TURN));
                let name = Arc::clone(&name);
                let turn = move |_, switch: &mut Switch| read(switch, id, &name, start..end);
                match self.control(turn).await? {
                    Ok(cells) => found.push(cells),
                    Err(error) => return Ok(Err(errors::object(error))),
                }
                start = end;
            }
        }
        Ok(Ok(found))
    }
}

fn ready(kind: Kind) -> Answer {
    let entity = v1::Entity { entity: Some(kind) };
    Answer::Ready(Box::new(entity))
}

/// Returns an error if a query named a single object (`one`) and none was found.
fn some(found: Vec<Answer>, one: bool, what: &str) -> Found {
    if one && found.is_empty() {
        return Err(UpdateError::new(Code::NotFound, format!("no such {what}")));
    }
    Ok(found)
}

/// A multicast group or clone session as a P4Runtime message, with its client's note.
fn noted(item: &Item, note: &Note, binding: &Binding) -> Result<v1::Entity, UpdateError> {
    let mut entity = item.to_entity(&binding.index)?;
    if let Some(Kind::PacketReplicationEngineEntry(entry)) = &mut entity.entity
        && let Some(Replication::MulticastGroupEntry(group)) = &mut entry.r#type
    {
        group.metadata.clone_from(&note.metadata);
    }
    if note.number == op::PORTS_IN_BYTES {
        binding.name_ports(&mut entity);
    }
    Ok(entity)
}

//! Read (P4Runtime 1.4, section 13). What is asked for is gathered while no write runs, in turns between which frames
//! move; it becomes messages only as the client takes them, so a slow client holds up nobody.

use super::binding::{self, Binding, DefaultState, ReadFlags};
use super::config::Loaded;
use super::op::{self, cells};
use super::profiles;
use super::*;
use p4lang::p4info::{ActionProfile, Counter, Digest, Meter, Register, ValueSet};
use p4rt::p4info::{Object, Section};
use p4rt::rpc::Code;
use p4rt::status::{self, UpdateError};
use p4rt::translate::cells::{index_from_proto, index_to_proto};
use p4rt::translate::{Item, TranslateError};
use pipeline::{CounterValue, EntryRef, EntryState, MeterCell, ProfileGroup, Switch};
use prost::Message as _;
use v1::entity::Entity as Kind;
use v1::packet_replication_engine_entry::Type as Replication;

/// Bytes of one response: clients accept 4 MiB.
const BYTES_PER_RESPONSE: usize = 1 << 20;
/// Entries or cells read between two frames.
const PER_TURN: u64 = 1024;
/// Reads at a time whose clients have not taken everything.
pub(super) const READS: usize = 64;

/// Something that a query selects.
enum Answer {
    Entry(u32, Box<EntryState>, ReadFlags),
    Default(u32, Box<DefaultState>, ReadFlags),
    DirectCounter(u32, EntryRef, CounterValue),
    /// And whether its counts are asked for.
    DirectMeter(u32, EntryRef, Box<MeterCell>, bool),
    Member(u32, u32, p4lang::runtime::ActionCall),
    Group(u32, u32, ProfileGroup),
    Meter(u32, u64, Box<MeterCell>, bool),
    Item(Item),
    Ready(Box<v1::Entity>),
}

type Found = Result<Vec<Answer>, UpdateError>;

impl Service {
    /// The responses, and at the end the error if a query failed.
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
            .map_err(|_| Status::resource_exhausted(format!("{READS} reads are not finished")))?;
        // Shared: no write changes anything until all queries are answered.
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
            end: status::of_batch(&results),
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
        let binding = &loaded.binding;
        let index = &binding.index;
        let Some(query) = &query.entity else {
            let message = "the entity is not set";
            return Ok(Err(UpdateError::new(Code::InvalidArgument, message)));
        };
        // A query that is wrong is the query's failure; a switch that is gone is the call's.
        macro_rules! wanted {
            ($result:expr) => {
                match $result {
                    Ok(wanted) => wanted,
                    Err(error) => return Ok(Err(UpdateError::from(error))),
                }
            };
        }
        match query {
            Kind::TableEntry(entry) => self.table_entries(entry, loaded, access).await,
            Kind::DirectCounterEntry(entry) => {
                let tables = wanted!(direct_tables(entry.table_entry.as_ref(), binding, access));
                let counted = |table: &Wanted| binding.table(table.id).is_ok_and(|t| t.has_counter);
                let mut found = Vec::new();
                for table in tables.into_iter().filter(counted) {
                    let id = table.id;
                    let read = self.direct(table, move |at, counter, _| {
                        Answer::DirectCounter(id, at, counter)
                    });
                    found.extend(wanted!(read.await?));
                }
                Ok(Ok(found))
            }
            Kind::DirectMeterEntry(entry) => {
                let tables = wanted!(direct_tables(entry.table_entry.as_ref(), binding, access));
                let metered = |table: &Wanted| binding.table(table.id).is_ok_and(|t| t.has_meter);
                let counts = entry.counter_data.is_some();
                let mut found = Vec::new();
                for table in tables.into_iter().filter(metered) {
                    let id = table.id;
                    let read = self.direct(table, move |at, _, meter| {
                        Answer::DirectMeter(id, at, Box::new(meter), counts)
                    });
                    found.extend(wanted!(read.await?));
                }
                Ok(Ok(found))
            }
            Kind::ActionProfileMember(member) => {
                let id = member.action_profile_id;
                let profiles = wanted!(which(&index.action_profiles, id, access));
                let wanted = member.member_id;
                let read = move |_, switch: &mut Switch| {
                    let mut found = Vec::new();
                    for (profile, name) in profiles {
                        let members = switch.members(&name).unwrap_or_default().into_iter();
                        let members = members.filter(|(id, _)| wanted == 0 || *id == wanted);
                        found.extend(members.map(|(id, call)| Answer::Member(profile, id, call)));
                    }
                    found
                };
                let found = self.control(read).await?;
                Ok(some(found, wanted != 0, "member"))
            }
            Kind::ActionProfileGroup(group) => {
                let id = group.action_profile_id;
                let profiles = wanted!(which(&index.action_profiles, id, access));
                let wanted = group.group_id;
                let read = move |_, switch: &mut Switch| {
                    let mut found = Vec::new();
                    for (profile, name) in profiles {
                        let groups = switch.groups(&name).unwrap_or_default().into_iter();
                        let groups = groups.filter(|(id, _)| wanted == 0 || *id == wanted);
                        found.extend(groups.map(|(id, group)| Answer::Group(profile, id, group)));
                    }
                    found
                };
                let found = self.control(read).await?;
                Ok(some(found, wanted != 0, "group"))
            }
            Kind::MeterEntry(entry) => {
                let size = |meter: &Meter| meter.size;
                let arrays = arrays(&index.meters, entry.meter_id, entry.index, size, access);
                let counts = entry.counter_data.is_some();
                self.each_cell(wanted!(arrays), move |switch, id, name, cell| {
                    let meter = switch.meter_cell(name, cell)?;
                    Ok(Answer::Meter(id, cell, Box::new(meter), counts))
                })
                .await
            }
            Kind::CounterEntry(entry) => {
                let size = |counter: &Counter| counter.size;
                let arrays = arrays(&index.counters, entry.counter_id, entry.index, size, access);
                self.each_cell(wanted!(arrays), |switch, _, name, cell| {
                    let value = switch.counter_read(name, cell)?;
                    Ok(Answer::Item(Item::Counter {
                        name: name.to_owned(),
                        index: Some(cell),
                        value: Some(p4rt::translate::CounterValue {
                            packets: value.packets,
                            bytes: value.bytes,
                        }),
                    }))
                })
                .await
            }
            Kind::RegisterEntry(entry) => {
                let size = |register: &Register| register.size;
                let arrays = arrays(
                    &index.registers,
                    entry.register_id,
                    entry.index,
                    size,
                    access,
                );
                self.each_cell(wanted!(arrays), |switch, _, name, cell| {
                    let fields = switch.register_read(name, cell)?;
                    Ok(Answer::Item(Item::Register {
                        name: name.to_owned(),
                        index: Some(cell),
                        fields,
                    }))
                })
                .await
            }
            Kind::ValueSetEntry(entry) => {
                let sets = wanted!(which::<ValueSet>(
                    &index.value_sets,
                    entry.value_set_id,
                    access
                ));
                let read = move |_, switch: &mut Switch| {
                    let members = |(id, name): (u32, String)| {
                        let members = switch.value_set_members(&name).unwrap_or_default();
                        (id, members.to_vec())
                    };
                    sets.into_iter().map(members).collect::<Vec<_>>()
                };
                let mut found = Vec::new();
                for (id, members) in self.control(read).await? {
                    let entry = wanted!(binding.value_set_to_proto(id, &members));
                    found.push(ready(Kind::ValueSetEntry(entry)));
                }
                Ok(Ok(found))
            }
            Kind::DigestEntry(entry) => {
                let digests = wanted!(which::<Digest>(&index.digests, entry.digest_id, access));
                let configs = loaded.digests().configs().clone();
                let on = digests.into_iter().filter_map(|(digest_id, _)| {
                    let config = configs.get(&digest_id)?.to_proto();
                    Some(ready(Kind::DigestEntry(v1::DigestEntry {
                        digest_id,
                        config: Some(config),
                    })))
                });
                Ok(some(
                    on.collect(),
                    entry.digest_id != 0,
                    "digest that is on",
                ))
            }
            Kind::PacketReplicationEngineEntry(entry) => self.replication(entry, loaded).await,
            // No architecture has any: all of them are none.
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
        let flags = ReadFlags::of(query);
        let tables = match wanted_tables(query, binding, access) {
            Ok(tables) => tables,
            Err(error) => return Ok(Err(error)),
        };
        let filter = Filter::of(query);
        let mut found = Vec::new();
        for Wanted {
            id,
            position,
            entry,
        } in tables
        {
            if query.is_default_action {
                let note = loaded.notes.defaults.get(&id).cloned().unwrap_or_default();
                let read = move |_, switch: &mut Switch| {
                    let (bound, _) = switch.default_bound(position)?;
                    let (counter, meter) = switch.default_direct(position)?;
                    Some(DefaultState {
                        bound: bound.clone(),
                        counter,
                        meter,
                        note,
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

    /// All entries of a table, in turns.
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

    /// Counters and meters of a table's entries, or of one.
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
        let (id, what, items): (u32, &str, Vec<Item>) = match &query.r#type {
            None => {
                let message = "the type is not set";
                return Ok(Err(UpdateError::new(Code::InvalidArgument, message)));
            }
            Some(Replication::MulticastGroupEntry(group)) => {
                let groups = self.control(|_, switch| switch.multicast_groups()).await?;
                let id = group.multicast_group_id;
                let groups = groups.into_iter().filter(|g| id == 0 || g.id == id);
                (
                    id,
                    "multicast group",
                    groups.map(Item::MulticastGroup).collect(),
                )
            }
            Some(Replication::CloneSessionEntry(session)) => {
                let sessions = self.control(|_, switch| switch.clone_sessions()).await?;
                let id = session.session_id;
                let sessions = sessions.into_iter().filter(|s| id == 0 || s.id == id);
                (
                    id,
                    "clone session",
                    sessions.map(Item::CloneSession).collect(),
                )
            }
        };
        let entity = |item: &Item| loaded.notes.entity(item, &loaded.binding);
        let entities: Result<Vec<_>, _> = items.iter().map(entity).collect();
        Ok(entities.and_then(|entities| {
            let found = entities.into_iter().map(|e| Answer::Ready(Box::new(e)));
            some(found.collect(), id != 0, what)
        }))
    }

    async fn each_cell(
        &self,
        arrays: Vec<Array>,
        read: impl Fn(&Switch, u32, &str, u64) -> Result<Answer, pipeline::ExternError>
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
                let turn = move |_, switch: &mut Switch| {
                    let cells = (start..end).map(|cell| read(switch, id, &name, cell));
                    cells.collect::<Result<Vec<_>, _>>()
                };
                match self.control(turn).await? {
                    Ok(cells) => found.extend(cells),
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

/// One that is asked for by its number has to be there.
fn some(found: Vec<Answer>, one: bool, what: &str) -> Found {
    if one && found.is_empty() {
        return Err(UpdateError::new(Code::NotFound, format!("no such {what}")));
    }
    Ok(found)
}

/// A table of which entries are wanted: one, or all.
#[derive(Clone)]
struct Wanted {
    id: u32,
    position: usize,
    entry: Option<EntryRef>,
}

fn wanted_tables(
    query: &v1::TableEntry,
    binding: &Binding,
    access: &Access,
) -> Result<Vec<Wanted>, UpdateError> {
    if query.table_id == 0 {
        if !query.r#match.is_empty() {
            let message = "a key belongs to a table: table_id is not set";
            return Err(UpdateError::new(Code::InvalidArgument, message));
        }
        let all = binding.tables().filter(|(id, _)| access.reads(*id));
        let all = all.map(|(id, table)| Wanted {
            id,
            position: table.position,
            entry: None,
        });
        return Ok(all.collect());
    }
    let table = binding.table(query.table_id)?;
    if query.is_default_action {
        table.check_default(query)?;
    } else if query.time_since_last_hit.is_some() && !table.info.idle_timeout {
        let message = "the table has no idle timeouts";
        return Err(UpdateError::new(Code::InvalidArgument, message));
    }
    // Without a key a priority alone may still narrow the answer.
    let one = !query.r#match.is_empty();
    let entry = one.then(|| table.entry_ref(query, binding)).transpose()?;
    let wanted = Wanted {
        id: query.table_id,
        position: table.position,
        entry,
    };
    Ok(Some(wanted)
        .into_iter()
        .filter(|w| access.reads(w.id))
        .collect())
}

/// As for entries; the default entry is one of its own.
fn direct_tables(
    entry: Option<&v1::TableEntry>,
    binding: &Binding,
    access: &Access,
) -> Result<Vec<Wanted>, UpdateError> {
    let all = v1::TableEntry::default();
    let entry = entry.unwrap_or(&all);
    let mut tables = wanted_tables(entry, binding, access)?;
    if entry.is_default_action {
        for table in &mut tables {
            table.entry = Some(EntryRef::Default);
        }
    }
    Ok(tables)
}

/// What narrows a wildcard read of entries (section 9.1.5).
struct Filter {
    priority: i32,
    metadata: Vec<u8>,
    number: u64,
    action: u32,
}

impl Filter {
    fn of(query: &v1::TableEntry) -> Self {
        use v1::table_action::Type as ActionKind;
        let action = query
            .action
            .as_ref()
            .and_then(|action| action.r#type.as_ref());
        Self {
            priority: query.priority,
            metadata: query.metadata.clone(),
            #[allow(deprecated)]
            number: query.controller_metadata,
            action: match action {
                Some(ActionKind::Action(action)) => action.action_id,
                _ => 0,
            },
        }
    }

    fn passes(&self, state: &EntryState, table: u32, binding: &Binding) -> bool {
        (self.priority == 0 || state.priority == self.priority)
            && (self.metadata.is_empty() || state.note.metadata == self.metadata)
            && (self.number == 0 || state.note.number == self.number)
            && (self.action == 0
                || binding
                    .table(table)
                    .is_ok_and(|table| table.action_id(&state.action) == Some(self.action)))
    }
}

/// The objects that a query selects: ids and names.
fn which<T: Object>(
    section: &Section<T>,
    id: u32,
    access: &Access,
) -> Result<Vec<(u32, String)>, UpdateError> {
    if id != 0 && section.with_id(id).is_none() {
        return Err(TranslateError::unknown_id::<T>(id).into());
    }
    let preambles = section.iter().map(|object| object.preamble());
    let selected = preambles.filter(|p| (id == 0 || p.id == id) && access.reads(p.id));
    Ok(selected.map(|p| (p.id, p.name.clone())).collect())
}

/// Id, name, cells.
type Array = (u32, String, std::ops::Range<u64>);

fn arrays<T: Object>(
    section: &Section<T>,
    id: u32,
    index: Option<v1::Index>,
    size: impl Fn(&T) -> i64,
    access: &Access,
) -> Result<Vec<Array>, UpdateError> {
    if id == 0 && index.is_some() {
        let message = format!("an index without a {}", T::KIND);
        return Err(UpdateError::new(Code::InvalidArgument, message));
    }
    let mut arrays = Vec::new();
    for (id, name) in which(section, id, access)? {
        let size = section.with_id(id).map_or(0, &size);
        let cell = index_from_proto(&name, index, size)?;
        arrays.push((id, name, cells(cell, size)));
    }
    Ok(arrays)
}

/// The responses of a read, made as they are taken.
struct Responses {
    binding: Arc<Binding>,
    answers: std::vec::IntoIter<Answer>,
    end: Option<Status>,
    _permit: tokio::sync::OwnedSemaphorePermit,
}

impl Iterator for Responses {
    type Item = Result<v1::ReadResponse, Status>;

    fn next(&mut self) -> Option<Self::Item> {
        let (mut entities, mut bytes) = (Vec::new(), 0);
        while bytes < BYTES_PER_RESPONSE {
            let Some(answer) = self.answers.next() else {
                break;
            };
            match answer.entity(&self.binding) {
                Ok(entity) => {
                    bytes += entity.encoded_len();
                    entities.push(entity);
                }
                Err(error) => {
                    self.answers = Vec::new().into_iter();
                    return Some(Err(Status::internal(error.to_string())));
                }
            }
        }
        if entities.is_empty() {
            return self.end.take().map(Err);
        }
        Some(Ok(v1::ReadResponse { entities }))
    }
}

impl Answer {
    fn entity(self, binding: &Binding) -> Result<v1::Entity, UpdateError> {
        let kind = match self {
            Answer::Ready(entity) => return Ok(*entity),
            Answer::Item(item) => return Ok(item.to_entity(&binding.index)?),
            Answer::Entry(id, state, flags) => {
                Kind::TableEntry(binding.table(id)?.entry_to_proto(&state, flags, binding)?)
            }
            Answer::Default(id, state, flags) => {
                Kind::TableEntry(binding.table(id)?.default_to_proto(&state, flags, binding))
            }
            Answer::DirectCounter(id, at, value) => {
                Kind::DirectCounterEntry(v1::DirectCounterEntry {
                    table_entry: Some(binding.table(id)?.key_to_proto(&at, binding)?),
                    data: Some(binding::counter_to_proto(value)),
                })
            }
            Answer::DirectMeter(id, at, meter, counts) => {
                Kind::DirectMeterEntry(v1::DirectMeterEntry {
                    table_entry: Some(binding.table(id)?.key_to_proto(&at, binding)?),
                    config: meter.config().map(binding::config_to_proto),
                    counter_data: counts.then(|| binding::counts_to_proto(&meter.counts())),
                })
            }
            Answer::Meter(id, cell, meter, counts) => Kind::MeterEntry(v1::MeterEntry {
                meter_id: id,
                index: Some(index_to_proto(cell)),
                config: meter.config().map(binding::config_to_proto),
                counter_data: counts.then(|| binding::counts_to_proto(&meter.counts())),
            }),
            Answer::Member(profile, id, call) => {
                let profile: &ActionProfile = profiles::profile(profile, binding)?;
                Kind::ActionProfileMember(profiles::member_to_proto(profile, id, &call, binding))
            }
            Answer::Group(profile, id, group) => {
                let profile: &ActionProfile = profiles::profile(profile, binding)?;
                Kind::ActionProfileGroup(profiles::group_to_proto(profile, id, &group, binding))
            }
        };
        Ok(v1::Entity { entity: Some(kind) })
    }
}

impl config::Notes {
    /// A group or session, with what clients have attached to it.
    fn entity(&self, item: &Item, binding: &Binding) -> Result<v1::Entity, UpdateError> {
        let mut entity = item.to_entity(&binding.index)?;
        let Some(Kind::PacketReplicationEngineEntry(entry)) = &mut entity.entity else {
            return Ok(entity);
        };
        let key = match &mut entry.r#type {
            Some(Replication::MulticastGroupEntry(group)) => {
                let id = group.multicast_group_id;
                group.metadata = self.groups.get(&id).cloned().unwrap_or_default();
                (true, id)
            }
            Some(Replication::CloneSessionEntry(session)) => (false, session.session_id),
            None => return Ok(entity),
        };
        // Ports that were written as byte strings are read as such.
        if self.port_bytes.contains(&key) {
            binding.name_ports(&mut entity);
        }
        Ok(entity)
    }
}

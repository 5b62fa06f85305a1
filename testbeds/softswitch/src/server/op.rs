//! One update of a Write call with indices and names of the program, and how it is applied between two frames.

use super::binding::{self, Binding, profiles};
use super::digests::DigestConfig;
use super::errors;
use p4lang::p4info::{Counter, Digest, Meter};
use p4lang::runtime::{ActionCall, Value};
use p4rt::rpc::Code;
use p4rt::status::{UpdateError, UpdateResult};
use p4rt::translate::cells::index_from_proto;
use p4rt::translate::{Item, Part, TranslateError};
use p4rt::v1;
use pipeline::{
    CounterValue, DirectChange, EntryRef, EntryWrite, FieldKey, MeterConfig, Note, Noted,
    ProfileGroup, Switch,
};
use v1::entity::Entity as Kind;
use v1::packet_replication_engine_entry::Type as Replication;
use v1::update::Type;

/// Flag in the note that is stored with a multicast group or clone session: reads return ports as byte strings, as the client
/// wrote them.
pub(super) const PORTS_IN_BYTES: u64 = 1;

type Result<T> = std::result::Result<T, UpdateError>;

/// A well-formed update of a Write call, with indices and names of the program.
pub(super) enum Op {
    Insert(usize, EntryWrite),
    Modify(usize, EntryWrite),
    Delete(usize, i32, Vec<FieldKey>),
    /// Default entry: index and name of the table, action (`None`: the program's own), counter and meter, client's note.
    Default(usize, String, Option<ActionCall>, DirectChange, Note),
    Direct(usize, EntryRef, DirectChange),
    /// Member of an action profile: the profile's name, the member's number, and its action (`None`: delete the member).
    Member(Type, String, u32, Option<ActionCall>),
    Group(Type, String, u32, Option<ProfileGroup>),
    /// Meter: name, cells to write, new configuration (`None`: the default), and whether to reset the counts.
    Meter(String, Cells, Option<MeterConfig>, bool),
    Counter(String, Cells, CounterValue),
    Register(String, Cells, Vec<Value>),
    ValueSet(String, Vec<Vec<FieldKey>>),
    /// Multicast group or clone session, with the client's note.
    Replication(Type, Item, Note),
    /// Configuration of a digest's lists, which the server applies, not the program.
    Digest(Type, u32, DigestConfig),
    /// An update that changes nothing.
    Nothing,
}

fn invalid(message: impl Into<String>) -> UpdateError {
    UpdateError::new(Code::InvalidArgument, message)
}

fn denied(message: impl Into<String>) -> UpdateError {
    UpdateError::new(Code::PermissionDenied, message)
}

fn modify_only(kind: Type, what: &str) -> UpdateResult {
    match kind {
        Type::Modify => Ok(()),
        _ => Err(invalid(format!("{what} always exists; use MODIFY"))),
    }
}

impl Op {
    /// Converts an update of P4Runtime; returns an error if the update is malformed.
    pub(super) fn new(update: &v1::Update, binding: &Binding) -> Result<Op> {
        let kind = update.r#type();
        if kind == Type::Unspecified {
            return Err(invalid("the update's type is not set"));
        }
        let entity = update.entity.as_ref();
        let kinds = entity.and_then(|entity| entity.entity.as_ref());
        match kinds.ok_or_else(|| invalid("the update has no entity"))? {
            Kind::TableEntry(entry) => table_entry(kind, entry, binding),
            Kind::DirectCounterEntry(entry) => direct_counter(kind, entry, binding),
            Kind::DirectMeterEntry(entry) => direct_meter(kind, entry, binding),
            Kind::ActionProfileMember(member) => {
                let (profile, call) = profiles::member(kind, member, binding)?;
                Ok(Op::Member(kind, profile, member.member_id, call))
            }
            Kind::ActionProfileGroup(group) => {
                let (profile, written) = profiles::group(kind, group, binding)?;
                Ok(Op::Group(kind, profile, group.group_id, written))
            }
            Kind::MeterEntry(entry) => meter_cells(kind, entry, binding),
            Kind::CounterEntry(entry) => counter_cells(kind, entry, binding),
            Kind::RegisterEntry(entry) => {
                modify_only(kind, "a register")?;
                let (register, cell, scalars) = binding.register_write(entry)?;
                let name = register.preamble.name.clone();
                Ok(Op::Register(name, Cells::new(cell, register.size), scalars))
            }
            Kind::ValueSetEntry(entry) => {
                modify_only(kind, "a value set")?;
                let members = binding.value_set_members(entry)?;
                let set = binding.index.value_sets.with_id(entry.value_set_id);
                let name = set.map(|set| set.preamble.name.clone()).unwrap_or_default();
                Ok(Op::ValueSet(name, members))
            }
            Kind::PacketReplicationEngineEntry(entry) => {
                let note = replication_note(entry);
                replication(kind, update, binding, note)
            }
            Kind::DigestEntry(entry) => digest(kind, entry, binding),
            Kind::ExternEntry(_) => Err(extern_entries()),
        }
    }

    /// Cost of the update, in multiples of the cost of writing one table entry.
    pub(super) fn weight(&self) -> u64 {
        const CELLS: u64 = 64;
        match self {
            Op::Meter(_, Cells::All(cells), ..)
            | Op::Counter(_, Cells::All(cells), _)
            | Op::Register(_, Cells::All(cells), _) => 1 + cells / CELLS,
            _ => 1,
        }
    }

    /// Applies the update to the program in `switch`.
    pub(super) fn apply(self, now_ns: u64, switch: &mut Switch) -> UpdateResult {
        match self {
            Op::Insert(table, write) => switch
                .insert_whole(now_ns, table, write)
                .map_err(errors::profile),
            Op::Modify(table, write) => switch
                .modify_whole(now_ns, table, write)
                .map_err(errors::profile),
            Op::Delete(table, priority, key) => switch
                .delete_whole(table, priority, key)
                .map_err(errors::table),
            Op::Default(table, name, action, change, note) => {
                switch
                    .set_default_action(&name, action.as_ref())
                    .map_err(errors::table)?;
                switch.set_note(Noted::Default(table), note);
                switch
                    .change_direct(now_ns, table, &EntryRef::Default, &change)
                    .map_err(errors::table)
            }
            Op::Direct(table, entry, change) => switch
                .change_direct(now_ns, table, &entry, &change)
                .map_err(errors::table),
            Op::Member(kind, profile, id, call) => match (kind, call) {
                (Type::Insert, Some(call)) => switch.insert_member(&profile, id, &call),
                (Type::Modify, Some(call)) => switch.modify_member(&profile, id, &call),
                _ => switch.delete_member(&profile, id),
            }
            .map_err(errors::profile),
            Op::Group(kind, profile, id, group) => match group {
                Some(group) => switch.put_group(&profile, id, group, kind == Type::Modify),
                None => switch.delete_group(&profile, id),
            }
            .map_err(errors::profile),
            Op::Meter(name, Cells::All(_), config, clears) => switch
                .meter_fill(&name, config, clears, now_ns)
                .map_err(errors::object),
            Op::Meter(name, Cells::One(cell), config, clears) => {
                meter(switch, &name, cell, config, clears, now_ns).map_err(errors::object)
            }
            Op::Counter(name, cells, value) => match cells {
                Cells::One(cell) => switch.counter_write(&name, cell, value),
                Cells::All(_) => switch.counter_fill(&name, value),
            }
            .map_err(errors::object),
            Op::Register(name, cells, fields) => match cells {
                Cells::One(cell) => switch.register_write(&name, cell, &fields),
                Cells::All(_) => switch.register_fill(&name, &fields),
            }
            .map_err(errors::object),
            Op::ValueSet(name, members) => switch
                .value_set_assign(&name, &members)
                .map_err(errors::object),
            Op::Replication(kind, item, note) => replicate(switch, kind, &item, note),
            Op::Digest(..) | Op::Nothing => Ok(()),
        }
    }
}

fn direct_counter(kind: Type, entry: &v1::DirectCounterEntry, binding: &Binding) -> Result<Op> {
    modify_only(kind, "a direct counter")?;
    let (table, at) = direct(entry.table_entry.as_ref(), binding)?;
    if !table.has_counter {
        return Err(invalid("the table has no direct counter"));
    }
    let data = entry.data.as_ref();
    let change = DirectChange {
        counter: data.map(binding::counter_value).transpose()?,
        ..DirectChange::default()
    };
    Ok(Op::Direct(table.position, at, change))
}

fn direct_meter(kind: Type, entry: &v1::DirectMeterEntry, binding: &Binding) -> Result<Op> {
    modify_only(kind, "a direct meter")?;
    let (table, at) = direct(entry.table_entry.as_ref(), binding)?;
    if !table.has_meter {
        return Err(invalid("the table has no direct meter"));
    }
    let config = entry.config.as_ref();
    let change = DirectChange {
        counter: None,
        meter: Some(config.map(binding::meter_config).transpose()?),
        clear_meter_counts: binding::clears(entry.counter_data.as_ref())?,
    };
    Ok(Op::Direct(table.position, at, change))
}

fn meter_cells(kind: Type, entry: &v1::MeterEntry, binding: &Binding) -> Result<Op> {
    modify_only(kind, "a meter")?;
    let id = entry.meter_id;
    let meter = binding.index.meters.with_id(id);
    let meter = meter.ok_or_else(|| TranslateError::unknown_id::<Meter>(id))?;
    let name = &meter.preamble.name;
    let index = index_from_proto(name, entry.index, meter.size)?;
    let config = entry.config.as_ref();
    let config = config.map(binding::meter_config).transpose()?;
    let clears = binding::clears(entry.counter_data.as_ref())?;
    let cells = Cells::new(index, meter.size);
    Ok(Op::Meter(name.clone(), cells, config, clears))
}

fn counter_cells(kind: Type, entry: &v1::CounterEntry, binding: &Binding) -> Result<Op> {
    modify_only(kind, "a counter")?;
    let id = entry.counter_id;
    let counter = binding.index.counters.with_id(id);
    let counter = counter.ok_or_else(|| TranslateError::unknown_id::<Counter>(id))?;
    let name = &counter.preamble.name;
    let index = index_from_proto(name, entry.index, counter.size)?;
    // Without data a counter keeps its value.
    let Some(data) = &entry.data else {
        return Ok(Op::Nothing);
    };
    let value = binding::counter_value(data)?;
    let cells = Cells::new(index, counter.size);
    Ok(Op::Counter(name.clone(), cells, value))
}

fn replication(kind: Type, update: &v1::Update, binding: &Binding, note: Note) -> Result<Op> {
    let part = match kind {
        Type::Delete => Part::Key,
        _ => Part::Whole,
    };
    let mut entity = update.entity.clone().unwrap_or_default();
    binding.number_ports(&mut entity)?;
    let item = Item::from_entity(&entity, &binding.index, part)?;
    Ok(Op::Replication(kind, item, note))
}

fn digest(kind: Type, entry: &v1::DigestEntry, binding: &Binding) -> Result<Op> {
    let id = entry.digest_id;
    if binding.index.digests.with_id(id).is_none() {
        return Err(TranslateError::unknown_id::<Digest>(id).into());
    }
    let config = match (kind, &entry.config) {
        (Type::Delete, _) => DigestConfig::default(),
        (_, Some(config)) => DigestConfig::new(config)?,
        (_, None) => return Err(TranslateError::Unset { what: "config" }.into()),
    };
    Ok(Op::Digest(kind, id, config))
}

pub(super) fn extern_entries() -> UpdateError {
    let message = "extern entries are not supported: no architecture of this switch has any";
    UpdateError::new(Code::Unimplemented, message)
}

fn table_entry(kind: Type, entry: &v1::TableEntry, binding: &Binding) -> Result<Op> {
    let table = binding.table(entry.table_id)?;
    if entry.is_const {
        return Err(invalid("is_const is set only by the switch"));
    }
    if entry.is_default_action {
        return default_entry(kind, entry, binding);
    }
    if table.info.is_const_table && (kind != Type::Modify || entry.action.is_some()) {
        return Err(denied("the table's entries are constant"));
    }
    if kind == Type::Delete {
        return match table.entry_ref(entry, binding)? {
            EntryRef::Entry(priority, key) => Ok(Op::Delete(table.position, priority, key)),
            EntryRef::Default => Err(invalid("the default entry cannot be deleted; use MODIFY")),
        };
    }
    let write = table.write(kind, entry, binding)?;
    Ok(match kind {
        Type::Insert => Op::Insert(table.position, write),
        _ => Op::Modify(table.position, write),
    })
}

fn default_entry(kind: Type, entry: &v1::TableEntry, binding: &Binding) -> Result<Op> {
    let table = binding.table(entry.table_id)?;
    modify_only(kind, "a default entry")?;
    table.check_default(entry)?;
    table.check_attached(entry)?;
    let name = &table.info.preamble.name;
    if table.info.const_default_action_id != 0 {
        return Err(denied("the table's default action is constant"));
    }
    if table.info.implementation_id != 0 && entry.action.is_some() {
        return Err(denied(
            "the default entry of a table with an action profile is constant",
        ));
    }
    let action = entry.action.as_ref();
    let reset = action.is_none();
    let counter = entry.counter_data.as_ref().map(binding::counter_value);
    let change = DirectChange {
        // Resetting the entry also resets its attached data.
        counter: match counter.transpose()? {
            None if reset && table.has_counter => Some(CounterValue::default()),
            counter => counter,
        },
        meter: match &entry.meter_config {
            Some(config) => Some(Some(binding::meter_config(config)?)),
            None => Some(None),
        },
        clear_meter_counts: reset || binding::clears(entry.meter_counter_data.as_deref())?,
    };
    let action = action.map(|action| table.default_call(action, binding));
    let note = match reset {
        true => Note::default(),
        false => Note {
            metadata: entry.metadata.clone(),
            #[allow(deprecated)]
            number: entry.controller_metadata,
        },
    };
    Ok(Op::Default(
        table.position,
        name.clone(),
        action.transpose()?,
        change,
        note,
    ))
}

/// The table, and the entry in it, whose direct counter or meter a request names.
pub(super) fn direct<'a>(
    entry: Option<&v1::TableEntry>,
    binding: &'a Binding,
) -> Result<(&'a binding::BoundTable, EntryRef)> {
    let entry = entry.ok_or(TranslateError::Unset {
        what: "table_entry",
    })?;
    let table = binding.table(entry.table_id)?;
    Ok((table, table.entry_ref(entry, binding)?))
}

/// The cells of a counter, meter or register that an update writes: the cell with this index, or all, given their number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cells {
    One(u64),
    All(u64),
}

impl Cells {
    pub(super) fn new(cell: Option<u64>, size: i64) -> Cells {
        let all = Cells::All(u64::try_from(size).unwrap_or(0));
        cell.map_or(all, Cells::One)
    }

    pub(super) fn range(self) -> std::ops::Range<u64> {
        match self {
            Cells::One(cell) => cell..cell.saturating_add(1),
            Cells::All(size) => 0..size,
        }
    }
}

fn meter(
    switch: &mut Switch,
    name: &str,
    cell: u64,
    config: Option<MeterConfig>,
    clears: bool,
    now_ns: u64,
) -> std::result::Result<(), pipeline::ExternError> {
    if switch.meter_config(name, cell)? != config {
        switch.meter_configure(name, cell, config, now_ns)?;
    }
    if clears {
        switch.meter_clear_counts(name, cell)?;
    }
    Ok(())
}

fn replicate(switch: &mut Switch, kind: Type, item: &Item, note: Note) -> UpdateResult {
    let (on, present, what) = match item {
        Item::MulticastGroup(group) => (
            Noted::Group(group.id),
            switch.multicast_groups().iter().any(|g| g.id == group.id),
            "multicast group",
        ),
        Item::CloneSession(session) => (
            Noted::Session(session.id),
            switch.clone_sessions().iter().any(|s| s.id == session.id),
            "clone session",
        ),
        _ => return Err(UpdateError::new(Code::Internal, "no replication entry")),
    };
    match (kind, present) {
        (Type::Insert, true) => {
            let message = format!("this {what} already exists");
            return Err(UpdateError::new(Code::AlreadyExists, message));
        }
        (Type::Modify | Type::Delete, false) => {
            return Err(UpdateError::new(Code::NotFound, format!("no such {what}")));
        }
        _ => {}
    }
    match (kind, item) {
        (Type::Delete, Item::MulticastGroup(group)) => switch.delete_multicast_group(group.id),
        (_, Item::MulticastGroup(group)) => switch.set_multicast_group(group),
        (Type::Delete, Item::CloneSession(session)) => switch.delete_clone_session(session.id),
        (_, Item::CloneSession(session)) => switch.set_clone_session(session),
        _ => Ok(()),
    }
    .map_err(errors::replication)?;
    if kind != Type::Delete {
        switch.set_note(on, note);
    }
    Ok(())
}

/// The note that a multicast group or clone session stores for its client: metadata, and how the client wrote the ports.
fn replication_note(entry: &v1::PacketReplicationEngineEntry) -> Note {
    let (metadata, replicas) = match &entry.r#type {
        Some(Replication::MulticastGroupEntry(group)) => (&group.metadata[..], &group.replicas[..]),
        Some(Replication::CloneSessionEntry(session)) => (&[][..], &session.replicas[..]),
        None => return Note::default(),
    };
    let in_bytes = |r: &v1::Replica| matches!(r.port_kind, Some(v1::replica::PortKind::Port(_)));
    Note {
        metadata: metadata.to_vec(),
        number: if replicas.iter().any(in_bytes) {
            PORTS_IN_BYTES
        } else {
            0
        },
    }
}

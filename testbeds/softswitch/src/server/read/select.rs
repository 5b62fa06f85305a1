//! Selects the objects, table entries and array cells that a query of a Read call asks for.

use super::super::arbitration::Access;
use super::super::binding::Binding;
use super::super::op::Cells;
use p4rt::p4info::{Object, Section};
use p4rt::rpc::Code;
use p4rt::status::UpdateError;
use p4rt::translate::TranslateError;
use p4rt::translate::cells::index_from_proto;
use p4rt::v1;
use pipeline::{EntryRef, EntryState};

/// A table whose entries a query asks for: one entry, or all (`None`).
#[derive(Clone)]
pub(super) struct Wanted {
    pub(super) id: u32,
    pub(super) position: usize,
    pub(super) entry: Option<EntryRef>,
}

pub(super) fn wanted_tables(
    query: &v1::TableEntry,
    binding: &Binding,
    access: &Access,
) -> Result<Vec<Wanted>, UpdateError> {
    if query.table_id == 0 {
        if !query.r#match.is_empty() {
            let message = "a key needs the table_id of its table";
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
        let message = "the table does not support idle timeouts";
        return Err(UpdateError::new(Code::InvalidArgument, message));
    }
    // Without a key, a priority alone may still restrict the result.
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

/// The tables whose direct counters or meters a query asks for, each for one entry (possibly the default entry) or for all.
pub(super) fn direct_tables(
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

/// The conditions on entries in a read of all entries of a table (P4Runtime 1.4, section 9.1.5).
pub(super) struct Filter {
    priority: i32,
    metadata: Vec<u8>,
    number: u64,
    action: u32,
}

impl Filter {
    pub(super) fn from_query(query: &v1::TableEntry) -> Self {
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

    pub(super) fn passes(&self, state: &EntryState, table: u32, binding: &Binding) -> bool {
        (self.priority == 0 || state.priority == self.priority)
            && (self.metadata.is_empty() || state.note.metadata == self.metadata)
            && (self.number == 0 || state.note.number == self.number)
            && (self.action == 0
                || binding
                    .table(table)
                    .is_ok_and(|table| table.action_id(&state.action) == Some(self.action)))
    }
}

/// Ids and names of the objects that a query selects: the object with this id, or all readable ones if `id` is 0.
pub(super) fn which<T: Object>(
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

/// An array of counters, meters or registers: its id, its name, and the indices of the selected cells.
pub(super) type Array = (u32, String, std::ops::Range<u64>);

pub(super) fn arrays<T: Object>(
    section: &Section<T>,
    id: u32,
    index: Option<v1::Index>,
    size: impl Fn(&T) -> i64,
    access: &Access,
) -> Result<Vec<Array>, UpdateError> {
    if id == 0 && index.is_some() {
        let message = format!("an index needs the id of its {}", T::KIND);
        return Err(UpdateError::new(Code::InvalidArgument, message));
    }
    let mut arrays = Vec::new();
    for (id, name) in which(section, id, access)? {
        let size = section.with_id(id).map_or(0, &size);
        let cell = index_from_proto(&name, index, size)?;
        arrays.push((id, name, Cells::new(cell, size).range()));
    }
    Ok(arrays)
}

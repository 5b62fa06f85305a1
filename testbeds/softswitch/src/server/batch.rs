//! A batch of updates, applied to a program between two frames. No protocol here.

use crate::dataplane::Dataplane;
use p4rt::p4info::Index;
use p4rt::rpc::Code;
use p4rt::status::{UpdateError, UpdateResult};
use p4rt::translate::Item;
use p4rt::v1::update::Type;

/// An update that is well-formed, or the reason why it is not.
pub(super) type Checked = Result<(Type, Item), UpdateError>;

/// Applies each update that can be.
pub(super) fn apply_each(
    program: &mut dyn Dataplane,
    updates: Vec<Checked>,
    index: &Index,
) -> Vec<UpdateResult> {
    let apply =
        |update: Checked| update.and_then(|(kind, item)| apply(program, kind, &item, index));
    updates.into_iter().map(apply).collect()
}

/// Applies all updates or none. If none, the updates that did not fail themselves are `Aborted`.
pub(super) fn apply_all(
    program: &mut dyn Dataplane,
    updates: Vec<Checked>,
    index: &Index,
) -> Vec<UpdateResult> {
    let count = updates.len();
    program.begin();
    for (position, update) in updates.into_iter().enumerate() {
        if let Err(error) = update.and_then(|(kind, item)| apply(program, kind, &item, index)) {
            program.rollback();
            let aborted = UpdateError::new(Code::Aborted, format!("update {position} failed"));
            let mut results = vec![Err(aborted); count];
            results[position] = Err(error);
            return results;
        }
    }
    program.commit();
    vec![Ok(()); count]
}

fn apply(program: &mut dyn Dataplane, kind: Type, item: &Item, index: &Index) -> UpdateResult {
    match (kind, item) {
        (Type::Unspecified, _) => Err(UpdateError::new(
            Code::InvalidArgument,
            "the update's type is not set",
        )),

        (Type::Insert, Item::TableEntry(entry)) => program.insert_entry(entry),
        (Type::Modify, Item::TableEntry(entry)) => program.modify_entry(entry),
        (Type::Delete, Item::TableEntry(entry)) => program.delete_entry(entry),

        (Type::Modify, Item::DefaultAction { table, action }) => {
            program.set_default_action(table, action.as_ref())
        }
        (_, Item::DefaultAction { .. }) => Err(modify_only("a default entry")),

        (_, Item::MulticastGroup(group)) => {
            check_presence(
                kind,
                program.multicast_group(group.id).is_some(),
                "multicast group",
            )?;
            match kind {
                Type::Delete => program.remove_multicast_group(group.id),
                _ => program.set_multicast_group(group),
            }
        }
        (_, Item::CloneSession(session)) => {
            check_presence(
                kind,
                program.clone_session(session.id).is_some(),
                "clone session",
            )?;
            match kind {
                Type::Delete => program.remove_clone_session(session.id),
                _ => program.set_clone_session(session),
            }
        }

        (
            Type::Modify,
            Item::Register {
                name,
                index: cell,
                fields,
            },
        ) => {
            let size = index
                .registers
                .named(name)
                .map_or(0, |register| register.size);
            cells(*cell, size).try_for_each(|cell| program.write_register(name, cell, fields))
        }
        (_, Item::Register { .. }) => Err(modify_only("a register")),

        // Without data a counter stays as it is.
        (Type::Modify, Item::Counter { value: None, .. }) => Ok(()),
        (
            Type::Modify,
            Item::Counter {
                name,
                index: cell,
                value: Some(value),
            },
        ) => {
            let size = index.counters.named(name).map_or(0, |counter| counter.size);
            cells(*cell, size).try_for_each(|cell| program.write_counter(name, cell, *value))
        }
        (_, Item::Counter { .. }) => Err(modify_only("a counter")),
    }
}

/// One cell, or all.
pub(super) fn cells(cell: Option<u64>, size: i64) -> std::ops::Range<u64> {
    match cell {
        Some(cell) => cell..cell.saturating_add(1),
        None => 0..u64::try_from(size).unwrap_or(0),
    }
}

fn check_presence(kind: Type, present: bool, what: &str) -> UpdateResult {
    match (kind, present) {
        (Type::Insert, true) => Err(UpdateError::new(
            Code::AlreadyExists,
            format!("there is such a {what}"),
        )),
        (Type::Modify | Type::Delete, false) => {
            Err(UpdateError::new(Code::NotFound, format!("no such {what}")))
        }
        _ => Ok(()),
    }
}

fn modify_only(what: &str) -> UpdateError {
    UpdateError::new(
        Code::InvalidArgument,
        format!("{what} is always there: it can only be modified"),
    )
}

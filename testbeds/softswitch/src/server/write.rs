//! Write (P4Runtime 1.4, section 12).

use super::batch::{self, Checked};
use super::config::{EntryKey, EntryNote, Notes};
use super::*;
use p4rt::rpc::Code;
use p4rt::status::{self, UpdateError, UpdateResult};
use p4rt::translate::{Item, Part};
use v1::entity::Entity as Kind;
use v1::packet_replication_engine_entry::Type as Replication;
use v1::update::Type;
use v1::write_request::Atomicity;

/// Updates applied between two frames where the batch need not be atomic.
const UPDATES_PER_TURN: usize = 256;

impl Service {
    pub(super) async fn write_batch(&self, request: v1::WriteRequest) -> Result<(), Status> {
        #[allow(deprecated)]
        check_no_role_number(request.role_id)?;
        let check = || {
            self.arbitration()
                .check_write(request.device_id, &request.role, request.election_id)
        };
        check()?;
        let atomicity = Atomicity::try_from(request.atomicity).map_err(|_| {
            Status::invalid_argument(format!("unknown atomicity {}", request.atomicity))
        })?;
        let mut pipelines = self.pipelines.write().await;
        // A takeover may have come while this call waited for the one before it.
        check()?;
        let loaded = pipelines.target_mut().ok_or_else(no_pipeline)?;
        let index = Arc::clone(&loaded.index);
        let checked: Vec<Checked> = request
            .updates
            .iter()
            .map(|update| check_update(update, &index))
            .collect();
        let results = match atomicity {
            Atomicity::ContinueOnError => {
                let mut results = Vec::with_capacity(checked.len());
                let mut checked = checked.into_iter().peekable();
                while checked.peek().is_some() {
                    let turn: Vec<_> = checked.by_ref().take(UPDATES_PER_TURN).collect();
                    let index = Arc::clone(&index);
                    results.extend(
                        self.apply(move |program| batch::apply_each(program, turn, &index))
                            .await?,
                    );
                }
                results
            }
            // One command runs between two frames, so what can be rolled back is atomic as well.
            Atomicity::RollbackOnError | Atomicity::DataplaneAtomic => {
                self.apply(move |program| batch::apply_all(program, checked, &index))
                    .await?
            }
        };
        let index = Arc::clone(&loaded.index);
        for (update, result) in request.updates.iter().zip(&results) {
            if result.is_ok() {
                loaded.notes.take(update, &index);
            }
        }
        status::of_batch(&results).map_or(Ok(()), Err)
    }

    async fn apply(
        &self,
        command: impl FnOnce(&mut dyn crate::dataplane::Dataplane) -> Vec<UpdateResult> + Send + 'static,
    ) -> Result<Vec<UpdateResult>, Status> {
        let results = self
            .driver
            .run(move |core| Some(command(core.target()?)))
            .await
            .map_err(stopped)?;
        results.ok_or_else(no_pipeline)
    }
}

fn check_update(update: &v1::Update, index: &Index) -> Checked {
    let invalid = |message: &str| Err(UpdateError::new(Code::InvalidArgument, message));
    let kind = match update.r#type() {
        Type::Unspecified => return invalid("the update's type is not set"),
        kind => kind,
    };
    let Some(entity) = &update.entity else {
        return invalid("the update has no entity");
    };
    if let Some(Kind::TableEntry(entry)) = &entity.entity {
        check_entry(kind, entry, index)?;
    }
    let part = if kind == Type::Delete {
        Part::Key
    } else {
        Part::Whole
    };
    Ok((kind, Item::from_entity(entity, index, part)?))
}

/// What the data plane never sees of an entry.
fn check_entry(kind: Type, entry: &v1::TableEntry, index: &Index) -> UpdateResult {
    let error = |code, message: &str| Err(UpdateError::new(code, message));
    if entry.is_const {
        return error(Code::InvalidArgument, "is_const is set by the switch");
    }
    let Some(table) = index.tables.with_id(entry.table_id) else {
        return Ok(());
    };
    if table.is_const_table && !entry.is_default_action {
        return error(Code::PermissionDenied, "the table's entries are constant");
    }
    if entry.is_default_action && table.const_default_action_id != 0 && kind == Type::Modify {
        return error(
            Code::PermissionDenied,
            "the table's default action is constant",
        );
    }
    if kind == Type::Delete {
        return Ok(());
    }
    if table.match_fields.is_empty() && !entry.is_default_action {
        return error(
            Code::InvalidArgument,
            "a table without a key has no entries but the default one",
        );
    }
    if entry.idle_timeout_ns != 0 {
        return error(Code::Unimplemented, "idle timeouts: not supported yet");
    }
    if entry.meter_config.is_some()
        || entry.counter_data.is_some()
        || entry.meter_counter_data.is_some()
    {
        return match table.direct_resource_ids.is_empty() {
            true => error(
                Code::InvalidArgument,
                "the table has no direct counter or meter",
            ),
            false => error(
                Code::Unimplemented,
                "direct counters and meters: not supported yet",
            ),
        };
    }
    Ok(())
}

impl Notes {
    /// Remembers, or forgets, what an applied update attaches to its entity.
    fn take(&mut self, update: &v1::Update, index: &Index) {
        let kind = update.r#type();
        let deleted = kind == Type::Delete;
        let Some(entity) = &update.entity else { return };
        match &entity.entity {
            Some(Kind::TableEntry(entry)) => {
                let Ok(item) = Item::from_entity(entity, index, Part::Key) else {
                    return;
                };
                if let Item::DefaultAction { table, .. } = &item {
                    let written = entry.action.is_some();
                    if written {
                        self.defaults.insert(table.clone())
                    } else {
                        self.defaults.remove(table)
                    };
                }
                #[allow(deprecated)]
                let controller_metadata = entry.controller_metadata;
                let reset = entry.is_default_action && entry.action.is_none();
                let note = EntryNote {
                    metadata: entry.metadata.clone(),
                    controller_metadata,
                };
                let Some(key) = EntryKey::of(&item) else {
                    return;
                };
                if deleted || reset || note == EntryNote::default() {
                    self.entries.remove(&key);
                } else {
                    self.entries.insert(key, note);
                }
            }
            Some(Kind::PacketReplicationEngineEntry(entry)) => match &entry.r#type {
                Some(Replication::MulticastGroupEntry(group)) => {
                    let id = group.multicast_group_id;
                    if deleted || group.metadata.is_empty() {
                        self.groups.remove(&id);
                    } else {
                        self.groups.insert(id, group.metadata.clone());
                    }
                    self.note_ports((true, id), deleted, &group.replicas);
                }
                Some(Replication::CloneSessionEntry(session)) => {
                    self.note_ports((false, session.session_id), deleted, &session.replicas);
                }
                None => {}
            },
            _ => {}
        }
    }

    fn note_ports(&mut self, key: (bool, u32), deleted: bool, replicas: &[v1::Replica]) {
        let bytes = |replica: &v1::Replica| {
            matches!(replica.port_kind, Some(v1::replica::PortKind::Port(_)))
        };
        if !deleted && replicas.iter().any(bytes) {
            self.port_bytes.insert(key);
        } else {
            self.port_bytes.remove(&key);
        }
    }
}

impl EntryKey {
    pub(super) fn of(item: &Item) -> Option<Self> {
        match item {
            Item::TableEntry(entry) => Some(Self {
                table: entry.table.clone(),
                key: Some((entry.key.clone(), entry.priority)),
            }),
            Item::DefaultAction { table, .. } => Some(Self {
                table: table.clone(),
                key: None,
            }),
            _ => None,
        }
    }
}

//! Write (P4Runtime 1.4, section 12).

use super::batch::{self, Checked};
use super::config::Notes;
use super::digests;
use super::op::Op;
use super::*;
use p4rt::status::{self, UpdateResult};
use pipeline::Note;
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
        let access = self.arbitration().access(&request.role);
        let loaded = pipelines.target_mut().ok_or_else(no_pipeline)?;
        let check_update = |update: &v1::Update| {
            access.check(update.entity.as_ref())?;
            Op::new(update, &loaded.binding)
        };
        let mut checked: Vec<Checked> = request.updates.iter().map(check_update).collect();
        let mut configs = loaded.digests().configs().clone();
        let has_digests = checked.iter().any(|op| matches!(op, Ok(Op::Digest(..))));
        if has_digests {
            for op in &mut checked {
                if let Ok(Op::Digest(kind, id, config)) = op
                    && let Err(error) = digests::configure(&mut configs, *kind, *id, *config)
                {
                    *op = Err(error);
                }
            }
        }
        let results = match atomicity {
            Atomicity::ContinueOnError => self.apply_each(checked).await?,
            // One command runs between two frames, so what can be rolled back is atomic as well.
            Atomicity::RollbackOnError | Atomicity::DataplaneAtomic => {
                // What is known to fail is not begun.
                match checked.iter().position(Result::is_err) {
                    Some(position) => {
                        let count = checked.len();
                        let Err(error) = checked.swap_remove(position) else {
                            return Err(Status::internal("an error is none"));
                        };
                        batch::aborted(count, position, error)
                    }
                    None => {
                        self.apply(move |now, switch| batch::apply_all(now, switch, checked))
                            .await?
                    }
                }
            }
        };
        let applied = request.updates.iter().zip(&results);
        for (update, _) in applied.filter(|(_, result)| result.is_ok()) {
            loaded.notes.take(update);
        }
        let whole = atomicity == Atomicity::ContinueOnError || results.iter().all(Result::is_ok);
        if has_digests && whole {
            loaded.digests().set_configs(configs);
        }
        status::of_batch(&results).map_or(Ok(()), Err)
    }

    async fn apply_each(&self, checked: Vec<Checked>) -> Result<Vec<UpdateResult>, Status> {
        let mut results = Vec::with_capacity(checked.len());
        let mut checked = checked.into_iter().peekable();
        while checked.peek().is_some() {
            let turn: Vec<_> = checked.by_ref().take(UPDATES_PER_TURN).collect();
            let applied = self.apply(move |now, switch| batch::apply_each(now, switch, turn));
            results.extend(applied.await?);
        }
        Ok(results)
    }

    async fn apply(
        &self,
        command: impl FnOnce(u64, &mut pipeline::Switch) -> Vec<UpdateResult> + Send + 'static,
    ) -> Result<Vec<UpdateResult>, Status> {
        self.control(command).await
    }
}

impl Notes {
    /// Remembers, or forgets, what an applied update attaches to its entity.
    fn take(&mut self, update: &v1::Update) {
        let deleted = update.r#type() == Type::Delete;
        let entity = update.entity.as_ref().and_then(|e| e.entity.as_ref());
        match entity {
            Some(Kind::TableEntry(entry)) if entry.is_default_action => {
                let note = Note {
                    metadata: entry.metadata.clone(),
                    #[allow(deprecated)]
                    number: entry.controller_metadata,
                };
                if entry.action.is_none() || note == Note::default() {
                    self.defaults.remove(&entry.table_id);
                } else {
                    self.defaults.insert(entry.table_id, note);
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

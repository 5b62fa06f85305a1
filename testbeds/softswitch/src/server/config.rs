//! SetForwardingPipelineConfig and GetForwardingPipelineConfig (P4Runtime 1.4, sections 14 and 15).

use super::*;
use crate::dataplane::Dataplane;
use p4lang::p4info::{P4Info, Preamble};
use p4rt::p4info::{DecodeError, from_proto, to_proto};
use p4rt::status::UpdateError;
use std::collections::{BTreeMap, BTreeSet};
use v1::get_forwarding_pipeline_config_request::ResponseType;
use v1::set_forwarding_pipeline_config_request::Action;

/// The running program and one that waits for COMMIT. Reads and writes go to the latter if there is one: committing it
/// then is what the specification calls replaying.
#[derive(Default)]
pub(super) struct Pipelines {
    pub(super) committed: Option<Loaded>,
    pub(super) saved: Option<Loaded>,
}

/// What the server remembers of a program, beside what runs in the driver.
pub(super) struct Loaded {
    pub(super) index: Arc<Index>,
    config: v1::ForwardingPipelineConfig,
    pub(super) notes: Notes,
}

/// What clients attached to entities and the data plane does not keep.
#[derive(Debug, Default)]
pub(super) struct Notes {
    /// By entry: table, key, priority.
    pub(super) entries: BTreeMap<EntryKey, EntryNote>,
    /// By group.
    pub(super) groups: BTreeMap<u32, Vec<u8>>,
    /// Groups and sessions whose ports were written as byte strings, and are read so.
    pub(super) port_bytes: BTreeSet<(bool, u32)>,
    /// Tables whose default action the control plane has written.
    pub(super) defaults: BTreeSet<String>,
}

/// Identifies an entry; the default entry has no key.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct EntryKey {
    pub(super) table: String,
    pub(super) key: Option<(Vec<p4lang::runtime::FieldMatch>, i32)>,
}

/// Handed back on Read as written.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct EntryNote {
    pub(super) metadata: Vec<u8>,
    pub(super) controller_metadata: u64,
}

impl Pipelines {
    /// What reads and writes refer to.
    pub(super) fn target(&self) -> Option<&Loaded> {
        self.saved.as_ref().or(self.committed.as_ref())
    }

    pub(super) fn target_mut(&mut self) -> Option<&mut Loaded> {
        self.saved.as_mut().or(self.committed.as_mut())
    }
}

impl Loaded {
    /// A program that no client has sent.
    pub(super) fn of_program(
        program: &Program,
        device_config: Vec<u8>,
    ) -> Result<Self, DecodeError> {
        let config = v1::ForwardingPipelineConfig {
            p4info: Some(to_proto(&program.p4info)),
            p4_device_config: device_config,
            cookie: None,
        };
        Ok(Self {
            index: Arc::new(Index::new(program.p4info.clone())?),
            config,
            notes: Notes::default(),
        })
    }
}

impl Service {
    pub(super) async fn set_config(
        &self,
        request: v1::SetForwardingPipelineConfigRequest,
    ) -> Result<(), Status> {
        #[allow(deprecated)]
        check_no_role_number(request.role_id)?;
        let check = || {
            self.arbitration()
                .check_write(request.device_id, &request.role, request.election_id)
        };
        check()?;
        let action = Action::try_from(request.action).unwrap_or(Action::Unspecified);
        if action == Action::Unspecified {
            return Err(Status::invalid_argument(format!(
                "unknown action {}",
                request.action
            )));
        }
        if action == Action::Commit {
            if request.config.is_some() {
                return Err(Status::invalid_argument(
                    "COMMIT takes no config: it commits the saved one",
                ));
            }
            let mut pipelines = self.pipelines.write().await;
            check()?;
            let saved = pipelines
                .saved
                .take()
                .ok_or_else(|| Status::not_found("no saved config"))?;
            self.driver
                .run(|core| core.commit())
                .await
                .map_err(stopped)?;
            pipelines.committed = Some(saved);
            return Ok(());
        }
        let config = request
            .config
            .ok_or_else(|| Status::invalid_argument("no config is provided"))?;
        let (mut loaded, dataplane) = self.verify(config).await?;
        let mut pipelines = self.pipelines.write().await;
        check()?;
        match action {
            Action::VerifyAndSave => {
                self.driver
                    .run(|core| core.save(dataplane))
                    .await
                    .map_err(stopped)?;
                pipelines.saved = Some(loaded);
            }
            Action::VerifyAndCommit => {
                let swap = |core: &mut driver::Core| {
                    core.save(dataplane);
                    core.commit();
                };
                self.driver.run(swap).await.map_err(stopped)?;
                *pipelines = Pipelines {
                    committed: Some(loaded),
                    saved: None,
                };
            }
            Action::ReconcileAndCommit => {
                if let Some(old) = pipelines.target_mut() {
                    let (from, to) = (Arc::clone(&old.index), Arc::clone(&loaded.index));
                    let defaults = old.notes.defaults.clone();
                    let reconcile = move |core: &mut driver::Core| {
                        let mut dataplane = dataplane;
                        if let Some(running) = core.target() {
                            carry_over(running, dataplane.as_mut(), &from, &to, &defaults)?;
                        }
                        core.save(dataplane);
                        core.commit();
                        Ok::<_, UpdateError>(())
                    };
                    let reconciled = self.driver.run(reconcile).await.map_err(stopped)?;
                    reconciled.map_err(|error| {
                        Status::invalid_argument(format!(
                            "the forwarding state cannot be kept: {error}"
                        ))
                    })?;
                    loaded.notes = std::mem::take(&mut old.notes);
                } else {
                    let swap = |core: &mut driver::Core| {
                        core.save(dataplane);
                        core.commit();
                    };
                    self.driver.run(swap).await.map_err(stopped)?;
                }
                *pipelines = Pipelines {
                    committed: Some(loaded),
                    saved: None,
                };
            }
            Action::Verify | Action::Commit | Action::Unspecified => {}
        }
        Ok(())
    }

    /// Compiles a config, away from the threads that answer calls.
    async fn verify(
        &self,
        config: v1::ForwardingPipelineConfig,
    ) -> Result<(Loaded, Box<dyn Dataplane>), Status> {
        let p4info = config
            .p4info
            .as_ref()
            .ok_or_else(|| Status::invalid_argument("the config has no P4Info"))?;
        let given = from_proto(p4info)
            .map_err(|error| Status::invalid_argument(format!("P4Info: {error}")))?;
        let (loader, device_config) = (Arc::clone(&self.loader), config.p4_device_config.clone());
        let loaded = tokio::task::spawn_blocking(move || loader.load(&device_config)).await;
        let program = loaded
            .map_err(|error| Status::internal(format!("the compiler failed: {error}")))?
            .map_err(|error| Status::invalid_argument(error.to_string()))?;
        check_same_program(&given, &program.p4info).map_err(Status::invalid_argument)?;
        let index = Index::new(given)
            .map_err(|error| Status::invalid_argument(format!("P4Info: {error}")))?;
        let loaded = Loaded {
            index: Arc::new(index),
            config,
            notes: Notes::default(),
        };
        Ok((loaded, program.dataplane))
    }

    pub(super) async fn get_config(
        &self,
        request: &v1::GetForwardingPipelineConfigRequest,
    ) -> Result<Option<v1::ForwardingPipelineConfig>, Status> {
        self.arbitration().check_device(request.device_id)?;
        let kind = ResponseType::try_from(request.response_type).map_err(|_| {
            Status::invalid_argument(format!("unknown response type {}", request.response_type))
        })?;
        let pipelines = self.pipelines.read().await;
        let Some(Loaded { config, .. }) = pipelines.target() else {
            return Ok(None);
        };
        let (with_p4info, with_device_config) = match kind {
            ResponseType::All => (true, true),
            ResponseType::CookieOnly => (false, false),
            ResponseType::P4infoAndCookie => (true, false),
            ResponseType::DeviceConfigAndCookie => (false, true),
        };
        Ok(Some(v1::ForwardingPipelineConfig {
            p4info: config.p4info.clone().filter(|_| with_p4info),
            p4_device_config: if with_device_config {
                config.p4_device_config.clone()
            } else {
                Vec::new()
            },
            cookie: config.cookie,
        }))
    }
}

/// The client's P4Info has to describe the program that its device config holds: the same objects, ids and widths.
/// Annotations, documentation and order are free.
fn check_same_program(given: &P4Info, compiled: &P4Info) -> Result<(), String> {
    fn widths<'a>(fields: impl Iterator<Item = (u32, &'a str, u32)>) -> String {
        fields
            .map(|(id, name, bitwidth)| format!("{id} {name}:{bitwidth} "))
            .collect()
    }
    fn facts(info: &P4Info) -> BTreeMap<(&'static str, String), (u32, String)> {
        let tables = info.tables.iter().map(|t| {
            let key = t
                .match_fields
                .iter()
                .map(|f| (f.id, f.name.as_str(), f.bitwidth));
            ("table", &t.preamble, widths(key))
        });
        let actions = info.actions.iter().map(|a| {
            let params = a.params.iter().map(|p| (p.id, p.name.as_str(), p.bitwidth));
            ("action", &a.preamble, widths(params))
        });
        let registers = info.registers.iter().map(|r| {
            let fields = r.element.iter().map(|f| (0, f.name.as_str(), f.bitwidth));
            (
                "register",
                &r.preamble,
                format!("{}[{}]", widths(fields), r.size),
            )
        });
        let counters = info
            .counters
            .iter()
            .map(|c| ("counter", &c.preamble, format!("[{}]", c.size)));
        let headers = info.controller_packet_metadata.iter().map(|h| {
            let fields = h
                .metadata
                .iter()
                .map(|f| (f.id, f.name.as_str(), f.bitwidth));
            ("controller header", &h.preamble, widths(fields))
        });
        let all: Vec<(&'static str, &Preamble, String)> = tables
            .chain(actions)
            .chain(registers)
            .chain(counters)
            .chain(headers)
            .collect();
        all.into_iter()
            .map(|(kind, p, shape)| ((kind, p.name.clone()), (p.id, shape)))
            .collect()
    }
    let (given, compiled) = (facts(given), facts(compiled));
    for ((kind, name), theirs) in &given {
        match compiled.get(&(*kind, name.clone())) {
            None => {
                return Err(format!(
                    "the P4Info has {kind} `{name}`, the program has not"
                ));
            }
            Some(ours) if ours != theirs => {
                return Err(format!(
                    "{kind} `{name}` is {:#010x} {} in the P4Info and {:#010x} {} in the program",
                    theirs.0, theirs.1, ours.0, ours.1
                ));
            }
            Some(_) => {}
        }
    }
    match compiled.keys().find(|key| !given.contains_key(*key)) {
        Some((kind, name)) => Err(format!(
            "the program has {kind} `{name}`, the P4Info has not"
        )),
        None => Ok(()),
    }
}

/// Copies the forwarding state of one program into another: entries, written default actions, groups, sessions, and the
/// cells of registers and counters of the same name.
fn carry_over(
    from: &dyn Dataplane,
    to: &mut dyn Dataplane,
    old: &Index,
    new: &Index,
    defaults: &BTreeSet<String>,
) -> Result<(), UpdateError> {
    use p4rt::rpc::Code;
    for table in old.tables.iter().filter(|table| !table.is_const_table) {
        let name = &table.preamble.name;
        let entries = from.entries(name);
        if new.tables.named(name).is_none() && !entries.is_empty() {
            return Err(UpdateError::new(
                Code::NotFound,
                format!("table {name} is gone"),
            ));
        }
        for entry in &entries {
            match to.insert_entry(entry) {
                // Written in the new program's source.
                Err(error) if error.code == Code::AlreadyExists => to.modify_entry(entry)?,
                result => result?,
            }
        }
        if defaults.contains(name) {
            to.set_default_action(name, from.default_action(name).as_ref())?;
        }
    }
    from.multicast_groups()
        .iter()
        .try_for_each(|group| to.set_multicast_group(group))?;
    from.clone_sessions()
        .iter()
        .try_for_each(|session| to.set_clone_session(session))?;
    for register in old.registers.iter() {
        let name = &register.preamble.name;
        if new
            .registers
            .named(name)
            .is_some_and(|r| r.size == register.size && r.element == register.element)
        {
            for cell in 0..u64::try_from(register.size).unwrap_or(0) {
                to.write_register(name, cell, &from.read_register(name, cell)?)?;
            }
        }
    }
    for counter in old.counters.iter() {
        let name = &counter.preamble.name;
        if new
            .counters
            .named(name)
            .is_some_and(|c| c.size == counter.size)
        {
            for cell in 0..u64::try_from(counter.size).unwrap_or(0) {
                to.write_counter(name, cell, from.read_counter(name, cell)?)?;
            }
        }
    }
    Ok(())
}

//! The calls SetForwardingPipelineConfig and GetForwardingPipelineConfig (P4Runtime 1.4, sections 14 and 15).

use super::binding::Binding;
use super::digests::{Configs, Digests};
use super::*;
use crate::dataplane::Dataplane;
use p4lang::p4info::{DataType, ElementField, P4Info, Preamble};
use p4rt::p4info::{DecodeError, Index, from_proto, to_proto};
use p4rt::translate::data::describe;
use v1::get_forwarding_pipeline_config_request::ResponseType;
use v1::set_forwarding_pipeline_config_request::Action;

/// The running program, and a saved one that waits for COMMIT. Reads and writes go to the saved program if there is one. So its
/// commit has the effect that the specification calls replaying the writes.
#[derive(Default)]
pub(super) struct Pipelines {
    pub(super) committed: Option<Loaded>,
    pub(super) saved: Option<Loaded>,
}

/// The server's record of a program that the packet loop has: P4Info, device config and digests.
pub(super) struct Loaded {
    pub(super) binding: Arc<Binding>,
    config: v1::ForwardingPipelineConfig,
    digests: Mutex<Digests>,
}

impl Pipelines {
    /// The program that reads and writes refer to: the saved one if there is one, else the running one; `None`: no program.
    pub(super) fn target(&self) -> Option<&Loaded> {
        self.saved.as_ref().or(self.committed.as_ref())
    }
}

impl Loaded {
    /// Creates the record of a program that the switch runs from the start, which no client sent.
    pub(super) fn of_program(
        program: &Program,
        device_config: Vec<u8>,
        sdn: Sdn,
    ) -> Result<Self, DecodeError> {
        let config = v1::ForwardingPipelineConfig {
            p4info: Some(to_proto(&program.p4info)),
            p4_device_config: device_config,
            cookie: None,
        };
        let index = Index::new(program.p4info.clone())?;
        Ok(Self::new(index, &program.dataplane, config, sdn))
    }

    fn new(
        index: Index,
        dataplane: &Dataplane,
        config: v1::ForwardingPipelineConfig,
        sdn: Sdn,
    ) -> Self {
        Self {
            binding: Arc::new(Binding::new(index, dataplane.switch(), sdn)),
            config,
            digests: Mutex::default(),
        }
    }

    pub(super) fn digests(&self) -> MutexGuard<'_, Digests> {
        self.digests.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Matches the old program's digest configuration to this program by name, and returns it with this program's ids.
    /// The error is the name of a digest that this program lacks.
    fn digests_of(&self, old: &Loaded) -> Result<Configs, String> {
        let mut kept = Configs::new();
        for (id, config) in old.digests().configs() {
            let Some(digest) = old.binding.index.digests.with_id(*id) else {
                continue;
            };
            let name = &digest.preamble.name;
            let here = self.binding.index.digests.named(name);
            let here = here.ok_or_else(|| name.clone())?;
            kept.insert(here.preamble.id, *config);
        }
        Ok(kept)
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
        self.arbitration().check_push(&request.role)?;
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
                    "COMMIT commits the saved config; send it without a config",
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
        let (loaded, dataplane) = self.verify(config).await?;
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
                let refused = |error: String| {
                    Status::invalid_argument(format!(
                        "the forwarding state cannot be kept: {error}"
                    ))
                };
                // From the running program, even if another one is saved, which is then discarded.
                let old = pipelines.committed.as_ref();
                let kept = old.map(|old| loaded.digests_of(old));
                let kept = kept.transpose();
                let kept = kept.map_err(|name| refused(format!("there is no digest {name}")))?;
                let reconcile = |core: &mut driver::Core| core.reconcile(dataplane);
                let reconciled = self.driver.run(reconcile).await.map_err(stopped)?;
                reconciled.map_err(|error| refused(error.to_string()))?;
                loaded.digests().set_configs(kept.unwrap_or_default());
                *pipelines = Pipelines {
                    committed: Some(loaded),
                    saved: None,
                };
            }
            Action::Verify | Action::Commit | Action::Unspecified => {}
        }
        Ok(())
    }

    /// Compiles the device config of a request, on a thread that answers no calls.
    async fn verify(
        &self,
        config: v1::ForwardingPipelineConfig,
    ) -> Result<(Loaded, Dataplane), Status> {
        let p4info = config
            .p4info
            .as_ref()
            .ok_or_else(|| Status::invalid_argument("the config has no P4Info"))?;
        let given = from_proto(p4info)
            .map_err(|error| errors::invalid_argument(&format!("P4Info: {error}")))?;
        let (loader, device_config) = (Arc::clone(&self.loader), config.p4_device_config.clone());
        let loaded = tokio::task::spawn_blocking(move || loader.load(&device_config)).await;
        let program = loaded
            .map_err(|error| Status::internal(format!("the compiler failed: {error}")))?
            .map_err(|error| errors::invalid_argument(&error.to_string()))?;
        check_same_program(&given, &program.p4info)
            .map_err(|error| errors::invalid_argument(&error))?;
        let index = Index::new(given)
            .map_err(|error| errors::invalid_argument(&format!("P4Info: {error}")))?;
        let dataplane = program.dataplane;
        let loaded = Loaded::new(index, &dataplane, config, self.sdn.clone());
        Ok((loaded, dataplane))
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

/// Checks that the client's P4Info describes the program in its device config: the same objects, ids and widths.
/// Annotations, documentation and order may differ.
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
        let element = |ty: &Option<DataType>, element: &[ElementField]| match ty {
            Some(ty) => describe(ty, &info.types),
            None => widths(element.iter().map(|f| (0, f.name.as_str(), f.bitwidth))),
        };
        let registers = info.registers.iter().map(|r| {
            let shape = format!("{}[{}]", element(&r.data_type, &r.element), r.size);
            ("register", &r.preamble, shape)
        });
        let digests = info.digests.iter();
        let digests = digests.map(|d| ("digest", &d.preamble, element(&d.data_type, &d.element)));
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
            .chain(digests)
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
                    "the P4Info has {kind} `{name}`, the program does not"
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
            "the program has {kind} `{name}`, the P4Info does not"
        )),
        None => Ok(()),
    }
}

//! P4Runtime calls, as raw bytes and as valid messages: the server must not panic, must not keep half of a batch, and
//! must read back what it accepted. Shared by the fuzz target and by the test that replays the corpus.

mod entities;
mod normal;

use arbitrary::{Result, Unstructured};
use p4lang::Compiled;
use p4rt::p4info::to_proto;
use p4rt::{status, v1};
use prost::Message as _;
use softswitch::p4::P4Loader;
use softswitch::server::{Config, Local};
use std::sync::{Arc, OnceLock};
use v1::set_forwarding_pipeline_config_request::Action;
use v1::update::Type;
use v1::write_request::Atomicity;

const DEVICE: u64 = 7;
const CPU_PORT: u32 = 510;
const PRIMARY: v1::Uint128 = v1::Uint128 { high: 0, low: 1 };
/// Maximum number of calls per input.
const CALLS: usize = 24;
/// Maximum number of configs per input: each is compiled.
const CONFIGS: usize = 2;
const PROGRAM: &str = include_str!("../../tests/support/everything.p4");

/// Panics if the server violates a guarantee on this input.
pub fn run(data: &[u8]) {
    let runtime = tokio::runtime::Builder::new_current_thread().build();
    let runtime = runtime.expect("a runtime");
    let whole = runtime.block_on(async {
        let client = Client::new().await;
        let mut input = Unstructured::new(data);
        // The end of the input is not an error.
        let _ended = client.drive(&mut input).await;
        client.server.stop().await
    });
    assert!(whole, "the packet loop panicked");
}

fn compiled() -> &'static Compiled {
    static COMPILED: OnceLock<Compiled> = OnceLock::new();
    COMPILED.get_or_init(|| {
        let files = p4lang::Files::new().with("device config", PROGRAM);
        match p4lang::compile(&files, "device config", &p4lang::Options::default()) {
            Ok(compiled) => compiled,
            Err(errors) => panic!("{errors}"),
        }
    })
}

struct Client {
    server: Local,
    p4info: p4rt::config::P4Info,
}

impl Client {
    async fn new() -> Client {
        let loader = P4Loader {
            config: pipeline::Config {
                cpu_port: CPU_PORT,
                ..pipeline::Config::default()
            },
            ..P4Loader::default()
        };
        let program = match loader.program(compiled().clone()) {
            Ok(program) => program,
            Err(error) => panic!("{error}"),
        };
        let p4info = to_proto(&program.p4info);
        let config = Config {
            device_id: DEVICE,
            loader: Arc::new(loader),
            program: Some((program, PROGRAM.as_bytes().to_vec())),
            port_names: vec![("one".to_owned(), 1), ("two".to_owned(), 2)],
        };
        let server = match Local::start(config, CPU_PORT, 1).await {
            Ok(server) => server,
            Err(error) => panic!("{error}"),
        };
        Client { server, p4info }
    }

    async fn drive(&self, input: &mut Unstructured<'_>) -> Result<()> {
        let mut configs = 0;
        for _ in 0..CALLS {
            if input.is_empty() {
                break;
            }
            match input.int_in_range(0..=9u8)? {
                0 => {
                    if let Ok(mut request) = v1::WriteRequest::decode(raw(input)?) {
                        if input.arbitrary()? {
                            (request.device_id, request.election_id) = (DEVICE, Some(PRIMARY));
                        }
                        self.write(request).await;
                    }
                }
                1 => {
                    if let Ok(mut request) = v1::ReadRequest::decode(raw(input)?) {
                        if input.arbitrary()? {
                            request.device_id = DEVICE;
                        }
                        alive(self.server.read(request).await.err());
                    }
                }
                2 if configs < CONFIGS => {
                    configs += 1;
                    self.set_config(input).await?;
                }
                3 => {
                    let entities = (0..input.int_in_range(0..=4u8)?)
                        .map(|_| entities::query(&self.p4info, input))
                        .collect::<Result<_>>()?;
                    let request = v1::ReadRequest {
                        device_id: DEVICE,
                        entities,
                        ..v1::ReadRequest::default()
                    };
                    alive(self.server.read(request).await.err());
                }
                _ => {
                    let request = self.batch(input)?;
                    self.write(request).await;
                }
            }
        }
        Ok(())
    }

    fn batch(&self, input: &mut Unstructured<'_>) -> Result<v1::WriteRequest> {
        let atomicity = *input.choose(&[
            Atomicity::ContinueOnError,
            Atomicity::RollbackOnError,
            Atomicity::DataplaneAtomic,
        ])?;
        let updates = (0..input.int_in_range(0..=8u8)?)
            .map(|_| {
                let kind = match input.int_in_range(0..=15u8)? {
                    0 => Type::Unspecified,
                    1..=9 => Type::Insert,
                    10..=13 => Type::Modify,
                    _ => Type::Delete,
                };
                Ok(v1::Update {
                    r#type: kind.into(),
                    entity: Some(entities::entity(&self.p4info, input)?),
                })
            })
            .collect::<Result<_>>()?;
        Ok(v1::WriteRequest {
            device_id: DEVICE,
            election_id: Some(PRIMARY),
            updates,
            atomicity: atomicity.into(),
            ..v1::WriteRequest::default()
        })
    }

    /// Writes, and compares the state afterwards with the state before.
    async fn write(&self, request: v1::WriteRequest) {
        let whole = request.atomicity != i32::from(Atomicity::ContinueOnError);
        let before = self.everything().await;
        let answer = self.server.write(request.clone()).await;
        let results = match &answer {
            Ok(()) => vec![Ok(()); request.updates.len()],
            Err(error) => {
                alive(Some(error.clone()));
                match status::results(error, request.updates.len()) {
                    Some(results) => results,
                    // The server refused the call as a whole.
                    None => {
                        assert_eq!(before, self.everything().await, "{error}\n{request:#?}");
                        return;
                    }
                }
            }
        };
        let after = self.everything().await;
        if whole && answer.is_err() {
            assert!(results.iter().all(|r| r.is_err()), "{request:#?}");
            assert_eq!(before, after, "half a batch was kept: {request:#?}");
        }
        if results.iter().all(|r| r.is_err()) {
            assert_eq!(before, after, "{results:?}\n{request:#?}");
        }
        self.reads_back(&request, &results, &after).await;
    }

    /// Checks that accepted updates that were not changed later in the batch can be read.
    async fn reads_back(
        &self,
        request: &v1::WriteRequest,
        results: &[status::UpdateResult],
        after: &[v1::Entity],
    ) {
        let mut settled: Vec<Vec<u8>> = Vec::new();
        for (update, result) in request.updates.iter().zip(results).rev() {
            let Some(entity) = &update.entity else {
                continue;
            };
            let Some((key, wanted)) = normal::form(entity) else {
                continue;
            };
            if settled.contains(&key) || result.is_err() {
                continue;
            }
            let found = after
                .iter()
                .filter_map(normal::form)
                .find(|(found, _)| *found == key);
            match update.r#type() {
                Type::Delete => assert!(found.is_none(), "is still there: {entity:#?}"),
                _ => assert_eq!(
                    found.map(|(_, found)| found),
                    Some(wanted),
                    "{request:#?}\n{results:?}"
                ),
            }
            settled.push(key);
        }
    }

    /// Reads all entities.
    async fn everything(&self) -> Vec<v1::Entity> {
        let request = v1::ReadRequest {
            device_id: DEVICE,
            entities: entities::all(),
            ..v1::ReadRequest::default()
        };
        match self.server.read(request).await {
            Ok(entities) => entities,
            Err(error) => panic!("cannot read: {error:?}"),
        }
    }

    /// Sets a random config; afterwards restores the program.
    async fn set_config(&self, input: &mut Unstructured<'_>) -> Result<()> {
        let before = self.everything().await;
        let action = input.int_in_range(0..=7i32)?;
        let mut p4info = self.p4info.encode_to_vec();
        let mut text = PROGRAM.as_bytes().to_vec();
        for _ in 0..input.int_in_range(0..=3u8)? {
            let which = match input.arbitrary()? {
                true => &mut p4info,
                false => &mut text,
            };
            let at = input.choose_index(which.len().max(1))?;
            match input.int_in_range(0..=3u8)? {
                0 => which.truncate(at),
                1 => which.insert(at, input.arbitrary()?),
                2 => drop(which.remove(at)),
                _ => which[at] = input.arbitrary()?,
            }
            if which.is_empty() {
                which.push(0);
            }
        }
        let config = v1::ForwardingPipelineConfig {
            p4info: p4rt::config::P4Info::decode(&*p4info).ok(),
            p4_device_config: text,
            cookie: None,
        };
        let request = v1::SetForwardingPipelineConfigRequest {
            device_id: DEVICE,
            election_id: Some(PRIMARY),
            action,
            config: input.ratio(7, 8)?.then_some(config),
            ..v1::SetForwardingPipelineConfigRequest::default()
        };
        let set = self.server.set_config(request).await;
        if set.is_err() || action == i32::from(Action::Verify) {
            alive(set.err());
            assert_eq!(before, self.everything().await);
            return Ok(());
        }
        let request = v1::GetForwardingPipelineConfigRequest {
            device_id: DEVICE,
            ..v1::GetForwardingPipelineConfigRequest::default()
        };
        match self.server.config(&request).await {
            Ok(config) => assert!(config.is_some()),
            Err(error) => panic!("{error:?}"),
        }
        let original = v1::SetForwardingPipelineConfigRequest {
            device_id: DEVICE,
            election_id: Some(PRIMARY),
            action: Action::VerifyAndCommit.into(),
            config: Some(v1::ForwardingPipelineConfig {
                p4info: Some(self.p4info.clone()),
                p4_device_config: PROGRAM.as_bytes().to_vec(),
                cookie: None,
            }),
            ..v1::SetForwardingPipelineConfigRequest::default()
        };
        if let Err(error) = self.server.set_config(original).await {
            panic!("{error:?}");
        }
        Ok(())
    }
}

fn raw<'a>(input: &mut Unstructured<'a>) -> Result<&'a [u8]> {
    let length = usize::from(input.arbitrary::<u8>()?).min(input.len());
    input.bytes(length)
}

/// Accepts any error except those that report a broken server.
fn alive(error: Option<tonic::Status>) {
    if let Some(error) = error {
        let broken = [tonic::Code::Internal, tonic::Code::Unavailable];
        assert!(!broken.contains(&error.code()), "{error:?}");
    }
}

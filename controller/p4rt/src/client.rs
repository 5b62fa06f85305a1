//! A thin asynchronous P4Runtime client for one switch: arbitration, pipeline, write batches, reads, the message stream.
//!
//! Its functions take names ([`Item`]) and translate them to ids with the P4Info of the pipeline that it set or fetched.

mod error;
mod query;
mod stream;

pub use error::ClientError;
pub use query::Query;
pub use stream::{Event, Events};

use crate::config;
use crate::p4info::Index;
use crate::status::{self, UpdateResult};
use crate::translate::cells::Element;
use crate::translate::data::NoNames;
use crate::translate::{Item, Part, TranslateError, packet_metadata};
use crate::v1;
use crate::v1::p4_runtime_client::P4RuntimeClient;
use p4lang::p4info::{ControllerPacketMetadata, Digest};
use p4lang::runtime::{TableEntry, Value};
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep, timeout_at};
use tonic::transport::{Channel, Endpoint};
pub use v1::set_forwarding_pipeline_config_request::Action as PipelineAction;
pub use v1::update::Type as UpdateType;
pub use v1::write_request::Atomicity;

type Result<T> = std::result::Result<T, ClientError>;

/// Maximum bytes of gRPC metadata that the client accepts: the errors of a large write batch exceed the default (section 12.3).
const METADATA_LIMIT: u32 = 1 << 20;
/// Maximum size of a gRPC message in bytes: programs and read responses may exceed tonic's default of 4 MiB.
const MESSAGE_LIMIT: usize = 64 << 20;
/// Interval between two attempts to connect to the switch.
const RETRY: Duration = Duration::from_millis(20);
/// Maximum number of stream messages that wait to be sent to the switch.
const STREAM_BACKLOG: usize = 256;

/// A P4Runtime client with a connection to one switch.
#[derive(Debug, Clone)]
pub struct Client {
    grpc: P4RuntimeClient<Channel>,
    address: String,
    device_id: u64,
    timeout: Duration,
    election_id: u128,
    requests: Option<mpsc::Sender<v1::StreamMessageRequest>>,
    index: Option<Arc<Index>>,
}

impl Client {
    /// Connects to the switch at `host:port`, and retries until `timeout` has passed: the switch may still be starting. Each
    /// later call also waits at most `timeout` for its answer.
    pub async fn connect(address: &str, device_id: u64, timeout: Duration) -> Result<Self> {
        let endpoint = Endpoint::from_shared(format!("http://{address}"))
            .map_err(|_| ClientError::Address {
                address: address.to_owned(),
            })?
            .http2_max_header_list_size(METADATA_LIMIT);
        let channel = retried(timeout, || endpoint.connect())
            .await
            .map_err(|last| match last {
                Some(error) => ClientError::Unreachable {
                    address: address.to_owned(),
                    waited: timeout,
                    reason: root_cause(&error),
                },
                None => ClientError::NoAnswer {
                    address: address.to_owned(),
                    waited: timeout,
                },
            })?;
        Ok(Self {
            grpc: P4RuntimeClient::new(channel).max_decoding_message_size(MESSAGE_LIMIT),
            address: address.to_owned(),
            device_id,
            timeout,
            election_id: 0,
            requests: None,
            index: None,
        })
    }

    /// Opens another connection to the switch, so that a slow call over this connection does not delay calls over the new one.
    ///
    /// The new client has no message stream. It uses this client's election id, so it can write only while this client is
    /// primary. It knows the names of the program that this client knows now.
    pub async fn connect_beside(&self) -> Result<Self> {
        let beside = Self::connect(&self.address, self.device_id, self.timeout).await?;
        Ok(Self {
            election_id: self.election_id,
            index: self.index.clone(),
            ..beside
        })
    }

    /// Opens the message stream and requests to be primary. Returns an error if another client has a higher election id.
    ///
    /// This client is primary as long as it, or a clone of it, lives.
    pub async fn become_primary(&mut self, election_id: u128) -> Result<Events> {
        let (requests, outgoing) = mpsc::channel(STREAM_BACKLOG);
        let arbitration = v1::MasterArbitrationUpdate {
            device_id: self.device_id,
            election_id: Some(uint128(election_id)),
            ..Default::default()
        };
        let request = v1::StreamMessageRequest {
            update: Some(v1::stream_message_request::Update::Arbitration(arbitration)),
        };
        // Queued before the call: some servers answer the call only when they have a message to send.
        let queued = requests.try_send(request);
        debug_assert!(queued.is_ok(), "the channel is new");
        let outgoing = tokio_stream::wrappers::ReceiverStream::new(outgoing);
        let mut grpc = self.grpc.clone();
        let response = self.answer(grpc.stream_channel(outgoing)).await?;
        let mut events = Events::new(response.into_inner(), self.address.clone());
        let first = tokio::time::timeout(self.timeout, events.next())
            .await
            .map_err(|_| ClientError::NoAnswer {
                address: self.address.clone(),
                waited: self.timeout,
            })?;
        match first? {
            Some(Event::Arbitration { primary: true, .. }) => {
                self.election_id = election_id;
                self.requests = Some(requests);
                Ok(events)
            }
            Some(Event::Arbitration {
                election_id: highest,
                ..
            }) => Err(ClientError::NotPrimary {
                address: self.address.clone(),
                election_id,
                highest,
            }),
            _ => Err(ClientError::StreamClosed {
                address: self.address.clone(),
            }),
        }
    }

    /// Loads a program into the switch, and stores the names and ids of the program's objects.
    pub async fn set_pipeline(
        &mut self,
        action: PipelineAction,
        p4info: config::P4Info,
        device_config: Vec<u8>,
        cookie: u64,
    ) -> Result<()> {
        let index = Index::from_proto(&p4info)?;
        let request = v1::SetForwardingPipelineConfigRequest {
            device_id: self.device_id,
            election_id: Some(uint128(self.election_id)),
            action: action.into(),
            config: (action != PipelineAction::Commit).then_some(v1::ForwardingPipelineConfig {
                p4info: Some(p4info),
                p4_device_config: device_config,
                cookie: Some(v1::forwarding_pipeline_config::Cookie { cookie }),
            }),
            ..Default::default()
        };
        let mut grpc = self.grpc.clone();
        self.answer(grpc.set_forwarding_pipeline_config(request))
            .await?;
        if action != PipelineAction::Verify {
            self.index = Some(Arc::new(index));
        }
        Ok(())
    }

    /// Fetches the program that the switch has loaded, and stores the names and ids of its objects.
    pub async fn fetch_pipeline(&mut self) -> Result<v1::ForwardingPipelineConfig> {
        let request = v1::GetForwardingPipelineConfigRequest {
            device_id: self.device_id,
            response_type: 0,
        };
        let mut grpc = self.grpc.clone();
        let response = self
            .answer(grpc.get_forwarding_pipeline_config(request))
            .await?;
        let config = response.into_inner().config.unwrap_or_default();
        let p4info = config.p4info.as_ref().ok_or_else(|| self.no_pipeline())?;
        self.index = Some(Arc::new(Index::from_proto(p4info)?));
        Ok(config)
    }

    /// Names and ids of the objects of the pipeline that was set or fetched; an error before that.
    pub fn index(&self) -> Result<&Index> {
        self.index.as_deref().ok_or_else(|| self.no_pipeline())
    }

    /// Writes a batch of updates, and returns the result of each update, in order.
    pub async fn write(
        &self,
        updates: &[(UpdateType, Item)],
        atomicity: Atomicity,
    ) -> Result<Vec<UpdateResult>> {
        let index = self.index()?;
        let update = |(kind, item): &(UpdateType, Item)| {
            Ok(v1::Update {
                r#type: (*kind).into(),
                entity: Some(item.to_entity(index)?),
            })
        };
        let request = v1::WriteRequest {
            device_id: self.device_id,
            election_id: Some(uint128(self.election_id)),
            updates: updates
                .iter()
                .map(update)
                .collect::<std::result::Result<_, TranslateError>>()?,
            atomicity: atomicity.into(),
            ..Default::default()
        };
        let mut grpc = self.grpc.clone();
        match self.answer_or_status(grpc.write(request)).await? {
            Ok(_) => Ok(vec![Ok(()); updates.len()]),
            Err(status) => {
                status::results(&status, updates.len()).ok_or_else(|| self.refused(&status))
            }
        }
    }

    /// Writes a batch in which every update has to succeed; returns the error of the first refused update.
    pub async fn apply(&self, updates: &[(UpdateType, Item)]) -> Result<()> {
        let results = self.write(updates, Atomicity::ContinueOnError).await?;
        for ((position, (_, item)), result) in updates.iter().enumerate().zip(results) {
            result.map_err(|source| ClientError::Update {
                address: self.address.clone(),
                position,
                item: Box::new(item.clone()),
                source,
            })?;
        }
        Ok(())
    }

    /// Reads all items that match one of the queries, in the switch's order.
    pub async fn read(&self, queries: &[Query]) -> Result<Vec<Item>> {
        let index = self.index()?;
        let entities = self.entities(queries).await?;
        let items = entities
            .iter()
            .map(|entity| Item::from_entity(entity, index, Part::Whole));
        Ok(items.collect::<std::result::Result<_, TranslateError>>()?)
    }

    /// Reads the entries of a table with their notes ([`Item::NotedEntry`]); an entry written without a note has an empty one.
    pub async fn read_noted(&self, table: &str) -> Result<Vec<(TableEntry, Vec<u8>)>> {
        let index = self.index()?;
        let table = Some(table.to_owned());
        let mut noted = Vec::new();
        for entity in self.entities(&[Query::Entries { table }]).await? {
            let note = match &entity.entity {
                Some(v1::entity::Entity::TableEntry(entry)) => entry.metadata.clone(),
                _ => Vec::new(),
            };
            if let Item::TableEntry(entry) = Item::from_entity(&entity, index, Part::Whole)? {
                noted.push((entry, note));
            }
        }
        Ok(noted)
    }

    async fn entities(&self, queries: &[Query]) -> Result<Vec<v1::Entity>> {
        let index = self.index()?;
        let request = v1::ReadRequest {
            device_id: self.device_id,
            entities: queries
                .iter()
                .map(|query| query.to_entity(index))
                .collect::<std::result::Result<_, TranslateError>>()?,
            ..Default::default()
        };
        let mut grpc = self.grpc.clone();
        let mut responses = self.answer(grpc.read(request)).await?.into_inner();
        let mut entities = Vec::new();
        while let Some(response) = self.answer(responses.message()).await? {
            entities.extend(response.entities);
        }
        Ok(entities)
    }

    /// Sends a packet to the switch's CPU port. `fields` are the values of its `packet_out` header, in declared order; they are
    /// ignored if the program declares no such header.
    pub async fn send_packet(&self, payload: Vec<u8>, fields: &[Value]) -> Result<()> {
        let metadata = match self.index()?.controller_headers.named("packet_out") {
            Some(header) => packet_metadata(header, fields)?,
            None => Vec::new(),
        };
        let packet = v1::PacketOut { payload, metadata };
        self.say(v1::stream_message_request::Update::Packet(packet))
            .await
    }

    async fn say(&self, update: v1::stream_message_request::Update) -> Result<()> {
        let update = Some(update);
        let closed = || ClientError::StreamClosed {
            address: self.address.clone(),
        };
        let requests = self.requests.as_ref().ok_or_else(closed)?;
        requests
            .send(v1::StreamMessageRequest { update })
            .await
            .map_err(|_| closed())
    }

    /// Decodes a list of digest messages: (name of the digest, scalars of each message in [`crate::translate::data`]'s order).
    pub fn digest_messages(&self, list: &v1::DigestList) -> Result<(&str, Vec<Vec<Value>>)> {
        let index = self.index()?;
        let digest = index.digests.with_id(list.digest_id);
        let digest = digest.ok_or_else(|| TranslateError::unknown_id::<Digest>(list.digest_id))?;
        let message =
            |data: &v1::P4Data| Element::from(digest).from_proto(data, index.types(), &NoNames);
        let messages = list.data.iter().map(message);
        let messages = messages.collect::<std::result::Result<_, TranslateError>>()?;
        Ok((&digest.preamble.name, messages))
    }

    /// Confirms to the switch that the controller has processed a digest list.
    pub async fn acknowledge(&self, list: &v1::DigestList) -> Result<()> {
        let (digest_id, list_id) = (list.digest_id, list.list_id);
        let ack = v1::DigestListAck { digest_id, list_id };
        self.say(v1::stream_message_request::Update::DigestAck(ack))
            .await
    }

    /// The table entries that the switch reports as idle (they match no packets); [`Client::write`] accepts these items.
    pub fn idle_entries(&self, idle: &v1::IdleTimeoutNotification) -> Result<Vec<Item>> {
        let index = self.index()?;
        let item = |entry: &v1::TableEntry| {
            let entity = v1::Entity {
                entity: Some(v1::entity::Entity::TableEntry(entry.clone())),
            };
            Item::from_entity(&entity, index, Part::Whole)
        };
        let items = idle.table_entry.iter().map(item);
        Ok(items.collect::<std::result::Result<_, TranslateError>>()?)
    }

    /// The header of packets that the switch sends to the controller; `None` if the program declares none.
    pub fn packet_in_header(&self) -> Result<Option<&ControllerPacketMetadata>> {
        Ok(self.index()?.controller_headers.named("packet_in"))
    }

    /// Asks the switch for the P4Runtime version that it supports.
    pub async fn api_version(&self) -> Result<String> {
        let mut grpc = self.grpc.clone();
        let response = self
            .answer(grpc.capabilities(v1::CapabilitiesRequest {}))
            .await?;
        Ok(response.into_inner().p4runtime_api_version)
    }

    /// Address of the switch, `host:port`.
    #[must_use]
    pub fn address(&self) -> &str {
        &self.address
    }

    async fn answer<T>(
        &self,
        call: impl Future<Output = std::result::Result<T, tonic::Status>>,
    ) -> Result<T> {
        self.answer_or_status(call)
            .await?
            .map_err(|status| self.refused(&status))
    }

    async fn answer_or_status<T>(
        &self,
        call: impl Future<Output = std::result::Result<T, tonic::Status>>,
    ) -> Result<std::result::Result<T, tonic::Status>> {
        tokio::time::timeout(self.timeout, call)
            .await
            .map_err(|_| ClientError::NoAnswer {
                address: self.address.clone(),
                waited: self.timeout,
            })
    }

    fn refused(&self, status: &tonic::Status) -> ClientError {
        ClientError::Rpc {
            address: self.address.clone(),
            code: status::code(status.code()),
            message: status.message().to_owned(),
        }
    }

    fn no_pipeline(&self) -> ClientError {
        ClientError::NoPipeline {
            address: self.address.clone(),
        }
    }
}

fn uint128(value: u128) -> v1::Uint128 {
    v1::Uint128 {
        high: (value >> 64) as u64,
        low: value as u64,
    }
}

/// Result of the first attempt that succeeds within `timeout`; otherwise the error of the last attempt that ended, `None` if none did.
///
/// The last attempt may be cut off by the deadline. It tells less than an attempt before it that failed.
async fn retried<T, E, F>(
    timeout: Duration,
    mut attempt: impl FnMut() -> F,
) -> std::result::Result<T, Option<E>>
where
    F: Future<Output = std::result::Result<T, E>>,
{
    let deadline = Instant::now() + timeout;
    let mut last = None;
    loop {
        match timeout_at(deadline, attempt()).await {
            Ok(Ok(done)) => return Ok(done),
            Ok(Err(error)) => last = Some(error),
            Err(_) => return Err(last),
        }
        if Instant::now() + RETRY >= deadline {
            return Err(last);
        }
        sleep(RETRY).await;
    }
}

/// The innermost cause of an error: tonic's own message is only "transport error".
fn root_cause(error: &dyn std::error::Error) -> String {
    let mut cause = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    cause.to_string()
}

#[cfg(test)]
mod tests;

//! P4Runtime without our client: messages as another controller sends them.

use super::*;
use p4rt::p4info::{Index, Object, Section};
use p4rt::rpc::Code;
use p4rt::v1;
use p4rt::v1::entity::Entity as Kind;
use p4rt::v1::p4_runtime_client::P4RuntimeClient;
use p4rt::v1::stream_message_response::Update as Incoming;
use tokio::sync::mpsc;
use tonic::transport::{Channel, Endpoint};
pub use v1::update::Type::{Delete, Insert, Modify};
use v1::write_request::Atomicity;

pub struct Raw {
    pub grpc: P4RuntimeClient<Channel>,
    pub index: Index,
    role: String,
    requests: mpsc::Sender<v1::StreamMessageRequest>,
    responses: tonic::Streaming<v1::StreamMessageResponse>,
}

impl Raw {
    /// A primary of the default role, on a switch that runs the program.
    pub async fn primary(instance: &Instance) -> Raw {
        Raw::with_role(instance, None).await
    }

    /// A primary of the default role, on a switch that runs another program.
    pub async fn primary_of(instance: &Instance, text: &[u8]) -> Raw {
        let program = loader().load(text);
        let info = program.unwrap_or_else(|error| panic!("{error}")).p4info;
        Raw {
            index: Index::new(info).unwrap(),
            ..Raw::with_role(instance, None).await
        }
    }

    pub async fn with_role(instance: &Instance, role: Option<v1::Role>) -> Raw {
        let address = instance.address().to_string();
        Raw::at(&address, role).await
    }

    /// A client at an address, which may be that of a proxy.
    pub async fn at(address: &str, role: Option<v1::Role>) -> Raw {
        let endpoint = Endpoint::from_shared(format!("http://{address}")).unwrap();
        let endpoint = endpoint.http2_max_header_list_size(1 << 20);
        let mut grpc = P4RuntimeClient::new(endpoint.connect().await.unwrap());
        let (requests, outgoing) = mpsc::channel(16);
        let arbitration = v1::MasterArbitrationUpdate {
            device_id: DEVICE,
            role: role.clone(),
            election_id: election(),
            status: None,
        };
        let update = v1::stream_message_request::Update::Arbitration(arbitration);
        let request = v1::StreamMessageRequest {
            update: Some(update),
        };
        requests.try_send(request).unwrap();
        let outgoing = tokio_stream::wrappers::ReceiverStream::new(outgoing);
        let responses = grpc.stream_channel(outgoing).await.unwrap().into_inner();
        let mut raw = Raw {
            grpc,
            index: Index::new(p4info()).unwrap(),
            role: role.map(|role| role.name).unwrap_or_default(),
            requests,
            responses,
        };
        let Incoming::Arbitration(answer) = raw.next().await else {
            panic!("an answer to the arbitration")
        };
        assert_eq!(answer.status.unwrap().code, Code::Ok as i32);
        raw
    }

    /// The next message of the switch on the stream.
    pub async fn next(&mut self) -> Incoming {
        let message = tokio::time::timeout(TIMEOUT, self.responses.message()).await;
        let message = message.expect("a message in time").unwrap();
        message
            .and_then(|message| message.update)
            .expect("a message")
    }

    pub async fn say(&self, update: v1::stream_message_request::Update) {
        let update = Some(update);
        let request = v1::StreamMessageRequest { update };
        self.requests.send(request).await.unwrap();
    }

    /// Writes updates; returns the error codes, `Ok` for success.
    pub async fn write(&mut self, updates: Vec<(v1::update::Type, Kind)>) -> Vec<Code> {
        self.write_as(updates, Atomicity::ContinueOnError).await
    }

    pub async fn write_as(
        &mut self,
        updates: Vec<(v1::update::Type, Kind)>,
        atomicity: Atomicity,
    ) -> Vec<Code> {
        let code = |result: p4rt::status::UpdateResult| match result {
            Ok(()) => Code::Ok,
            Err(error) => error.code,
        };
        let results = self.results(updates, atomicity).await;
        results.into_iter().map(code).collect()
    }

    /// The message for an update that must be refused.
    pub async fn refusal(&mut self, kind: v1::update::Type, entity: Kind) -> String {
        let updates = vec![(kind, entity)];
        let mut results = self.results(updates, Atomicity::ContinueOnError).await;
        results.remove(0).unwrap_err().message
    }

    async fn results(
        &mut self,
        updates: Vec<(v1::update::Type, Kind)>,
        atomicity: Atomicity,
    ) -> Vec<p4rt::status::UpdateResult> {
        let count = updates.len();
        let update = |(kind, entity): (v1::update::Type, Kind)| v1::Update {
            r#type: kind.into(),
            entity: Some(v1::Entity {
                entity: Some(entity),
            }),
        };
        let request = v1::WriteRequest {
            device_id: DEVICE,
            election_id: election(),
            role: self.role.clone(),
            updates: updates.into_iter().map(update).collect(),
            atomicity: atomicity.into(),
            ..Default::default()
        };
        match self.grpc.write(request).await {
            Ok(_) => vec![Ok(()); count],
            Err(status) => {
                let results = p4rt::status::results(&status, count);
                results.unwrap_or_else(|| panic!("{status}"))
            }
        }
    }

    /// Writes one update, which must succeed.
    pub async fn put(&mut self, kind: v1::update::Type, entity: Kind) {
        assert_eq!(self.write(vec![(kind, entity)]).await, [Code::Ok]);
    }

    pub async fn read(&mut self, query: Kind) -> Vec<Kind> {
        self.try_read(query)
            .await
            .unwrap_or_else(|status| panic!("{status}"))
    }

    pub async fn try_read(&mut self, query: Kind) -> Result<Vec<Kind>, tonic::Status> {
        let request = v1::ReadRequest {
            device_id: DEVICE,
            role: self.role.clone(),
            entities: vec![v1::Entity {
                entity: Some(query),
            }],
        };
        let mut responses = self.grpc.read(request).await?.into_inner();
        let mut found = Vec::new();
        while let Some(response) = responses.message().await? {
            found.extend(response.entities.into_iter().filter_map(|e| e.entity));
        }
        Ok(found)
    }

    /// An entry of a table with one exact key field, and an action with one parameter.
    pub fn entry(&self, table: &str, key: &[u8], action: &str, param: &[u8]) -> v1::TableEntry {
        let exact = v1::field_match::Exact {
            value: key.to_vec().into(),
        };
        v1::TableEntry {
            table_id: id(&self.index.tables, table),
            r#match: vec![v1::FieldMatch {
                field_id: 1,
                field_match_type: Some(v1::field_match::FieldMatchType::Exact(exact)),
            }],
            action: Some(v1::TableAction {
                r#type: Some(v1::table_action::Type::Action(self.action(action, param))),
            }),
            ..Default::default()
        }
    }

    pub fn action(&self, name: &str, param: &[u8]) -> v1::Action {
        v1::Action {
            action_id: id(&self.index.actions, name),
            params: vec![v1::action::Param {
                param_id: 1,
                value: param.to_vec().into(),
            }],
        }
    }
}

pub fn id<T: Object>(section: &Section<T>, name: &str) -> u32 {
    section
        .named(name)
        .unwrap_or_else(|| panic!("{name}"))
        .preamble()
        .id
}

fn election() -> Option<v1::Uint128> {
    Some(v1::Uint128 { high: 0, low: 1 })
}

/// A frame from the source to a destination without an entry.
pub fn frame_from(source: [u8; 6], ether_type: u16) -> Vec<u8> {
    let mut frame = vec![0; 60];
    frame[..6].copy_from_slice(&[2, 0, 0, 0, 0, 1]);
    frame[6..12].copy_from_slice(&source);
    frame[12..14].copy_from_slice(&ether_type.to_be_bytes());
    frame
}

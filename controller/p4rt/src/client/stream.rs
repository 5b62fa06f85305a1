//! Messages that a switch sends to the controller on the message stream.

use super::ClientError;
use crate::rpc::Code;
use crate::status;
use crate::v1;
use crate::v1::stream_message_response::Update;

/// A message that the switch sends on the message stream.
#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    /// The switch has a new primary client.
    Arbitration {
        /// Whether this client is primary.
        primary: bool,
        /// The highest election id that the switch has seen; `None` if it has seen none.
        election_id: Option<u128>,
    },
    /// A packet that the switch sends to the controller. [`crate::translate::packet_fields`] reads its metadata.
    Packet(v1::PacketIn),
    /// The switch could not process a message that the controller sent on the stream.
    Error {
        /// The gRPC error code that the switch sent.
        code: Code,
        /// The error message that the switch sent.
        message: String,
    },
    /// Messages of a digest. [`super::Client::digest_messages`] decodes them; [`super::Client::acknowledge`] allows the switch
    /// to send the same messages again.
    Digest(v1::DigestList),
    /// Table entries that matched no packet during their idle timeout. [`super::Client::idle_entries`] decodes them.
    Idle(v1::IdleTimeoutNotification),
    /// A message of a kind that P4Runtime 1.4 does not define.
    Other(Box<v1::StreamMessageResponse>),
}

/// The receiving side of the message stream: messages from the switch.
#[derive(Debug)]
pub struct Events {
    responses: tonic::Streaming<v1::StreamMessageResponse>,
    address: String,
}

impl Events {
    pub(super) fn new(
        responses: tonic::Streaming<v1::StreamMessageResponse>,
        address: String,
    ) -> Self {
        Self { responses, address }
    }

    /// Waits for the next message; `None` when the switch has closed the stream.
    pub async fn next(&mut self) -> Result<Option<Event>, ClientError> {
        let response = self
            .responses
            .message()
            .await
            .map_err(|status| ClientError::Rpc {
                address: self.address.clone(),
                code: status::code(status.code()),
                message: status.message().to_owned(),
            })?;
        Ok(response.map(event))
    }
}

fn event(response: v1::StreamMessageResponse) -> Event {
    match response.update {
        Some(Update::Arbitration(arbitration)) => Event::Arbitration {
            primary: arbitration
                .status
                .is_none_or(|status| status.code == Code::Ok as i32),
            election_id: arbitration
                .election_id
                .map(|id| u128::from(id.high) << 64 | u128::from(id.low)),
        },
        Some(Update::Packet(packet)) => Event::Packet(packet),
        Some(Update::Digest(list)) => Event::Digest(list),
        Some(Update::IdleTimeoutNotification(idle)) => Event::Idle(idle),
        Some(Update::Error(error)) => Event::Error {
            code: status::code(error.canonical_code),
            message: error.message,
        },
        update => Event::Other(Box::new(v1::StreamMessageResponse { update })),
    }
}

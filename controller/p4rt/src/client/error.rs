//! Errors of a controller's calls to a switch.

use crate::p4info::DecodeError;
use crate::rpc::Code;
use crate::status::UpdateError;
use crate::translate::{Item, TranslateError};
use std::time::Duration;

/// Why a call to a switch failed. Every variant about the switch contains its address.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum ClientError {
    /// The address does not have the form `host:port`.
    #[error("`{address}` is not an address of the form host:port")]
    Address {
        /// The address that was given.
        address: String,
    },
    /// No switch listens at the address.
    #[error("no switch answers at {address} (tried for {waited:?}): {reason}")]
    Unreachable {
        /// Address of the switch, `host:port`.
        address: String,
        /// How long the client tried to connect.
        waited: Duration,
        /// Error of the last attempt to connect.
        reason: String,
    },
    /// The switch did not answer a call in time.
    #[error("the switch at {address} did not answer within {waited:?}")]
    NoAnswer {
        /// Address of the switch, `host:port`.
        address: String,
        /// How long the client waited for the answer.
        waited: Duration,
    },
    /// Another client is primary, so this client may not write.
    #[error("the switch at {address} has another primary controller; election id {election_id} is not above {}",
        .highest.map_or_else(|| "any other".to_owned(), |id| id.to_string()))]
    NotPrimary {
        /// Address of the switch, `host:port`.
        address: String,
        /// Election id of this client.
        election_id: u128,
        /// The highest election id that the switch has seen; `None` if the switch does not report it.
        highest: Option<u128>,
    },
    /// The client was called with names before it set or fetched a pipeline, whose P4Info defines them.
    #[error("no pipeline is loaded on the switch at {address}")]
    NoPipeline {
        /// Address of the switch, `host:port`.
        address: String,
    },
    /// The switch refused a call as a whole, not a single update.
    #[error("the switch at {address} refused: {message} ({})", .code.as_str_name())]
    Rpc {
        /// Address of the switch, `host:port`.
        address: String,
        /// The gRPC error code of the answer.
        code: Code,
        /// The error message of the switch.
        message: String,
    },
    /// The switch refused one update of a write batch.
    #[error("the switch at {address} refused update {position}: {source}")]
    Update {
        /// Address of the switch, `host:port`.
        address: String,
        /// Position of the update in the batch, from 0.
        position: usize,
        /// The item that the refused update would have written.
        item: Box<Item>,
        /// The switch's reason for the refusal.
        source: UpdateError,
    },
    /// The message stream to the switch was never opened, or has ended.
    #[error("the stream to the switch at {address} is closed")]
    StreamClosed {
        /// Address of the switch, `host:port`.
        address: String,
    },
    /// A request names an object that the loaded program does not have, or the switch sent an invalid message.
    #[error(transparent)]
    Translate(#[from] TranslateError),
    /// The P4Info that the switch or weir supplied is invalid.
    #[error(transparent)]
    P4Info(#[from] DecodeError),
}

//! Errors of calls from a controller to a switch.

use crate::p4info::DecodeError;
use crate::rpc::Code;
use crate::status::UpdateError;
use crate::translate::{Item, TranslateError};
use std::time::Duration;

/// Why a call to a switch failed. Every variant that concerns the switch names its address.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum ClientError {
    /// The address does not have the form `host:port`.
    #[error("`{address}` is not an address of the form host:port")]
    Address {
        /// The given address.
        address: String,
    },
    /// No switch listens at the address.
    #[error("no switch answers at {address} (tried for {waited:?}): {reason}")]
    Unreachable {
        /// Address of the switch, `host:port`.
        address: String,
        /// How long the client tried to connect.
        waited: Duration,
        /// Error of the last attempt.
        reason: String,
    },
    /// The switch did not answer in time.
    #[error("the switch at {address} did not answer within {waited:?}")]
    NoAnswer {
        /// Address of the switch, `host:port`.
        address: String,
        /// How long the client waited.
        waited: Duration,
    },
    /// Another client is primary.
    #[error("the switch at {address} has another primary controller; election id {election_id} is not above {}",
        .highest.map_or_else(|| "any other".to_owned(), |id| id.to_string()))]
    NotPrimary {
        /// Address of the switch, `host:port`.
        address: String,
        /// Election id of this client.
        election_id: u128,
        /// The highest election id that the switch has seen.
        highest: Option<u128>,
    },
    /// A call that needs names came before a pipeline was set or fetched.
    #[error("no pipeline is loaded on the switch at {address}")]
    NoPipeline {
        /// Address of the switch, `host:port`.
        address: String,
    },
    /// The switch refused a call as a whole.
    #[error("the switch at {address} refused: {message} ({})", .code.as_str_name())]
    Rpc {
        /// Address of the switch, `host:port`.
        address: String,
        /// gRPC's code.
        code: Code,
        /// The switch's message.
        message: String,
    },
    /// The switch refused one update of a batch.
    #[error("the switch at {address} refused update {position}: {source}")]
    Update {
        /// Address of the switch, `host:port`.
        address: String,
        /// Position in the batch, from 0.
        position: usize,
        /// The refused update.
        item: Box<Item>,
        /// The switch's reason.
        source: UpdateError,
    },
    /// The stream was never opened, or has ended.
    #[error("the stream to the switch at {address} is closed")]
    StreamClosed {
        /// Address of the switch, `host:port`.
        address: String,
    },
    /// An object that the loaded program does not have, or an invalid message from the switch.
    #[error(transparent)]
    Translate(#[from] TranslateError),
    /// The P4Info of the switch, or of weir, is invalid.
    #[error(transparent)]
    P4Info(#[from] DecodeError),
}

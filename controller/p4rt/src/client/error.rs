//! What can go wrong between a controller and a switch.

use crate::p4info::DecodeError;
use crate::rpc::Code;
use crate::status::UpdateError;
use crate::translate::{Item, TranslateError};
use std::time::Duration;

/// Why a call to a switch failed. Every variant that concerns the switch names its address.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum ClientError {
    /// Not `host:port`.
    #[error("`{address}` is not an address of the form host:port")]
    Address {
        /// As given.
        address: String,
    },
    /// Nobody listens there.
    #[error("no switch answers at {address} (tried for {waited:?}): {reason}")]
    Unreachable {
        /// `host:port`.
        address: String,
        /// How long it was tried.
        waited: Duration,
        /// Of the last attempt.
        reason: String,
    },
    /// Connected, or connecting, and no answer in time.
    #[error("the switch at {address} did not answer within {waited:?}")]
    NoAnswer {
        /// `host:port`.
        address: String,
        /// How long it was waited for.
        waited: Duration,
    },
    /// Another client controls the switch.
    #[error("the switch at {address} has another primary controller; election id {election_id} is not above {}",
        .highest.map_or_else(|| "any other".to_owned(), |id| id.to_string()))]
    NotPrimary {
        /// `host:port`.
        address: String,
        /// Ours.
        election_id: u128,
        /// The highest that the switch has seen.
        highest: Option<u128>,
    },
    /// A call that needs names came before a pipeline was set or fetched.
    #[error("no pipeline is loaded on the switch at {address}")]
    NoPipeline {
        /// `host:port`.
        address: String,
    },
    /// The switch refused a call as a whole.
    #[error("the switch at {address} refused: {message} ({})", .code.as_str_name())]
    Rpc {
        /// `host:port`.
        address: String,
        /// gRPC's code.
        code: Code,
        /// The switch's words.
        message: String,
    },
    /// The switch refused one update of a batch.
    #[error("the switch at {address} refused update {position}: {source}")]
    Update {
        /// `host:port`.
        address: String,
        /// Position in the batch, from 0.
        position: usize,
        /// What was to be written.
        item: Box<Item>,
        /// The switch's reason.
        source: UpdateError,
    },
    /// The stream was never opened, or has ended.
    #[error("the stream to the switch at {address} is closed")]
    StreamClosed {
        /// `host:port`.
        address: String,
    },
    /// Something that the loaded program does not have, or that the switch should not have sent.
    #[error(transparent)]
    Translate(#[from] TranslateError),
    /// The switch's, or our own, P4Info makes no sense.
    #[error(transparent)]
    P4Info(#[from] DecodeError),
}

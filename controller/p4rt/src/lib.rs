//! P4Runtime 1.4: protocol messages, translation of names to ids, canonical byte strings, errors of single updates.
//!
//! A control plane refers to a program's objects by name ([`p4lang::runtime`]), the protocol by numeric id. [`translate`]
//! converts between both, with the index [`p4info::Index`]. [`client`] is a thin client for programs that control a switch.

pub mod bytes;
pub mod client;
pub mod p4info;
mod proto;
pub mod status;
pub mod text;
pub mod translate;

pub use proto::DESCRIPTORS;
pub use proto::google::rpc;
pub use proto::p4::config::v1 as config;
pub use proto::p4::v1;

/// The version of P4Runtime that the messages in [`v1`] belong to.
pub const API_VERSION: &str = "1.4.1";

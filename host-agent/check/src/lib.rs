//! Explores all that can happen to aggregation's state machines: see `docs/model-checking.md`.

pub mod all_reduce;
pub mod configurations;
mod machines;
mod model;
pub mod parameter_server;
mod parts;
#[cfg(test)]
mod plain;
pub mod prototype;
mod search;
mod settle;
pub mod slots;
mod symmetry;
mod trace;

pub use machines::Broken;
pub use model::{Act, Frame, MAX_FRAMES, MAX_NODES, Model, Outbox, Status, Wrong};
pub use search::{Found, Report, Search, explore};
pub use trace::Trace;

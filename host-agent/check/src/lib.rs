//! Explores all that can happen to aggregation's state machines: see `docs/model-checking.md`.

pub mod all_reduce;
mod machines;
mod model;
pub mod parameter_server;
mod parts;
pub mod prototype;
mod search;
mod settle;
pub mod slots;
mod symmetry;
mod trace;

pub use machines::Broken;
pub use model::{Act, Frame, MAX_FRAMES, Model, Outbox, Status, Wrong};
pub use search::{Found, Report, Search, explore};
pub use trace::Trace;

//! Model checker of aggregation's state machines: explores all behaviors on a network that loses, duplicates and reorders,
//! within bounds. `docs/model-checking.md` describes the abstractions, and what is proved.
//!
//! A [`Model`] defines its nodes, their actions and their reactions to frames: [`all_reduce`], [`parameter_server`], and
//! [`prototype`], in which errors must be found. [`slots`] is their switch, complete or without one [`slots::Rule`].
//! [`configurations`] has the named models that are explored.
//!
//! The search consists of layers, each of which uses only the one before it in this list:
//!
//! - `machines`: states of single nodes, and the result of each event in them. Only this layer runs the state machines.
//! - `settle`: whether a state makes progress if no further frame is lost.
//! - `parts`: a node's state together with all frames that it has sent. The network is the union of the frames of all parts.
//! - `symmetry`: global states as numbers, equal for states that differ only by a permutation of interchangeable nodes.
//! - `space`: the successors of a global state.
//! - `trace`: the steps to an error, in words.
//! - `search`: breadth-first search over global states.
//!
//! The library uses no clock and no threads; the example `model_check` measures it, for `cargo xtask model-check`.

pub mod all_reduce;
pub mod configurations;
mod machines;
mod model;
pub mod parameter_server;
mod parts;
#[cfg(test)]
mod plain;
pub mod prototype;
mod rack;
mod search;
mod settle;
pub mod slots;
mod space;
mod symmetry;
mod trace;

pub use machines::Broken;
pub use model::{Act, Frame, MAX_FRAMES, MAX_NODES, Model, Outbox, Status, Wrong};
pub use search::{Report, Search, explore};
pub use trace::{Found, Trace};

//! Explores all that can happen to aggregation's state machines on a network that loses, repeats and reorders, within bounds:
//! `docs/model-checking.md` says what is left out, what is proved, and what not.
//!
//! A [`Model`] says what its nodes are, what they may do, and what becomes of frames: [`all_reduce`], [`parameter_server`], and
//! [`prototype`], in which something must be found. [`slots`] is their switch, as it runs or without a [`slots::Rule`].
//! [`configurations`] has what is explored, by name.
//!
//! The search stands on layers. Each knows only the one below:
//!
//! - `machines`: states of single nodes, and what each event makes of them. Only here do the machines run.
//! - `settle`: whether a state goes on if nothing is lost any more.
//! - `parts`: a node's state with all that it has sent. The network is what all parts have sent.
//! - `symmetry`: states of the whole as numbers, the same for all that differ in who is who.
//! - `search`: breadth first, and what was seen. `trace`: the steps to what was found, in words.
//!
//! Nothing of this keeps time or runs in threads; the example `model_check` measures it, for `cargo xtask model-check`.

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
mod symmetry;
mod trace;

pub use machines::Broken;
pub use model::{Act, Frame, MAX_FRAMES, MAX_NODES, Model, Outbox, Status, Wrong};
pub use search::{Found, Report, Search, explore};
pub use trace::Trace;

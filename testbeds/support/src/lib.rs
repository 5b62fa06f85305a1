//! Helpers for tests of several crates, one subject per file. A helper that only one crate needs stays in that crate's tests.
#![allow(clippy::disallowed_methods)] // Tests read clocks and files; the pure crates that use this do not.

pub mod allocations;
pub mod corpus;
pub mod cost;
mod extent;
pub mod namespace;
mod running;
mod skip;

pub use extent::{cases, runs_all, seeds};
pub use running::{path_of_test, running_test};
pub use skip::{has_program, skip};

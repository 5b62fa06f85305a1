//! The tests of this crate that see it from outside, as one program: each more would be linked anew.

mod common;
mod differential;
mod engine;
mod executed;
mod filters;
mod generated;
mod library;
mod own;
mod payload;
mod program;
mod roce;

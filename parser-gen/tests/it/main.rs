//! Integration tests of this crate, as one program: each further program would be linked separately.

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

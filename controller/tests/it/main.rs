//! What needs no network of its own and no clock, and `weir` itself where it makes none.

mod bad_input;
mod cli;
mod collectives;
mod fault_engine;
mod headers;
mod p4c;
#[path = "../support/vectors/mod.rs"]
mod packet_vectors;
mod route;
mod simulate;
mod slot_protocol;
#[path = "../support/mod.rs"]
mod support;
mod vectors;

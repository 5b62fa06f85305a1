//! What needs no network of its own, and `weir` itself where it makes none, as one program: each more would be linked
//! anew.

mod bad_input;
mod cli;
mod collectives;
mod headers;
#[path = "../support/leftovers.rs"]
mod leftovers;
mod p4c;
mod route;
mod simulate;
#[path = "../support/mod.rs"]
mod support;

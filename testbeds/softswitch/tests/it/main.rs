//! The tests of this crate that see it from outside, as one program: each more would be linked anew.

mod fuzz_corpus;
mod hostile;
mod p4;
mod p4runtime;
mod p4runtime_client;
mod p4runtime_data;
mod p4runtime_entities;
mod p4runtime_session;
mod p4runtime_shell;
mod p4runtime_stream;
mod p4runtime_tna;
mod p4runtime_wide;
#[path = "../support/mod.rs"]
mod support;

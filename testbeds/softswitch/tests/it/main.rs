//! The external tests of this crate, as one program: each further one would have to be linked.

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

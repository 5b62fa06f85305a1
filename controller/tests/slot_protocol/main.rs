//! The P4 `Aggregate`, executed, against docs/protocol.md and against the Rust slots.

mod agreement;
mod measure;
mod mutants;
mod p4_switch;
mod packets;
mod runs;
mod wild;

//! The P4 `Aggregate`, executed, against docs/protocol.md and against the Rust slots.

mod agreement;
mod all_reduce;
mod deadlines;
mod hostile;
mod measure;
mod mutants;
mod p4_switch;
mod packets;
mod roce_form;
mod roce_switch;
mod runs;
mod wild;

//! The P4 `Aggregate`, executed, against docs/protocol.md and against the Rust slots.
//!
//! A program of its own: it takes the processors for itself, which the runs of other tests would be late for.

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

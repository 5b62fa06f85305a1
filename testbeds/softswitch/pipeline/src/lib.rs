//! Executes p4lang's IR under PSA, v1model, TNA and T2NA. Pure: no I/O, no clock, no threads; time comes in as an argument.
//!
//! ```text
//! Switch::new(program, config)          compile/  IR → op::Code, every call inlined
//! Image::new(…), switch(config)         switch/image.rs  the same in two steps: compiled once, many switches
//! handle_packet(now, port, frame)       arch/     which blocks a packet passes, with which metadata: a folder each
//!                                       exec/     one loop over op::Op, rolled-up values in op/lanes.rs
//!                                       reference/   the same from the IR, plainly; compared, traced, poisoned
//!                                       table/, externs/   what blocks look up and keep; state.rs has all of it
//! poll_transmit(), poll_timeout()       arch/core.rs, queues.rs   replication, egress queues, the recirculation link
//! insert_entry(…), register_read(…)     switch/control/
//! ```
//!
//! An architecture is a folder of `arch/`: layout, run, externs and functions, compiled and interpreted. Generic code asks it
//! through `compile::dialect`, `reference::dialect` and `arch::Loaded`; `rules.rs` has the small differences.
//! The top modules form no import cycle; `cargo xtask weight --check` fails on one.
//!
//! Where P4 leaves the behavior undefined: variables without a value are 0; fields of invalid headers and stack elements
//! out of range behave as `rules.rs` says; a register beyond its end reads as 0; a division by zero gives 0.

mod arch;
mod bits;
mod call;
mod compile;
mod config;
mod error;
mod exec;
mod externs;
mod job;
mod limits;
mod op;
mod port_numbers;
mod queues;
mod reference;
mod rules;
mod simd;
mod stale_fields;
mod state;
mod stats;
mod switch;
mod table;

pub use arch::tofino::packet_generator::{GeneratorApp, Trigger};
pub use arch::tofino::{MirrorSession, MulticastNode, MulticastTree, QueueThresholds};
pub use config::{Config, Executor, Ports, RecirculationLink};
pub use error::{
    ExternError, GeneratorError, LoadError, ProfileError, ReplicationError, TableError,
};
pub use externs::counter::{CounterKind, CounterValue};
pub use externs::filter::FilterConfig;
pub use externs::meter::{ColourCounts, MeterCell, MeterConfig};
pub use externs::register::Info as RegisterInfo;
pub use limits::{LIMITS, Limits};
pub use op::Mark;
pub use p4lang::runtime::MatchKind;
pub use port_numbers::{
    CPU_PORT, DROP_PORT, PortError, RECIRCULATE_PORT, check_attachable, check_port, ports,
};
pub use queues::{CLASSES, EgressQueues, Scheduler};
pub use reference::event::{Event, EventAction, EventField, EventKind};
pub use state::DigestMessage;
pub use stats::{DropReason, Stats};
pub use switch::control::{DirectChange, EntryRef, RegisterCells};
pub use switch::image::Image;
pub use switch::reconcile::ReconcileError;
pub use switch::{Noted, Switch, Transmit};
pub use table::key::{FieldKey, FieldSpec};
pub use table::profile::{GroupMember, Indirect, OneShotAction, ProfileGroup, ProfileSpec};
pub use table::{
    ActionSpec, Bound, DirectMeter, EntryAction, EntryState, EntryWrite, Note, Spec as TableSpec,
};

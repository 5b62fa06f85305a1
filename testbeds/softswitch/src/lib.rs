//! The embedded software switch: ports, packet loop, P4Runtime server.
//!
//! It runs P4 text and knows nothing of what the text is for. [`p4`] compiles a program into a [`dataplane::Dataplane`];
//! one thread ([`driver`]) owns it and moves frames between it and the [`ports`]; the [`server`] speaks P4Runtime and
//! hands the driver short commands that run between two frames.
//! [`instance::start`] puts the three together, in this process; [`cli`] does so for `weir switch`.
//! [`p4_run`] is `weir p4 run`: packets through a program, without any of these.

mod carrier;
pub mod cli;
pub mod instance;
pub mod p4;
pub mod p4_run;
pub mod server;

pub use cli::run;
pub use packet_loop::{dataplane, driver, ports, trace};
pub use pipeline::DropReason;

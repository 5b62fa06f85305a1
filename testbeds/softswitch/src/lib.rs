//! The embedded software switch: ports, packet loop, P4Runtime server.
//!
//! It runs P4 text, and knows nothing of the text's purpose. [`p4`] compiles a program into a [`dataplane::Dataplane`]; one
//! thread ([`driver`]) owns it and moves frames between it and the [`ports`]; the [`server`] speaks P4Runtime and passes
//! short commands to the driver, which run between two frames. [`instance::start`] connects the three in this process;
//! [`cli`] does so for `weir switch`. [`p4_run`] is `weir p4 run`, which sends packets through a program without any of
//! these.

mod carrier;
pub mod cli;
pub mod instance;
pub mod p4;
pub mod p4_run;
pub mod server;

pub use cli::run;
pub use packet_loop::{dataplane, driver, ports, trace};
pub use pipeline::DropReason;

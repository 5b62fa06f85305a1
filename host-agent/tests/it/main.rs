//! Tests of the public interface that need no network interface: threads over cables in memory, and the program `weir-agent`.

mod cli;
mod collective;
mod driving;
mod metrics;
mod rdma;
#[path = "../support/mod.rs"]
mod support;
mod training;

//! Workers and parameter servers: real training whose gradients are summed in the network.
//!
//! | module | what |
//! |---|---|
//! | [`frames`] | raw frames over rings shared with the kernel, AF_PACKET (pnet) or a cable in memory, and their Ethernet, IPv4 and UDP headers |
//! | [`train`] | the data set, the model, its gradient and its update; the run without any network |
//! | [`collective`] | a rank of an all-reduce: a thread that sums over the network what it is given |
//! | [`metrics`] | what a member of a job shows of itself, for Prometheus and for `weir doctor` |
//! | [`doctor`] | what keeps a host from being a rank, for `weir doctor` |
//! | [`serve`] | a daemon by which processes without capabilities are ranks |
//! | [`all_reduce`] | a rank that gives values by a rule, and looks whether the sums are right |
//! | [`rdma_perf`] | RDMA tried and measured, in the words of perftest |
//! | [`collectives_perf`] | collectives measured, in the words of nccl-tests |
//! | [`connections`] | who runs a scenario is told with which numbers RDMA connections begin |
//! | [`agent`] | the loops that drive `aggregation`'s state machines, their arguments and what they print |
//!
//! What is computed depends on the seed alone, never on time or on the order in which
//! frames arrive, so that runs can be compared bit by bit.

pub mod agent;
pub mod all_reduce;
pub mod collective;
pub mod collectives_perf;
pub mod connections;
pub mod doctor;
pub mod frames;
pub mod metrics;
pub mod rdma_perf;
mod seed;
pub mod serve;

pub use train;

//! Workers and parameter servers: training whose gradients are summed in the network.
//!
//! | module | contents |
//! |---|---|
//! | [`frames`] | opening of an interface for aggregation frames, through the crate `frames`; their Ethernet, IPv4 and UDP headers |
//! | [`train`] | the data set, the model, its gradient and its update; the reference run without a network |
//! | [`collective`] | a rank of an all-reduce: a thread that sums values over the network |
//! | [`metrics`] | the status of a member of a job, for Prometheus and for `weir doctor` |
//! | [`doctor`] | checks whether a host can be a rank, for `weir doctor` |
//! | [`serve`] | a daemon through which processes without capabilities are ranks |
//! | [`all_reduce`] | a rank with generated values that checks the sums |
//! | [`rdma_perf`] | RDMA tests with the options of perftest |
//! | [`collectives_perf`] | collective benchmarks with the options of nccl-tests |
//! | [`connections`] | announcement of RDMA connections' initial PSNs to the run of a scenario |
//! | [`agent`] | the loops that drive `aggregation`'s state machines, their arguments and output |
//!
//! All computations depend on the seed alone, never on time or on the order in which frames arrive, so that runs can be
//! compared bit by bit.

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

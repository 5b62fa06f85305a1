//! RDMA through one interface in the terms of verbs, whether a device or a state machine in user space carries it out.
//!
//! | module | contents |
//! |---|---|
//! | [`provider`] | the interface of all providers: regions, queue pairs, work requests, completions |
//! | [`software`] | RoCEv2 in user space: the state machines of crate `roce`, over frames |
//! | [`verbs`] | a device or the kernel's rxe, by libibverbs |
//! | [`udp`] | RoCEv2 over a UDP socket, for processes that may not send raw frames |
//! | [`interface`] | addresses and MTU of an interface |
//! | [`neighbour`] | the Ethernet address of an IP address |
//! | [`open`](mod@open) | choice of the provider, with its reason |
//! | [`talk`] | the TCP connection over which two programs exchange messages about their queue pairs |
//! | [`rendezvous`] | exchange of queue pairs in ibv_rc_pingpong's protocol |
//! | [`group`] | ranks that execute collectives |
//! | [`perftest`] | bandwidth and latency, measured as perftest does |
//! | [`pingpong`](mod@pingpong) | the basic RDMA test, as ibv_rc_pingpong does it |

mod backlog;
pub mod group;
pub mod interface;
pub mod neighbour;
pub mod open;
pub mod perftest;
pub mod pingpong;
pub mod provider;
pub mod rendezvous;
pub mod software;
pub mod talk;
pub mod udp;
pub mod verbs;
mod verbs_error;

pub use open::{OpenError, Way, open};
pub use provider::{Connection, Gid, Provider, ProviderError, Region};

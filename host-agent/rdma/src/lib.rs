//! RDMA by verbs' words, whoever carries it out.
//!
//! | module | what |
//! |---|---|
//! | [`provider`] | what all providers have in common: regions, queue pairs, work, completions |
//! | [`software`] | RoCEv2 in user space: the machines of crate `roce`, over frames |
//! | [`verbs`] | a device, or the kernel's rxe, by libibverbs |
//! | [`udp`] | its frames through a UDP socket, for who may not send raw frames |
//! | [`interface`] | an interface's addresses and MTU |
//! | [`neighbour`] | the Ethernet address behind an IP address |
//! | [`open`](mod@open) | which provider it is here, and why |
//! | [`talk`] | the conversation of two programs beside their queue pairs |
//! | [`rendezvous`] | how they tell each other their queue pairs: ibv_rc_pingpong's way |
//! | [`group`] | ranks that carry out collectives |
//! | [`perftest`] | bandwidths, as perftest measures them |
//! | [`pingpong`](mod@pingpong) | the test that all RDMA begins with, as ibv_rc_pingpong does it |

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

pub use open::{OpenError, Way, open};
pub use provider::{Connection, Gid, Provider, ProviderError, Region};

//! Testbed for experiments on one machine: a sandbox of namespaces, links between hosts, captures of their frames,
//! and workloads.
//!
//! | module | what |
//! |---|---|
//! | [`sandbox`] | the process forks into namespaces of its own, so that every ending removes everything |
//! | [`host`] | a host is a network namespace; processes run in it |
//! | [`net`] | veth pairs, addresses, offloads, rates, counters |
//! | [`link`] | cables in memory, for machines that refuse namespaces |
//! | [`bed`] | a running topology: hosts, links, switch ports |
//! | [`edge`] | existing interfaces: taken, and restored however weir ends |
//! | [`capture`] | recordings of a link, and what two recordings say about the switch between them |
//! | [`command`] | programs of the user |
//! | [`probes`] | timed requests to services |
//! | [`redis`] | a real Redis server and clients that measure |
//!
//! Nothing here keeps state outside the process: interfaces live in namespaces, namespaces live as long as the
//! processes and descriptors that refer to them, and the sandbox's first process takes all others with it.

pub mod bed;
pub mod capture;
pub mod command;
pub mod edge;
pub mod host;
mod ioctl;
pub mod link;
mod namespace;
pub mod net;
pub mod probes;
pub mod redis;
pub mod sandbox;
mod starter;

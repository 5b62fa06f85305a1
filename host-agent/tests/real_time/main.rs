//! Frames on real links, in real time. Each test runs itself again in a user and network namespace of its own.

mod all_reduce;
mod collectives_perf;
mod interface;
mod links;
mod serve;
#[allow(dead_code)]
#[path = "../support/mod.rs"]
mod support;

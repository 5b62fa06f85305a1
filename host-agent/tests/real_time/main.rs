//! Tests on real links, in real time. Each test restarts itself in its own user and network namespace.

mod all_reduce;
mod bundles;
mod collectives_perf;
mod interface;
mod links;
mod serve;
#[allow(dead_code)]
#[path = "../support/mod.rs"]
mod support;

//! Frames on real links, in real time. Each test re-executes itself in its own user and network namespace; without
//! `unshare`, `ip` or unprivileged namespaces it is skipped by name.

mod af_packet;
mod bundles;
mod carrier;
mod marks;
#[path = "../support/mod.rs"]
mod support;

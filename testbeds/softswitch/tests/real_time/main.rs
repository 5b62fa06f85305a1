//! Frames on real links, in real time. Each test runs itself again in a user and network namespace of its own; where `unshare`,
//! `ip` or unprivileged namespaces are missing it is skipped by name.

mod af_packet;
mod carrier;
mod marks;
#[path = "../support/mod.rs"]
mod support;

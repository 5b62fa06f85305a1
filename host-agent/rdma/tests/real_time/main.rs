//! Tests on real links, in real time. Each test restarts itself in its own user and network namespace.

mod bundles;
mod group;
mod veth;

//! Frames on real links, in real time. Each test runs itself again in a user and network namespace of its own.

mod group;
mod veth;

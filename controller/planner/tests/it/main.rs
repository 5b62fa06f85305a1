//! The planners from without.
#![allow(clippy::disallowed_methods)] // Tests read clocks and start an oracle; the crate does not.

mod baseline;
mod fluid;
mod golden;
mod grid;
mod solve;
mod solve_oracle;

//! The planners from outside.
#![allow(clippy::disallowed_methods)] // Tests read clocks and start an oracle; the crate does not.

mod goat;
mod golden;
mod golden_goat;
mod golden_inart;
mod inart;
mod solve;
mod solve_oracle;

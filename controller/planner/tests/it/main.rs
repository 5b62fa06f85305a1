//! Integration tests of the planners.
#![allow(clippy::disallowed_methods)] // Tests read clocks and start an oracle; the crate does not.

mod baseline;
mod flow;
mod goat;
mod golden;
mod golden_goat;
mod golden_inart;
mod grid;
mod inart;
mod injection;
mod placement;
mod solve;
mod solve_oracle;

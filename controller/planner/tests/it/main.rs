//! The planners from outside.

mod golden;
mod solve;

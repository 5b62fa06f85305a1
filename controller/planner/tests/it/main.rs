//! The planners from outside.

mod baseline;
mod fluid;
mod golden;

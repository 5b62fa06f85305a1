//! The planners from outside.

mod golden;

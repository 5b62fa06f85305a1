//! The tests of the model checker, as one program.

mod right;
mod wrong;

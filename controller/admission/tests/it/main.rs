//! The book of a switch, from outside.

mod property;
mod told;

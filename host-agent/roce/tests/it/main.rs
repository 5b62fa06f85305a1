//! The crate from outside: endpoints on a network in virtual time.

mod chaos;
mod common;
mod connections;

//! The tests of this crate from outside: experiments in sandboxes, in real time, and the dissector.

mod dissector;
mod recorder;
mod sandbox;

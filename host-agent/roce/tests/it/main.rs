//! Tests of the public interface: endpoints on a network in virtual time.

mod chaos;
mod common;
mod congestion;
mod connections;
mod loss;
mod refused;
mod unreliable;

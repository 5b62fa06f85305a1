//! Tests with booted machines, each on its own network. A test is skipped by name if the image or tap interfaces are missing.

mod capture;
mod handshakes;
mod host;
mod interoperation;
mod lifetime;
mod network;

//! Machines that really boot, on networks of the test's own. Each test is skipped by name where the image or tap interfaces are
//! missing.

mod capture;
mod handshakes;
mod host;
mod interoperation;
mod lifetime;
mod network;

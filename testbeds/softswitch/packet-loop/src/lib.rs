//! Ports, and the thread that moves frames between them and a P4 program: the code that every packet of the embedded
//! switch passes. It is a crate of its own so that it can be optimized while the rest of `softswitch` compiles fast.

pub mod dataplane;
pub mod driver;
pub mod ports;
pub mod trace;

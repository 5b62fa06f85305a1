//! Ports, and the thread that moves frames between them and a P4 program: what every packet passes of the embedded switch. A crate
//! of its own, so that it is small and optimized while the rest of `softswitch` compiles fast.

pub mod dataplane;
pub mod driver;
pub mod ports;
pub mod trace;

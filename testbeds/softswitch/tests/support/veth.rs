//! Interfaces of a test's own as ports of a switch.

use softswitch::ports::{self, Io, PortIo, RingOptions};
pub use test_support::namespace::{in_namespace, ip, veth};

/// An interface as a port.
pub fn open(interface: &str, io: Io) -> Box<dyn PortIo> {
    let options = ports::Options {
        io,
        ring: RingOptions::default(),
    };
    ports::open(interface, options).unwrap().port
}

/// Sends a frame; how many were lost.
pub fn send(port: &mut Box<dyn PortIo>, frame: &[u8]) -> usize {
    port.send(frame).unwrap();
    port.flush().unwrap()
}

//! A test's own interfaces as ports of a switch.

use super::{CPU_PORT, program};
use softswitch::driver::{self, Driver};
use softswitch::ports::{self, Frames, Io};
pub use test_support::namespace::{in_namespace, ip, veth};

/// Opens an interface as a port.
pub fn open(interface: &str, io: Io) -> Box<dyn Frames> {
    let options = ports::Options {
        io,
        ..ports::Options::default()
    };
    ports::open(interface, options).unwrap().frames
}

/// Sends a frame; returns the number of lost frames.
pub fn send(port: &mut Box<dyn Frames>, frame: &[u8]) -> usize {
    port.send(frame).unwrap();
    port.flush().unwrap()
}

/// A switch that sends frames for address 2 by port 2.
pub fn forwarding(ports: Vec<(u32, Box<dyn Frames>)>) -> Driver {
    let driver = driver::start(ports, CPU_PORT).unwrap();
    let mut program = program().dataplane;
    let key = vec![p4lang::runtime::FieldMatch {
        field: "dst".into(),
        value: p4lang::runtime::Match::exact(2),
    }];
    let action = p4lang::runtime::ActionCall {
        name: "MyIngress.send".into(),
        params: vec![("port".into(), 2.into())],
    };
    let entry = p4lang::runtime::TableEntry {
        table: "MyIngress.forward".into(),
        key,
        priority: 0,
        action,
    };
    program.switch_mut().insert_entry(&entry).unwrap();
    let start = |core: &mut driver::Core| {
        core.save(program);
        core.commit();
    };
    driver.handle.run_blocking(start).unwrap();
    driver
}

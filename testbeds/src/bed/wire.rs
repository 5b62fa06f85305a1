//! A topology of one switch whose ports are two existing interfaces.

use scenario::model::topology::Topology;

use super::Attachment;
use super::recording::PortInterface;

pub struct WireLinks {
    /// Number and interface name of each port, in order of number.
    ports: Vec<(u32, String)>,
}

impl WireLinks {
    pub fn new(topology: &Topology, interfaces: [&str; 2]) -> WireLinks {
        let ports = topology.ports(Topology::WIRE).zip(interfaces);
        WireLinks {
            ports: ports
                .map(|(port, interface)| (port.number, interface.to_owned()))
                .collect(),
        }
    }

    pub fn port(&self, switch: &str, number: u32) -> Option<Attachment> {
        let mut ports = self.ports.iter().filter(|_| switch == Topology::WIRE);
        let (_, interface) = ports.find(|(port, _)| *port == number)?;
        Some(Attachment::Interface(interface.clone()))
    }

    pub fn port_interface(&self, switch: &str, number: u32) -> Option<PortInterface> {
        match self.port(switch, number)? {
            // The topology does not know the rates of existing interfaces.
            Attachment::Interface(name) => Some(PortInterface {
                name,
                rate_bps: None,
            }),
            Attachment::Socket(_) => None,
        }
    }
}

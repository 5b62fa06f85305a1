//! A wire: the switch's ports are two interfaces that exist.

use scenario::topology::Topology;

use super::{Attachment, BedError, Options, PortRecording};
use crate::capture::Capture;
use crate::host::Namespace;

pub struct Links {
    /// By number of the port.
    ports: Vec<(u32, String)>,
    captures: Vec<(u32, Capture)>,
}

impl Links {
    pub fn new(topology: &Topology, interfaces: [&str; 2]) -> Links {
        let ports = topology.ports(Topology::WIRE).zip(interfaces);
        Links {
            ports: ports
                .map(|(port, interface)| (port.number, interface.to_owned()))
                .collect(),
            captures: Vec::new(),
        }
    }

    pub fn record(&mut self, options: &Options) -> Result<(), BedError> {
        if options.record.is_empty() {
            return Ok(());
        }
        let here = Namespace::current()?;
        for (port, interface) in &self.ports {
            let capture = Capture::start(&here, interface, options.filter, options.limits)?;
            self.captures.push((*port, capture));
        }
        Ok(())
    }

    pub fn port(&self, switch: &str, number: u32) -> Option<Attachment> {
        let mut ports = self.ports.iter().filter(|_| switch == Topology::WIRE);
        let (_, interface) = ports.find(|(port, _)| *port == number)?;
        Some(Attachment::Interface(interface.clone()))
    }

    pub fn recordings(&mut self) -> Result<Vec<PortRecording>, BedError> {
        let stopped = Capture::stop_all(self.captures.drain(..))?;
        let recordings = stopped.into_iter().map(|(port, recording)| PortRecording {
            switch: Topology::WIRE.to_owned(),
            port,
            recording,
            undelivered: 0,
        });
        Ok(recordings.collect())
    }
}

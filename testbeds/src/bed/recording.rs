//! Records the ports of switches whose links are network interfaces.

use super::BedError;
use crate::capture::{Filter, Handed, RecordedPort, Recorder};
use crate::host::Namespace;
use proof::Digest;

/// A network interface that is a switch's port.
pub(super) struct PortInterface {
    pub name: String,
    /// Rate of the interface's link in bit/s; `None`: unknown.
    pub rate_bps: Option<u64>,
}

/// A running recorder of switch ports that are interfaces of this namespace.
pub(super) struct InterfaceRecording {
    recorder: Recorder,
}

impl InterfaceRecording {
    /// Starts to record the ports; `sink` gets their frames as they pass.
    pub fn hand_over(
        ports: Vec<PortInterface>,
        filter: Filter,
        keep: u32,
        digest: Digest,
        sink: impl FnMut(Handed) + Send + 'static,
    ) -> Result<InterfaceRecording, BedError> {
        let ports = recorded(ports, filter, keep)?;
        Ok(InterfaceRecording {
            recorder: Recorder::start(ports, Some(digest), sink)?,
        })
    }

    /// Ends the recording and returns the number of lost frames for each port.
    pub fn stop(self) -> Result<Vec<u64>, BedError> {
        Ok(self.recorder.stop()?)
    }
}

fn recorded(
    ports: Vec<PortInterface>,
    filter: Filter,
    keep: u32,
) -> Result<Vec<RecordedPort>, BedError> {
    let here = Namespace::current()?;
    let recorded = ports.into_iter().enumerate().map(|(port, interface)| {
        let PortInterface { name, rate_bps } = interface;
        RecordedPort {
            port,
            namespace: here.clone(),
            interface: name,
            filter,
            keep,
            rate_bps,
        }
    });
    Ok(recorded.collect())
}

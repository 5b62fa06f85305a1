//! What records the switches' ports of a bed whose links are interfaces.

use super::{BedError, PortRecording};
use crate::capture::{Collection, Filter, Handed, Limits, RecordedPort, Recorder};
use crate::host::Namespace;
use proof::Digest;

/// An interface that is a switch's port.
pub(super) struct PortInterface {
    pub name: String,
    /// Rate of its link in bit/s, if it is known.
    pub rate_bps: Option<u64>,
}

/// A recorder of interfaces of this namespace.
pub(super) struct InterfaceRecording {
    recorder: Recorder,
    /// The collected recordings and their ports, if the bed collects them.
    collected: Option<(Vec<(String, u32)>, Collection)>,
}

impl InterfaceRecording {
    /// Records ports and collects what passes them.
    pub fn collect(
        ports: Vec<((String, u32), PortInterface)>,
        filter: Filter,
        limits: Limits,
    ) -> Result<InterfaceRecording, BedError> {
        let collection = Collection::new(ports.len(), limits);
        let (names, interfaces): (Vec<_>, Vec<_>) = ports.into_iter().unzip();
        let ports = recorded(interfaces, filter, limits.frame_bytes)?;
        Ok(InterfaceRecording {
            recorder: Recorder::start(ports, None, collection.sink())?,
            collected: Some((names, collection)),
        })
    }

    /// Records ports and hands over what passes them.
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
            collected: None,
        })
    }

    /// Ends the recording: the lost frames of each port, and the recordings that were collected.
    pub fn stop(self) -> Result<(Vec<u64>, Vec<PortRecording>), BedError> {
        let lost = self.recorder.stop()?;
        let Some((ports, collection)) = self.collected else {
            return Ok((lost, Vec::new()));
        };
        let recordings = ports.into_iter().zip(collection.finish(lost.clone()));
        let recordings = recordings.map(|((switch, port), recording)| PortRecording {
            switch,
            port,
            recording,
            // What is captured at the switch's end has passed the link.
            undelivered: 0,
        });
        Ok((lost, recordings.collect()))
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
